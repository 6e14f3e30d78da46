"""Scan of a page in one pass over its bytes: blocks with their surroundings, links and remarks."""

from __future__ import annotations

import unicodedata

import numpy as np
from numpy.typing import NDArray

from thresher.reader.html.kernels import layout as at
from thresher.reader.html.kernels.addresses import tell_shapes
from thresher.reader.html.kernels.markup import LESS
from thresher.reader.html.kernels.scanner import scan as scan_bytes
from thresher.reader.html.kernels.tables import character_classes, known
from thresher.reader.normalize import one_line

# Some pages are invisible as a whole until a script has run: then declarations of it mean nothing.
MUCH_UNSEEN, UNSEEN_SHARE = 2_000, 10  # bytes of unseen text, and their least ratio to text that is seen
MAX_TAGS = 500_000  # the rest of the page is not read
MAX_METAS, MAX_JSON, MAX_TIMES, MAX_BYLINES = 500, 8, 16, 8  # remarks of a kind that are kept
MAX_ANCHOR, MAX_TIME, MAX_BYLINE = 200, 80, 200  # characters of a link's text, a time and a byline
_FEED_TYPES = frozenset(["application/rss+xml", "application/atom+xml", "application/rdf+xml"])
_SEPARATOR = "\0"  # between strings that come from the scan; it stands in none of them
_KNOWN, _CLASSES = known(), character_classes()

Bytes = NDArray[np.uint8]
Line = NDArray[np.int64]
Table = NDArray[np.int64]


class Anchors:
    """Links of a page as written, in columns: address, text and place."""

    def __init__(self, text: str, is_normal: bool, values: list[str], shapes: Bytes, rows: Table) -> None:
        hrefs = rows[:, at.A_HREF]
        value = values.__getitem__  # the last one is empty, and what is missing has the number -1
        self.hrefs = [*map(value, hrefs.tolist())]
        self.shapes: list[int] = shapes[hrefs].tolist()  # of hrefs: which of them need a URL parser
        self.rels = [*map(str.lower, map(value, rows[:, at.A_REL].tolist()))]
        self.blocks: Line = rows[:, at.A_BLOCK]  # indices of blocks, HIDDEN, or one too many after all text
        self._text, self._is_normal, self._values, self._rows = text, is_normal, values, rows

    def texts(self, numbers: list[int]) -> list[str]:
        """Return the texts of some links, or the alternative texts of their pictures."""
        rows = self._rows[numbers]
        starts = rows[:, at.A_START]
        ends = np.minimum(rows[:, at.A_END], starts + MAX_ANCHOR)
        text, values = self._text, self._values
        said = [
            one if (one := text[start:end].strip()) and one.isprintable() else _one_line_or(one, values[alt])
            for start, end, alt in zip(
                starts.tolist(), ends.tolist(), rows[:, at.A_ALT].tolist(), strict=True
            )
        ]
        return _normal(said, self._is_normal)


NO_ANCHORS = Anchors("", True, [], np.empty(0, np.uint8), np.empty((0, at.ANCHOR_ROW), np.int64))


class Markup:
    """Result of a scan: blocks and block-level elements as tables, links, metadata as written."""

    def __init__(self, length: int, texts: list[str], blocks: Table, elements: Table) -> None:
        self.length = length  # of the page in bytes
        self.texts = texts
        self.utf8 = b""  # these, with a zero after each
        self.blocks = blocks
        self.elements = elements  # the first is the page
        self.bytes_per_character = 1.0  # of its text, a mean
        self.anchors = NO_ANCHORS
        self.head_links: list[tuple[str, str]] = []  # hrefs and rels
        self.title = ""
        self.base = ""
        self.language = ""  # that the page declares
        self.metas: list[tuple[str, str]] = []  # name or http-equiv, lower-cased, and content
        self.json_ld: list[str] = []  # descriptions of the page for machines
        self.times: list[tuple[str, str]] = []  # as a machine reads it, and as a human does
        self.bylines: list[str] = []

    def mostly_links(self) -> NDArray[np.bool_]:
        """Blocks of which at least half is the text of links, as a mask."""
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
    shown = out[: work[at.OUT]].tobytes()
    text = shown.decode("utf-8", "replace")
    values = strings[: work[at.STRINGS_OUT]].tobytes().decode("utf-8", "replace").split(_SEPARATOR)
    is_normal = unicodedata.is_normalized("NFC", text)
    found = Markup(
        len(utf8),
        _normal(text.split(_SEPARATOR)[:-1], is_normal),
        _rows(work, at.BLOCKS, at.NEXT_BLOCK, at.BLOCK_ROW),
        _rows(work, at.ELEMENTS, at.NEXT_ELEMENT, at.ELEMENT_ROW),
    )
    found.utf8 = shown
    found.bytes_per_character = float(work[at.OUT] / max(1, work[at.CHARACTERS]))
    _add_notes(found, utf8, text, values, _rows(work, at.NOTES, at.NEXT_NOTE, at.NOTE_ROW))
    shapes = np.empty(work[at.STRINGS], np.uint8)
    tell_shapes(strings, shapes)
    anchors = _rows(work, at.ANCHORS, at.NEXT_ANCHOR, at.ANCHOR_ROW)
    found.anchors = Anchors(text, is_normal, values, shapes, anchors)
    return found


def _memory(tags: int, max_anchors: int) -> Line:
    """Return the initial memory of a scan of a page with so many tags; only the page itself is open."""
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


def _one_line_or(said: str, alt: str) -> str:
    """Return the text of a link on one line, or the alternative text of its picture if it has none."""
    return (said and _piece(said)) or (alt and one_line(alt[: 4 * MAX_ANCHOR])[:MAX_ANCHOR])


def _add_notes(found: Markup, utf8: bytes, text: str, values: list[str], notes: Table) -> None:
    """Add the metadata of a page, sorted by kind."""
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
    """Return a piece of the page's text on one line."""
    piece = text.replace(_SEPARATOR, " ").strip()
    return " ".join(piece.split()) if "\n" in piece else piece  # lines are kept in <pre>


def _add_link(found: Markup, href: str, rel: str, language: str, type_: str) -> None:
    """Add a <link> that leads to another form of the page, to a feed or to its neighbours."""
    words = rel.lower().split()
    marks = [mark for mark in words if mark in ("canonical", "next", "prev", "license")]
    if "alternate" in words and "stylesheet" not in words:
        if type_.lower() in _FEED_TYPES:
            marks = ["alternate", "feed"]
        elif language:
            marks = ["alternate", f"hreflang={language.lower()}"]
    if marks:
        found.head_links.append((href, " ".join(marks)))
