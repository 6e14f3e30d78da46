"""The Ray engine: calls run on a Ray cluster. No other module imports Ray.

Ray places calls on nodes and reports lost ones. It never tries again by itself: the caller decides that, and its
calls publish their results so that a call that ran twice does no harm.

A killed node closes its connections, and Ray reports that at once. A node that hangs or cannot be reached keeps
them: Ray's table of nodes lists it as dead after about a minute, but a wait for a call there would never end. So a
call first reports its node, and fails when the table lists that node as dead.
"""

from __future__ import annotations

import logging
import os
import socket
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

from thresher.errors import UsageError
from thresher.workers.protocol import Call, CallResult, perform

CALLS_PER_PROCESSOR = 2  # handed to Ray: one that runs, one that waits on the node
CONNECT_SECONDS = 5.0  # for the cluster to accept a connection
CHECK_SECONDS = 1.0  # between two checks of deadlines and nodes

_log = logging.getLogger(__name__)


@dataclass
class _UnderWay:
    """A call that was handed to Ray."""

    number: int
    call: Call
    began: float
    node: str = ""  # the node that it runs on; empty until it has begun


def _placed(number: int, call: Call) -> Iterator[str | CallResult]:
    """Yield the node on which a call runs, and then how it ended."""
    import ray

    yield ray.get_runtime_context().get_node_id()
    yield perform(number, call)


class RayEngine:
    """An engine on the Ray cluster at an address, or without one on a cluster of this machine alone."""

    def __init__(self, address: str = "") -> None:
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # nothing is sent to Ray's makers
        try:
            import ray
        except ImportError:
            raise UsageError("Ray is not installed; try: pip install 'thresher[ray]'") from None
        self.ray: Any = ray
        if address and address != "auto":
            _check_connection(address)
        options: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR", "namespace": "thresher"}
        if not address:
            options["include_dashboard"] = False
        try:
            with _single_attempt() if address else nullcontext():
                ray.init(address or "local", **options)
        except (ConnectionError, ValueError, RuntimeError) as fault:
            if address:
                raise _no_cluster(address, fault) from None
            raise UsageError(f"Ray cannot be started on this machine: {fault}") from None
        self.address: str = self.ray.util.get_node_ip_address()
        self.started: list[str] = []  # the nodes of lasting calls
        self.suspects: set[str] = (
            set()
        )  # nodes with a call that fell silent, which Ray notices after a minute
        # Backpressure: a call that has not reported its node has not begun.
        self._perform = self.ray.remote(
            max_retries=0, num_returns="streaming", _generator_backpressure_num_objects=1
        )(_placed)

    def run(self, calls: Sequence[Call]) -> Iterator[CallResult]:
        """Run all calls and yield how each ended; calls that are not waited for are cancelled."""
        waiting = iter(enumerate(calls))
        under_way: dict[Any, _UnderWay] = {}  # by the streams of their reports
        checked, nodes = time.monotonic(), self._nodes()
        try:
            while True:
                room = CALLS_PER_PROCESSOR * max(int(self.ray.cluster_resources().get("CPU", 1)), 1)
                while len(under_way) < room and (handed := next(waiting, None)):
                    under_way[self._perform.remote(*handed)] = _UnderWay(*handed, time.monotonic())
                if not under_way:
                    return
                ready, _ = self.ray.wait(list(under_way), num_returns=1, timeout=CHECK_SECONDS)
                for stream in ready:
                    report = self._report(stream, under_way[stream])
                    if isinstance(report, CallResult):
                        del under_way[stream]
                        yield report
                    else:
                        under_way[stream].node = report
                if time.monotonic() - checked >= CHECK_SECONDS:
                    before, checked, nodes = nodes, time.monotonic(), self._nodes()
                    for node in sorted(before - nodes):
                        _log.warning("Ray lost the node %s; its calls have failed", node)
                    yield from self._late(under_way)
                    yield from self._lost(under_way, nodes, some_died=not before <= nodes)
        finally:
            for stream in under_way:
                self.ray.cancel(stream, force=True)

    def _nodes(self) -> set[str]:
        """Return the nodes that are alive."""
        return {node["NodeID"] for node in self.ray.nodes() if node["Alive"]}

    def _report(self, stream: Any, one: _UnderWay) -> str | CallResult:
        """Return the next report of a call: its node, its result, or the fault that there will be none."""
        try:
            report: str | CallResult = self.ray.get(next(stream))
        except self.ray.exceptions.RayError as fault:
            return _without_answer(one, _cause(fault))
        return report

    def _late(self, under_way: dict[Any, _UnderWay]) -> Iterator[CallResult]:
        """Cancel calls that are past their deadline, which includes the time that they waited, and yield them."""
        now = time.monotonic()
        for stream, one in list(under_way.items()):
            if one.call.deadline and now - one.began > one.call.deadline:
                del under_way[stream]
                self.ray.cancel(stream, force=True)
                yield _without_answer(one, f"it took longer than {one.call.deadline:.0f} s")

    def _lost(
        self, under_way: dict[Any, _UnderWay], nodes: set[str], *, some_died: bool
    ) -> Iterator[CallResult]:
        """Yield calls whose nodes have died; hand out again calls that may be on their way to such a node."""
        for stream, one in list(under_way.items()):
            if one.node and one.node not in nodes:
                yield _without_answer(one, "its node died, or cannot be reached")
            elif not one.node and some_died:
                under_way[self._perform.remote(one.number, one.call)] = one
            else:
                continue
            del under_way[stream]
            self.ray.cancel(stream, force=True)

    def start(self, call: Call) -> _LastingCall:
        """Run a call in an actor of its own, on the least loaded node."""
        node = self.least_loaded_node()
        where = self.ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy(node, soft=True)
        # A sliver of a processor: any number of them fits, but not on a node without processors for work.
        actor = self.ray.remote(num_cpus=0.01, max_restarts=0, scheduling_strategy=where)(_CallActor)
        return _LastingCall(self, actor.remote(), node, call)

    def least_loaded_node(self) -> str:
        """Return the node with the fewest lasting calls; nodes where one fell silent come last."""
        nodes = [
            node["NodeID"] for node in self.ray.nodes() if node["Alive"] and node["Resources"].get("CPU")
        ]
        if not nodes:
            raise UsageError("the Ray cluster has no node with processors; start one: ray start --address …")
        found: str = min(nodes, key=lambda node: (node in self.suspects, self.started.count(node)))
        return found

    def close(self) -> None:
        """Disconnect from the cluster."""
        self.ray.shutdown()


