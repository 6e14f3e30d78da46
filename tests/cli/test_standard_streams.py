"""Closed, full and narrow standard streams."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.slow


def shell(rest: str, **environment: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        ["sh", "-c", f'"$0" -m thresher.cli {rest}', sys.executable],
        capture_output=True, check=False, env={**os.environ, **environment}, timeout=120,
    )  # fmt: skip


def test_a_result_for_a_closed_stdout_is_a_fault() -> None:
    done = shell("config --reference >&-")
    assert (done.returncode, done.stderr.startswith(b"thresher: standard output is closed")) == (1, True)


@pytest.mark.parametrize("streams", ["2>&-", "<&- 2>&-", "2>/dev/full"])
def test_remarks_that_nobody_receives_do_not_fail(streams: str) -> None:
    done = shell(f"config --reference {streams}")
    assert (done.returncode, done.stdout[:15]) == (0, b"# Configuration")
    assert shell(f"status nowhere {streams}").returncode == 1


def test_a_narrow_encoding_of_stdout_loses_no_command() -> None:
    done = shell("config --reference | cat", PYTHONIOENCODING="ascii", PYTHONUTF8="0")
    assert b"Traceback" not in done.stderr and b"\\u2026" not in done.stderr


def test_a_full_stdout_is_a_fault() -> None:
    done = shell("config --reference >/dev/full")
    assert (done.returncode, b"No space left" in done.stderr) == (1, True)
