"""Calls run on a Ray cluster; of all the house, this module alone knows Ray.

Ray places calls on nodes and tells when one is lost. It never tries again by itself: whoever hands out calls
decides that, and what they make is published so that a call that was run twice has done no harm.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from typing import Any

from thresher.config import ConfigError
from thresher.engine.calls import Call, Ended, perform

AHEAD = 2  # calls handed to Ray for each processor: one that is run, one that waits there
LOOK = 1.0  # seconds between two looks at deadlines


class Cluster:
    """An engine on a Ray cluster: at an address, or, without one, of this machine alone."""

    def __init__(self, address: str = "") -> None:
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # nobody is told of our work
        try:
            import ray
        except ImportError:
            raise ConfigError("Ray is not installed; try: pip install 'thresher[ray]'") from None
        self.ray: Any = ray
        options: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR", "namespace": "thresher"}
        if not address:
            options["include_dashboard"] = False
        try:
            ray.init(address or "local", **options)
        except (ConnectionError, ValueError, RuntimeError) as fault:
            raise ConfigError(f"there is no Ray cluster at {address or 'this machine'}: {fault}") from None
        self._perform = ray.remote(max_retries=0)(perform)
        self.started: list[str] = []  # where calls run that were started
        self.suspects: set[str] = (
            set()
        )  # where some fell silent: Ray takes a while to think of a node as dead
        self.address: str = self.ray.util.get_node_ip_address()

    def run(self, calls: Sequence[Call]) -> Iterator[Ended]:
        waiting = iter(enumerate(calls))
        under_way: dict[Any, tuple[int, Call, float]] = {}
        try:
            while True:
                room = AHEAD * max(int(self.ray.cluster_resources().get("CPU", 1)), 1)
                while len(under_way) < room and (handed := next(waiting, None)):
                    number, call = handed
                    under_way[self._perform.remote(number, call)] = (number, call, time.monotonic())
                if not under_way:
                    return
                ready, _ = self.ray.wait(list(under_way), num_returns=1, timeout=LOOK)
                for reference in ready:
                    yield self.ended(reference, *under_way.pop(reference))
                yield from self._late(under_way)
        finally:
            for reference in under_way:
                self.ray.cancel(reference, force=True)

    def start(self, call: Call) -> _Started:
        node = self._quietest_node()
        where = self.ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy(node, soft=True)
        # A sliver of a processor: as many as there are find room, but not on a node that is to do no work.
        station = self.ray.remote(num_cpus=0.01, max_restarts=0, scheduling_strategy=where)(_Station)
        return _Started(self, station.remote(), node, call)

    def _quietest_node(self) -> str:
        """The node on which the fewest calls were started, before all those on which one had to be given up."""
        nodes = [
            node["NodeID"] for node in self.ray.nodes() if node["Alive"] and node["Resources"].get("CPU")
        ]
        if not nodes:
            raise ConfigError("the Ray cluster has no node with processors; start one: ray start --address …")
        found: str = min(nodes, key=lambda node: (node in self.suspects, self.started.count(node)))
        return found

    def ended(self, reference: Any, number: int, _: Call, began: float) -> Ended:
        """What became of a call: its answer, or that there will be none."""
        try:
            answer: Ended = self.ray.get(reference)
        except self.ray.exceptions.RayError as fault:
            why = str(fault).strip().splitlines()[0] if str(fault).strip() else type(fault).__name__
            return Ended(number, fault=f"its process died: {why}", seconds=time.monotonic() - began)
        return answer

    def _late(self, under_way: dict[Any, tuple[int, Call, float]]) -> Iterator[Ended]:
        """Calls that have had their time; how long one waited for its turn counts, too."""
        now = time.monotonic()
        for reference, (number, call, began) in list(under_way.items()):
            if call.deadline and now - began > call.deadline:
                del under_way[reference]
                self.ray.cancel(reference, force=True)
                yield Ended(number, fault=f"it took longer than {call.deadline:.0f} s", seconds=now - began)

    def close(self) -> None:
        self.ray.shutdown()


class _Station:
    """An actor: a process of its own on some node."""

    def perform(self, call: Call) -> Ended:
        return perform(0, call)


class _Started:
    """A call with an actor of its own."""

    def __init__(self, cluster: Cluster, station: Any, node: str, call: Call) -> None:
        self._cluster = cluster
        self._station = station
        self._node = node
        cluster.started.append(node)
        self._answer = station.perform.remote(call)
        self._call = call
        self._began = time.monotonic()

    def poll(self) -> Ended | None:
        ready, _ = self._cluster.ray.wait([self._answer], timeout=0)
        if not ready:
            return None
        ended = self._cluster.ended(self._answer, 0, self._call, self._began)
        self._leave()
        return ended

    def kill(self) -> None:
        self._cluster.suspects.add(self._node)
        self._leave()

    def _leave(self) -> None:
        self._cluster.started.remove(self._node)
        self._cluster.ray.kill(self._station)  # or the actor would wait for another call
