"""Processes that kill themselves between two file operations, to see that a kill at any moment does no harm."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

from support import TESTS

OPERATIONS = ("open", "os.rename", "os.remove", "os.mkdir", "shutil.rmtree")  # audit events of Python


def kill_after(operations: int, part: str) -> None:
    """Kill this process with the file operation that follows so many on paths that contain `part`."""
    done = 0

    def count(event: str, arguments: tuple[object, ...]) -> None:
        nonlocal done
        if event in OPERATIONS and part in str(arguments[0]):
            done += 1
            if done > operations:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(count)


def is_killed(script: str, directory: Path, operations: int) -> bool:
    """Run a script with a directory and a number of operations; return whether it was killed or came to its end."""
    ended = subprocess.run(
        [sys.executable, "-c", script, str(directory), str(operations)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(TESTS), *sys.path])},
        check=False,
        timeout=60,
    )
    assert ended.returncode in (0, -signal.SIGKILL)
    return ended.returncode != 0
