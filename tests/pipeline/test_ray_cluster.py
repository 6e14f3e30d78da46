"""Runs on real Ray nodes: work of a lost node is done again elsewhere, and the bytes are the same."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from support import TESTS
from support.corpora.batch_corpora import TEXTS, Here, made, recipe, write_shard
from thresher.pipeline.runs.run import process
from thresher.workers.protocol import Call, Engine
from thresher.workers.ray_engine import RayEngine

nodes = pytest.importorskip("ray.cluster_utils", reason="Ray is not installed")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.ray,
    pytest.mark.filterwarnings("ignore::ResourceWarning"),  # Ray leaves pipes of its processes open
]


# Ray's own patience with a node that does not answer is about a minute. Less than this, and a busy machine loses
# nodes that are well.
IMPATIENT = {
    "health_check_initial_delay_ms": 1_000,
    "health_check_period_ms": 500,
    "health_check_timeout_ms": 2_500,
    "health_check_failure_threshold": 4,
}


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> Iterator[Engine]:
    """Yield a cluster of three nodes on this machine, of which the first does no work."""
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(TESTS), *sys.path]))
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    head = {"num_cpus": 0, "include_dashboard": False, "_system_config": IMPATIENT}
    cluster = nodes.Cluster(initialize_head=True, head_node_args=head)
    for _ in range(2):
        cluster.add_node(num_cpus=1)
    made = RayEngine(cluster.address)
    yield made
    made.close()
    cluster.shutdown()


def test_lasting_calls_are_spread_and_report_crowding_when_nodes_change(
    engine: RayEngine,
) -> None:
    lasting = [engine.start(Call("support.engine_calls:hang", {})) for _ in range(4)]
    assert sorted(engine.started.count(node) for node in set(engine.started)) == [2, 2]
    assert not any(running.is_crowded() for running in lasting)
    places = list(engine.started)
    for running, node in zip(lasting, places, strict=True):
        if node != places[0]:
            running.kill()
    engine.suspects.clear()  # as if that node had gone, and another had come
    assert lasting[0].is_crowded()
    assert engine.least_loaded_node() != places[0]


def test_a_node_that_is_killed_changes_nothing(engine: Engine, tmp_path: Path) -> None:
    steps = [
        {"step": "support.batch_steps:deadly_to_its_node_once", "mark": str(tmp_path / "mark")},
        {"step": "filter", "opted_out": True, "max_badness": 4},
        {"step": "exact_duplicates", "partitions": 2},
        {"step": "statistics"},
    ]
    corpora = [tmp_path / "cluster", tmp_path / "here"]
    for corpus in corpora:
        corpus.mkdir()
        for number, texts in enumerate(TEXTS):
            write_shard(corpus, number, texts)
        recipe(corpus, *steps)
    disturbed = process(corpora[0], engine, engine_name="ray")
    assert (tmp_path / "mark").exists()
    assert max(artifact.attempts for artifact in disturbed.steps[1].artifacts) == 2
    undisturbed = process(corpora[1], Here())
    assert [step.outputs for step in disturbed.steps] == [step.outputs for step in undisturbed.steps]
    assert made(process(corpora[0], engine)) == {}


def test_a_node_that_hangs_ends_its_calls_and_no_others(engine: Engine, tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    calls = [
        Call("support.engine_calls:pause_node_once", {"mark": str(mark), "number": number})
        for number in range(8)
    ]
    try:
        ended = sorted(engine.run(calls), key=lambda one: one.number)
    finally:
        for process in map(int, mark.read_text().split()):
            os.kill(process, signal.SIGKILL)
    assert [one.number for one in ended] == list(range(8)), "each is reported once"
    (lost,) = (one for one in ended if one.fault)
    assert lost.fault == "its node died, or cannot be reached"
    assert all(one.result == one.number for one in ended if one is not lost)
