"""A corpus in shards is read and edited like any other, in any combination of epochs."""

from __future__ import annotations

import gzip
import io
import json
import re
import shutil
import zipfile
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest
from rich.console import Console

import thresher
from support.corpora import sharded_corpora as sharding
from support.corpora.batch_corpora import Here
from support.corpora.exports import exported
from support.invariants import check_raw, check_stats
from test_erasure import traces
from thresher import erasure
from thresher.cli import app
from thresher.cli.views.terminal import SHOWN_SHARDS, status_tables
from thresher.config import PolicySettings, load
from thresher.crawler.explain import explain
from thresher.crawler.host_report import hosts
from thresher.crawler.storage.crawl_writer import CrawlWriter
from thresher.erasure import ErasureReport, forget
from thresher.errors import DataError, UsageError
from thresher.files.durable_files import locked
from thresher.pipeline.runs.results import processed
from thresher.pipeline.runs.run import process
from thresher.report.experiments.evidence import gather
from thresher.search.index.update import update
from thresher.selection import DocumentFilter
from thresher.simulation.record import load as load_record
from thresher.simulation.simulate import simulate
from thresher.store import partition, shard_layout, warc
from thresher.store.corpus_files import CorpusError, of_part
from thresher.store.erasure_log import ErasureMatcher, erasure_request
from thresher.store.shard_layout import Shard, owner, state_folder
from thresher.urls import host, key
from thresher.workers.protocol import Call, CallResult

pytestmark = pytest.mark.slow

TABLES = ("docs", "links", "outcomes")


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return sharding.make(tmp_path_factory.mktemp("sharded") / "corpus")


@pytest.fixture
def corpus(original: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(original, tmp_path / "corpus"))


def rows(directory: Path, table: str) -> list[dict[str, Any]]:
    return [row for batch in thresher.open(directory).batches(table) for row in batch.to_pylist()]


def of_all_parts(directory: Path, table: str) -> list[dict[str, Any]]:
    config = load(directory)
    found = (of_part(part, config).batches(table) for part in sharding.parts(directory))
    return [row for batches in found for batch in batches for row in batch.to_pylist()]


def text(row: dict[str, Any]) -> str:
    return json.dumps(row, sort_keys=True, default=str)


# tables


@pytest.mark.parametrize("table", TABLES)
def test_a_table_has_every_row_of_every_shard_once(original: Path, table: str) -> None:
    found = rows(original, table)
    assert sorted(map(text, found)) == sorted(map(text, of_all_parts(original, table)))
    assert {owner(host(row.get("url") or row["source"]), sharding.COUNT) for row in found} == {0, 1, 2}


def test_documents_come_by_the_numbers_of_their_files_and_outcomes_by_their_own(original: Path) -> None:
    files = [file.number for file in thresher.open(original).files("docs")]
    assert files == sorted(set(files)) and len(files) > sharding.COUNT
    corpus = thresher.open(original)
    assert [document.url for document in corpus] == [row["url"] for row in rows(original, "docs")]
    assert len(corpus) == len(rows(original, "docs"))
    first = rows(original, "docs")[0]["seq"] % sharding.COUNT
    assert [row["seq"] % sharding.COUNT for row in rows(original, "docs")].count(first) < len(corpus)
    numbers = corpus.outcomes(["url", "seq"])["seq"].to_pylist()
    assert numbers == sorted(set(numbers))
    urls = [row["url"] for row in sorted(of_all_parts(original, "outcomes"), key=lambda row: row["seq"])]
    assert corpus.outcomes(["url"])["url"].to_pylist() == urls, "also without the column of numbers"


def test_raw_pages_and_statistics_cover_all_shards(original: Path) -> None:
    check_raw(original)
    check_stats(original)
    reported = thresher.open(original).stats()
    assert [row["shard"] for row in reported["shards"]] == [0, 1, 2]
    assert sum(row["fetched"] for row in reported["shards"]) == reported["pages"]["fetched"]
    assert not reported.keys() & {"files", "state"}
    one = partition.status(sharding.parts(original)[0])
    assert one is not None and one.keys() - {"files"} == reported.keys() - {"shards"}


