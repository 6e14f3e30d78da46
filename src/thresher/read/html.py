"""One walk over a page's tree: its blocks of text with their surroundings, and its links."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any, Final, NamedTuple, TypeAlias

from selectolax.lexbor import LexborHTMLParser

from thresher.read.places import PRE, TAG_BITS, inside, places
from thresher.read.text import lines, one_line

_OTHER_BLOCKS = (
    "address body caption center dd details dialog dir div dl dt figcaption frameset hgroup hr html legend "
    "noscript ol search section summary table tbody td tfoot th thead tr ul"
)
_WITHOUT_TEXT = (
    "script style template svg math iframe object embed applet canvas audio video select option optgroup "
    "datalist textarea button noembed noframes"
)
MIN_NOSCRIPT = 500  # characters; some forums put the whole page there, others a line about JavaScript

INLINE, BLOCK, ANCHOR, OTHER, SILENT = range(5)
_ROLES: dict[str, int] = (
    dict.fromkeys([*TAG_BITS, *_OTHER_BLOCKS.split()], BLOCK)
    | dict.fromkeys(_WITHOUT_TEXT.split(), SILENT)
    | dict.fromkeys(("br", "img", "area", "title", "meta", "link", "base"), OTHER)
    | {"a": ANCHOR, "-comment": SILENT, "-doctype": SILENT}
)
_HIDING = frozenset(["hidden", "aria-hidden", "style"])
_FEED_TYPES = frozenset(["application/rss+xml", "application/atom+xml", "application/rdf+xml"])
_BREAK = " \n"  # told from the page's own text by identity

Attributes: TypeAlias = dict[str, str | None]

_INVISIBLE = re.compile(r"display\s*:\s*none|visibility\s*:\s*hidden", re.IGNORECASE)


HIDDEN: Final = -1  # the link stands where no reader sees it
UNPLACED: Final = -2  # the link stands in the head of the page


class Anchor(NamedTuple):
    """A link as written: where it leads, what it says and the block it stands in."""

    href: str
    text: str
    block: int  # index of the block, HIDDEN or UNPLACED
    rel: str


class Markup:
    """What the walk found: blocks as columns, links, and what the page says of itself."""

    def __init__(self) -> None:
        self.title = ""
        self.base = ""
        self.texts: list[str] = []
        self.linked: list[int] = []  # characters inside links
        self.bits: list[int] = []  # where each block stands
        self.containers: list[int] = []  # the block-level element directly around
        self.parents: list[int] = [0]  # of each block-level element, numbered as they open
        self.anchors: list[Anchor] = []
        self.metas: list[tuple[str, str]] = []  # name or http-equiv, lower-cased, and content


def scan(utf8: bytes, max_anchors: int) -> Markup:
    """Walk over a page once. At most `max_anchors` links are kept."""
    walk = _Walk(max_anchors)
    tree = LexborHTMLParser(utf8)
    if b"<noscript" in utf8:
        walk.settle_noscript(tree)
    if tree.root is not None:
        walk.over(tree.root)
    return walk.found


@lru_cache(maxsize=50_000)
def _places(tag: str, names: str | None, identity: str | None) -> int:
    """What an element adds to the place of all inside it; remembered, because sites repeat their tags."""
    return places(tag, f"{names or ''} {identity or ''}")


class _Walk:
    """The state of a walk: the block being gathered, the link that is open, what was found so far."""

    def __init__(self, max_anchors: int) -> None:
        self.found = Markup()
        self.max_anchors = max_anchors
        self.pieces: list[str] = []
        self.block_linked = 0  # characters of the block that stand in links
        self.link: Attributes | None = None  # of the link that is open
        self.link_block = 0
        self.link_start = 0  # where in the pieces its text begins
        self.link_texts: list[str] = []

    def settle_noscript(self, tree: Any) -> None:
        """Take out notes to readers without scripts; leave what is long enough to be the page itself."""
        for node in tree.css("noscript"):
            if len(node.text()) < MIN_NOSCRIPT:
                self.collect_hidden(node)
                node.decompose()

    def over(self, root: Any) -> None:  # noqa: PLR0912  # the hot loop: calls would cost more than the walk
        """Visit every node once, in order; the stack stands in for recursion, which pages could exhaust."""
        stack: list[tuple[Any, int, int, int]] = []
        pieces, parents, roles = self.pieces, self.found.parents, _ROLES
        bits = container = 0
        node = root
        while True:
            tag = node.tag
            if tag == "-text":
                text = node.text_content
                if pieces or not text.isspace():
                    pieces.append(text)
            elif (role := roles.get(tag, INLINE)) >= OTHER:
                if role == OTHER:
                    self.remark(node, tag, bits, container)
            else:
                attributes = node.attributes
                if attributes and not _HIDING.isdisjoint(attributes) and _is_hidden(attributes, tag):
                    self.collect_hidden(node)
                else:
                    child = node.first_child
                    if role == BLOCK and pieces:
                        self.flush(bits, container)
                    elif role == ANCHOR:
                        self.open_anchor(attributes)
                    if child is not None:
                        stack.append((node, role, bits, container))
                        if role == BLOCK:
                            bits = inside(bits, _places(tag, attributes.get("class"), attributes.get("id")))
                            parents.append(container)
                            container = len(parents) - 1
                        node = child
                        continue
                    if role == ANCHOR:
                        self.close_anchor()
            following = node.next
            while following is None:
                if not stack:
                    self.flush(bits, container)
                    return
                node, role, outer_bits, outer_container = stack.pop()
                if role == BLOCK:
                    if pieces:
                        self.flush(bits, container)
                    bits, container = outer_bits, outer_container
                elif role == ANCHOR:
                    self.close_anchor()
                following = node.next
            node = following

    def remark(self, node: Any, tag: str, bits: int, container: int) -> None:
        """Elements that hold no text of the page but say something."""
        if tag == "br":
            self.break_line(bits, container)
        elif tag == "title":
            self.found.title = self.found.title or one_line(node.text())
        elif tag == "img":
            alt = node.attributes.get("alt") if self.link is not None else None
            if alt:
                self.link_texts.append(alt)
        else:
            self.note(tag, node.attributes)

    def note(self, tag: str, attributes: Attributes) -> None:
        """Elements of the head, wherever they stand, and the areas of an image map."""
        href = attributes.get("href") or ""
        if tag == "meta":
            name = attributes.get("name") or attributes.get("http-equiv") or ""
            self.found.metas.append((name.lower(), attributes.get("content") or ""))
        elif tag == "base":
            self.found.base = self.found.base or href
        elif tag == "area":
            self.add_anchor(href, attributes.get("alt") or "", len(self.found.texts), attributes)
        elif href:
            self.note_link(href, attributes)

    def note_link(self, href: str, attributes: Attributes) -> None:
        """A <link> that leads to another form of the page, to a feed or to its neighbours."""
        rel = (attributes.get("rel") or "").lower().split()
        marks = [mark for mark in rel if mark in ("canonical", "next", "prev", "license")]
        if "alternate" in rel and "stylesheet" not in rel:
            language = attributes.get("hreflang")
            if (attributes.get("type") or "").lower() in _FEED_TYPES:
                marks = ["alternate", "feed"]
            elif language:
                marks = ["alternate", f"hreflang={language.lower()}"]
        if marks:
            self.found.anchors.append(Anchor(href, "", UNPLACED, " ".join(marks)))

    def break_line(self, bits: int, container: int) -> None:
        """A line break is a space; two in a row end a paragraph."""
        if not bits & PRE:
            for piece in reversed(self.pieces):
                if piece is _BREAK:
                    self.flush(bits, container)
                    return
                if not piece.isspace():
                    break
        self.pieces.append(_BREAK)

    def open_anchor(self, attributes: Attributes) -> None:
        if self.link is not None:
            self.close_anchor()
        self.link = attributes
        self.link_block = len(self.found.texts)
        self.link_start = len(self.pieces)

    def close_anchor(self) -> None:
        if self.link is None:
            return
        self.end_link_text()
        href = self.link.get("href")
        if href:
            self.add_anchor(href, " ".join(self.link_texts), self.link_block, self.link)
        self.link = None
        self.link_texts = []

    def end_link_text(self) -> None:
        """Count the text of the open link that belongs to the block being gathered."""
        text = " ".join("".join(self.pieces[self.link_start :]).split())
        self.link_start = 0
        if text:
            self.link_texts.append(text)
            self.block_linked += len(text)

    def add_anchor(self, href: str, text: str, block: int, attributes: Attributes) -> None:
        if len(self.found.anchors) < self.max_anchors:
            rel = attributes.get("rel")
            self.found.anchors.append(Anchor(href, text, block, rel.lower() if rel else ""))

    def collect_hidden(self, node: Any) -> None:
        """Links and remarks inside an element whose text is not shown."""
        for inner in node.css("a[href], meta"):
            attributes = inner.attributes
            if inner.tag == "meta":
                self.note("meta", attributes)
            else:
                self.add_anchor(attributes["href"] or "", "", HIDDEN, attributes)

    def flush(self, bits: int, container: int) -> None:
        """End the block being gathered."""
        if self.link is not None:
            self.end_link_text()
        joined = "".join(self.pieces)
        self.pieces.clear()
        text = lines(joined) if bits & PRE else one_line(joined)
        if text:
            found = self.found
            found.texts.append(text)
            found.linked.append(self.block_linked)
            found.bits.append(bits)
            found.containers.append(container)
        self.block_linked = 0


def _is_hidden(attributes: Attributes, tag: str) -> bool:
    """Whether an element is declared invisible. Scripts unhide whole pages, so the body counts as shown."""
    if tag in ("body", "html"):
        return False
    if "hidden" in attributes or attributes.get("aria-hidden") == "true":
        return True
    style = attributes.get("style")
    return bool(style and _INVISIBLE.search(style))
