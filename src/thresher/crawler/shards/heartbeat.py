"""The lease of a shard: a thread exchanges heartbeats with the coordinator about once a second.

The thread does so even while the event loop is busy. The lease runs from the moment at which the heartbeat was
sent, on a clock that continues while the machine is suspended; the coordinator counts from the moment at which it
received it. So a shard knows that it has lost its hosts before the coordinator gives them away.
"""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable
from typing import Protocol

from thresher.crawler.shards.protocol import Frames, Heartbeat, HeartbeatReply, ProtocolError
from thresher.errors import CrawlError

INTERVAL_S = 1.0  # between heartbeats, unless the lease is short or there is something to report

_frames: Frames[HeartbeatReply] = Frames(HeartbeatReply)


class Superseded(CrawlError):
    """The hosts of this shard belong to another process, or soon will."""


class Unreachable(CrawlError):
    """The coordinator cannot be reached from this machine."""


def boot_time() -> float:
    """Return seconds of a clock that continues while the machine is suspended."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class HeartbeatReporter(Protocol):
    """The source of a lease's heartbeats. All methods are called in the thread of the lease."""

    def heartbeat(self) -> Heartbeat:
        """Return the next heartbeat."""

    def receive_reply(self, reply: HeartbeatReply) -> None:
        """Take the coordinator's reply."""

    def lease_lost(self) -> None:
        """Take note that the lease has ended."""


class ShardLease:
    """The right to visit the hosts of a shard."""

    def __init__(
        self,
        coordinator: tuple[str, int],
        seconds: float,
        opening: Heartbeat,
        clock: Callable[[], float] = boot_time,
    ) -> None:
        """Connect to the coordinator; raise Unreachable if that fails.

        `opening` is the heartbeat until there is a reporter: opening the state of a large shard takes longer than a
        lease.
        """
        self.reporter: HeartbeatReporter | None = None
        self._seconds = seconds
        self.opening = opening
        self._clock = clock
        self._until = float("-inf")
        self._ended = threading.Event()
        self._soon = threading.Event()
        try:
            self._pipe = socket.create_connection(coordinator, timeout=seconds)
        except OSError as fault:
            raise Unreachable(
                f"{socket.gethostname()} cannot reach the coordinator at {coordinator[0]}, port {coordinator[1]} "
                f"({fault}): all machines must reach each other; check firewalls and the address of the first"
            ) from None
        self._pipe.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._thread = threading.Thread(target=self._exchange, name="lease", daemon=True)

    def start(self) -> None:
        """Start the exchange of heartbeats."""
        self._thread.start()

    @property
    def holds(self) -> bool:
        """True if the lease has not ended."""
        return self._clock() < self._until

    @property
    def address(self) -> str:
        """The address of this machine on the way to the coordinator."""
        found: str = self._pipe.getsockname()[0]
        return found

    def hurry(self) -> None:
        """Send the next heartbeat at once."""
        self._soon.set()

    def _exchange(self) -> None:
        try:
            while not self._ended.is_set():
                sent = self._clock()
                heartbeat = self.reporter.heartbeat() if self.reporter else self.opening
                self._pipe.sendall(_frames.pack(heartbeat))
                reply = _frames.receive(self._pipe)
                self._until = sent + self._seconds
                if self.reporter:
                    self.reporter.receive_reply(reply)
                self._soon.wait(min(INTERVAL_S, self._seconds / 4))
                self._soon.clear()
        except (ProtocolError, OSError):
            pass
        finally:
            self._until = float("-inf")
            if self.reporter:
                self.reporter.lease_lost()

    def close(self) -> None:
        """End the lease."""
        self._ended.set()
        self._soon.set()
        if self._thread.is_alive():
            self._thread.join(self._seconds)
        self._pipe.close()
