"""What a page holds, from one scan of its bytes: blocks of text with their surroundings, links and remarks."""

from __future__ import annotations

import unicodedata
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from thresher.read.scan import layout as at
from thresher.read.scan.addresses import tell_shapes
from thresher.read.scan.markup import LESS
from thresher.read.scan.scanner import scan as scan_bytes
from thresher.read.scan.tables import character_classes, known
from thresher.read.text import one_line

HIDDEN: Final = at.HIDDEN  # the link stands where no reader sees it
# Some pages are invisible as a whole until a script has run: then declarations of it mean nothing.
MUCH_UNSEEN, UNSEEN_SHARE = (
    2_000,
    10,
)  # bytes of unseen text, and how many times more than of text that is seen
MAX_TAGS = 500_000  # what comes after so many is not read
MAX_METAS, MAX_JSON, MAX_TIMES, MAX_BYLINES = 500, 8, 16, 8  # remarks of a kind that are kept
MAX_ANCHOR, MAX_TIME, MAX_BYLINE = 200, 80, 200  # characters of a link's text, and of those
_FEED_TYPES = frozenset(["application/rss+xml", "application/atom+xml", "application/rdf+xml"])
_SEPARATOR = "\0"  # between strings that come from the scan; it stands in none of them
_KNOWN, _CLASSES = known(), character_classes()

Line = NDArray[np.int64]
Table = NDArray[np.int64]


class Anchors(NamedTuple):
    """The links of a page as written, in columns: where each leads, what it says and where it stands."""

    hrefs: list[str]
    shapes: list[int]  # of hrefs: which of them need a URL parser
    texts: list[str]
    rels: list[str]
    blocks: Line  # indices of blocks, HIDDEN, or one too many after all text


class Markup:
    """What the scan found: blocks and block-level elements as tables, links, what the page says of itself."""

    def __init__(self, length: int, texts: list[str], blocks: Table, elements: Table) -> None:
        self.length = length  # of the page in bytes
        self.texts = texts
        self.blocks = blocks
        self.elements = elements  # the first is the page
        self.bytes_per_character = 1.0  # of its text, a mean
        self.anchors = Anchors([], [], [], [], np.empty(0, np.int64))
        self.head_links: list[tuple[str, str]] = []  # hrefs and rels
        self.title = ""
        self.base = ""
        self.language = ""  # that the page declares
        self.metas: list[tuple[str, str]] = []  # name or http-equiv, lower-cased, and content
        self.json_ld: list[str] = []  # descriptions of the page for machines
        self.times: list[tuple[str, str]] = []  # as a machine reads it, and as a human does
        self.bylines: list[str] = []

    def mostly_links(self) -> NDArray[np.bool_]:
        """For each block, whether half of it or more is the text of links."""
        mostly: NDArray[np.bool_] = 2 * self.blocks[:, at.B_LINKED] >= self.blocks[:, at.B_LENGTH]
        return mostly


def scan(utf8: bytes, max_anchors: int) -> Markup:
    """Scan a page once. At most `max_anchors` links are kept."""
    source = np.frombuffer(utf8, np.uint8)
    tags = min(int(np.count_nonzero(source == LESS)), MAX_TAGS)
    room = len(source) + len(source) // 4 + 64  # the longest text: references are at most a fifth shorter
    out, strings = np.empty(room, np.uint8), np.empty(room, np.uint8)
    work = _memory(tags, max_anchors)
    scan_bytes(source, out, strings, work, _KNOWN, _CLASSES)
    if work[at.UNSEEN_BYTES] > MUCH_UNSEEN + UNSEEN_SHARE * work[at.OUT]:
        work = _memory(tags, max_anchors)
        work[at.ALL_SEEN] = 1
        scan_bytes(source, out, strings, work, _KNOWN, _CLASSES)
    text = out[: work[at.OUT]].tobytes().decode("utf-8", "replace")
    values = strings[: work[at.STRINGS_OUT]].tobytes().decode("utf-8", "replace").split(_SEPARATOR)
    is_normal = unicodedata.is_normalized("NFC", text)
    shapes = np.empty(work[at.STRINGS], np.uint8)
    tell_shapes(strings, shapes)
    found = Markup(
        len(utf8),
        _normal(text.split(_SEPARATOR)[:-1], is_normal),
        _rows(work, at.BLOCKS, at.NEXT_BLOCK, at.BLOCK_ROW),
        _rows(work, at.ELEMENTS, at.NEXT_ELEMENT, at.ELEMENT_ROW),
    )
    found.bytes_per_character = float(work[at.OUT] / max(1, work[at.CHARACTERS]))
    _add_notes(found, utf8, text, values, _rows(work, at.NOTES, at.NEXT_NOTE, at.NOTE_ROW))
    anchors = _rows(work, at.ANCHORS, at.NEXT_ANCHOR, at.ANCHOR_ROW)
    found.anchors = _anchors(values, _normal(_said(text, values, anchors), is_normal), shapes, anchors)
    return found


