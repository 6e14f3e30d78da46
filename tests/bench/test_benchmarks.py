"""Benchmarks: each is a command by its own name."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

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


# A process that works, and then waits at a named pipe until it has been measured.
WORK = """
import sys, time
while time.process_time() < 0.6:
    pass
open(sys.argv[1]).read()
"""

MEASURE = """
import os, sys
from bench.measure import run

CONTENDER = '''
import signal, subprocess, sys
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
subprocess.Popen([sys.executable, "-c", *sys.argv[1:]]).wait()
'''
work, pipe = sys.argv[1:]
os.mkfifo(pipe)
waiting = []

def look():
    # The time of the process was noted before this call, so the process ends one call after it began to wait.
    if waiting:
        os.close(waiting.pop())
        return
    try:
        waiting.append(os.open(pipe, os.O_WRONLY | os.O_NONBLOCK))
    except OSError:  # it has no reader yet, or the process has ended
        pass

print(run([sys.executable, "-c", CONTENDER, work, pipe], look=look).cpu_s)
"""


def test_the_processor_time_of_processes_that_are_not_waited_for_is_counted(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", MEASURE, WORK, str(tmp_path / "end")],
        cwd=TESTS.parent,
        capture_output=True,
        text=True,
        check=True,
    )
    assert float(done.stdout) >= 0.5
