"""Commands run inside the test process: loading everything they need takes longer than their work."""

from __future__ import annotations

import contextlib
import io
import json
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from thresher.cli import main


class CommandResult(NamedTuple):
    """Exit code and output of a command."""

    returncode: int
    stdout: str
    stderr: str

    def rows(self) -> list[dict[str, Any]]:
        """Return the JSON lines on stdout."""
        return [json.loads(line) for line in self.stdout.splitlines()]


def run(*arguments: object, cwd: Path | None = None) -> CommandResult:
    """Run a command and return its exit code and output."""
    out, errors = io.TextIOWrapper(io.BytesIO(), "utf-8"), io.StringIO()
    code = 0
    with (
        pytest.MonkeyPatch.context() as patch,
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(errors),
        contextlib.chdir(cwd or Path.cwd()),
    ):
        patch.setattr(sys, "argv", ["thresher", *map(str, arguments)])
        try:
            main()
        except SystemExit as ending:
            code = int(ending.code or 0)
    out.flush()
    return CommandResult(code, out.buffer.getvalue().decode(), errors.getvalue())  # type: ignore[attr-defined]