def test_duckdb_reads_the_sealed_files_of_all_shards(original: Path) -> None:
    files = original / "shards" / "*" / "e*" / "docs" / "*.parquet"
    assert duckdb.sql(f"select count(*) from '{files}'").fetchall() == [(len(thresher.open(original)),)]


def test_shards_that_have_not_started_are_no_fault(corpus: Path) -> None:
    before = rows(corpus, "outcomes")
    shutil.rmtree(corpus / "shards" / "01")
    found = thresher.open(corpus)
    assert [row["seq"] for row in rows(corpus, "outcomes")] == [
        row["seq"] for row in before if row["seq"] % sharding.COUNT != 1
    ]
    assert [row["shard"] for row in found.stats()["shards"]] == [0, 2]
    with pytest.raises(CorpusError, match=r"thresher-00002\.warc\.gz is missing"):
        found.reply("http://a.cz/", "thresher-00002.warc.gz", 0, datetime.now(UTC))
    shutil.rmtree(corpus / "shards")
    assert len(found) == 0
    with pytest.raises(CorpusError, match="has no statistics yet"):
        found.stats()


# epochs


def replaced(part: Path) -> None:
    """Replace an epoch by a newer one, and delete it."""
    sharding.next_epoch(part)
    shutil.rmtree(part)


@pytest.mark.parametrize("table", TABLES)
def test_reading_continues_while_epochs_are_replaced(corpus: Path, table: str) -> None:
    added = sharding.add_pages(corpus)
    assert {row["url"] for row in rows(corpus, "docs")} > {*added}, "open segments count"
    before = rows(corpus, table)
    batches = thresher.open(corpus).batches(table)
    found = next(batches).to_pylist()
    for part in sharding.parts(corpus):
        replaced(part)
    found += [row for batch in batches for row in batch.to_pylist()]
    assert found == before == rows(corpus, table)
    check_raw(corpus)


