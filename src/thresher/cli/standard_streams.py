"""Standard streams that are closed, full or in a narrow encoding."""

from __future__ import annotations

import io
import os
import sys
from typing import NoReturn

from thresher.errors import DataError

_MODES = {0: os.O_RDONLY, 1: os.O_WRONLY, 2: os.O_WRONLY}


def prepare() -> None:
    """Make the standard streams usable: no file gets the descriptor of a closed one, and remarks never fail.

    A result that would go to a closed stdout raises DataError. Streams that a caller put in place stay as they are.
    """
    for number, mode in _MODES.items():
        try:
            os.fstat(number)
        except OSError:
            os.dup2(os.open(os.devnull, mode), number)
    if sys.stdin is None:
        sys.stdin = io.TextIOWrapper(io.FileIO(0, closefd=False))
    if sys.stdout is None:
        sys.stdout = io.TextIOWrapper(_ClosedOutput(), "utf-8", write_through=True)
    elif sys.stdout is sys.__stdout__ and isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    if sys.stderr is None or sys.stderr is sys.__stderr__:
        encoding = getattr(sys.stderr, "encoding", None) or "utf-8"
        sys.stderr = io.TextIOWrapper(
            io.BufferedWriter(_Remarks(2, "wb", closefd=False)),
            encoding,
            "backslashreplace",
            line_buffering=True,
        )


class _ClosedOutput(io.BytesIO):
    """The stdout of a process that was started without one."""

    def write(self, _: object, /) -> NoReturn:
        raise DataError("standard output is closed; open it, or name a file with -o")


class _Remarks(io.FileIO):
    """The stderr of the process; remarks that cannot be written are dropped, and the work continues."""

    def write(self, data: bytes, /) -> int:  # type: ignore[override]
        try:
            return super().write(data)
        except OSError:
            return len(data)
