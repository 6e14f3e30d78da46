"""The fork server: a process that loads the models once, then forks reader processes on request."""

from __future__ import annotations

import logging
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress

import msgspec

from thresher.config import ReadSettings
from thresher.workers import signals
from thresher.workers.reader_worker import ReaderRequest

WORKER = ("-m", "thresher.workers.reader_worker")

_log = logging.getLogger(__name__)
_encode = msgspec.msgpack.Encoder().encode


class ForkServer:
    """A client of a fork server, which it starts with the first request and again after it died.

    Several processes can share one server: each that holds the `requests` socket can request readers. The server
    ends when the last of them closes it.
    """

    def __init__(self, worker: Sequence[str] = WORKER, requests: socket.socket | None = None) -> None:
        self._worker = worker
        self._requests = requests  # one way; readers answer on sockets of their own
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def requests(self) -> socket.socket:
        """The socket that requests are sent to; the server is started if there is none."""
        return self._requests or self._start()

    def request(self, language: str, settings: ReadSettings) -> socket.socket:
        """Request a reader and return our end of its socket; the reader writes to it when it is ready.

        Raise OSError if the server cannot be started or dies at once.
        """
        message = _encode(ReaderRequest(language, settings))
        ours, theirs = socket.socketpair()
        try:
            with theirs:
                try:
                    socket.send_fds(self.requests, [message], [theirs.fileno()])
                except OSError as fault:
                    _log.warning("the fork server of the readers died (%s); it is started again", fault)
                    self.close()
                    socket.send_fds(self.requests, [message], [theirs.fileno()])
        except OSError:
            ours.close()
            raise
        return ours

    def close(self) -> None:
        """Stop the server, if this process started it. Readers live on until their sockets are closed."""
        if self._requests:
            self._requests.close()
        if self._process:
            self._process.kill()
            self._process.wait()
        self._requests = self._process = None

    def _start(self) -> socket.socket:
        self._requests, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs, signals.blocked_in_children():
            self._process = subprocess.Popen(
                [sys.executable, *self._worker, str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                start_new_session=True,  # Ctrl-C is for the crawler, which ends the readers
                env=os.environ
                | {"OPENBLAS_NUM_THREADS": "1"},  # a process with threads cannot be forked safely
            )
        return self._requests


# The server that the engine shares with each of its processes.
_shared: list[ForkServer] = []


def share(server: ForkServer) -> None:
    """Let all readers that this process starts come from this server."""
    _shared[:] = [server]


def shared() -> ForkServer | None:
    """Return the server that all readers of this process come from, if one was set."""
    return _shared[0] if _shared else None


class ChildHandle:
    """A reader process that can be killed; its number may be reused, the descriptor is not."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._descriptor = os.pidfd_open(pid)

    def kill(self) -> None:
        """Kill the process, unless it has ended."""
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(self._descriptor, signal.SIGKILL)

    def close(self) -> None:
        """Close the descriptor."""
        os.close(self._descriptor)
