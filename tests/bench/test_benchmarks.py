"""Benchmarks: each is a command by its own name."""

from __future__ import annotations

import subprocess
import sys

import pytest

from support import TESTS

BENCHMARKS = (
    *("badness", "costs", "crawl", "dedup", "dedup_documents", "encodings", "fetch", "frontier", "fuzz"),
    *("hostile", "language", "learning", "policy", "query", "query_corpus", "read", "realweb", "scaling"),
    *("shards", "signs", "teach"),
)


@pytest.fixture(scope="module")
def listed() -> dict[str, str]:
    shown = subprocess.run(
        [sys.executable, "-m", "bench"], cwd=TESTS.parent, capture_output=True, text=True, check=True
    )
    rows = (line.removeprefix("python -m bench.").split(maxsplit=1) for line in shown.stdout.splitlines())
    return {row[0]: row[1] for row in rows}


def test_python_m_bench_lists_every_benchmark_with_a_summary(listed: dict[str, str]) -> None:
    assert set(BENCHMARKS) <= set(listed)
    assert all(summary.endswith((".", "?")) for summary in listed.values())


def test_every_listed_benchmark_can_be_run_by_its_own_name(listed: dict[str, str]) -> None:
    check = (
        "import sys\nfrom importlib.util import find_spec\nfor name in sys.argv[1:]:\n"
        "    spec = find_spec(f'bench.{name}')\n    assert spec, name\n"
        "    assert not spec.submodule_search_locations or find_spec(f'bench.{name}.__main__'), name"
    )
    subprocess.run([sys.executable, "-c", check, *listed], cwd=TESTS.parent, check=True)


def test_the_processor_time_of_processes_that_are_not_waited_for_is_counted() -> None:
    work = "import time\nwhile time.process_time() < 0.8:\n    pass"
    contender = (
        "import signal, subprocess, sys, time\nsignal.signal(signal.SIGCHLD, signal.SIG_IGN)\n"
        f"subprocess.Popen([sys.executable, '-c', {work!r}]).wait()"
    )
    measure = (
        f"import sys\nfrom bench.measure import run\nprint(run([sys.executable, '-c', {contender!r}]).cpu_s)"
    )
    done = subprocess.run(
        [sys.executable, "-c", measure], cwd=TESTS.parent, capture_output=True, text=True, check=True
    )
    assert float(done.stdout) >= 0.5
