"""Keep a page or not, and why not: the first reason that applies."""

from __future__ import annotations

import email.utils
from datetime import UTC, datetime

from thresher.config import Judging
from thresher.page import LanguageShare, Page, Reply, Verdict

NONE = LanguageShare("", 0, 0.0)
FIRST_PAGE = datetime(1990, 12, 20, tzinfo=UTC)  # of the web; what claims to be older has no clock
DAY = 86_400.0


def judge(
    page: Page,
    language: str,
    settings: Judging,
    *,
    raw_seen: bool = False,
    text_seen: bool = False,
    age: float | None = None,
) -> Verdict:
    """The verdict on a page, unchanged for so many days, for a corpus in that language ("": any)."""
    main = page.languages[0] if page.languages else NONE
    wanted = next((share for share in page.languages if share.code == language), NONE) if language else main
    reason = _reason(page, main, wanted, language, settings, raw_seen, text_seen)
    if not reason and age is not None and 0 < settings.max_age < age:
        reason = "too old"
    counted = wanted if wanted.bytes else main
    return Verdict(not reason, reason, main.code, counted.share, counted.bytes)


def _reason(
    page: Page,
    main: LanguageShare,
    wanted: LanguageShare,
    language: str,
    settings: Judging,
    raw_seen: bool,
    text_seen: bool,
) -> str:
    if page.fault:
        return page.fault
    if page.kind != "html":
        return "not html" if page.kind == "other" else page.kind
    if page.noindex:
        return "noindex"
    if page.html_bytes < settings.min_html_bytes:
        return "too little html"
    if settings.duplicates and raw_seen:
        return "raw duplicate"
    if len(page.text) < settings.min_text_chars:
        return "too short"
    if settings.language and language and main.code != language:
        return "language"
    if wanted.bytes < settings.min_language_bytes:
        return "too few bytes of language"
    if 0 < settings.max_language_bytes < wanted.bytes:
        return "too many bytes of language"
    if settings.language and wanted.share < settings.min_language_share:
        return "language share"
    return _quality_reason(page, settings) or ("text duplicate" if settings.duplicates and text_seen else "")


def _quality_reason(page: Page, settings: Judging) -> str:
    if page.badness is not None and 0 < settings.max_badness < page.badness:
        return "badness"
    if 0 < settings.max_suspicion < page.signs.suspicion:
        return "suspicious"
    return ""


def age(reply: Reply) -> float | None:
    """Days since a page last changed, by its Last-Modified; None where that says nothing that can be believed."""
    try:
        changed = email.utils.parsedate_to_datetime(reply.header("Last-Modified") or "")
    except (ValueError, TypeError, OverflowError):
        return None
    if changed.tzinfo is None:  # "-0000": a time of no zone
        changed = changed.replace(tzinfo=UTC)
    return (reply.fetched - changed.timestamp()) / DAY if changed >= FIRST_PAGE else None
