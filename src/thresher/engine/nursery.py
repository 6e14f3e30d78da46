"""Where readers come from: a process that has loaded all they need, and splits one off whenever it is asked to."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress

import msgspec

from thresher.config import Reading
from thresher.engine import signals
from thresher.engine.worker import Order

WORKER = ("-m", "thresher.engine.worker")

_encode = msgspec.msgpack.Encoder().encode


class Nursery:
    """Readers to order. Its process is started with the first order, and again should it have died.

    Others can share it: whoever holds its door can order, and the process ends when nobody holds it any more.
    """

    def __init__(self, worker: Sequence[str] = WORKER, door: socket.socket | None = None) -> None:
        self._worker = worker
        self._door = door  # one way: readers answer on sockets of their own
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def door(self) -> socket.socket:
        return self._door or self._open()

    def order(self, language: str, settings: Reading) -> socket.socket:
        """Our end of a reader's socket; it comes to life when the reader is ready."""
        message = _encode(Order(language, settings))
        ours, theirs = socket.socketpair()
        with theirs:
            try:
                socket.send_fds(self.door, [message], [theirs.fileno()])
            except OSError:  # it has died
                self.close()
                socket.send_fds(self.door, [message], [theirs.fileno()])
        return ours

    def close(self) -> None:
        """Let go of it. Readers live on, until their sockets are closed."""
        if self._door:
            self._door.close()
        if self._process:
            self._process.kill()
            self._process.wait()
        self._door = self._process = None

    def _open(self) -> socket.socket:
        self._door, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs, signals.kept_from_children():
            self._process = subprocess.Popen(
                [sys.executable, *self._worker, str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                start_new_session=True,  # Ctrl-C is for the crawler, which lets the readers go
                env=os.environ | {"OPENBLAS_NUM_THREADS": "1"},  # with threads it could not be forked
            )
        return self._door


# What the engine lends to each of its processes.
_lent: list[Nursery] = []


def lend(nursery: Nursery) -> None:
    """Let all readers of this process come from there."""
    _lent[:] = [nursery]


def lent() -> Nursery | None:
    return _lent[0] if _lent else None


class Handle:
    """A reader process, known so that never another is meant that has its number by now."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._descriptor = os.pidfd_open(pid)

    def kill(self) -> None:
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(self._descriptor, signal.SIGKILL)

    def close(self) -> None:
        os.close(self._descriptor)
