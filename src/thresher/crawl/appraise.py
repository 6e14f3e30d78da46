"""What a candidate is worth as a seed: one polite visit, a few measures, a score.

    score = bytes of text in the language / bytes downloaded  +  LINKS_WORTH * in_language * links / (links + HALF)

The first part is the yield, what the page itself brings. The second is what it leads to: a page whose visible
text is in the language mostly links to more of it, so a front page of headlines that has hardly any running text
is a good seed all the same. Many links are worth little more than some, or link farms would win.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import aclosing

import msgspec
import uvloop
from msgspec import Struct

from thresher.config import Config, Judging, Scope
from thresher.crawl.scope import Gate
from thresher.crawl.visitor import Terms, Visit, Visitor, interruptible
from thresher.page import LanguageShare, Page, Verdict
from thresher.read.language import languages
from thresher.url import host, key

LINKS_WORTH = 0.1  # as much as a page of which a tenth is text
HALF = 50  # links that bring half of that
MIN_LINKS = 5  # of a page that is good for its links alone: with fewer it is an error page or a splash screen
MAX_VISIBLE = 100_000  # characters by which the language of a page is told that has little text
# Verdicts on its text that the links of a page outweigh.
OUTWEIGHED = ("noindex", "too little html", "too short", "too few bytes of language")


class Appraisal(Struct, frozen=True, kw_only=True):
    """A candidate in figures."""

    url: str
    final: str  # where redirects led
    good: bool = False
    score: float = 0.0
    reason: str = ""  # why it is not good
    detail: str = ""
    languages: tuple[LanguageShare, ...] = ()  # of its text, or of all that can be seen where it has little
    badness: float | None = None
    boilerplate: float = 0.0  # share of all visible characters
    text_bytes: int = 0
    downloaded: int = 0
    rate: float = msgspec.field(name="yield", default=0.0)  # bytes of text in the language / downloaded
    own_links: int = 0
    other_links: int = 0  # to other hosts
    verdict: Verdict | None = None  # on its text; None: there was no page


def appraise(visit: Visit, language: str, settings: Judging, gate: Gate) -> Appraisal:
    """The worth of a visited page as a seed for a corpus in that language."""
    page, verdict = visit.page, visit.verdict
    if page is None or verdict is None:
        return Appraisal(
            url=visit.url,
            final=visit.final,
            reason=visit.reason,
            detail=visit.detail,
            downloaded=visit.downloaded,
        )
    visible = "\n".join(block.text for block in page.blocks)[:MAX_VISIBLE]
    found = page.languages if len(page.text) >= settings.min_text_chars else languages(visible)
    in_language = next((share.share for share in found if share.code == language), 0.0)
    text_in_language = next((share.bytes for share in page.languages if share.code == language), 0)
    own, other = _links(page, gate)
    reason = _reason(verdict, found, in_language, own + other, language, settings)
    links = own + other
    rate = text_in_language / visit.downloaded if visit.downloaded else 0.0
    return Appraisal(
        url=visit.url,
        final=visit.final,
        good=not reason,
        score=rate + LINKS_WORTH * in_language * links / (links + HALF),
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
    settings: Judging,
) -> str:
    """Why a page is no good seed, or "": it is kept, or it has links and what is seen of it is in the language."""
    if verdict.keep:
        return ""
    if verdict.reason not in OUTWEIGHED:
        return verdict.reason
    if not found or found[0].code != language or in_language < settings.min_language_share:
        return "language"
    return "" if links >= MIN_LINKS else verdict.reason


def _links(page: Page, gate: Gate) -> tuple[int, int]:
    """How many pages a crawler would follow from here: on the same host, on others."""
    if page.nofollow:
        return 0, 0
    at = host(page.url)
    followed = {
        key(link.url): host(link.url) == at
        for link in page.links
        if "nofollow" not in link.rel and gate.admits(link.url, at)
    }
    followed.pop(key(page.url), None)
    own = sum(followed.values())
    return own, len(followed) - own


def rank(appraisals: Iterable[Appraisal]) -> list[Appraisal]:
    """Good seeds first, the best of them at the top; of several that lead to one page, one is good."""
    ranked = sorted(appraisals, key=lambda seed: (not seed.good, -seed.score, seed.verdict is None, seed.url))
    first: dict[bytes, Appraisal] = {}
    good, bad = [], []
    for seed in ranked:
        twin = first.setdefault(key(seed.final), seed)
        if not seed.good:
            bad.append(seed)
        elif twin is seed:
            good.append(seed)
        else:
            bad.append(msgspec.structs.replace(seed, good=False, reason="same page", detail=twin.url))
    return good + bad


def seed_list(ranked: Iterable[Appraisal]) -> str:
    """A seeds file of the good ones: a comment with the score, then the URL."""
    lines = []
    for seed in ranked:
        if seed.good:
            links = f"{seed.own_links} links on the host, {seed.other_links} to others"
            lines += [f"# score {seed.score:.3f}: yield {seed.rate:.3f}, {links}", seed.final]
    return "".join(f"{line}\n" for line in lines)


class Appraised(Struct, frozen=True):
    """The candidates that were visited, ranked."""

    seeds: tuple[Appraisal, ...]
    interrupted: bool = False


def appraise_all(
    urls: Sequence[str], terms: Terms, progress: Callable[[int], None] = lambda _: None
) -> Appraised:
    """Visit candidates (canonical URLs) and rank them; stopped early, those that were visited so far."""
    config, address = terms.config(), terms.address()
    found: list[Appraisal] = []

    async def run() -> bool:
        async with Visitor(config, connect_to=address) as visitor:
            return await interruptible(_visit_all(visitor, urls, config, found, progress))

    interrupted: bool = uvloop.run(run())
    return Appraised(tuple(rank(found)), interrupted)


async def _visit_all(
    visitor: Visitor,
    urls: Sequence[str],
    config: Config,
    found: list[Appraisal],
    progress: Callable[[int], None],
) -> None:
    gate = Gate(Scope())
    async with aclosing(visitor.visit_all(urls)) as visits:
        async for visit in visits:
            found.append(appraise(visit, config.language, config.judge, gate))
            progress(len(found))
