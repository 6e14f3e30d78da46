"""Calls run on a Ray cluster; of all the house, this module alone knows Ray.

Ray places calls on nodes and tells when one is lost. It never tries again by itself: whoever hands out calls
decides that, and what they make is published so that a call that was run twice has done no harm.

A node that is killed takes its connections with it, and Ray tells at once. One that hangs, or cannot be reached,
keeps them: Ray's table of nodes has it as dead after about a minute, but whoever waits for a call there waits for
ever. So a call first tells on which node it runs, and has ended with a fault when the table has that node as dead.
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

from thresher.config import ConfigError
from thresher.engine.calls import Call, Ended, perform

AHEAD = 2  # calls handed to Ray for each processor: one that is run, one that waits there
KNOCK = 5.0  # seconds for somebody to answer at an address
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
        self.ray: Any = ray
        if address and address != "auto":
            _knock(address)
        options: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR", "namespace": "thresher"}
        if not address:
            options["include_dashboard"] = False
        try:
            with _one_try() if address else nullcontext():
                ray.init(address or "local", **options)
        except (ConnectionError, ValueError, RuntimeError) as fault:
            if address:
                raise _no_cluster(address, fault) from None
            raise ConfigError(f"Ray cannot be started on this machine: {fault}") from None
        self.address: str = self.ray.util.get_node_ip_address()
        self.started: list[str] = []  # the nodes of calls that were started, …
        self.suspects: set[str] = set()  # … and those where one fell silent: Ray takes a minute to see that
        # What it tells must be heard before it goes on: a call that has not told its node has not begun.
        self._perform = self.ray.remote(
            max_retries=0, num_returns="streaming", _generator_backpressure_num_objects=1
        )(_placed)

    def run(self, calls: Sequence[Call]) -> Iterator[Ended]:
        waiting = iter(enumerate(calls))
        under_way: dict[Any, _UnderWay] = {}  # by the streams of what they tell
        looked, nodes = time.monotonic(), self._nodes()
        try:
            while True:
                room = AHEAD * max(int(self.ray.cluster_resources().get("CPU", 1)), 1)
                while len(under_way) < room and (handed := next(waiting, None)):
                    under_way[self._perform.remote(*handed)] = _UnderWay(*handed, time.monotonic())
                if not under_way:
                    return
                ready, _ = self.ray.wait(list(under_way), num_returns=1, timeout=LOOK)
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
                self.ray.cancel(stream, force=True)

    def _nodes(self) -> set[str]:
        """The nodes that are alive."""
        return {node["NodeID"] for node in self.ray.nodes() if node["Alive"]}

    def _told(self, stream: Any, one: _UnderWay) -> str | Ended:
        """What a call tells next: where it runs, its answer, or that there will be none."""
        try:
            told: str | Ended = self.ray.get(next(stream))
        except self.ray.exceptions.RayError as fault:
            return _without_answer(one, _cause(fault))
        return told

    def _late(self, under_way: dict[Any, _UnderWay]) -> Iterator[Ended]:
        """Calls that have had their time; how long one waited for its turn counts, too."""
        now = time.monotonic()
        for stream, one in list(under_way.items()):
            if one.call.deadline and now - one.began > one.call.deadline:
                del under_way[stream]
                self.ray.cancel(stream, force=True)
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
            self.ray.cancel(stream, force=True)

    def start(self, call: Call) -> _Started:
        node = self.quietest_node()
        where = self.ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy(node, soft=True)
        # A sliver of a processor: as many as there are find room, but not on a node that is to do no work.
        station = self.ray.remote(num_cpus=0.01, max_restarts=0, scheduling_strategy=where)(_Station)
        return _Started(self, station.remote(), node, call)

    def quietest_node(self) -> str:
        """The node on which the fewest calls were started, before all those on which one had to be given up."""
        nodes = [
            node["NodeID"] for node in self.ray.nodes() if node["Alive"] and node["Resources"].get("CPU")
        ]
        if not nodes:
            raise ConfigError("the Ray cluster has no node with processors; start one: ray start --address …")
        found: str = min(nodes, key=lambda node: (node in self.suspects, self.started.count(node)))
        return found

    def close(self) -> None:
        self.ray.shutdown()


def _knock(address: str) -> None:
    """Say at once where nobody listens."""
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), KNOCK).close()
    except OSError as fault:
        raise _no_cluster(address, fault) from None


def _no_cluster(address: str, fault: Exception) -> ConfigError:
    why = str(fault).strip().partition("\n")[0]
    return ConfigError(
        f"no Ray cluster answers at {address} ({why}); look with: ray status --address {address}"
    )


@contextmanager
def _one_try() -> Iterator[None]:
    """Ray tries to reach a cluster twenty times, each time for 40 s, and this many times if it is told so."""
    name = "RAY_gcs_server_port_wait_time_s"
    if name in os.environ:
        yield
        return
    os.environ[name] = "1"
    try:
        yield
    finally:
        del os.environ[name]


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
        self._answer = station.perform.remote(call)
        self._under_way = _UnderWay(0, call, time.monotonic())
        cluster.started.append(node)

    def poll(self) -> Ended | None:
        ray = self._cluster.ray
        if not ray.wait([self._answer], timeout=0)[0]:
            return None
        try:
            ended: Ended = ray.get(self._answer)
        except ray.exceptions.RayError as fault:
            ended = _without_answer(self._under_way, _cause(fault))
        self._leave()
        return ended

    def is_crowded(self) -> bool:
        started = self._cluster.started
        return started.count(self._node) > started.count(self._cluster.quietest_node()) + 1

    def kill(self) -> None:
        self._cluster.suspects.add(self._node)
        self._leave()

    def _leave(self) -> None:
        self._cluster.started.remove(self._node)
        self._cluster.ray.kill(self._station)  # or the actor would wait for another call


def _cause(fault: Exception) -> str:
    why = str(fault).strip().splitlines()[0] if str(fault).strip() else type(fault).__name__
    return f"its process died: {why}"


def _without_answer(one: _UnderWay, fault: str) -> Ended:
    return Ended(one.number, fault=fault, seconds=time.monotonic() - one.began)
