"""TEI, the XML of the Text Encoding Initiative: tokens in <w> and <pc>, or running text.

The file is read as a stream. Entities that it declares are refused: a few lines of them can stand for gigabytes, or
for other files. Those of XML itself, and characters by number, are read.
"""

from __future__ import annotations

from collections.abc import Iterator
from xml.parsers import expat

from thresher.config import MIB
from thresher.store.importers.document import Choices, Document, Remarks
from thresher.store.importers.source import ImportFault, Source
from thresher.store.importers.tei_content import Columns, Content
from thresher.store.importers.tei_header import Header

DOCUMENTS = ("TEI", "TEI.2")  # the second is what it was called before 2007
DEEPEST = 10_000  # elements within each other
LONGEST_MARKUP = (
    8 * MIB
)  # of one tag or comment: the parser holds it in memory and begins it anew with every piece

NOTHING = "a document without text, left out"


def read_tei(source: Source, choices: Choices, remarks: Remarks) -> Iterator[Document]:  # noqa: ARG001
    """The documents of a file: its <TEI> elements, wherever they stand."""
    reader = _Reader(source.name, remarks)
    fed = 0
    try:
        for piece in source.pieces():
            reader.parser.Parse(piece, False)
            fed += len(piece)
            if fed - reader.parser.CurrentByteIndex > LONGEST_MARKUP:
                reader.fail(f"begins a tag or comment of more than {LONGEST_MARKUP // MIB} MiB; is it XML?")
            yield from reader.done
            reader.done.clear()
        reader.parser.Parse(b"", True)
    except expat.ExpatError as fault:
        why = expat.ErrorString(fault.code)
        reader.fail(f"is not well-formed XML: {why}; xmllint --noout {source.name} tells more", fault.lineno)
    except (ValueError, LookupError) as fault:  # of Python's own decoders
        reader.fail(f"cannot be decoded: {fault}; make it UTF-8 with iconv")
    yield from reader.done
    if not reader.documents:
        raise ImportFault(
            f"{source.name} has no <TEI> element; if it is not TEI, say what it is with --format"
        )


class _Reader:
    """Takes what the parser finds."""

    def __init__(self, name: str, remarks: Remarks) -> None:
        self.done: list[Document] = []
        self.documents = 0
        self.parser = parser = expat.ParserCreate()
        parser.buffer_text = True
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._characters
        parser.EntityDeclHandler = self._refuse_entity
        parser.SkippedEntityHandler = self._refuse_skipped
        self._name = name
        self._remarks = remarks
        self._path: list[str] = []
        self._chosen: set[int] = set()  # depths of those <choice> of which one part was taken
        self._skipped = 0  # depth of an element that does not count, nor does anything in it
        self._header: Header | None = None
        self._content: Content | None = None
        self._columns = Columns()
        self._text_depth = 0  # of <text>

    def fail(self, what: str, line: int = 0) -> None:
        raise ImportFault(f"{self._name}, line {line or self.parser.CurrentLineNumber:,} {what}")

    def _start(self, tag: str, given: dict[str, str]) -> None:
        name = tag.rpartition(":")[2]
        self._path.append(name)
        depth = len(self._path)
        if depth > DEEPEST:
            self.fail(f"has more than {DEEPEST:,} elements within each other; is it TEI?")
        if self._skipped or self._is_other_choice(depth):
            self._skipped = self._skipped or depth
            return
        if name in DOCUMENTS:
            self._end_document()
            self.documents += 1
            self._header = Header(given.get("xml:id", ""))
            self._content = Content(self._remarks, lambda: self.parser.CurrentLineNumber, self._columns)
        elif self._content and self._text_depth:
            self._content.start(name, _without_prefixes(given))
            if self._content.full:
                self._take(self._content.cut())
        elif name == "text" and self._content:
            self._text_depth = depth
        elif self._header:
            self._header.start(self._path, given)

    def _is_other_choice(self, depth: int) -> bool:
        """Whether this is but another reading of what was read: the first in a <choice> counts."""
        if depth < 2 or self._path[-2] != "choice":
            return False
        if depth in self._chosen:
            return True
        self._chosen.add(depth)
        return False

    def _end(self, _: str) -> None:
        depth = len(self._path)
        name = self._path.pop()
        self._chosen.discard(depth + 1)
        if self._skipped:
            if depth == self._skipped:
                self._skipped = 0
        elif name in DOCUMENTS:
            self._end_document()
        elif depth == self._text_depth:
            self._text_depth = 0
        elif self._content and self._text_depth:
            self._content.end(name)
        elif self._header:
            self._header.end(depth)

    def _characters(self, text: str) -> None:
        if self._skipped:
            return
        if self._content and self._text_depth:
            self._content.characters(text)
            if self._content.full:
                self._take(self._content.cut())
        elif self._header:
            self._header.characters(text)

    def _end_document(self) -> None:
        if self._content:
            self._take(self._content.finish())
            if not self._content.parts:
                self._remarks.add(NOTHING, self.parser.CurrentLineNumber)
        self._header = self._content = None
        self._text_depth = 0

    def _take(self, documents: Iterator[Document]) -> None:
        meta = self._header.meta() if self._header else {}
        self.done += (document._replace(meta=meta) for document in documents)

    def _refuse_entity(self, name: str, *_: object) -> None:
        self.fail(
            f"declares the entity {name!r}; put in what it stands for: xmllint --noent {self._name} > NEW"
        )

    def _refuse_skipped(self, name: str, *_: object) -> None:
        self.fail(f"has the entity &{name}; that nothing in the file declares; put in what it stands for")


def _without_prefixes(attributes: dict[str, str]) -> dict[str, str]:
    """xml:id is id; declarations of namespaces are no attributes."""
    if not any(":" in key or key == "xmlns" for key in attributes):
        return attributes
    return {key.rpartition(":")[2]: value for key, value in attributes.items() if not key.startswith("xmlns")}
