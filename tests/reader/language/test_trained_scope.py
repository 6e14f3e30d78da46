"""Trained languages: which of them a page is compared with, and samples that are in a known language."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from thresher.config import ReadSettings
from thresher.reader.extract import read
from thresher.reader.language import custom_models
from thresher.reader.language.custom_models import save
from thresher.reader.language.identify import languages, paragraph_languages
from thresher.reader.language.train import known_language, train
from thresher.records import Reply

SENTENCES = (
    "Dün çocuklarla ormana gittik ve orada birçok mantar bulduk, sonra onları akşam evde pişirdik.",
    "Belediye başkanı yeni köprünün gelecek yıl açılacağını ve trafiğin azalacağını söyledi.",
    "Kütüphanede okuduğum kitap eski İstanbul sokaklarını ve oradaki küçük dükkanları anlatıyordu.",
    "Annem her sabah pazara gider, taze sebze alır ve komşularla uzun uzun konuşur.",
    "Öğrenciler sınavdan sonra öğretmenlerine teşekkür ettiler ve hep birlikte fotoğraf çektirdiler.",
)
TURKISH = "\n".join(SENTENCES * 20)


@pytest.fixture(autouse=True)
def own_languages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Yield a language qaa, trained from Turkish by mistake, in a directory of the test's own."""
    monkeypatch.setenv("THRESHER_LANGUAGES", str(tmp_path / "languages"))
    custom_models.clear_cache()
    save(train("qaa", TURKISH))
    yield
    custom_models.clear_cache()


def main_language(language: str, settings: ReadSettings | None = None) -> str:
    body = f"<title>Orman</title>{''.join(f'<p>{text}</p>' for text in SENTENCES * 3)}".encode()
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\n"
    reply = Reply("http://a.com.tr/", 200, head, body, 0.0, 0.1, "127.0.0.1")
    return read(reply, language, settings or ReadSettings()).languages[0].code


def test_a_trained_language_takes_no_pages_of_a_corpus_that_does_not_name_it() -> None:
    assert main_language("tr") == "tr"


def test_a_corpus_in_a_trained_language_uses_it() -> None:
    assert main_language("qaa") == "qaa"


def test_a_corpus_can_name_trained_languages() -> None:
    assert main_language("tr", ReadSettings(trained_languages=("qaa",))) == "qaa"


def test_a_page_that_is_read_for_no_corpus_is_compared_with_all() -> None:
    assert main_language("") == "qaa"


def test_texts_and_paragraphs_are_compared_with_the_trained_languages_that_are_named() -> None:
    assert [languages(TURKISH, trained)[0].code for trained in (None, ["qaa"], [])] == ["qaa", "qaa", "tr"]
    assert paragraph_languages([SENTENCES[0]], []) == ["tr"]
    assert paragraph_languages([SENTENCES[0]], ["qaa"]) == ["qaa"]


def test_a_sample_in_a_known_language_is_recognised() -> None:
    known = known_language(TURKISH)
    assert known and known.code == "tr" and known.share > 0.9


@pytest.mark.parametrize("text", ["", "ga vorku wi meluatu tun tashi oz rundeisho. " * 100])
def test_a_sample_in_no_known_language_is_in_none(text: str) -> None:
    assert known_language(text) is None
