"""Verdicts: the first reason that applies, each bound on or off, duplicates and age."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from thresher.config import Config, JudgeSettings
from thresher.judge import CLAIM_GRANTED, CLAIM_UNDECIDED, Judge, TextClaim
from thresher.records import LanguageShare, ReadResult, Reply, SpamSignals, Verdict
from thresher.selection import DocumentFacts, DocumentFilter

TEXT = "Dlouhá česká věta o ničem. " * 60
GOOD = ReadResult(
    "http://a.cz/",
    "html",
    html_bytes=20_000,
    text=TEXT,
    languages=(LanguageShare("cs", 1500, 0.95), LanguageShare("en", 70, 0.05)),
    badness=3.0,
    raw_hash=b"r" * 16,
    text_hash=b"t" * 16,
)
HEAD = b"HTTP/1.1 200 OK\r\nLast-Modified: Sat, 14 Jun 2025 15:06:40 GMT\r\n"
REPLY = Reply("http://a.cz/", 200, HEAD, b"", 1_750_000_000.0, 0.1, "127.0.0.1")  # a day after Last-Modified


class Known:
    """Known pages with fixed answers."""

    def __init__(self, body: str = "", text: str = "") -> None:
        self.body, self.text = body, text

    def same_body(self, _: bytes) -> str:
        return self.body

    def same_text(self, _: bytes) -> str:
        return self.text


class Halving:
    """A filter of near duplicates that drops half of every page and rejects pages on b.cz."""

    def __init__(self) -> None:
        self.sifted: list[str] = []

    def sift(self, page: ReadResult, verdict: Verdict) -> tuple[ReadResult, Verdict]:
        self.sifted.append(page.url)
        if page.url == "http://b.cz/":
            return page, replace(verdict, keep=False, reason="near duplicate")
        return replace(page, text=page.text[: len(page.text) // 2]), verdict


def judge(settings: JudgeSettings | None = None, known: Known | None = None) -> Judge:
    return Judge(Config(language="cs", judge=settings or JudgeSettings()), known)


def test_a_kept_page_meets_the_same_bounds_as_a_document_and_a_rejected_one_fails_for_the_same_reason() -> (
    None
):
    settings = JudgeSettings(min_language_share=0.8, max_badness=5.0, max_suspicion=0.5)
    bounds = DocumentFilter(min_language_share=0.8, max_badness=5.0, max_suspicion=0.5, keep_unknown=True)
    for share in (0.79, 0.8):
        for badness in (None, 5.0, 5.1):
            for stuffing in (0.5, 0.6):
                page = replace(
                    GOOD,
                    languages=(LanguageShare("cs", 1500, share),),
                    badness=badness,
                    spam_signals=SpamSignals(stuffing=stuffing),
                )
                facts = DocumentFacts(language_share=share, badness=badness, suspicion=stuffing)
                assert reason(page, settings) == bounds.reason_against(facts)


@pytest.mark.parametrize(
    "off", [JudgeSettings(language=False), JudgeSettings(max_badness=0, max_suspicion=0)]
)
def test_a_bound_that_is_off_rejects_no_page(off: JudgeSettings) -> None:
    share = 0.1 if not off.language else 0.95
    page = replace(GOOD, languages=(LanguageShare("cs", 1500, share),))
    if off.language:
        page = replace(page, badness=1e9, spam_signals=SpamSignals(stuffing=1.0))
    assert reason(page, off) == ""


def reason(page: ReadResult, settings: JudgeSettings | None = None, known: Known | None = None) -> str:
    verdict = judge(settings, known).verdict(page, REPLY)
    assert verdict.keep == (not verdict.reason)
    return verdict.reason


def test_a_good_page_is_kept_with_its_language_and_share() -> None:
    verdict = judge().verdict(GOOD, REPLY)
    assert (verdict.keep, verdict.language) == (True, "cs")
    assert (verdict.language_share, verdict.language_bytes) == (0.95, 1500)


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


@pytest.mark.parametrize(
    ("settings", "page"),
    [
        (JudgeSettings(min_html_bytes=0), replace(GOOD, html_bytes=10)),
        (JudgeSettings(min_text_chars=0), replace(GOOD, text="x")),
        (JudgeSettings(language=False), replace(GOOD, languages=(LanguageShare("sk", 1500, 0.9),))),
        (JudgeSettings(min_language_share=0.0), replace(GOOD, languages=(LanguageShare("cs", 900, 0.4),))),
        (JudgeSettings(max_badness=0), replace(GOOD, badness=99.0)),
    ],
)
def test_each_bound_can_be_switched_off(settings: JudgeSettings, page: ReadResult) -> None:
    assert reason(page) != ""
    assert reason(page, settings) == ""


def test_bytes_of_the_language_have_a_minimum_and_a_maximum() -> None:
    assert reason(GOOD, JudgeSettings(min_language_bytes=1501)) == "too few bytes of language"
    assert reason(GOOD, JudgeSettings(max_language_bytes=1499)) == "too many bytes of language"
    assert reason(GOOD, JudgeSettings(min_language_bytes=1500, max_language_bytes=1500)) == ""


def test_a_text_without_its_markup_is_not_rejected_for_too_little_html() -> None:
    page = replace(GOOD, html_bytes=10)
    assert judge().verdict(page, REPLY).reason == "too little html"
    assert judge().verdict(page, replace(REPLY, status=0)).keep


# duplicates


def test_duplicates_are_rejected_at_two_levels_and_name_the_earlier_page() -> None:
    both = judge(known=Known("7", "8")).judge(GOOD, REPLY)
    assert (both.verdict.reason, both.duplicate_of) == ("raw duplicate", "7")
    text = judge(known=Known("", "8")).judge(GOOD, REPLY)
    assert (text.verdict.reason, text.duplicate_of) == ("text duplicate", "8")


def test_duplicates_are_kept_when_asked_for() -> None:
    assert reason(GOOD, JudgeSettings(duplicates=False), Known("7", "8")) == ""


def test_a_page_without_hashes_is_no_duplicate() -> None:
    assert reason(replace(GOOD, raw_hash=b"", text_hash=b""), known=Known("7", "8")) == ""


def test_a_page_that_claimed_its_text_is_kept_even_if_copies_were_judged_meanwhile() -> None:
    judgement = judge(known=Known("7", "8")).judge(GOOD, REPLY, claim=CLAIM_GRANTED)
    assert judgement.verdict.keep and not judgement.duplicate_of


def test_a_page_whose_claim_was_not_decided_is_compared_with_known_pages() -> None:
    assert judge().judge(GOOD, REPLY, claim=CLAIM_UNDECIDED).verdict.keep
    judgement = judge(known=Known("", "8")).judge(GOOD, REPLY, claim=CLAIM_UNDECIDED)
    assert (judgement.verdict.reason, judgement.duplicate_of) == ("text duplicate", "8")


def test_a_page_whose_text_another_shard_has_names_it() -> None:
    judgement = judge().judge(GOOD, REPLY, claim=TextClaim.taken("http://first.cz/"))
    assert judgement.verdict.reason == "text duplicate"
    assert judgement.duplicate_of == judgement.owner == "http://first.cz/"


def test_near_duplicates_are_looked_for_once_and_only_in_pages_that_are_kept() -> None:
    near = Halving()
    one = Judge(Config(language="cs"), near_duplicates=near)
    assert one.verdict(GOOD, REPLY).keep and near.sifted == []
    assert len(one.judge(GOOD, REPLY).page.text) == len(TEXT) // 2
    assert one.judge(replace(GOOD, url="http://b.cz/"), REPLY).verdict.reason == "near duplicate"
    assert one.judge(replace(GOOD, noindex=True), REPLY).verdict.reason == "noindex"
    assert near.sifted == ["http://a.cz/", "http://b.cz/"]


# age


@pytest.mark.parametrize(("days", "expected"), [(0.0, ""), (0.5, "too old"), (1.0, ""), (2.0, "")])
def test_a_page_that_did_not_change_for_longer_than_allowed_is_too_old(days: float, expected: str) -> None:
    assert reason(GOOD, JudgeSettings(max_age=days)) == expected


def test_a_page_without_a_date_of_its_last_change_passes() -> None:
    undated = replace(REPLY, headers=b"HTTP/1.1 200 OK\r\n")
    assert judge(JudgeSettings(max_age=0.5)).verdict(GOOD, undated).keep
    assert judge(JudgeSettings(max_age=0.5)).verdict(GOOD).keep
