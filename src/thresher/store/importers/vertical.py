"""Vertical text: a token a line, its values by TAB, and tags on lines of their own.

Files of this kind have billions of lines, so nothing is done line by line that can be done with many at once. A
block is split into runs of tags and the stretches of tokens between them. Stretches are taken as they are if a look
at all of them together finds nothing odd; only odd ones are mended line by line. What a run of tags without
attributes does to the open structures is worked out once: there are few such runs, and they come again and again.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from thresher.store import lines
from thresher.store.importers.body import Body, Structure, structure
from thresher.store.importers.columns import Columns, decoded
from thresher.store.importers.document import LONGEST, NOT_UTF8, Choices, Document, Remarks, is_utf8
from thresher.store.importers.source import BLOCK, Source

DOCUMENT_TAGS = ("doc", "text", "article")  # the first of them in a file is the one that counts there
MOST_MOVES = 10_000  # runs of tags remembered; files of use have a few dozen

NOT_OPEN = "a closing tag with nothing to close, ignored"
WITHIN_LIKE = "a structure within another of its name, left out"
AROUND = "a structure around documents, left out"
NO_END = "a document without an end tag, ended where the next began"
NO_TOKENS = "a document without tokens, left out"
GLUE = "whether there is a space between two tokens (<g/>)"
EMPTY = "empty tags, such as <br/>"
BAD_TAG = "a tag of a document that is not well-formed, read as far as it can be"
NO_TAG = "a line that looks like a tag but is not well-formed, taken for a token"
NO_DOCUMENT = "no such tag as --document asks for: the file is one document"

# Lines on end that begin like tags or comments; a token of which no tag can be made, as < alone, is none of them.
_MARK = rb"\n<(?=[A-Za-z_/!?\x80-\xff])"
_RUNS = re.compile(rb"%b([^\n]*(?:%b[^\n]*)*)" % (_MARK, _MARK))
_NAME = rb"[A-Za-z_\x80-\xff][\w.:\x80-\xff-]*"
_ATTRIBUTE = _NAME + rb"""[ \t]*=[ \t]*(?:"[^"]*"|'[^']*')"""
_TAG = re.compile(rb"/(%b)[ \t]*> *|(%b)((?:[ \t]+%b)*)[ \t]*(/?)> *" % (_NAME, _NAME, _ATTRIBUTE))
_ATTRIBUTES = re.compile(r"""([^\s=]+)[ \t]*=[ \t]*("[^"]*"|'[^']*')""")  # of what is known to be a tag
# What may be meant for a tag and is none: a document is not to run into the next for that.
_ALMOST_TAG = re.compile(rb"(%b) [^\t]*> *" % _NAME)
_BEGIN = re.compile(r"(?:^|(?<= ))([A-Za-z_\x80-\U0010ffff][\w.:\x80-\U0010ffff-]*) *= *")
_QUOTED = re.compile(r"""(?:"[^"]*"|'[^']*')(?= |\Z)""")
LONGEST_TAG = 1 << 16  # bytes of a line that is looked at like that
_ASIDE = re.compile(rb"!--[^\t]*--> *|\?[^\t]*\?> *|![A-Z][^\t]*> *")  # comments and declarations


class Tag(NamedTuple):
    """An opening or a closing tag."""

    name: str
    opens: bool
    attributes: dict[str, str]  # as they stand there


class State(NamedTuple):
    """Which structures are open, and the moves known from there."""

    opened: tuple[Structure, ...]
    moves: dict[bytes, Move]
    recurs: bool  # it will come again: moves are worth remembering


class Move(NamedTuple):
    """What a run of tags does if tokens come before it and after it."""

    lines: bytes
    tags: int
    state: State


def read_vertical(source: Source, choices: Choices, remarks: Remarks) -> Iterator[Document]:
    """The documents of a file of vertical text."""
    reader = _Reader(source, choices, remarks)
    for block in source.blocks():
        reader.read(block)
        yield from reader.done
        reader.done.clear()
    reader.end()
    yield from reader.done


