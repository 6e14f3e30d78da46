"""Calls run on a Ray cluster; of all the house, this module alone knows Ray.

Ray places calls on nodes and tells when one is lost. It never tries again by itself: whoever hands out calls
decides that, and what they make is published so that a call that was run twice has done no harm.

A node that is killed takes its connections with it, and Ray tells at once. One that hangs, or cannot be reached,
keeps them: Ray's table of nodes has it as dead after about a minute, but whoever waits for a call there waits for
ever. So a call first tells on which node it runs, and has ended with a fault when the table has that node as dead.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from thresher.config import ConfigError
from thresher.engine.calls import Call, Ended, perform

AHEAD = 2  # calls handed to Ray for each processor: one that is run, one that waits there
LOOK = 1.0  # seconds between two looks at deadlines and nodes


@dataclass
class _UnderWay:
    """A call that was handed to Ray."""

    number: int
    call: Call
    began: float
    node: str = ""  # on which it runs; empty: it has not begun


def _placed(number: int, call: Call) -> Iterator[str | Ended]:
    """The node on which a call is run, and how it ended."""
    import ray

    yield ray.get_runtime_context().get_node_id()
    yield perform(number, call)


class Cluster:
    """An engine on a Ray cluster: at an address, or, without one, of this machine alone."""

    def __init__(self, address: str = "") -> None:
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # nobody is told of our work
        try:
            import ray
        except ImportError:
            raise ConfigError("Ray is not installed; try: pip install 'thresher[ray]'") from None
        self._ray: Any = ray
        options: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR", "namespace": "thresher"}
        if not address:
            options["include_dashboard"] = False
        try:
            ray.init(address or "local", **options)
        except (ConnectionError, ValueError, RuntimeError) as fault:
            raise ConfigError(f"there is no Ray cluster at {address or 'this machine'}: {fault}") from None
        # What it tells must be heard before it goes on: a call that has not told its node has not begun.
        self._perform = self._ray.remote(
            max_retries=0, num_returns="streaming", _generator_backpressure_num_objects=1
        )(_placed)

    def run(self, calls: Sequence[Call]) -> Iterator[Ended]:
        waiting = iter(enumerate(calls))
        under_way: dict[Any, _UnderWay] = {}  # by the streams of what they tell
        looked, nodes = time.monotonic(), self._nodes()
        try:
            while True:
                room = AHEAD * max(int(self._ray.cluster_resources().get("CPU", 1)), 1)
                while len(under_way) < room and (handed := next(waiting, None)):
                    under_way[self._perform.remote(*handed)] = _UnderWay(*handed, time.monotonic())
                if not under_way:
                    return
                ready, _ = self._ray.wait(list(under_way), num_returns=1, timeout=LOOK)
                for stream in ready:
                    told = self._told(stream, under_way[stream])
                    if isinstance(told, Ended):
                        del under_way[stream]
                        yield told
                    else:
                        under_way[stream].node = told
                if time.monotonic() - looked >= LOOK:
                    before, looked, nodes = nodes, time.monotonic(), self._nodes()
                    yield from self._late(under_way)
                    yield from self._lost(under_way, nodes, some_died=not before <= nodes)
        finally:
            for stream in under_way:
                self._ray.cancel(stream, force=True)

    def _nodes(self) -> set[str]:
        """The nodes that are alive."""
        return {node["NodeID"] for node in self._ray.nodes() if node["Alive"]}

    def _told(self, stream: Any, one: _UnderWay) -> str | Ended:
        """What a call tells next: where it runs, its answer, or that there will be none."""
        try:
            told: str | Ended = self._ray.get(next(stream))
        except self._ray.exceptions.RayError as fault:
            why = str(fault).strip().splitlines()[0] if str(fault).strip() else type(fault).__name__
            return _without_answer(one, f"its process died: {why}")
        return told

    def _late(self, under_way: dict[Any, _UnderWay]) -> Iterator[Ended]:
        """Calls that have had their time; how long one waited for its turn counts, too."""
        now = time.monotonic()
        for stream, one in list(under_way.items()):
            if one.call.deadline and now - one.began > one.call.deadline:
                del under_way[stream]
                self._ray.cancel(stream, force=True)
                yield _without_answer(one, f"it took longer than {one.call.deadline:.0f} s")

    def _lost(self, under_way: dict[Any, _UnderWay], nodes: set[str], *, some_died: bool) -> Iterator[Ended]:
        """Calls whose nodes have died. Those that had not begun may be on their way there: handed out anew."""
        for stream, one in list(under_way.items()):
            if one.node and one.node not in nodes:
                yield _without_answer(one, "its node died, or cannot be reached")
            elif not one.node and some_died:
                under_way[self._perform.remote(one.number, one.call)] = one
            else:
                continue
            del under_way[stream]
            self._ray.cancel(stream, force=True)

    def close(self) -> None:
        self._ray.shutdown()


def _without_answer(one: _UnderWay, fault: str) -> Ended:
    return Ended(one.number, fault=fault, seconds=time.monotonic() - one.began)
