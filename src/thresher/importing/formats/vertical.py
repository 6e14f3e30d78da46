"""Vertical text: one token per line, its values separated by TAB, and tags on lines of their own.

Such files have billions of lines, so lines are handled in bulk wherever possible. A block is split into runs of
tags and the stretches of tokens between them. Stretches are taken as they are if a check of all of them together
finds no fault; only faulty ones are repaired line by line. The effect of a run of tags without attributes on the
open structures is computed once: there are few different runs, and they recur.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from thresher.importing.formats.body import BodyBuilder, OpenStructure, structure
from thresher.importing.formats.columns import TableColumns, decoded
from thresher.importing.formats.document import (
    MAX_DOCUMENT_BYTES,
    NOT_UTF8,
    ImportOptions,
    ImportRemarks,
    SourceDocument,
    is_utf8,
)
from thresher.importing.formats.source import BLOCK_BYTES, SourceFile
from thresher.store import token_lines as lines

DOCUMENT_TAGS = ("doc", "text", "article")  # the first of them in a file is the tag of its documents
MAX_MOVES = 10_000  # runs of tags whose effects are remembered; real files have a few dozen

NOT_OPEN = "a closing tag with nothing to close, ignored"
WITHIN_LIKE = "a structure within another of its name, left out"
AROUND = "a structure around documents, left out"
NO_END = "a document without an end tag, ended at the begin of the next"
NO_TOKENS = "a document without tokens, left out"
GLUE = "spaces between tokens (<g/>)"
EMPTY = "empty tags, such as <br/>"
BAD_TAG = "a tag of a document that is not well-formed, read as far as possible"
NO_TAG = "a line that looks like a tag but is not well-formed, taken as a token"
NO_DOCUMENT = "no tag as given by --document; the file is one document"

# Consecutive lines that begin like tags or comments; a token such as < alone is not one of them.
_MARK = rb"\n<(?=[A-Za-z_/!?\x80-\xff])"
_RUNS = re.compile(rb"%b([^\n]*(?:%b[^\n]*)*)" % (_MARK, _MARK))
_NAME = rb"[A-Za-z_\x80-\xff][\w.:\x80-\xff-]*"
_ATTRIBUTE = _NAME + rb"""[ \t]*=[ \t]*(?:"[^"]*"|'[^']*')"""
_TAG = re.compile(rb"/(%b)[ \t]*> *|(%b)((?:[ \t]+%b)*)[ \t]*(/?)> *" % (_NAME, _NAME, _ATTRIBUTE))
_ATTRIBUTES = re.compile(r"""([^\s=]+)[ \t]*=[ \t]*("[^"]*"|'[^']*')""")  # of a valid tag
# A malformed tag: if it is one of a document, two documents must not run together.
_ALMOST_TAG = re.compile(rb"(%b) [^\t]*> *" % _NAME)
_BEGIN = re.compile(r"(?:^|(?<= ))([A-Za-z_\x80-\U0010ffff][\w.:\x80-\U0010ffff-]*) *= *")
_QUOTED = re.compile(r"""(?:"[^"]*"|'[^']*')(?= |\Z)""")
MAX_TAG_BYTES = 1 << 16  # of a line that is checked for a malformed tag
_ASIDE = re.compile(rb"!--[^\t]*--> *|\?[^\t]*\?> *|![A-Z][^\t]*> *")  # comments and declarations


class VerticalTag(NamedTuple):
    """An opening or a closing tag."""

    name: str
    opens: bool
    attributes: dict[str, str]  # unchanged


class VerticalState(NamedTuple):
    """The open structures, and the known moves from there."""

    opened: tuple[OpenStructure, ...]
    moves: dict[bytes, VerticalMove]
    recurs: bool  # whether the state can recur, so that its moves are worth remembering


class VerticalMove(NamedTuple):
    """The effect of a run of tags between tokens."""

    lines: bytes
    tags: int
    state: VerticalState


def read_vertical(
    source: SourceFile, options: ImportOptions, remarks: ImportRemarks
) -> Iterator[SourceDocument]:
    """Yield the documents of a file of vertical text."""
    reader = _Reader(source, options, remarks)
    for block in source.blocks():
        reader.read(block)
        yield from reader.done
        reader.done.clear()
    reader.end()
    yield from reader.done


