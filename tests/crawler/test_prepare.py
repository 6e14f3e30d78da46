"""Settings of a crawl: checked before anything is written, and --connect-to remembered."""

from __future__ import annotations

import errno
import os
import shutil
import tarfile
from pathlib import Path
from typing import Any

import pytest

from thresher.config import SCHEMA, load
from thresher.crawler.prepare import change_settings, prepare
from thresher.crawler.seeds import Seeds
from thresher.errors import DataError, UsageError

pytestmark = pytest.mark.filterwarnings("ignore:.*the old name will not be read:FutureWarning")

DATA = Path(__file__).parents[1] / "data" / "schema1"
SEEDS, NO_SEEDS = Seeds(("http://a.cz/",)), Seeds(())
CONTACT = {"polite": {"contact": "me@example.org"}}
ADDRESS = "127.0.0.1:8088"


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    """Return a corpus of a test web."""
    prepare(tmp_path / "corpus", "cs", SEEDS, {}, connect_to=ADDRESS)
    return tmp_path / "corpus"


@pytest.fixture
def older(tmp_path: Path) -> Path:
    """Return a corpus that the version before crawled with --connect-to."""
    with tarfile.open(DATA / "corpora.tar.xz") as archive:
        archive.extractall(tmp_path, filter="data")
    return tmp_path


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"budget": {"max_pages": -3}}, "budget.max_pages must be a whole number of at least 0, got -3"),
        ({"polite": {"delay": -1.0}}, "polite.delay must be a duration in seconds from 0 to 365d"),
        ({"scope": {"tlds": ["co.uk"]}}, "in [scope], 'co.uk' is not a top-level domain"),
        ({"polite": {"contact": "me"}}, "must be an e-mail address or an http"),
        ({}, "webmasters must be able to reach you"),
    ],
)
def test_a_setting_that_cannot_be_used_is_refused_before_anything_is_written(
    tmp_path: Path, settings: dict[str, Any], message: str
) -> None:
    with pytest.raises(UsageError) as refused:
        prepare(tmp_path / "corpus", "cs", SEEDS, settings)
    assert message in str(refused.value)
    assert not (tmp_path / "corpus").exists()


def test_comments_stay_when_a_flag_changes_a_setting(corpus: Path) -> None:
    path = corpus / "corpus.toml"
    path.write_text("# mine\n" + path.read_text() + "\n[polite]\ndelay = 2 # agreed\n")
    prepare(corpus, "", NO_SEEDS, {"polite": {"delay": 3.0}})
    assert path.read_text().startswith("# mine\n")
    assert "delay = 3 # agreed" in path.read_text()


@pytest.mark.parametrize("text", ["", "schema = 2\n"])
def test_a_corpus_without_a_language_is_not_continued(corpus: Path, text: str) -> None:
    (corpus / "corpus.toml").write_text(text)
    with pytest.raises(UsageError, match="language is missing"):
        prepare(corpus, "", NO_SEEDS, CONTACT)


@pytest.mark.parametrize("language", ["klingon", "cs-CZ"])
def test_a_corpus_in_a_language_that_no_page_can_have_is_not_continued(corpus: Path, language: str) -> None:
    path = corpus / "corpus.toml"
    path.write_text(path.read_text().replace('"cs"', f'"{language}"'))
    with pytest.raises(UsageError, match=f"must be the code of a known language, got '{language}'"):
        prepare(corpus, "", NO_SEEDS, CONTACT)


# --connect-to


def test_a_name_instead_of_an_address_is_not_remembered(corpus: Path) -> None:
    before = (corpus / "corpus.toml").read_text()
    with pytest.raises(UsageError, match="ADDR:PORT with an IP address, got 'localhost:8088'"):
        prepare(corpus, "", NO_SEEDS, {}, connect_to="localhost:8088")
    assert (corpus / "corpus.toml").read_text() == before


def test_a_corpus_of_a_test_web_continues_there_even_with_a_contact(corpus: Path) -> None:
    assert prepare(corpus, "", NO_SEEDS, CONTACT).fetch.connect_to == ADDRESS
    assert load(corpus).fetch.connect_to == ADDRESS


def test_another_address_is_remembered_in_its_place(corpus: Path) -> None:
    prepare(corpus, "", NO_SEEDS, {}, connect_to="127.0.0.1:9")
    assert prepare(corpus, "", NO_SEEDS, {}).fetch.connect_to == "127.0.0.1:9"


def test_only_none_leads_a_corpus_of_a_test_web_to_the_web(corpus: Path) -> None:
    with pytest.raises(UsageError, match="--contact"):
        prepare(corpus, "", NO_SEEDS, {}, connect_to="none")
    assert load(corpus).fetch.connect_to == ADDRESS
    assert prepare(corpus, "", NO_SEEDS, CONTACT, connect_to="none").fetch.fixed_address == ""
    assert prepare(corpus, "", NO_SEEDS, {}).fetch.fixed_address == ""


@pytest.mark.parametrize("name", ["crawled", "killed", "sharded"])
def test_an_older_corpus_of_a_test_web_asks_once_before_it_goes_to_the_web(older: Path, name: str) -> None:
    with pytest.raises(UsageError, match=r"has pages from 127\.0\.0\.1.*--connect-to none"):
        prepare(older / name, "", NO_SEEDS, CONTACT)
    assert load(older / name).schema == 1
    # Another command may have written data of the present schema meanwhile.
    path = older / name / "corpus.toml"
    path.write_text(path.read_text().replace("schema = 1", f"schema = {SCHEMA}"))
    with pytest.raises(UsageError, match=r"has pages from 127\.0\.0\.1"):
        prepare(older / name, "", NO_SEEDS, CONTACT)
    prepare(older / name, "", NO_SEEDS, CONTACT, connect_to="none")
    assert prepare(older / name, "", NO_SEEDS, {}).schema == SCHEMA


def test_an_older_corpus_whose_pages_show_no_address_asks_too(older: Path) -> None:
    shutil.rmtree(older / "crawled" / "warc")
    with pytest.raises(UsageError, match="does not show where its pages come from"):
        prepare(older / "crawled", "", NO_SEEDS, CONTACT)


def test_an_older_corpus_that_was_never_crawled_does_not_ask(older: Path) -> None:
    assert prepare(older / "imported", "", SEEDS, CONTACT).fetch.connect_to == ""


def test_a_file_that_cannot_be_written_is_a_fault_of_the_disk(
    corpus: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = (corpus / "corpus.toml").read_bytes()

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(DataError, match=r"corpus\.toml cannot be written: No space left"):
        change_settings(corpus, {"polite": {"delay": 3.0}})
    assert (corpus / "corpus.toml").read_bytes() == before
