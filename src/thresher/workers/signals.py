"""Signals and process ends: Ctrl-C and SIGTERM are for the command, which ends the processes that it started."""

from __future__ import annotations

import os
import select
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

REQUESTS_TO_END = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def blocked_in_children() -> Iterator[None]:
    """Start processes with these signals blocked, until each says with `ignore` that it ignores them.

    A terminal and a service manager send them to all processes at once, also to one that is still loading.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, REQUESTS_TO_END)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def ignore() -> None:
    """Ignore these signals in this process: the one that started it handles them."""
    for name in REQUESTS_TO_END:
        signal.signal(name, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, REQUESTS_TO_END)


def exit_when_closed(pipe: int) -> None:
    """End this process, even within a call, as soon as the other end of a pipe is closed."""

    def watch() -> None:
        watched = select.poll()
        watched.register(pipe, 0)  # no events: a hang-up is always reported
        watched.poll()
        os._exit(0)

    threading.Thread(target=watch, name="exit when closed", daemon=True).start()
