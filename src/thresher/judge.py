"""The judge: keep a page or reject it, with the first reason that applies.

One judge serves every way of a page. The checks of the page itself are the same everywhere: kind, noindex, bounds
on size, language, Badness and suspicion, and the age of its reply if `max_age` is set. Checks that compare a page
with others need what the caller passes:

    crawl                   exact duplicates of the crawl and of imports; near duplicates if they are switched on
    import of pages         exact duplicates of the corpus
    step `reread`           none: the steps `exact_duplicates` and `near_duplicates` find duplicates
    visits to a list,
    `simulate`, `read`      none

Opt-outs are no reason to reject a page. A page has the ones that its reply states; `records.with_opt_outs` adds the
ones of its host's robots.txt in crawls, visits and `reread`.
"""

from __future__ import annotations

import email.utils
from datetime import UTC, datetime
from typing import Literal, Protocol

from msgspec import Struct

from thresher.config import Config, JudgeSettings
from thresher.reasons import (
    LANGUAGE,
    NOINDEX,
    NOT_HTML,
    RAW_DUPLICATE,
    TEXT_DUPLICATE,
    TOO_FEW_LANGUAGE_BYTES,
    TOO_LITTLE_HTML,
    TOO_MANY_LANGUAGE_BYTES,
    TOO_OLD,
    TOO_SHORT,
)
from thresher.records import LanguageShare, ReadResult, Reply, Verdict
from thresher.selection import DocumentFacts, DocumentFilter

NO_LANGUAGE = LanguageShare("", 0, 0.0)
FIRST_WEB_PAGE = datetime(1990, 12, 20, tzinfo=UTC)  # an older Last-Modified comes from a wrong clock
DAY_S = 86_400.0


class TextClaim(Struct, frozen=True):
    """The result of claiming a text for a page, so that shards of one crawl keep one of several equal pages.

    not needed: the crawl's own state knows all texts with this hash, or the page would not be kept anyway
    granted: the page may keep the text, and no other page may
    taken: another page holds the text, or is about to
    undecided: the shard that decides did not answer in time, so the page is judged by the crawl's own state alone
    """

    decision: Literal["not needed", "granted", "taken", "undecided"]
    owner: str = ""  # URL of the page that holds a taken text

    @classmethod
    def taken(cls, owner: str) -> TextClaim:
        """Return the result for a text that another page holds, given the URL of that page."""
        return cls("taken", owner)

    @property
    def is_decided(self) -> bool:
        """True if the claim was granted, or lost to another page."""
        return self.decision in ("granted", "taken")


CLAIM_NOT_NEEDED = TextClaim("not needed")
CLAIM_GRANTED = TextClaim("granted")
CLAIM_UNDECIDED = TextClaim("undecided")


class KnownPages(Protocol):
    """Pages that were judged before, found by the hashes of their body and text."""

    def same_body(self, raw_hash: bytes) -> str:
        """Return the name of the first page with these bytes, "" if there is none."""

    def same_text(self, text_hash: bytes) -> str:
        """Return the name of the first kept page with this text, "" if there is none."""


class NearDuplicates(Protocol):
    """Paragraphs that were kept before, found by their shingles."""

    def sift(self, page: ReadResult, verdict: Verdict) -> tuple[ReadResult, Verdict]:
        """Return the page without repeated paragraphs, and its verdict; remember the paragraphs that stay."""


class NoKnownPages:
    """Known pages of a corpus that has none, and where duplicates do not count."""

    def same_body(self, raw_hash: bytes) -> str:  # noqa: ARG002
        """Return ""."""
        return ""

    def same_text(self, text_hash: bytes) -> str:  # noqa: ARG002
        """Return ""."""
        return ""


class Judgement(Struct, frozen=True):
    """The final judgement on a page."""

    verdict: Verdict
    page: ReadResult  # without repeated paragraphs, if near duplicates are looked for
    duplicate_of: str = ""  # the name of the earlier page, of an exact duplicate
    owner: str = ""  # the URL of another shard that claimed the text first


