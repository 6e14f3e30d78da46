"""The text of a TEI document: its tokens if it has any, or else its paragraphs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from thresher.config import MIB
from thresher.importing.formats.body import BodyBuilder, structure
from thresher.importing.formats.document import MAX_DOCUMENT_BYTES, ImportRemarks, SourceDocument
from thresher.importing.formats.texts import parts
from thresher.store import token_lines

ATTRIBUTES = ("word", "pos", "lemma")
FEATURES = "feats"  # from @msd, in files whose first token has a part of speech as well
TOKENS = ("w", "pc")
PARAGRAPHS = ("p", "head", "ab", "l")
# Elements that begin a paragraph of running text. Notes do not: they are placed after the paragraph around them.
_BLOCKS = (
    "ab argument bibl byline castItem cell closer dateline desc div docAuthor docDate docImprint epigraph",
    "figDesc figure floatingText head imprimatur item l label lg list opener p postscript quote role row salute",
    "seg signed sp speaker stage table titlePart trailer u",
)
BLOCKS = frozenset(" ".join(_BLOCKS).split())
# Elements that end a word, unless they have break="no".
GAPS = ("lb", "pb", "cb", "gb", "milestone", "s")
POS = ("pos", "ana", "msd")  # attributes with a part of speech, the best first
MAX_TEXTS = 1_000  # text nodes of a token that are read; the rest is left out

JOINS = "spaces between tokens (@join)"
MORE_FEATURES = "@msd, which the first token does not have in addition to its part of speech"
OUTSIDE = "a text outside <w> and <pc>, left out"


class TeiColumns:
    """The attributes of the tokens of a file, which follow from the first token."""

    def __init__(self) -> None:
        self.attributes: tuple[str, ...] = ()

    def learn(self, token: Mapping[str, str]) -> None:
        """Take the attributes from a token, unless they are known."""
        if not self.attributes:
            self.attributes = (*ATTRIBUTES, FEATURES) if has_both(token) else ATTRIBUTES


def has_both(token: Mapping[str, str]) -> bool:
    """Return whether a token has a part of speech besides @msd, which otherwise serves as one."""
    return "msd" in token and ("pos" in token or "ana" in token)


class TeiContent:
    """The text of one document, read element by element."""

    def __init__(self, remarks: ImportRemarks, line: Callable[[], int], columns: TeiColumns) -> None:
        self._columns = columns
        self.full = False  # whether to cut now: before a structure, or, if none begins for long, anywhere
        self._remarks = remarks
        self._line = line
        self._part = 1
        self._body = BodyBuilder({})
        self._has_tokens = False
        self._depth = 0  # of elements inside a token, in which other tokens do not count
        self._attributes: dict[str, str] = {}  # of the token
        self._word: list[str] = []
        # Running text: the paragraph, then nested notes.
        self._buffers: list[list[str]] = [[]]
        self._size = 0  # of all running text, in characters
        self._notes: list[str] = []  # to be placed after the paragraph
        self._paragraphs: list[str] = []

    @property
    def parts(self) -> int:
        """The number of parts so far; a whole document is one."""
        return self._part - 1

    def start(self, name: str, attributes: dict[str, str]) -> None:
        """Begin an element."""
        if self._depth or name in TOKENS:
            if not self._depth:
                self._start_token(attributes)
            self._depth += 1
            return
        if name == "note":
            self._buffers.append([])
        elif name in GAPS and attributes.get("break") != "no":
            self._buffers[-1].append(" ")
        elif name in BLOCKS:
            self._break()
        if name == "s" or name in PARAGRAPHS:
            self._body.open(structure("s" if name == "s" else "p", attributes))
            self.full |= self._body.full

    def end(self, name: str) -> None:
        """End an element."""
        if self._depth:
            self._depth -= 1
            if not self._depth:
                self._end_token()
            return
        if name == "note" or name in BLOCKS:
            self._break()
        if name == "note":
            self._buffers.pop()
        if name == "s" or name in PARAGRAPHS:
            self._body.close("s" if name == "s" else "p")

    def characters(self, text: str) -> None:
        """Add text."""
        if self._depth:
            if len(self._word) < MAX_TEXTS:
                self._word.append(text)
        elif not (self._has_tokens and text.isspace()):
            self._buffers[-1].append(text)
            self._size += len(text)
            self.full |= self._size >= MAX_DOCUMENT_BYTES

    def cut(self) -> Iterator[SourceDocument]:
        """Yield the text so far as a part of the document."""
        self.full = False
        self._break()
        return self._numbered(self._body.cut() if self._has_tokens else self._texts())

    def finish(self) -> Iterator[SourceDocument]:
        """Yield the document, or its last part; nothing if there is no text."""
        self._break()
        return self._numbered(self._body.finish() if self._has_tokens else self._texts())

    def _start_token(self, attributes: dict[str, str]) -> None:
        self._attributes, self._word = attributes, []
        if not self._has_tokens:
            self._has_tokens = True
            if lost := len(self._paragraphs) + len(self._notes):
                self._remarks.add(OUTSIDE, self._line, lost)
            self._paragraphs, self._notes, self._size = [], [], 0

    def _end_token(self) -> None:
        word = " ".join("".join(self._word).split())
        if word:
            pos = next((self._attributes[name] for name in POS if name in self._attributes), "").removeprefix(
                "#"
            )
            self._columns.learn(self._attributes)
            features = self._attributes["msd"] if has_both(self._attributes) else ""
            values = [word, pos, self._attributes.get("lemma", ""), features]
            token = token_lines.token(values[: len(self._columns.attributes)])
            if features and FEATURES not in self._columns.attributes:
                self._remarks.not_kept(MORE_FEATURES)
            if self._attributes.get("join", "no") != "no":
                self._remarks.not_kept(JOINS)
            self._body.add(b"\n" + token[:-1])
            self.full |= self._body.size >= MAX_DOCUMENT_BYTES + MIB

    def _break(self) -> None:
        """End a paragraph or a note."""
        text = token_lines.clean(" ".join("".join(self._buffers[-1]).split()))
        self._buffers[-1] = []
        if self._has_tokens:
            self._size = 0
            if text:
                self._remarks.add(OUTSIDE, self._line)
        elif len(self._buffers) > 1:
            self._notes += [text] if text else []
        else:
            self._paragraphs += [text, *self._notes] if text else self._notes
            self._notes = []

    def _texts(self) -> Iterator[SourceDocument]:
        body = "\n".join(self._paragraphs + self._notes).encode()
        self._paragraphs, self._notes, self._size = [], [], 0
        return (SourceDocument({}, part) for part in parts(body) if part)

    def _numbered(self, documents: Iterator[SourceDocument]) -> Iterator[SourceDocument]:
        for document in documents:
            attributes = () if document.tokens is None else self._columns.attributes
            yield document._replace(attributes=attributes, part=self._part)
            self._part += 1
