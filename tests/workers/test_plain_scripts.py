"""Scripts without `if __name__ == "__main__"` run once, although their work is done in several processes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from support import TESTS
from support.corpora.batch_corpora import small_corpus
from support.invariants import SETTINGS
from support.webs.toy_webs import all_seeds
from thresher_lab.toyweb import ToyWeb, serve

pytestmark = pytest.mark.slow

WEB = ToyWeb.calm(hosts=6, licensed=0.0, pages_per_host=(5, 10), page_bytes=(4_000, 6_000))

PROCESS = """
import sys
from pathlib import Path
from thresher.pipeline.runs.run import process
from thresher.workers.local_engine import LocalEngine

print("the script runs")
run = process(Path(sys.argv[1]), LocalEngine(2))
print(run.state)
"""
CRAWL = """
import json
import sys
from thresher.crawler.api import crawl

print("the script runs")
settings = json.loads(sys.argv[3]) | {"shards": {"count": 2}}
ending = crawl(sys.argv[1], "cs", json.loads(sys.argv[4]), settings=settings, connect_to=sys.argv[2])
print(ending.reason)
"""
INDEX = """
import sys
from pathlib import Path
from thresher.search.index.update import update

print("the script runs")
print(update(Path(sys.argv[1]), processes=2).added)
"""


def output_of(script: Path, source: str, *arguments: str) -> list[str]:
    """Write a script, run it, and return the lines that it prints."""
    script.write_text(source)
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(TESTS), *sys.path])}
    command = [sys.executable, str(script), *arguments]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.mark.parametrize(("source", "expected"), [(PROCESS, "done"), (INDEX, "8")])
def test_a_plain_script_processes_and_indexes_a_corpus(tmp_path: Path, source: str, expected: str) -> None:
    corpus = tmp_path / "corpus"
    corpus.mkdir()
    small_corpus(corpus)
    assert output_of(tmp_path / "script.py", source, str(corpus)) == ["the script runs", expected]


def test_a_plain_script_crawls_in_shards(tmp_path: Path) -> None:
    with serve(WEB) as server:
        lines = output_of(
            tmp_path / "script.py", CRAWL,
            str(tmp_path / "corpus"), str(server.connect_to), json.dumps(SETTINGS), json.dumps(all_seeds(WEB)),
        )  # fmt: skip
    assert lines == ["the script runs", "done"]
