"""Corpora made by the version before open, continue, are searched and processed by this one."""

from __future__ import annotations

import hashlib
import json
import tarfile
from pathlib import Path
from typing import Any

import pytest

import thresher
from support.command_line import run as command
from thresher.config import load
from thresher.crawler.api import crawl
from thresher.store.schemas import DOCS
from thresher_lab.toyweb import ToyWeb, serve

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*the old name will not be read:FutureWarning"),
    pytest.mark.slow,
]

DATA = Path(__file__).parent / "data" / "schema1"
FACTS: dict[str, dict[str, Any]] = json.loads((DATA / "facts.json").read_bytes())
WEB = ToyWeb.calm(
    hosts=12,
    licensed=0.0,
    rich_hosts=0.9,
    hidden_hosts=0.0,
    pages_per_host=(8, 12),
    page_bytes=(2_500, 3_500),
)


@pytest.fixture
def corpora(tmp_path: Path) -> Path:
    with tarfile.open(DATA / "corpora.tar.xz") as archive:
        archive.extractall(tmp_path, filter="data")
    return tmp_path


def digests(directory: Path) -> dict[str, str]:
    rows = thresher.open(directory).documents(["url", "text"]).to_pylist()
    assert len(rows) == len({row["url"] for row in rows}), "a document is there twice"
    return {row["url"]: hashlib.sha256(row["text"].encode()).hexdigest()[:16] for row in rows}


@pytest.mark.parametrize("name", sorted(FACTS))
def test_an_older_corpus_has_the_documents_it_had(corpora: Path, name: str) -> None:
    corpus = thresher.open(corpora / name)
    assert digests(corpora / name) == FACTS[name]["documents"]
    assert corpus.outcomes().num_rows == FACTS[name]["outcomes"]
    assert corpus.links().num_rows == FACTS[name]["links"]


@pytest.mark.parametrize("name", ["crawled", "killed", pytest.param("sharded", marks=pytest.mark.slow)])
def test_an_older_crawl_continues_and_keeps_its_documents(corpora: Path, name: str) -> None:
    before = digests(corpora / name)
    with serve(WEB) as server:
        crawl(
            corpora / name,
            settings={"budget": {"max_pages": 1_000}, "polite": {"delay": 0.0}},
            connect_to=server.connect_to,
        )
    after = digests(corpora / name)
    assert before.items() <= after.items()
    assert len(after) > len(before)
    assert thresher.open(corpora / name).documents().schema == DOCS
    assert load(corpora / name).schema == 2
    urls = thresher.open(corpora / name).outcomes(["url"]).column("url").to_pylist()
    assert len(urls) == len(set(urls)), "a page was fetched again"


def test_an_older_corpus_stays_of_its_schema_while_it_is_only_read(corpora: Path) -> None:
    thresher.open(corpora / "crawled").documents()
    assert command("export", corpora / "crawled", "--format", "jsonl")[0] == 0
    assert command("forget", corpora / "crawled", "--host", "noviny-7.cz", "--dry-run")[0] == 0
    assert load(corpora / "crawled").schema == 1
    assert command("forget", corpora / "crawled", "--host", "noviny-7.cz")[0] == 0
    assert load(corpora / "crawled").schema == 2
    assert "# a note of the user's" in (corpora / "crawled" / "corpus.toml").read_text()


def test_an_older_index_gives_the_hits_it_gave(corpora: Path) -> None:
    corpus = thresher.open(corpora / "indexed")
    hits = {query: corpus.search(query).count() for query in FACTS["indexed"]["hits"]}
    assert hits == FACTS["indexed"]["hits"]


def test_a_run_of_an_older_version_can_be_exported(corpora: Path) -> None:
    code, out, _ = command("export", corpora / "processed", "--run", "1", "--format", "jsonl")
    assert code == 0
    assert len(out.splitlines()) == FACTS["processed"]["run_export"]
    row = json.loads(out.splitlines()[0])
    assert (row["published"], row["author"]) == (None, None)
    code, out, err = command("runs", corpora / "processed", "--json")
    assert (code, [run["state"] for run in json.loads(out)]) == (0, ["done"]), err
    assert command("runs", corpora / "processed", 1)[0] == 0


def test_an_older_corpus_is_processed_again(corpora: Path) -> None:
    code, _, err = command("process", corpora / "processed")
    assert code == 0, err
    code, out, _ = command("export", corpora / "processed", "--run", "2", "--format", "jsonl")
    assert code == 0
    assert len(out.splitlines()) == FACTS["processed"]["run_export"]


@pytest.mark.parametrize("name", ["imported", "crawled", "sharded"])
def test_an_older_corpus_can_be_indexed(corpora: Path, name: str) -> None:
    code, _, err = command("index", corpora / name)
    assert code == 0, err
    assert thresher.open(corpora / name).search("[]").count() > 0