class _Reader:
    """Puts documents together, block by block."""

    def __init__(self, source: Source, choices: Choices, remarks: Remarks) -> None:
        self.done: list[Document] = []
        self._source = source
        self._remarks = remarks
        self._columns = Columns(source.name, choices, remarks)
        self._document = choices.document
        self._body = Body({})
        self._inside = False  # a document
        self._documents = 0
        self._around: set[str] = set()  # structures that were open when a document began
        self._tags: dict[bytes, Tag] = {}
        self._states: dict[tuple[Structure, ...], State] = {}
        self._moves = 0
        self._parts: list[bytes] = []  # of the block: stretches and runs by turns

    def read(self, block: bytes) -> None:
        """Take in a block of whole lines."""
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
        if body.size >= LONGEST + BLOCK:  # no structure began for long: here is as good as anywhere
            self._take(body.cut())

    def end(self) -> None:
        """Nothing comes any more."""
        self._finish()
        if self._document and not self._documents and self.done:
            self._remarks.add(NO_DOCUMENT)

    def _state(self) -> State:
        """The state of things. It recurs if all that is open has tokens and bare tags."""
        body = self._body
        plain = all(known.bare and not known.inside for known in body.opened)
        if not plain or body.waiting or body.full:
            return State(body.opened, {}, False)
        return self._states.setdefault(body.opened, State(body.opened, {}, True))

    def _run(self, run: bytes, tokens: bytes, part: int) -> None:
        """A run of tags, tag by tag, and the tokens behind it; remembered if it does the same whenever it comes."""
        before, body = self._state(), self._body
        start, tags = len(body.chunks), body.tags
        same = [self._line(line, part, nth) for nth, line in enumerate(run.split(b"\n<"))]
        if not tokens:
            return
        self._body.add(tokens)
        if all(same) and before.recurs and self._moves < MOST_MOVES:
            self._moves += 1
            after = self._states.setdefault(body.opened, State(body.opened, {}, True))
            before.moves[run] = Move(b"".join(body.chunks[start:-1]), body.tags - tags, after)

    def _line(self, line: bytes, part: int, nth: int) -> bool:
        """A line that begins with <, given without it; True if it does the same whenever it comes in this state."""
        tag = self._tags.get(line)
        if tag is None:
            match = _TAG.fullmatch(line)
            if match is None:
                return self._no_tag(line, part, nth)
            if match[4]:  # self-closing ones, such as <g/>, hold no tokens
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
        """A token that begins with <, or a comment, or a tag of a document that is not well-formed."""
        if _ASIDE.fullmatch(line):
            return True
        almost = _ALMOST_TAG.fullmatch(line) if len(line) <= LONGEST_TAG else None
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

    def _lenient(self, name: str, attributes: bytes) -> Tag:
        """An opening tag whose attributes are not quoted as they should be."""
        text = decoded(attributes).decode("utf-8", "replace") if self._columns.entities else ""
        return Tag(name, True, lenient(text or attributes.decode("utf-8", "replace")))

    def _read_tag(self, line: bytes, match: re.Match[bytes], part: int, nth: int) -> Tag:
        if not is_utf8(line):
            self._remarks.add(NOT_UTF8, lambda: self._number(part, nth))
        name = lines.clean_name((match[1] or match[2]).decode("utf-8", "replace"))
        attributes = {}
        for key, value in _ATTRIBUTES.findall((match[3] or b"").decode("utf-8", "replace")):
            text = value[1:-1]
            if self._columns.entities:
                text = decoded(text.encode()).decode()
            attributes[key] = text
        tag = Tag(name, match[1] is None, attributes)
        if not attributes and line.isascii() and len(self._tags) < MOST_MOVES:
            self._tags[line] = tag
        return tag

    def _open(self, tag: Tag, part: int, nth: int) -> bool:
        cut = self._body.full
        if cut:
            self._take(self._body.cut())
        if self._body.open(structure(tag.name, tag.attributes)):
            return not cut
        self._remarks.add(WITHIN_LIKE, lambda: self._number(part, nth))
        return False

    def _close(self, tag: Tag, part: int, nth: int) -> bool:
        if self._body.close(tag.name):
            return True
        if self._inside or tag.name not in self._around:
            self._remarks.add(NOT_OPEN, lambda: self._number(part, nth))
        self._around.discard(tag.name)
        return False

    def _boundary(self, tag: Tag, part: int, nth: int) -> None:
        """A document begins or ends."""
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
        self._body = Body({lines.clean_name(key): lines.clean(value) for key, value in attributes})

    def _finish(self) -> None:
        self._take(self._body.finish())

    def _take(self, documents: Iterator[Document]) -> None:
        self.done += (document._replace(attributes=self._columns.attributes) for document in documents)

    def _number(self, part: int, nth: int) -> int:
        """The number of the nth line of a part of the block."""
        before = sum(self._parts[at].count(b"\n") + at % 2 for at in range(part))
        return self._source.passed + before + nth + 1


def lenient(text: str) -> dict[str, str]:
    """Attributes that are not quoted as they should be; a value ends where the next name begins.

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