class Judge:
    """The judge of one corpus: bounds on content, exact duplicates, age and near duplicates, in that order."""

    def __init__(
        self,
        config: Config,
        known_pages: KnownPages | None = None,
        near_duplicates: NearDuplicates | None = None,
    ) -> None:
        self._language = config.language
        self._settings = config.judge
        self._known = known_pages if known_pages and config.judge.duplicates else NoKnownPages()
        self._near_duplicates = near_duplicates
        self._bounds = _bounds(config.judge)

    def verdict(
        self, page: ReadResult, reply: Reply | None = None, claim: TextClaim = CLAIM_NOT_NEEDED
    ) -> Verdict:
        """Return the verdict on a page; near duplicates are not looked for, and nothing is remembered.

        Parameters
        ----------
        page
            The page as it was read. Any language is wanted if the corpus has none.
        reply
            Its reply, for the age of the page. A reply without status is a text that came without its markup:
            the bound on HTML bytes does not apply.
        claim
            The result of claiming the text across shards. Known pages are asked only if nothing was decided, since
            a page that was granted its text must not lose to its own copies, judged in between.
        """
        main = page.languages[0] if page.languages else NO_LANGUAGE
        wanted = self._share(page) if self._language else main
        reason = self._reason(page, main, wanted, reply, claim)
        counted = wanted if wanted.bytes else main
        return Verdict(not reason, reason, main.code, counted.share, counted.bytes)

    def judge(
        self, page: ReadResult, reply: Reply | None = None, claim: TextClaim = CLAIM_NOT_NEEDED
    ) -> Judgement:
        """Return the final judgement on a page. Call it once per page: near duplicates remember its paragraphs."""
        verdict = self.verdict(page, reply, claim)
        duplicate_of = ""
        if verdict.reason == RAW_DUPLICATE:
            duplicate_of = self._known.same_body(page.raw_hash)
        elif verdict.reason == TEXT_DUPLICATE:
            duplicate_of = self._known.same_text(page.text_hash) or claim.owner
        if verdict.keep and self._near_duplicates:
            page, verdict = self._near_duplicates.sift(page, verdict)
        return Judgement(verdict, page, duplicate_of, claim.owner)

    def _share(self, page: ReadResult) -> LanguageShare:
        return next((share for share in page.languages if share.code == self._language), NO_LANGUAGE)

    def _reason(
        self,
        page: ReadResult,
        main: LanguageShare,
        wanted: LanguageShare,
        reply: Reply | None,
        claim: TextClaim,
    ) -> str:
        """Return the first reason to reject the page, "" if there is none; cheap checks come first."""
        settings = self._settings
        if page.fault:
            return page.fault
        if page.kind != "html":
            return NOT_HTML if page.kind == "other" else page.kind
        if page.noindex:
            return NOINDEX
        if page.html_bytes < settings.min_html_bytes and (reply is None or reply.status):
            return TOO_LITTLE_HTML
        if not claim.is_decided and page.raw_hash and self._known.same_body(page.raw_hash):
            return RAW_DUPLICATE
        if len(page.text) < settings.min_text_chars:
            return TOO_SHORT
        return (
            self._language_reason(main, wanted)
            or self._bounds.reason_against(
                DocumentFacts(
                    language_share=wanted.share, badness=page.badness, suspicion=page.spam_signals.suspicion
                )
            )
            or self._duplicate_reason(page, claim)
            or self._age_reason(reply)
        )

    def _language_reason(self, main: LanguageShare, wanted: LanguageShare) -> str:
        settings = self._settings
        if settings.language and self._language and main.code != self._language:
            return LANGUAGE
        if wanted.bytes < settings.min_language_bytes:
            return TOO_FEW_LANGUAGE_BYTES
        if 0 < settings.max_language_bytes < wanted.bytes:
            return TOO_MANY_LANGUAGE_BYTES
        return ""

    def _duplicate_reason(self, page: ReadResult, claim: TextClaim) -> str:
        first = claim.owner
        if not claim.is_decided and page.text_hash:
            first = self._known.same_text(page.text_hash)
        return TEXT_DUPLICATE if first and self._settings.duplicates else ""

    def _age_reason(self, reply: Reply | None) -> str:
        if reply is None or not self._settings.max_age:
            return ""
        days = page_age_days(reply)
        return TOO_OLD if days is not None and days > self._settings.max_age else ""


def _bounds(settings: JudgeSettings) -> DocumentFilter:
    """Return the bounds that a document can be filtered by later, too.

    A page whose Badness is unknown meets the bound on it, since no language has to have a model.
    """
    return DocumentFilter(
        min_language_share=settings.min_language_share if settings.language else 0.0,
        max_badness=settings.max_badness or None,
        max_suspicion=settings.max_suspicion or 1.0,
        opted_out=True,
        keep_unknown=True,
    )


def page_age_days(reply: Reply) -> float | None:
    """Return the days between a page's Last-Modified and its fetch; None if the header is missing or absurd."""
    try:
        changed = email.utils.parsedate_to_datetime(reply.header("Last-Modified") or "")
    except (ValueError, TypeError, OverflowError):
        return None
    if changed.tzinfo is None:  # RFC 5322 writes "-0000" for a time whose zone is unknown
        changed = changed.replace(tzinfo=UTC)
    return (reply.fetched - changed.timestamp()) / DAY_S if changed >= FIRST_WEB_PAGE else None
