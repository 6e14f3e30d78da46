"""Verdicts: the first reason that applies, each filter on or off."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from thresher.config import Judging
from thresher.judge import judge
from thresher.page import LanguageShare, Page

TEXT = "Dlouhá česká věta o ničem. " * 60
GOOD = Page(
    "http://a.cz/",
    "html",
    html_bytes=20_000,
    text=TEXT,
    languages=(LanguageShare("cs", 1500, 0.95), LanguageShare("en", 70, 0.05)),
    badness=3.0,
)


def reason(page: Page, settings: Judging | None = None, **seen: bool) -> str:
    verdict = judge(page, "cs", settings or Judging(), **seen)
    assert verdict.keep == (not verdict.reason)
    return verdict.reason


def test_a_good_page_is_kept_with_its_language_and_share() -> None:
    verdict = judge(GOOD, "cs", Judging())
    assert (verdict.keep, verdict.language, verdict.language_share, verdict.language_bytes) == (
        True,
        "cs",
        0.95,
        1500,
    )


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"fault": "decompression bomb"}, "decompression bomb"),
        ({"kind": "other"}, "not html"),
        ({"kind": "sitemap"}, "sitemap"),
        ({"noindex": True}, "noindex"),
        ({"html_bytes": 1_999}, "too little html"),
        ({"text": "x" * 999}, "too short"),
        ({"languages": (LanguageShare("sk", 1500, 0.9),)}, "language"),
        ({"languages": ()}, "language"),
        ({"languages": (LanguageShare("cs", 900, 0.6), LanguageShare("en", 600, 0.4))}, "language share"),
        ({"badness": 10.1}, "badness"),
        ({"badness": None}, ""),
    ],
)
def test_a_page_is_rejected_for_the_reason_that_applies(change: dict[str, object], expected: str) -> None:
    assert reason(replace(GOOD, **change)) == expected


def test_duplicates_are_rejected_at_two_levels() -> None:
    assert reason(GOOD, raw_seen=True, text_seen=True) == "raw duplicate"
    assert reason(GOOD, raw_seen=False, text_seen=True) == "text duplicate"


@pytest.mark.parametrize(
    ("settings", "page"),
    [
        (Judging(min_html_bytes=0), replace(GOOD, html_bytes=10)),
        (Judging(min_text_chars=0), replace(GOOD, text="x")),
        (Judging(language=False), replace(GOOD, languages=(LanguageShare("sk", 1500, 0.9),))),
        (Judging(min_language_share=0.0), replace(GOOD, languages=(LanguageShare("cs", 900, 0.4),))),
        (Judging(max_badness=0), replace(GOOD, badness=99.0)),
    ],
)
def test_each_filter_can_be_switched_off(settings: Judging, page: Page) -> None:
    assert reason(page) != ""
    assert reason(page, settings) == ""


def test_duplicates_are_kept_when_asked_for() -> None:
    assert reason(GOOD, Judging(duplicates=False), raw_seen=True, text_seen=True) == ""


def test_bytes_of_the_language_have_a_minimum_and_a_maximum() -> None:
    assert reason(GOOD, Judging(min_language_bytes=1501)) == "too few bytes of language"
    assert reason(GOOD, Judging(max_language_bytes=1499)) == "too many bytes of language"
    assert reason(GOOD, Judging(min_language_bytes=1500, max_language_bytes=1500)) == ""