def _memory(tags: int, max_anchors: int) -> Line:
    """The memory of a scan of a page with so many tags: nothing is written yet, and only the page is open."""
    rows = tags + 2  # the page itself, and the text after the last tag
    stack = at.MEMORY
    elements = stack + at.STACK_ROW * rows
    blocks = elements + at.ELEMENT_ROW * rows
    notes = blocks + at.BLOCK_ROW * rows
    links = notes + at.NOTE_ROW * rows
    end = links + at.ANCHOR_ROW * min(rows, max_anchors)
    work = np.empty(end, np.int64)
    work[: stack + at.STACK_ROW] = 0
    work[elements : elements + at.ELEMENT_ROW] = 0
    work[at.STACK] = work[at.TOP] = stack
    work[at.ELEMENTS], work[at.NEXT_ELEMENT] = elements, elements + at.ELEMENT_ROW
    work[at.BLOCKS] = work[at.NEXT_BLOCK] = blocks
    work[at.NOTES] = work[at.NEXT_NOTE] = notes
    work[at.ANCHORS] = work[at.NEXT_ANCHOR] = links
    work[at.LAST_ANCHOR] = end
    work[at.TAGS_LEFT] = tags
    return work


def _rows(work: Line, first: int, following: int, columns: int) -> Table:
    return work[work[first] : work[following]].reshape(-1, columns)


def _normal(texts: list[str], are_normal: bool) -> list[str]:
    return texts if are_normal else [unicodedata.normalize("NFC", text) for text in texts]


def _anchors(values: list[str], said: list[str], shapes: NDArray[np.uint8], anchors: Table) -> Anchors:
    hrefs, rels = anchors[:, at.A_HREF], anchors[:, at.A_REL]
    value = values.__getitem__  # the last one is empty, and what is missing has the number -1
    return Anchors(
        [*map(value, hrefs.tolist())],
        shapes[hrefs].tolist(),
        said,
        [*map(str.lower, map(value, rels.tolist()))],
        anchors[:, at.A_BLOCK],
    )


def _said(text: str, values: list[str], anchors: Table) -> list[str]:
    """The text of each link, or else of a picture in it."""
    starts = anchors[:, at.A_START]
    ends = np.minimum(anchors[:, at.A_END], starts + MAX_ANCHOR)
    return [
        said if (said := text[start:end].strip()) and said.isprintable() else _one_line_or(said, values[alt])
        for start, end, alt in zip(starts.tolist(), ends.tolist(), anchors[:, at.A_ALT].tolist(), strict=True)
    ]


def _one_line_or(said: str, alt: str) -> str:
    """The odd text of a link in order, or what its picture shows where it has none."""
    return (said and _piece(said)) or (alt and one_line(alt[: 4 * MAX_ANCHOR])[:MAX_ANCHOR])


def _add_notes(found: Markup, utf8: bytes, text: str, values: list[str], notes: Table) -> None:
    """What the page says of itself, sorted by kind."""
    for kind, first, start, end in notes.tolist():
        if kind == at.N_META:
            if len(found.metas) < MAX_METAS:
                found.metas.append((values[first].strip().lower(), values[first + 1]))
        elif kind == at.N_LINK:
            _add_link(found, *values[first : first + 4])
        elif kind == at.N_BASE:
            found.base = found.base or values[first]
        elif kind == at.N_TITLE:
            found.title = found.title or one_line(values[first])
        elif kind == at.N_LANG:
            found.language = found.language or values[first].strip()
        elif kind == at.N_JSON:
            if len(found.json_ld) < MAX_JSON:
                found.json_ld.append(utf8[start:end].decode("utf-8", "replace"))
        elif kind == at.N_TIME:
            if len(found.times) < MAX_TIMES:
                found.times.append((values[first].strip(), _piece(text[start : min(end, start + MAX_TIME)])))
        elif len(found.bylines) < MAX_BYLINES and (
            byline := _piece(text[start : min(end, start + MAX_BYLINE)])
        ):
            found.bylines.append(byline)


def _piece(text: str) -> str:
    """A piece of the page's text as one line."""
    piece = text.replace(_SEPARATOR, " ").strip()
    return " ".join(piece.split()) if "\n" in piece else piece  # lines are kept in <pre>


def _add_link(found: Markup, href: str, rel: str, language: str, type_: str) -> None:
    """A <link> that leads to another form of the page, to a feed or to its neighbours."""
    words = rel.lower().split()
    marks = [mark for mark in words if mark in ("canonical", "next", "prev", "license")]
    if "alternate" in words and "stylesheet" not in words:
        if type_.lower() in _FEED_TYPES:
            marks = ["alternate", "feed"]
        elif language:
            marks = ["alternate", f"hreflang={language.lower()}"]
    if marks:
        found.head_links.append((href, " ".join(marks)))