def _check_connection(address: str) -> None:
    """Raise UsageError at once if no cluster listens at an address."""
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), CONNECT_SECONDS).close()
    except OSError as fault:
        raise _no_cluster(address, fault) from None


def _no_cluster(address: str, fault: Exception) -> UsageError:
    why = str(fault).strip().partition("\n")[0]
    return UsageError(
        f"no Ray cluster answers at {address} ({why}); look with: ray status --address {address}"
    )


@contextmanager
def _single_attempt() -> Iterator[None]:
    """Let Ray try once to reach a cluster; by default it tries twenty times for 40 s each."""
    name = "RAY_gcs_server_port_wait_time_s"
    if name in os.environ:
        yield
        return
    os.environ[name] = "1"
    try:
        yield
    finally:
        del os.environ[name]


class _CallActor:
    """An actor: a process of its own on some node."""

    def perform(self, call: Call) -> CallResult:
        return perform(0, call)


class _LastingCall:
    """A call with an actor of its own."""

    def __init__(self, cluster: RayEngine, actor: Any, node: str, call: Call) -> None:
        self._cluster = cluster
        self._actor = actor
        self._node = node
        self._answer = actor.perform.remote(call)
        self._under_way = _UnderWay(0, call, time.monotonic())
        cluster.started.append(node)

    def poll(self) -> CallResult | None:
        ray = self._cluster.ray
        if not ray.wait([self._answer], timeout=0)[0]:
            return None
        try:
            ended: CallResult = ray.get(self._answer)
        except ray.exceptions.RayError as fault:
            ended = _without_answer(self._under_way, _cause(fault))
        self._release()
        return ended

    def is_crowded(self) -> bool:
        started = self._cluster.started
        return started.count(self._node) > started.count(self._cluster.least_loaded_node()) + 1

    def kill(self) -> None:
        _log.warning("a lasting call on the Ray node %s is given up", self._node)
        self._cluster.suspects.add(self._node)
        self._release()

    def _release(self) -> None:
        self._cluster.started.remove(self._node)
        self._cluster.ray.kill(self._actor)  # or the actor would wait for another call


def _cause(fault: Exception) -> str:
    why = str(fault).strip().splitlines()[0] if str(fault).strip() else type(fault).__name__
    return f"its process died: {why}"


def _without_answer(one: _UnderWay, fault: str) -> CallResult:
    _log.warning("a call failed on the Ray node %s: %s", one.node or "(not begun)", fault)
    return CallResult(one.number, fault=fault, seconds=time.monotonic() - one.began)
