"""Records of a crawl for several languages: the worth of pages is the text that a corpus in the language keeps."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import thresher
from support.invariants import SETTINGS
from support.webs.toy_webs import all_seeds
from thresher.crawler.api import crawl
from thresher.errors import UsageError
from thresher.simulation.record import CrawlRecord, load, load_each
from thresher_lab.toyweb import ToyWeb, serve

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
        crawl(directory, "cs", all_seeds(WEB), settings=everything, connect_to=server.connect_to)
    yield directory


@pytest.fixture(scope="module")
def records(corpus: Path) -> dict[str, CrawlRecord]:
    return {record.language: record for record in load_each(corpus, ["cs", "de", "en"])}


def test_each_language_has_the_documents_in_it(corpus: Path, records: dict[str, CrawlRecord]) -> None:
    documents = list(thresher.open(corpus))
    assert {document.language for document in documents} == {"cs", "de", "en"}
    for language, record in records.items():
        kept = {record.urls[number] for number in np.flatnonzero(record.worth)}
        assert kept == {document.url for document in documents if document.language == language}
        own = [document for document in documents if document.language == language]
        assert record.worth.sum() == sum(document.text_bytes for document in own)


def test_badness_is_that_for_the_language(records: dict[str, CrawlRecord]) -> None:
    for language, record in records.items():
        languages = np.array(record.languages)
        measured = ~np.isnan(record.badness)
        assert (record.badness[measured & (languages == language)] <= 10).all()
        assert (record.badness[measured & (languages != language)] > 20).all()
        assert (measured & (languages == language)).any() and (measured & (languages != language)).any()


def test_one_language_alone_is_loaded_as_it_is_among_others(
    corpus: Path, records: dict[str, CrawlRecord]
) -> None:
    alone = load(corpus, "de")
    assert alone.worth.tolist() == records["de"].worth.tolist()
    assert np.array_equal(alone.badness, records["de"].badness, equal_nan=True)
    assert alone.targets.tolist() == records["en"].targets.tolist()


def test_pages_that_a_crawl_rejected_for_their_language_are_worth_their_text_in_it(
    corpus: Path, tmp_path: Path
) -> None:
    with serve(WEB) as server:
        crawl(tmp_path / "czech", "cs", all_seeds(WEB), settings=SETTINGS, connect_to=server.connect_to)
    assert {document.language for document in thresher.open(tmp_path / "czech")} == {"cs"}
    judged_then, judged_now = load(corpus, "de"), load(tmp_path / "czech", "de")
    then, now = (
        {record.urls[number]: int(record.worth[number]) for number in np.flatnonzero(record.worth)}
        for record in (judged_then, judged_now)
    )
    assert now == then
    number = judged_now.number(next(iter(now)))
    assert judged_now.badness[number] <= 10


def test_a_record_without_raw_pages_names_the_setting_that_keeps_them(tmp_path: Path) -> None:
    settings = {**SETTINGS, "store": {"keep_raw": "kept"}}
    with serve(WEB) as server:
        crawl(tmp_path / "czech", "cs", all_seeds(WEB), settings=settings, connect_to=server.connect_to)
    with pytest.raises(UsageError, match="keep_raw"):
        load(tmp_path / "czech", "de")
