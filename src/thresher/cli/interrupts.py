"""Ctrl-C at any moment of a command: one line and exit code 130, never a traceback."""

from __future__ import annotations

import atexit
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from thresher.files.durable_files import discard_unfinished

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_IMPORTS = "<frozen importlib._bootstrap>"
_COMPILERS = (f"{os.sep}numba{os.sep}", f"{os.sep}llvmlite{os.sep}")


def install() -> None:
    """Raise KeyboardInterrupt on SIGINT and SIGTERM, or leave at once where an exception would be lost.

    A module that is interrupted while it is imported, or a kernel while it is compiled, cannot pass the exception
    on: extension modules turn it into an ImportError, or print it and continue. At these moments files that are not
    whole yet are deleted, and the process ends on the spot. The same holds while the interpreter shuts down.
    """
    for number in _SIGNALS:
        signal.signal(number, _interrupt)
    atexit.register(_leave_on_signals)


@contextmanager
def while_loading() -> Iterator[None]:
    """Leave at once on Ctrl-C while the modules of the command line are imported."""
    if threading.current_thread() is not threading.main_thread():  # only the main thread may set handlers
        yield
        return
    before = {number: signal.signal(number, _leave) for number in _SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _interrupt(number: int, frame: FrameType | None) -> None:
    while frame is not None:
        name = frame.f_code.co_filename
        if name == _IMPORTS or any(part in name for part in _COMPILERS):
            _leave(number, frame)
        frame = frame.f_back
    raise KeyboardInterrupt


def _leave(_number: int, _frame: FrameType | None) -> None:
    discard_unfinished()
    os.write(sys.__stderr__.fileno() if sys.__stderr__ else 2, b"thresher: interrupted\n")
    os._exit(130)


def _leave_on_signals() -> None:
    for number in _SIGNALS:
        signal.signal(number, _leave)
