"""Results match CQP: counts, every span, targets and frequency lists."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from thresher.importing.corpora import import_files
from thresher.search.analysis import FUNCTIONS
from thresher.search.index.update import update
from thresher.search.searcher import Index


@pytest.fixture(scope="module")
def suite(suites: Path) -> Path:
    folder = suites / "cql"
    if not folder.is_dir():
        pytest.skip("the suite of CQL queries is not here")
    return folder


@pytest.fixture(scope="module")
def index(suite: Path, tmp_path_factory: pytest.TempPathFactory) -> Index:
    directory = tmp_path_factory.mktemp("cqp")
    import_files(directory, [suite / "corpus.vert.zst"], attributes=["word", "pos", "lemma"], language="en")
    update(directory, order="input")
    return Index(directory)


def queries(suite: Path) -> Iterator[dict[str, Any]]:
    yield from map(msgspec.json.decode, (suite / "queries.jsonl").read_bytes().splitlines())


def digest(lines: Iterator[str]) -> str:
    return hashlib.sha256("".join(lines).encode()).hexdigest()


@pytest.mark.slow
def test_every_count_and_every_span_is_that_of_cqp(suite: Path, index: Index) -> None:
    for query in queries(suite):
        search = index.search(query["cql"], strategy=query["strategy"], seconds=None)
        assert digest(f"{first}\t{last}\n" for first, last in search.spans()) == query["spans_sha256"], query
        counted = index.search(query["cql"], strategy=query["strategy"], seconds=None).count()
        assert counted == query["hits"], query


def test_targets_match_cqp(suite: Path, index: Index) -> None:
    for query in queries(suite):
        if "targets_sha256" in query:
            (hits,) = index.search(query["cql"]).hits()
            assert hits.targets is not None
            assert digest(f"{place}\n" for place in hits.targets.tolist()) == query["targets_sha256"], query


def place(written: str) -> str:
    """Return Thresher's name for a place of a match in CQP."""
    anchor, attribute = written.split()
    return f"{attribute}@{anchor}"


def test_frequency_lists_match_cqp(suite: Path, index: Index) -> None:
    compared = 0
    for query in queries(suite):
        groups = [query[name] for name in ("group", "group2") if name in query]
        if "sites" in query:
            groups.append({"by": "match doc_site", "top": query["sites"]})
        for group in groups:
            search = index.search(query["cql"], strategy=query["strategy"], seconds=None)
            first, _, second = group["by"].partition(" by ")
            if second:
                table = FUNCTIONS["table"].run(index, search, rows=place(second), columns=place(first))
                *keys, counts = (table.rows.column(name).to_pylist() for name in table.columns[:3])
                rows = [[list(key), count] for *key, count in zip(*keys, counts, strict=True)]
            else:
                table = FUNCTIONS["freq"].run(index, search, by=place(first))
                rows = [[row["value"], row["count"]] for row in table.records()]
            assert rows[: len(group["top"])] == group["top"], query
            assert group.get("types", len(rows)) == len(rows)
            assert group.get("total", query["hits"]) == sum(count for _, count in rows)
            compared += 1
    assert compared > 20
