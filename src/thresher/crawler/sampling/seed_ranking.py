"""Ranking of candidate seeds: one polite visit, a few measures, a score.

    score = bytes of text in the language / bytes downloaded
            + MAX_LINKS_SCORE * in_language * links / (links + HALF_SCORE_LINKS)

The first part is the yield of the page itself. The second values the pages it leads to: a page with visible text in
the language mostly links to more of the same, so a front page of headlines is a good seed even without running
text. The value of links saturates, or link farms would win.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from contextlib import aclosing

import msgspec
import uvloop
from msgspec import Struct

from thresher.config import Config, JudgeSettings, ScopeSettings
from thresher.crawler.frontier.url_scope import UrlScope
from thresher.crawler.sampling.page_visitor import PageVisitor, VisitResult, VisitSettings, interruptible
from thresher.errors import CrawlError
from thresher.reader.language.identify import languages
from thresher.reasons import LANGUAGE, TEXT_REASONS
from thresher.records import LanguageShare, ReadResult, Verdict
from thresher.urls import host, key

MAX_LINKS_SCORE = 0.1  # as much as a yield of 10 %
HALF_SCORE_LINKS = 50  # links with which half of that is reached
MIN_LINKS = 5  # of a page that is good for its links alone: with fewer it is an error page or a splash screen
MAX_VISIBLE_CHARS = 100_000  # that identify the language of a page with little text


class SeedRanking(Struct, frozen=True, kw_only=True):
    """The measures and the score of one candidate."""

    url: str
    final: str  # URL after redirects
    good: bool = False
    score: float = 0.0
    reason: str = ""  # why it is not good
    detail: str = ""
    languages: tuple[LanguageShare, ...] = ()  # of its text, or of all visible text if it has little
    badness: float | None = None
    boilerplate: float = 0.0  # share of all visible characters
    text_bytes: int = 0
    downloaded: int = 0
    rate: float = msgspec.field(name="yield", default=0.0)  # bytes of text in the language / downloaded
    own_links: int = 0
    other_links: int = 0  # to other hosts
    verdict: Verdict | None = None  # on its text; None: no page was fetched


def appraise(visit: VisitResult, language: str, settings: JudgeSettings, scope: UrlScope) -> SeedRanking:
    """Measure a visited page as a seed for a corpus in a language."""
    page, verdict = visit.page, visit.verdict
    if page is None or verdict is None:
        return SeedRanking(
            url=visit.url,
            final=visit.final,
            reason=visit.reason,
            detail=visit.detail,
            downloaded=visit.downloaded,
        )
    visible = "\n".join(block.text for block in page.blocks)[:MAX_VISIBLE_CHARS]
    found = page.languages if len(page.text) >= settings.min_text_chars else languages(visible, [language])
    in_language = next((share.share for share in found if share.code == language), 0.0)
    text_in_language = next((share.bytes for share in page.languages if share.code == language), 0)
    own, other = _links(page, scope)
    reason = _reason(verdict, found, in_language, own + other, language, settings)
    links = own + other
    rate = text_in_language / visit.downloaded if visit.downloaded else 0.0
    return SeedRanking(
        url=visit.url,
        final=visit.final,
        good=not reason,
        score=rate + MAX_LINKS_SCORE * in_language * links / (links + HALF_SCORE_LINKS),
        reason=reason,
        languages=found,
        badness=page.badness,
        boilerplate=1
        - len(page.text) / max(len(page.text), sum(len(block.text) for block in page.blocks), 1),
        text_bytes=len(page.text.encode("utf-8", "replace")),
        downloaded=visit.downloaded,
        rate=rate,
        own_links=own,
        other_links=other,
        verdict=verdict,
    )


def _reason(
    verdict: Verdict,
    found: Sequence[LanguageShare],
    in_language: float,
    links: int,
    language: str,
    settings: JudgeSettings,
) -> str:
    """Return why a page is not a good seed; "" if it is kept, or has links and visible text in the language."""
    if verdict.keep:
        return ""
    if verdict.reason not in TEXT_REASONS:
        return verdict.reason
    if not found or found[0].code != language or in_language < settings.min_language_share:
        return LANGUAGE
    return "" if links >= MIN_LINKS else verdict.reason


def _links(page: ReadResult, scope: UrlScope) -> tuple[int, int]:
    """Return the number of links that a crawl would follow: to the same host, and to others."""
    if page.nofollow:
        return 0, 0
    at = host(page.url)
    followed = {
        key(link.url): host(link.url) == at
        for link in page.links
        if "nofollow" not in link.rel and scope.admits(link.url, at)
    }
    followed.pop(key(page.url), None)
    own = sum(followed.values())
    return own, len(followed) - own


def rank(appraisals: Iterable[SeedRanking]) -> list[SeedRanking]:
    """Rank candidates, the best first and bad ones last; of several that lead to one page, one is good."""
    ranked = sorted(appraisals, key=lambda seed: (not seed.good, -seed.score, seed.verdict is None, seed.url))
    first: dict[bytes, SeedRanking] = {}
    good, bad = [], []
    for seed in ranked:
        best = first.setdefault(key(seed.final), seed)
        if not seed.good:
            bad.append(seed)
        elif best is seed:
            good.append(seed)
        else:
            bad.append(msgspec.structs.replace(seed, good=False, reason="same page", detail=best.url))
    return good + bad


def seed_list(ranked: Iterable[SeedRanking]) -> str:
    """Return the text of a seeds file with the good candidates: a comment with the score, then the URL."""
    lines = []
    for seed in ranked:
        if seed.good:
            links = f"{seed.own_links} links on the host, {seed.other_links} to others"
            lines += [f"# score {seed.score:.3f}: yield {seed.rate:.3f}, {links}", seed.final]
    return "".join(f"{line}\n" for line in lines)


class SeedRankings(Struct, frozen=True):
    """The visited candidates, ranked."""

    seeds: tuple[SeedRanking, ...]
    interrupted: bool = False


def appraise_all(
    urls: Sequence[str], terms: VisitSettings, progress: Callable[[int], None] = lambda _: None
) -> SeedRankings:
    """Visit candidates (canonical URLs) and rank them; after an interruption, rank the ones visited so far.

    Raise CrawlError if no candidate can be reached.
    """
    config, address = terms.config(), terms.address()
    found: list[SeedRanking] = []

    async def run() -> bool:
        async with PageVisitor(config, connect_to=address) as visitor:
            return await interruptible(_visit_all(visitor, urls, config, found, progress))

    interrupted: bool = uvloop.run(run())
    return SeedRankings(tuple(rank(found)), interrupted)


async def _visit_all(
    visitor: PageVisitor,
    urls: Sequence[str],
    config: Config,
    found: list[SeedRanking],
    progress: Callable[[int], None],
) -> None:
    """Visit and appraise all candidates; raise CrawlError as soon as none of their hosts can be reached."""
    visits = asyncio.create_task(_appraise_each(visitor, urls, config, found, progress))
    offline = asyncio.create_task(visitor.offline.wait())
    try:
        await asyncio.wait((visits, offline), return_when=asyncio.FIRST_COMPLETED)
        if not visits.done():
            raise CrawlError(
                f"none of {len(urls):,} candidates could be reached: is there a network, and are their names right?"
            )
        visits.result()
    finally:
        for task in (visits, offline):
            task.cancel()
        await asyncio.gather(visits, offline, return_exceptions=True)


async def _appraise_each(
    visitor: PageVisitor,
    urls: Sequence[str],
    config: Config,
    found: list[SeedRanking],
    progress: Callable[[int], None],
) -> None:
    scope = UrlScope(ScopeSettings())
    async with aclosing(visitor.visit_all(urls)) as visits:
        async for visit in visits:
            found.append(appraise(visit, config.language, config.judge, scope))
            progress(len(found))
