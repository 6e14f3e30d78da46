"""Ctrl-C and requests to terminate are for the command; what it has started ends when it says so, or is gone."""

from __future__ import annotations

import os
import select
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

ASKING = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def kept_from_children() -> Iterator[None]:
    """For a process that is started meanwhile these signals wait until it says that it ignores them.

    A terminal and a service manager send them to all processes at once, also to one that is still loading.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ASKING)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def ignore() -> None:
    """Leave these signals to whoever started this process."""
    for name in ASKING:
        signal.signal(name, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, ASKING)


def end_with(pipe: int) -> None:
    """End this process, whatever it does, as soon as nobody holds the other side of a pipe any more."""

    def watch() -> None:
        watched = select.poll()
        watched.register(pipe, 0)  # for nothing: that somebody has hung up is told always
        watched.poll()
        os._exit(0)

    threading.Thread(target=watch, name="end", daemon=True).start()
