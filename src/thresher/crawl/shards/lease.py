"""A shard's lease: a thread that speaks to the coordinator, once a second or so, whatever the loop is busy with.

The lease runs from the moment at which the shard spoke, on a clock that goes on while a machine sleeps; the
coordinator counts from the moment at which it heard. So the shard knows first that it has lost its hosts.
"""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable

from thresher.crawl.ending import CrawlFault
from thresher.crawl.shards.messages import Beat, Broken, Frames, Word

_frames: Frames[Word] = Frames(Word)


class Superseded(CrawlFault):
    """Another has taken over the hosts of this shard, or soon will."""


class Unreachable(CrawlFault):
    """The coordinator is not to be had from here."""


def now() -> float:
    """Seconds that pass also while the machine is suspended."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class Lease:
    """The right to visit the hosts of a shard."""

    def __init__(
        self,
        place: tuple[str, int],
        seconds: float,
        beat: Callable[[], Beat],
        heed: Callable[[Word], None],
        lost: Callable[[], None],
    ) -> None:
        """`beat` tells what to say, `heed` is told the answer, `lost` that there is no more: all in the thread."""
        self._seconds = seconds
        self._beat = beat
        self._heed = heed
        self._lost = lost
        self._until = float("-inf")
        self._ended = threading.Event()
        self._soon = threading.Event()
        try:
            self._pipe = socket.create_connection(place, timeout=seconds)
        except OSError as fault:
            raise Unreachable(
                f"{socket.gethostname()} cannot reach the coordinator at {place[0]}, port {place[1]} ({fault}): "
                "all machines must reach each other, look at firewalls and at the address of the first"
            ) from None
        self._pipe.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._thread = threading.Thread(target=self._speak, name="lease", daemon=True)

    def start(self) -> None:
        self._thread.start()

    @property
    def holds(self) -> bool:
        return now() < self._until

    @property
    def address(self) -> str:
        """The address of this machine on the way to the coordinator."""
        found: str = self._pipe.getsockname()[0]
        return found

    def hurry(self) -> None:
        """There is something to say."""
        self._soon.set()

    def _speak(self) -> None:
        try:
            while not self._ended.is_set():
                spoken = now()
                self._pipe.sendall(_frames.pack(self._beat()))
                word = _frames.receive(self._pipe)
                self._until = spoken + self._seconds
                self._heed(word)
                self._soon.wait(min(1.0, self._seconds / 4))
                self._soon.clear()
        except (Broken, OSError):
            pass
        finally:
            self._until = float("-inf")
            self._lost()

    def close(self) -> None:
        self._ended.set()
        self._soon.set()
        if self._thread.is_alive():
            self._thread.join(self._seconds)
        self._pipe.close()
