"""TEI, the XML of the Text Encoding Initiative: tokens in <w> and <pc>, or running text.

The file is read as a stream. Declared entities are refused: a few lines of them can expand to gigabytes, or refer
to other files. The entities of XML itself and numeric characters are read.
"""

from __future__ import annotations

from collections.abc import Iterator
from xml.parsers import expat

from thresher.config import MIB
from thresher.importing.formats.document import ImportOptions, ImportRemarks, SourceDocument
from thresher.importing.formats.source import ImportFileError, SourceFile
from thresher.importing.formats.tei_content import TeiColumns, TeiContent
from thresher.importing.formats.tei_header import TeiHeader

DOCUMENTS = ("TEI", "TEI.2")  # the second is the name in versions before 2007
MAX_DEPTH = 10_000  # of nested elements
# Of one tag or comment: the parser holds it in memory and starts over with every chunk.
MAX_MARKUP_BYTES = 8 * MIB

NOTHING = "a document without text, left out"


def read_tei(source: SourceFile, options: ImportOptions, remarks: ImportRemarks) -> Iterator[SourceDocument]:  # noqa: ARG001
    """Yield the documents of a file: all of its <TEI> elements."""
    reader = _Reader(source.name, remarks)
    fed = 0
    try:
        for chunk in source.chunks():
            reader.parser.Parse(chunk, False)
            fed += len(chunk)
            if fed - reader.parser.CurrentByteIndex > MAX_MARKUP_BYTES:
                reader.fail(
                    f"begins a tag or comment of more than {MAX_MARKUP_BYTES // MIB} MiB; "
                    "if the file is not XML, name its format with --format"
                )
            yield from reader.done
            reader.done.clear()
        reader.parser.Parse(b"", True)
    except expat.ExpatError as fault:
        error = expat.ErrorString(fault.code)
        reader.fail(f"is not well-formed XML: {error}; check it: xmllint --noout {source.name}", fault.lineno)
    except (ValueError, LookupError) as fault:  # from Python's own decoders
        reader.fail(f"cannot be decoded: {fault}; convert the file to UTF-8 with iconv")
    yield from reader.done
    if not reader.documents:
        raise ImportFileError(
            f"{source.name} has no <TEI> element; if it is not TEI, name its format with --format"
        )


class _Reader:
    """A reader of documents from the events of the parser."""

    def __init__(self, name: str, remarks: ImportRemarks) -> None:
        self.done: list[SourceDocument] = []
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
        self._chosen: set[int] = set()  # depths of the elements <choice> of which one alternative was read
        self._skipped = 0  # the depth of an element that is ignored with its content
        self._header: TeiHeader | None = None
        self._content: TeiContent | None = None
        self._columns = TeiColumns()
        self._text_depth = 0  # of <text>

    def fail(self, message: str, line: int = 0) -> None:
        """Raise ImportFileError for a line, by default the current one."""
        raise ImportFileError(f"{self._name}, line {line or self.parser.CurrentLineNumber:,} {message}")

    def _start(self, tag: str, given: dict[str, str]) -> None:
        name = tag.rpartition(":")[2]
        self._path.append(name)
        depth = len(self._path)
        if depth > MAX_DEPTH:
            self.fail(
                f"has more than {MAX_DEPTH:,} nested elements; if it is not TEI, name the format with --format"
            )
        if self._skipped or self._is_other_choice(depth):
            self._skipped = self._skipped or depth
            return
        if name in DOCUMENTS:
            self._end_document()
            self.documents += 1
            self._header = TeiHeader(given.get("xml:id", ""))
            self._content = TeiContent(self._remarks, lambda: self.parser.CurrentLineNumber, self._columns)
        elif self._content and self._text_depth:
            self._content.start(name, _without_prefixes(given))
            if self._content.full:
                self._take(self._content.cut())
        elif name == "text" and self._content:
            self._text_depth = depth
        elif self._header:
            self._header.start(self._path, given)

    def _is_other_choice(self, depth: int) -> bool:
        """Return whether an element is a further alternative of a <choice>, of which only the first is read."""
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

    def _take(self, documents: Iterator[SourceDocument]) -> None:
        meta = self._header.meta() if self._header else {}
        self.done += (document._replace(meta=meta) for document in documents)

    def _refuse_entity(self, name: str, *_: object) -> None:
        self.fail(f"declares the entity {name!r}; expand it: xmllint --noent {self._name} > NEW")

    def _refuse_skipped(self, name: str, *_: object) -> None:
        self.fail(f"has the entity &{name}; which the file does not declare; replace it by its text")


def _without_prefixes(attributes: dict[str, str]) -> dict[str, str]:
    """Return attributes without prefixes, so that xml:id is id, and without declarations of namespaces."""
    if not any(":" in key or key == "xmlns" for key in attributes):
        return attributes
    return {key.rpartition(":")[2]: value for key, value in attributes.items() if not key.startswith("xmlns")}
