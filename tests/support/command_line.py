"""Commands run inside the test process, since loading takes longer than their work, or on a terminal."""

from __future__ import annotations

import contextlib
import io
import json
import os
import pty
import re
import subprocess
import sys
import warnings
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
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("always")
        patch.setattr(sys, "argv", ["thresher", *map(str, arguments)])
        try:
            main()
        except SystemExit as ending:
            code = int(ending.code or 0)
    out.flush()
    return CommandResult(code, out.buffer.getvalue().decode(), errors.getvalue())  # type: ignore[attr-defined]


def in_terminal(columns: int, *arguments: object) -> str:
    """Return the output of a command on a terminal of some width, without colours; it must succeed."""
    ours, theirs = pty.openpty()
    environment = {**os.environ, "COLUMNS": str(columns), "TERM": "xterm", "NO_COLOR": "1"}
    command = [sys.executable, "-m", "thresher.cli", *map(str, arguments)]
    with subprocess.Popen(
        command, stdin=theirs, stdout=theirs, stderr=subprocess.DEVNULL, env=environment
    ) as process:
        os.close(theirs)
        written = b""
        try:
            while chunk := os.read(ours, 65_536):
                written += chunk
        except OSError:  # Linux reports the end of a terminal as an error.
            pass
        finally:
            os.close(ours)
    assert process.returncode == 0, written
    return re.sub(r"\x1b\[[0-9;]*m", "", written.decode()).replace("\r\n", "\n")
