"""Visible text of a page and the targets of its links, by the tree of a real HTML parser (lexbor).

The reference for the scanner in `thresher.reader.html.scan_page`: slow, plain, and right by the HTML standard. The
two are compared by the targets of their links and by the words of their text, each as often as it occurs, in any
order.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from selectolax.lexbor import LexborHTMLParser

from bench.measure import emit, say, table
from thresher.reader.html import scan_page
from thresher.reader.normalize import one_line
from thresher.urls import canonical
from thresher_lab.training.gold import GoldPage, tokens

MAX_ANCHORS = 1_000_000  # more than any page of the gold has
SHOWN = 8  # links or words of a page on which the two differ

MIN_NOSCRIPT = 500  # characters of text, from which on a <noscript> is taken to be the page itself
_PRUNED = (
    "script style template svg math iframe object embed applet canvas audio video select option optgroup "
    "datalist textarea button noembed noframes title -comment -doctype"
)
_BLOCKS = (
    "address article aside blockquote body caption center dd details dialog dir div dl dt fieldset figcaption "
    "figure footer form frameset h1 h2 h3 h4 h5 h6 header hgroup hr html legend li main menu nav noscript ol p "
    "pre search section summary table tbody td tfoot th thead tr ul br"
)
PRUNED, BLOCKS = frozenset(_PRUNED.split()), frozenset(_BLOCKS.split())
_INVISIBLE = re.compile(r"display\s*:\s*none|visibility\s*:\s*hidden", re.IGNORECASE)


class Seen(NamedTuple):
    """Visible text of a page in one line, all its links as written, and their base."""

    text: str
    hrefs: list[str]
    base: str


def walk(utf8: bytes) -> Seen:
    """Read a page by its tree."""
    tree = LexborHTMLParser(utf8)
    hrefs = [node.attributes.get("href") or "" for node in tree.css("a[href], area[href]")]
    bases = [node.attributes.get("href") or "" for node in tree.css("base[href]")]
    text = "".join(_visible(tree.root)) if tree.root is not None else ""
    return Seen(one_line(text), hrefs, next(filter(None, bases), ""))


def _visible(root: Any) -> Iterator[str]:
    """Yield the visible pieces of text in order, with line breaks around blocks."""
    stack: list[Any] = [root]  # nodes to be visited, and strings to be yielded after their content
    while stack:
        node = stack.pop()
        if isinstance(node, str):
            yield node
        elif node.tag == "-text":
            yield node.text_content or ""
        elif not _is_hidden(node):
            if node.tag in BLOCKS:
                yield "\n"
                stack.append("\n")
            stack.extend(reversed(list(node.iter(include_text=True))))


def _is_hidden(node: Any) -> bool:
    """Return whether an element and all inside it are hidden; the body is shown, since scripts unhide pages."""
    if node.tag in PRUNED:
        return True
    if node.tag in ("body", "html"):
        return False
    if node.tag == "noscript" and len(node.text()) < MIN_NOSCRIPT:
        return True
    attributes = node.attributes
    if "hidden" in attributes or attributes.get("aria-hidden") == "true":
        return True
    return bool(_INVISIBLE.search(attributes.get("style") or ""))


class Overlap(NamedTuple):
    """Findings of the scanner and of the reference as bags, for one page or many."""

    common: int
    both: int  # the sizes of both bags, added
    missing: Sequence[str] = ()  # in the reference alone
    extra: Sequence[str] = ()

    @property
    def different(self) -> int:
        return self.both - 2 * self.common

    @property
    def share(self) -> float:
        return 2 * self.common / self.both if self.both else 1.0


class Overlaps(NamedTuple):
    """Overlaps of one page: links and words."""

    page: GoldPage
    links: Overlap
    words: Overlap


def compare(pages: Iterable[GoldPage], worst: int) -> None:
    """Print how much of links and words is equal in each set, and the pages that differ most."""
    found = [overlaps(page) for page in pages]
    rows = []
    for name in (*dict.fromkeys(one.page.set for one in found), "all"):
        chosen = [one for one in found if name in ("all", one.page.set)]
        row: dict[str, Any] = {"name": "markup", "set": name, "pages": len(chosen)}
        for kind in ("links", "words"):
            total = _total(getattr(one, kind) for one in chosen)
            row |= {kind: total.both // 2, f"{kind}_different": total.different, f"{kind}_equal": total.share}
        emit(row)
        rows.append(row)
    table(rows, tuple(rows[0])[1:])
    for kind in ("links", "words"):
        for one in sorted(found, key=lambda one: -getattr(one, kind).different)[:worst]:
            _tell(f"{one.page.set}/{one.page.id}", kind, getattr(one, kind))


def overlaps(page: GoldPage) -> Overlaps:
    """Compare one page by the scanner and by the reference."""
    utf8 = page.html.encode()
    ours, theirs = scan_page.scan(utf8, MAX_ANCHORS), walk(utf8)
    address = f"http://{page.host}/"
    return Overlaps(
        page,
        _overlap(
            _targets(ours.anchors.hrefs, ours.base, address), _targets(theirs.hrefs, theirs.base, address)
        ),
        _overlap(tokens("\n".join(ours.texts)), tokens(theirs.text)),
    )


def _targets(hrefs: Iterable[str], base: str, address: str) -> list[str]:
    """Return the targets of links, as a crawl would follow them."""
    base = canonical(base, address) or address if base else address
    targets = (canonical(href, base) for href in hrefs if href and not href.startswith("#"))
    return [target for target in targets if target]


def _overlap(ours: Iterable[str], theirs: Iterable[str]) -> Overlap:
    mine, reference = Counter(ours), Counter(theirs)
    return Overlap(
        common=(mine & reference).total(),
        both=mine.total() + reference.total(),
        missing=list((reference - mine).elements()),
        extra=list((mine - reference).elements()),
    )


def _total(overlaps: Iterable[Overlap]) -> Overlap:
    parts = list(overlaps)
    return Overlap(sum(part.common for part in parts), sum(part.both for part in parts))


def _tell(name: str, kind: str, overlap: Overlap) -> None:
    """Print a page on which the two differ."""
    if overlap.different:
        say(f"{name}: {overlap.share:.2%} of {kind} equal")
    for what, values in (("missing", overlap.missing), ("extra", overlap.extra)):
        if values:
            say(f"  {len(values):,} {what}: {'  '.join(values[:SHOWN])[:300]}")
