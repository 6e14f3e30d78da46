"""The text of a TEI document: its tokens if it has some, else its paragraphs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from thresher.config import MIB
from thresher.store import lines
from thresher.store.importers.body import Body, structure
from thresher.store.importers.document import LONGEST, Document, Remarks
from thresher.store.importers.texts import parts

ATTRIBUTES = ("word", "pos", "lemma")
FEATURES = "feats"  # of @msd, in files whose first token has a part of speech beside it
TOKENS = ("w", "pc")
PARAGRAPHS = ("p", "head", "ab", "l")
# Where running text has a break. Notes have none: they are read after the paragraph that they stand in.
BLOCKS = frozenset(
    (
        *(
            "ab",
            "argument",
            "bibl",
            "byline",
            "castItem",
            "cell",
            "closer",
            "dateline",
            "desc",
            "div",
            "docAuthor",
        ),
        *(
            "docDate",
            "docImprint",
            "epigraph",
            "figDesc",
            "figure",
            "floatingText",
            "head",
            "imprimatur",
            "item",
        ),
        *(
            "l",
            "label",
            "lg",
            "list",
            "opener",
            "p",
            "postscript",
            "quote",
            "role",
            "row",
            "salute",
            "seg",
            "signed",
        ),
        *("sp", "speaker", "stage", "table", "titlePart", "trailer", "u"),
    )
)
# Where a word ends, unless break="no" says otherwise.
GAPS = ("lb", "pb", "cb", "gb", "milestone", "s")
POS = ("pos", "ana", "msd")  # attributes, the best first
MOST_PIECES = 1_000  # of text in a token; the rest is left out

JOINS = "whether there is a space between two tokens (@join)"
MORE_FEATURES = "@msd, which the first token does not have beside its part of speech"
OUTSIDE = "a stretch of text outside <w> and <pc>, left out"


class Columns:
    """What the tokens of a file have, as its first one tells."""

    def __init__(self) -> None:
        self.attributes: tuple[str, ...] = ()

    def learn(self, token: Mapping[str, str]) -> None:
        """One more token; all but the first say nothing new."""
        if not self.attributes:
            self.attributes = (*ATTRIBUTES, FEATURES) if has_both(token) else ATTRIBUTES


def has_both(token: Mapping[str, str]) -> bool:
    """Whether a token has a part of speech and @msd, which else is one."""
    return "msd" in token and ("pos" in token or "ana" in token)


class Content:
    """The text of one document, read element by element."""

    def __init__(self, remarks: Remarks, line: Callable[[], int], columns: Columns) -> None:
        self._columns = columns
        self.full = False  # it is time to cut: before a structure, unless none comes for long
        self._remarks = remarks
        self._line = line
        self._part = 1
        self._body = Body({})
        self._has_tokens = False
        self._depth = 0  # of elements from a token on: one within another does not count
        self._about: dict[str, str] = {}  # the token
        self._word: list[str] = []
        # Running text: the paragraph, then notes that are being read, one within the other.
        self._buffers: list[list[str]] = [[]]
        self._size = 0  # of all running text, in characters
        self._notes: list[str] = []  # that come after the paragraph
        self._paragraphs: list[str] = []

    @property
    def parts(self) -> int:
        """How many were given out, whole documents included."""
        return self._part - 1

    def start(self, name: str, attributes: dict[str, str]) -> None:
        """An element begins."""
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
        """An element ends."""
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
        """Some text."""
        if self._depth:
            if len(self._word) < MOST_PIECES:
                self._word.append(text)
        elif not (self._has_tokens and text.isspace()):
            self._buffers[-1].append(text)
            self._size += len(text)
            self.full |= self._size >= LONGEST

    def cut(self) -> Iterator[Document]:
        """What there is so far, as a part of the document."""
        self.full = False
        self._break()
        return self._numbered(self._body.cut() if self._has_tokens else self._texts())

    def finish(self) -> Iterator[Document]:
        """The document, or the last part of it; nothing if there is no text."""
        self._break()
        return self._numbered(self._body.finish() if self._has_tokens else self._texts())

    def _start_token(self, attributes: dict[str, str]) -> None:
        self._about, self._word = attributes, []
        if not self._has_tokens:
            self._has_tokens = True
            if lost := len(self._paragraphs) + len(self._notes):
                self._remarks.add(OUTSIDE, self._line, lost)
            self._paragraphs, self._notes, self._size = [], [], 0

    def _end_token(self) -> None:
        word = " ".join("".join(self._word).split())
        if word:
            pos = next((self._about[name] for name in POS if name in self._about), "").removeprefix("#")
            self._columns.learn(self._about)
            features = self._about["msd"] if has_both(self._about) else ""
            values = [word, pos, self._about.get("lemma", ""), features]
            token = lines.token(values[: len(self._columns.attributes)])
            if features and FEATURES not in self._columns.attributes:
                self._remarks.not_kept(MORE_FEATURES)
            if self._about.get("join", "no") != "no":
                self._remarks.not_kept(JOINS)
            self._body.add(b"\n" + token[:-1])
            self.full |= self._body.size >= LONGEST + MIB

    def _break(self) -> None:
        """A paragraph ends, or a note."""
        text = lines.clean(" ".join("".join(self._buffers[-1]).split()))
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

    def _texts(self) -> Iterator[Document]:
        body = "\n".join(self._paragraphs + self._notes).encode()
        self._paragraphs, self._notes, self._size = [], [], 0
        return (Document({}, part) for part in parts(body) if part)

    def _numbered(self, documents: Iterator[Document]) -> Iterator[Document]:
        for document in documents:
            attributes = () if document.tokens is None else self._columns.attributes
            yield document._replace(attributes=attributes, part=self._part)
            self._part += 1
