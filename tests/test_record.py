"""A recorded web for several languages: each is worth what a corpus in it would have kept."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import thresher
from invariants import SETTINGS, start
from thresher.crawl.start import crawl
from thresher.lab.record import Record, load, load_each
from thresher.lab.toyweb import ToyWeb, serve

WEB = ToyWeb.calm(
    hosts=8,
    languages=("cs", "de", "en"),
    rich_hosts=0.3,
    hidden_hosts=0.0,
    mixed_hosts=0.0,
    pages_per_host=(4, 8),
    page_bytes=(4_000, 6_000),
)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    directory = tmp_path_factory.mktemp("recorded") / "corpus"
    everything = {**SETTINGS, "judge": {"language": False, "max_badness": 0.0}}
    with serve(WEB) as server:
        crawl(directory, "cs", start(WEB), settings=everything, connect_to=server.connect_to)
    yield directory


@pytest.fixture(scope="module")
def records(corpus: Path) -> dict[str, Record]:
    return {record.language: record for record in load_each(corpus, ["cs", "de", "en"])}


def test_each_language_has_the_documents_in_it(corpus: Path, records: dict[str, Record]) -> None:
    documents = list(thresher.open(corpus))
    assert {document.language for document in documents} == {"cs", "de", "en"}
    for language, record in records.items():
        kept = {record.urls[number] for number in np.flatnonzero(record.worth)}
        assert kept == {document.url for document in documents if document.language == language}
        own = [document for document in documents if document.language == language]
        assert record.worth.sum() == sum(document.text_bytes for document in own)


def test_badness_is_that_for_the_language(records: dict[str, Record]) -> None:
    for language, record in records.items():
        said = np.array(record.languages)
        measured = ~np.isnan(record.badness)
        assert (record.badness[measured & (said == language)] <= 10).all()
        assert (record.badness[measured & (said != language)] > 20).all()
        assert (measured & (said == language)).any() and (measured & (said != language)).any()


def test_one_language_alone_is_loaded_as_it_is_among_others(corpus: Path, records: dict[str, Record]) -> None:
    alone = load(corpus, "de")
    assert alone.worth.tolist() == records["de"].worth.tolist()
    assert np.array_equal(alone.badness, records["de"].badness, equal_nan=True)
    assert alone.targets.tolist() == records["en"].targets.tolist()