class _Reader:
    """A reader of documents, block by block."""

    def __init__(self, source: SourceFile, options: ImportOptions, remarks: ImportRemarks) -> None:
        self.done: list[SourceDocument] = []
        self._source = source
        self._remarks = remarks
        self._columns = TableColumns(source.name, options, remarks)
        self._document = options.document
        self._body = BodyBuilder({})
        self._inside = False  # whether a document is open
        self._documents = 0
        self._around: set[str] = set()  # structures that were open when a document began
        self._tags: dict[bytes, VerticalTag] = {}
        self._states: dict[tuple[OpenStructure, ...], VerticalState] = {}
        self._moves = 0
        self._parts: list[bytes] = []  # of the block: alternating stretches and runs

    def read(self, block: bytes) -> None:
        """Read a block of whole lines."""
        if b"\r" in block:
            block = block.replace(b"\r\n", b"\n")
        self._parts = parts = _RUNS.split(b"\n" + block[:-1])
        stretches = self._columns.checked(parts[::2], lambda at, nth: self._number(2 * at, nth))
        if stretches[0]:
            self._body.add(stretches[0])
        body, state = self._body, self._state()
        for place, (run, tokens) in enumerate(zip(parts[1::2], stretches[1:], strict=True)):
            move = state.moves.get(run)
            if move is None or not tokens:
                body.opened = state.opened
                self._run(run, tokens, 2 * place + 1)
                body, state = self._body, self._state()
                continue
            body.chunks += (move.lines, tokens)
            body.tags += move.tags
            body.size += len(tokens)
            state = move.state
        body.opened = state.opened
        if (
            body.size >= MAX_DOCUMENT_BYTES + BLOCK_BYTES
        ):  # no structure began for long, so the document is cut here
            self._take(body.cut())

    def end(self) -> None:
        """End the file."""
        self._finish()
        if self._document and not self._documents and self.done:
            self._remarks.add(NO_DOCUMENT)

    def _state(self) -> VerticalState:
        """Return the current state. It recurs if all open structures have tokens and no attributes."""
        body = self._body
        plain = all(known.bare and not known.inside for known in body.opened)
        if not plain or body.waiting or body.full:
            return VerticalState(body.opened, {}, False)
        return self._states.setdefault(body.opened, VerticalState(body.opened, {}, True))

    def _run(self, run: bytes, tokens: bytes, part: int) -> None:
        """Read a run of tags, tag by tag, and the tokens after it; remember its effect if that never differs."""
        before, body = self._state(), self._body
        start, tags = len(body.chunks), body.tags
        repeatable = [self._line(line, part, nth) for nth, line in enumerate(run.split(b"\n<"))]
        if not tokens:
            return
        self._body.add(tokens)
        if all(repeatable) and before.recurs and self._moves < MAX_MOVES:
            self._moves += 1
            after = self._states.setdefault(body.opened, VerticalState(body.opened, {}, True))
            before.moves[run] = VerticalMove(b"".join(body.chunks[start:-1]), body.tags - tags, after)

    def _line(self, line: bytes, part: int, nth: int) -> bool:
        """Read a line without its first <; return whether its effect is always the same in this state."""
        tag = self._tags.get(line)
        if tag is None:
            match = _TAG.fullmatch(line)
            if match is None:
                return self._no_tag(line, part, nth)
            if match[4]:  # self-closing tags, such as <g/>, hold no tokens
                self._remarks.not_kept(GLUE if match[2] == b"g" else EMPTY)
                return True
            tag = self._read_tag(line, match, part, nth)
        if tag.opens and not self._document and tag.name in DOCUMENT_TAGS:
            self._document = tag.name
        if tag.name == self._document:
            self._boundary(tag, part, nth)
            return False
        return self._open(tag, part, nth) if tag.opens else self._close(tag, part, nth)

    def _no_tag(self, line: bytes, part: int, nth: int) -> bool:
        """Read a line that is not a tag: a comment, a malformed tag of a document, or a token with a leading <."""
        if _ASIDE.fullmatch(line):
            return True
        almost = _ALMOST_TAG.fullmatch(line) if len(line) <= MAX_TAG_BYTES else None
        if almost and almost[1].decode("utf-8", "replace") in self._tags_of_documents:
            self._remarks.add(BAD_TAG, lambda: self._number(part, nth))
            tag = self._lenient(almost[1].decode(), line[almost.end(1) :].rstrip()[:-1])
            self._document = tag.name
            self._boundary(tag, part, nth)
            return False
        if almost and b"=" in line:
            self._remarks.add(NO_TAG, lambda: self._number(part, nth))
        (tokens,) = self._columns.checked([b"\n<" + line], lambda _, __: self._number(part, nth))
        self._body.add(tokens)
        return False

    @property
    def _tags_of_documents(self) -> tuple[str, ...]:
        return (self._document,) if self._document else DOCUMENT_TAGS

    def _lenient(self, name: str, attributes: bytes) -> VerticalTag:
        """Return an opening tag with attributes that are not quoted correctly."""
        text = decoded(attributes).decode("utf-8", "replace") if self._columns.entities else ""
        return VerticalTag(name, True, lenient(text or attributes.decode("utf-8", "replace")))

    def _read_tag(self, line: bytes, match: re.Match[bytes], part: int, nth: int) -> VerticalTag:
        if not is_utf8(line):
            self._remarks.add(NOT_UTF8, lambda: self._number(part, nth))
        name = lines.clean_name((match[1] or match[2]).decode("utf-8", "replace"))
        attributes = {}
        for key, value in _ATTRIBUTES.findall((match[3] or b"").decode("utf-8", "replace")):
            text = value[1:-1]
            if self._columns.entities:
                text = decoded(text.encode()).decode()
            attributes[key] = text
        tag = VerticalTag(name, match[1] is None, attributes)
        if not attributes and line.isascii() and len(self._tags) < MAX_MOVES:
            self._tags[line] = tag
        return tag

    def _open(self, tag: VerticalTag, part: int, nth: int) -> bool:
        cut = self._body.full
        if cut:
            self._take(self._body.cut())
        if self._body.open(structure(tag.name, tag.attributes)):
            return not cut
        self._remarks.add(WITHIN_LIKE, lambda: self._number(part, nth))
        return False

    def _close(self, tag: VerticalTag, part: int, nth: int) -> bool:
        if self._body.close(tag.name):
            return True
        if self._inside or tag.name not in self._around:
            self._remarks.add(NOT_OPEN, lambda: self._number(part, nth))
        self._around.discard(tag.name)
        return False

    def _boundary(self, tag: VerticalTag, part: int, nth: int) -> None:
        """Begin or end a document."""
        if not tag.opens and not self._inside:
            self._remarks.add(NOT_OPEN, lambda: self._number(part, nth))
            return
        if tag.opens and self._inside:
            self._remarks.add(NO_END, lambda: self._number(part, nth))
        elif tag.opens and self._body.opened:
            self._around.update(known.name for known in self._body.opened)
            self._remarks.add(AROUND, lambda: self._number(part, nth), len(self._body.opened))
        if self._inside and not self._body.size and self._body.part == 1:
            self._remarks.add(NO_TOKENS, lambda: self._number(part, nth))
        self._finish()
        self._inside = tag.opens
        self._documents += tag.opens
        attributes = tag.attributes.items()
        self._body = BodyBuilder({lines.clean_name(key): lines.clean(value) for key, value in attributes})

    def _finish(self) -> None:
        self._take(self._body.finish())

    def _take(self, documents: Iterator[SourceDocument]) -> None:
        self.done += (document._replace(attributes=self._columns.attributes) for document in documents)

    def _number(self, part: int, nth: int) -> int:
        """Return the number of the nth line of a part of the block."""
        before = sum(self._parts[at].count(b"\n") + at % 2 for at in range(part))
        return self._source.passed + before + nth + 1


def lenient(text: str) -> dict[str, str]:
    """Return attributes that are not quoted correctly; a value ends where the next name begins.

    >>> lenient('id=3 title="Film "Kolja" dnes" year="1996"')
    {'id': '3', 'title': 'Film "Kolja" dnes', 'year': '1996'}
    """
    found: dict[str, str] = {}
    begin = _BEGIN.search(text)
    while begin:
        quoted = _QUOTED.match(text, begin.end())
        following = _BEGIN.search(text, quoted.end() if quoted else begin.end())
        value = text[begin.end() : following.start() if following else len(text)].strip()
        if value[:1] in ('"', "'"):
            value = value.removesuffix("/").rstrip()[1:].removesuffix(value[0])
        found.setdefault(begin[1], value)
        begin = following
    return found