def test_an_epoch_that_is_over_between_two_glances_is_looked_for_again(
    corpus: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = rows(corpus, "docs")
    reported = thresher.open(corpus).stats()
    read = partition.status
    waiting = sharding.parts(corpus)

    def replace_first(part: Path) -> dict[str, Any] | None:
        if part in waiting:
            waiting.remove(part)
            replaced(part)
        return read(part)

    monkeypatch.setattr(partition, "status", replace_first)
    assert rows(corpus, "docs") == before
    assert waiting == [], "every epoch went while it was looked at"
    waiting += sharding.parts(corpus)[:1]
    assert thresher.open(corpus).stats() == reported
    names = [file.path.name for file in thresher.open(corpus).files("docs")]
    waiting += sharding.parts(corpus)[:1]
    assert [file.path.name for file in thresher.open(corpus).files("docs")] == names
    assert waiting == []


def test_a_page_is_found_after_its_epoch_was_replaced(corpus: Path) -> None:
    document = next(iter(thresher.open(corpus)))
    assert document.warc_file is not None and document.warc_offset is not None
    path = thresher.open(corpus).warc_path(document.warc_file)
    replaced(path.parents[1])
    assert not path.exists()
    found = shard_layout.followed(path, lambda path: warc.read_record(path, document.warc_offset or 0))
    assert found.url == document.url
    with pytest.raises(FileNotFoundError):
        shard_layout.followed(path.with_name("thresher-99999.warc.gz"), Path.read_bytes)


def test_the_state_that_counts_is_the_one_that_the_last_commit_names(corpus: Path) -> None:
    part = sharding.parts(corpus)[0]
    before = hosts(corpus, now=0.0)
    assert state_folder(part) == part / "state"
    (part / "state").rename(part / "state-7")
    status = json.loads((part / "status.json").read_bytes())
    (part / "status.json").write_text(json.dumps({**status, "state": "state-7"}))
    assert state_folder(part) == part / "state-7"
    assert hosts(corpus, now=0.0) == before
    assert "state" not in thresher.open(corpus).stats()


# result


def test_exports_have_the_documents_of_all_shards(original: Path) -> None:
    corpus = thresher.open(original)
    urls = {document.url for document in corpus}
    everything = DocumentFilter(opted_out=True)
    vertical = exported(corpus, "vertical", everything).decode()
    assert vertical.count("<doc ") == len(urls) and all(url in vertical for url in urls)
    archive = zipfile.ZipFile(io.BytesIO(exported(corpus, "wacz", everything)))
    lines = gzip.decompress(archive.read("indexes/index.cdx.gz")).decode().splitlines()
    assert {json.loads(line.split(" ", 2)[2])["url"] for line in lines} == urls
    assert exported(corpus, "wacz", everything) == exported(corpus, "wacz", everything)


def recipe(directory: Path, *steps: str) -> None:
    """Return the recipe with other steps."""
    asked = (directory / "corpus.toml").read_text().partition("[[process]]")[0]
    (directory / "corpus.toml").write_text(
        asked + "".join(f'[[process]]\nstep = "{step}"\n' for step in steps)
    )


def test_a_run_is_the_same_in_any_epoch_of_its_documents(corpus: Path) -> None:
    recipe(corpus, "exact_duplicates", "reread", "statistics")
    first = process(corpus, Here())
    left = {document.url for document in processed(corpus)}
    assert left == {document.url for document in thresher.open(corpus)}
    for part in sharding.parts(corpus):
        replaced(part)
    engine = Here()
    assert process(corpus, engine).result == first.result
    assert engine.calls == [], "nothing has changed"
    recipe(corpus, "statistics")
    run = process(corpus, Here())
    assert {Path(name).parts[0] for name in run.result} == {"shards"}, "no step touched these"
    for part in sharding.parts(corpus):
        replaced(part)
    assert {document.url for document in processed(corpus)} == left


class Later(Here):
    """An engine that moves every shard to a new epoch before it begins."""

    def __init__(self, directory: Path) -> None:
        super().__init__()
        self._waiting = sharding.parts(directory)

    def run(self, calls: list[Call]) -> Iterator[CallResult]:
        while self._waiting:
            replaced(self._waiting.pop())
        return super().run(calls)


def test_a_run_continues_while_epochs_are_replaced(corpus: Path) -> None:
    added = sharding.add_pages(corpus)
    recipe(corpus, "exact_duplicates")
    process(corpus, Later(corpus))
    assert {document.url for document in processed(corpus)} == {row["url"] for row in rows(corpus, "docs")}
    assert {document.url for document in processed(corpus)} > {*added}


def test_an_index_finds_the_documents_of_all_shards(corpus: Path) -> None:
    found = thresher.open(corpus)
    assert update(corpus, annotator="plain", processes=1, opted_out=True).added == len(found)
    for document in found:
        word = max(document.text.split(), key=lambda word: (word.isalpha(), len(word)))
        assert found.search(f'"{word}" :: match.doc_url = "{re.escape(document.url)}"').count() > 0
    replaced(sharding.parts(corpus)[0])
    assert update(corpus, annotator="plain", processes=1, opted_out=True).added == 0


def test_hosts_cover_all_shards(original: Path) -> None:
    found = hosts(original, now=0.0)
    assert {one.host for one in found} == {row["host"] for row in rows(original, "outcomes")}
    assert [one.rate for one in found] == sorted((one.rate for one in found), reverse=True)
    reported = thresher.open(original).stats()
    assert len(found) == reported["hosts"]["seen"]
    assert sum(one.queued for one in found) == reported["queue"]


def test_only_the_shard_that_has_the_host_is_asked_about_a_url(corpus: Path) -> None:
    outcomes = [row["url"] for row in rows(corpus, "outcomes")]
    visits = {owner(host(url), sharding.COUNT): url for url in outcomes}
    known = set(map(key, outcomes))
    found = dict.fromkeys(row["target"] for row in rows(corpus, "links") if key(row["target"]) not in known)
    waits = next(url for url in found if owner(host(url), sharding.COUNT) in visits)
    number = owner(host(waits), sharding.COUNT)
    visited = visits[number]
    (own,) = (part for part in sharding.parts(corpus) if part.parent == shard_layout.home(corpus, number))
    for part in sharding.parts(corpus):
        if part != own:
            shutil.rmtree(part / "state")
    assert [explain(corpus, url).state for url in (visited, waits)] == ["visited", "waiting"]
    shutil.rmtree(own)
    with pytest.raises(UsageError, match="has no URLs yet"):
        explain(corpus, visited)


def test_a_crawl_in_shards_is_crawled_again_on_paper(original: Path) -> None:
    record = load_record(original)
    assert record.urls == [row["url"] for row in rows(original, "outcomes")]
    seeds = record.find((original / "seeds.txt").read_text().split())
    harvest = simulate(record, PolicySettings(name="bfs"), seeds)
    reported = thresher.open(original).stats()
    assert sorted(harvest.visited.tolist()) == list(range(len(record.urls)))
    assert harvest.text[-1] == reported["bytes"]["text"]
    assert harvest.downloaded[-1] == reported["bytes"]["downloaded"]


def test_experiments_know_each_url_of_each_shard_by_its_own_figures(original: Path) -> None:
    evidence = gather(original)
    outcomes = rows(original, "outcomes")
    assert evidence.domains == [row["domain"] for row in outcomes]
    assert evidence.depths.tolist() == [row["depth"] for row in outcomes]
    assert evidence.gained.tolist() == [row["text_bytes"] for row in outcomes]
    assert np.flatnonzero(evidence.documents).tolist() == [
        number for number, row in enumerate(outcomes) if row["outcome"] in ("kept", "rejected")
    ]


# forgetting


def a_domain(directory: Path, number: int = 0) -> str:
    """Return the domain with the most documents of a shard."""
    names = [row["domain"] for row in rows(directory, "docs") if row["seq"] % sharding.COUNT == number]
    return max(sorted(set(names)), key=names.count)


@pytest.mark.parametrize("numbers", [[0], [0, 1, 2]])
def test_no_shard_or_epoch_holds_forgotten_documents(
    original: Path, corpus: Path, numbers: list[int]
) -> None:
    unwanted = {a_domain(original, number) for number in numbers}
    update(corpus, annotator="plain", processes=1, opted_out=True)
    older = sharding.parts(corpus)[0]
    sharding.next_epoch(older)
    (sharding.parts(corpus)[1] / "state-old").mkdir()
    asked = erasure_request(domains=unwanted)
    meant = ErasureMatcher(asked)
    reported = forget(corpus, asked, dry_run=True)
    assert older.exists() and [row["url"] for row in rows(corpus, "docs")] == [
        row["url"] for row in rows(original, "docs")
    ], "a dry run changes nothing"
    assert forget(corpus, asked) == reported
    assert reported.documents == sum(row["domain"] in unwanted for row in rows(original, "docs"))
    assert min(reported.raw, reported.outcomes, reported.links, reported.index, reported.seeds) > 0
    assert not older.exists() and not list(corpus.rglob("state-old"))
    for name in unwanted:
        assert not [
            file for file in traces(corpus, name) if {"state", "docs", "outcomes"} & {*Path(file).parts}
        ]
    for table in TABLES:
        others = [
            row
            for row in rows(original, table)
            if not any(meant.covers(row[key]) for key in ("url", "source", "target") if key in row)
            or (table == "outcomes" and not meant.covers(row["url"]))
        ]
        assert len(rows(corpus, table)) == len(others)
    check_raw(corpus)
    for part in sharding.parts(corpus):
        shard = shard_layout.shard_of(part, load(corpus))
        names = (warc.NAMING.fullmatch(path.name) for path in part.glob("warc/*"))
        given = [int(name[1]) for name in names if name]
        given += [file.number for table in TABLES for file in partition.table_files(part, table)]
        assert {(number - 1) % sharding.COUNT for number in given} == {shard.number}
        CrawlWriter(part, load(corpus), lambda: 0.0, shard).close()  # its crawl can go on
    assert forget(corpus, asked) == ErasureReport(), "there is nothing left to forget"


def test_forgetting_that_was_killed_between_two_shards_is_brought_to_its_end(
    original: Path, corpus: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = erasure_request(domains=[a_domain(corpus, number) for number in range(sharding.COUNT)])
    meant = ErasureMatcher(asked)
    commit, commits = erasure.commit_files, []

    def die_later(*given: Any) -> None:
        if commits:
            raise KeyboardInterrupt
        commits.append(commit(*given))

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(erasure, "commit_files", die_later)
        forget(corpus, asked)
    left = [row["seq"] for row in rows(corpus, "docs")]
    kept = {
        row["seq"]
        for row in rows(original, "docs")
        if row["seq"] % sharding.COUNT or not meant.covers(row["url"])
    }
    assert sorted(left) == sorted(kept), "the first shard has forgotten, the others have not"
    for document in thresher.open(corpus):
        assert thresher.open(corpus).raw(document).url == document.url
    forget(corpus, asked)
    assert not any(meant.covers(row["url"]) for table in ("docs", "outcomes") for row in rows(corpus, table))
    check_raw(corpus)
    assert not list(corpus.rglob("*.tmp"))


def test_nothing_is_forgotten_while_a_shard_is_at_work(corpus: Path) -> None:
    part = sharding.parts(corpus)[2]
    before = rows(corpus, "outcomes")
    shard = CrawlWriter(part, load(corpus), lambda: 0.0, Shard(2, sharding.COUNT))
    with pytest.raises(DataError, match="in use by process"):
        forget(corpus, erasure_request(domains=[a_domain(corpus)]))
    shard.close()
    with locked(corpus), pytest.raises(DataError, match="in use by process"):
        forget(corpus, erasure_request(domains=[a_domain(corpus)]))
    assert rows(corpus, "outcomes") == before


def test_a_shard_without_its_state_is_not_edited(corpus: Path) -> None:
    part = sharding.parts(corpus)[1]
    shutil.rmtree(part / "state")
    before = rows(corpus, "outcomes")
    with pytest.raises(DataError, match="its state is gone"):
        forget(corpus, erasure_request(domains=[a_domain(corpus)]))
    assert rows(corpus, "outcomes") == before


# for people


def shown(status: dict[str, Any]) -> str:
    out = io.StringIO()
    Console(file=out, width=100).print(status_tables(status))
    return out.getvalue()


def test_people_see_a_table_of_the_first_shards(original: Path, capsys: pytest.CaptureFixture[str]) -> None:
    app(["status", str(original)], result_action="return_value")
    said = capsys.readouterr()
    assert "shard" in said.out + said.err
    reported = thresher.open(original).stats()
    few = shown(reported)
    for row in reported["shards"]:
        line = [str(row[name]) for name in ("shard", "fetched", "kept", "queue")]
        assert line in [found.split() for found in few.splitlines()]
    assert "more" not in few
    many = shown({**reported, "shards": [{**reported["shards"][0], "shard": 1_000 + n} for n in range(64)]})
    assert many.count("1,0") == SHOWN_SHARDS == 16
    assert "and 48 more" in many
    assert "shard" not in shown({**reported, "shards": [], "waiting": None})
