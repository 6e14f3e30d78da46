"""Running text: plain files, lines of JSON, tables in Parquet."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from thresher.store import lines
from thresher.store.importers.document import LONGEST, NOT_UTF8, Choices, Document, Remarks, is_utf8
from thresher.store.importers.source import ImportFault, Source
from thresher.store.lines import count_ends
from thresher.store.tables import DOCS

BATCH_BYTES = 8 << 20  # of a Parquet file in memory at once, about
MOST_ROWS = 1024
PIECE = 1 << 20  # bytes of plain text that are taken apart at once

NO_TEXT = "a document without text, left out"

# A row with these columns is a page that thresher itself exported …
OUR_MARKS = frozenset({"url", "paragraphs", "text_hash", "raw_hash", "warc_file"})
# … and of its columns these tell something of the document; the rest is bookkeeping, or the text once more.
OUR_KNOWLEDGE = (
    *("url", "host", "domain", "title", "author", "published", "modified", "fetched", "site_name", "license"),
    *("opt_out", "language", "language_share", "language_declared", "badness", "suspicion"),
)
OUR_BOOKKEEPING = frozenset(DOCS.names) - {*OUR_KNOWLEDGE}

_BLANK_LINE = re.compile(r"\n[^\S\n]*\n")
_BLANK_LINE_OF_BYTES = re.compile(rb"\n[ \t\r]*\n")
_SIGN = re.compile(rb"[^\s]")
_PLACES_TO_CUT = (b"\n\n", b"\n", b" ")  # the best first


def read_text(source: Source, choices: Choices, remarks: Remarks) -> Iterator[Document]:
    """The document that a plain file is, in parts if it is long; or a document of each line."""
    if choices.split == "line":
        for number, line in source.lines():
            if text := "\n".join(paragraphs(_decoded(line, remarks, number))):
                yield from _documents({}, text)
        return
    part, number = 1, 1
    spaced: bool | None = None
    for portion in _gathered(source.text_pieces(), LONGEST):
        if spaced is None:
            spaced = _is_spaced(portion)
        found = []
        for piece in _portions(portion, PIECE):  # so that only a little is in memory in many forms
            found.append(_tidy(_decoded(piece, remarks, number), spaced).encode())
            number += count_ends(piece)
        body = b"\n".join(filter(None, found))
        del found, portion
        if body:
            yield Document({}, body, part=part)
            part += 1


def read_jsonl(source: Source, choices: Choices, remarks: Remarks) -> Iterator[Document]:
    """A document of each line: an object whose other fields become meta."""
    for number, line in source.lines():
        if not line.strip():
            continue
        try:
            fields = msgspec.json.decode(_decoded(line, remarks, number), type=dict[str, Any])
        except (msgspec.DecodeError, UnicodeEncodeError) as fault:
            raise ImportFault(
                f"{source.name}, line {number:,} is no object of JSON: {fault}; mend or delete the line"
            ) from None
        yield from _row(f"{source.name}, line {number:,}", fields, choices, remarks, number)


def read_parquet(source: Source, choices: Choices, remarks: Remarks) -> Iterator[Document]:
    """A document of each row, whose other columns become meta."""
    try:
        with source.seekable() as file, pq.ParquetFile(file, buffer_size=1 << 20) as table:
            _check_column(source.name, table.schema_arrow, choices.text_column)
            number = 0
            for group in range(table.num_row_groups):
                about = table.metadata.row_group(group)
                rows = BATCH_BYTES * about.num_rows // max(about.total_byte_size, 1)
                for batch in table.iter_batches(min(max(rows, 1), MOST_ROWS), row_groups=[group]):
                    for fields in batch.to_pylist():
                        number += 1
                        yield from _row(f"{source.name}, row {number:,}", fields, choices, remarks, number)
    except (pa.ArrowException, OSError) as fault:
        if isinstance(fault, OSError) and fault.errno is not None:
            raise
        # Arrow reports what is cut off as an OSError without a number.
        raise ImportFault(f"{source.name} is no whole Parquet file: {fault}; get it once more") from None


def paragraphs(text: str) -> list[str]:
    """The lines of a text that are not blank, clean.

    >>> paragraphs("One.\\r\\n\\n\\tTwo.\\f")
    ['One.', 'Two.']
    """
    return [clean for line in text.splitlines() if (clean := lines.clean(line).strip())]


def parts(text: bytes) -> Iterator[bytes]:
    """A text in parts that are not too long, cut where it hurts least."""
    return (part.strip(b"\n") for part in _portions(text, LONGEST))


def _tidy(text: str, spaced: bool) -> str:
    """The paragraphs of a text, a line for each."""
    if not spaced:
        return "\n".join(paragraphs(text))
    even = "\n".join(text.splitlines())
    return "\n".join(filter(None, (" ".join(paragraphs(each)) for each in _BLANK_LINE.split(even))))


def _gathered(pieces: Iterable[bytes], longest: int) -> Iterator[bytes]:
    """Pieces put together into portions that are not too long."""
    gathered = bytearray()
    for piece in pieces:
        gathered += piece
        while len(gathered) > longest:
            end = _cut(gathered, 0, longest)
            with memoryview(gathered) as view:
                portion = bytes(view[:end])
            del gathered[:end]
            yield portion
            del portion  # long ones are in memory once
    yield bytes(gathered)


def _portions(text: bytes, longest: int) -> Iterator[bytes]:
    """A text in portions that are not too long."""
    start = 0
    while len(text) - start > longest:
        end = _cut(text, start, start + longest)
        yield text[start:end]
        start = end
    yield text[start:]


def _cut(text: bytes | bytearray, start: int, end: int) -> int:
    """Where to cut: behind a blank line, a line or a word in the second half, else between two letters."""
    for place in _PLACES_TO_CUT:
        found = text.rfind(place, (start + end) // 2, end)
        if found >= 0:
            return found + len(place)
    return next((at for at in range(end, max(end - 4, start), -1) if text[at] & 0xC0 != 0x80), end)


def _is_spaced(text: bytes) -> bool:
    """Whether there are blank lines between others."""
    start = _SIGN.search(text)
    blank = _BLANK_LINE_OF_BYTES.search(text, start.start()) if start else None
    return blank is not None and _SIGN.search(text, blank.end()) is not None


def _decoded(data: bytes, remarks: Remarks, number: int) -> str:
    """Bytes that begin in a line of this number as text."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        for nth, line in enumerate(data.split(b"\n"), number):
            if not is_utf8(line):
                remarks.add(NOT_UTF8, nth)
        return data.decode("utf-8", "replace")


def _check_column(name: str, schema: pa.Schema, column: str) -> None:
    if column not in schema.names:
        raise ImportFault(
            f"{name} has no column {column!r} but {', '.join(schema.names)}; say which has the text: --text-column"
        )
    kind = schema.field(column).type
    if isinstance(kind, pa.DictionaryType):
        kind = kind.value_type
    if not (pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)):
        raise ImportFault(f"{name}: column {column!r} is {kind}, not text; say which has it: --text-column")


def _row(
    where: str, fields: Mapping[str, Any], choices: Choices, remarks: Remarks, number: int
) -> Iterator[Document]:
    """The document of a row or an object."""
    column = choices.text_column
    text = fields.get(column)
    if column not in fields or not isinstance(text, str | None):
        what = f"has no field {column!r}" if column not in fields else f"has a {column!r} that is no string"
        others = ", ".join(name for name in fields if name != column)
        raise ImportFault(
            f"{where} {what}; say which has the text: --text-column (there are {others or 'none'})"
        )
    body = "\n".join(paragraphs(text or ""))
    if not body:
        remarks.add(NO_TEXT, number)
        return
    known = _of_ours(fields) if fields.keys() >= OUR_MARKS else fields
    values = {lines.clean_name(name): _value(value) for name, value in known.items() if name != column}
    yield from _documents({name: value for name, value in values.items() if value is not None}, body)


def _of_ours(fields: Mapping[str, Any]) -> dict[str, Any]:
    """What a page that was exported tells of the document, in the words of a crawl."""
    told = {name: value for name, value in fields.items() if name not in OUR_BOOKKEEPING and value != ""}
    if isinstance(objections := fields.get("opt_out"), list):
        told["opt_out"] = " ".join(map(str, objections)) or None
    return told


def _value(value: Any) -> str | None:
    """A field as text: scalars as they are written, lists and objects as JSON; None is no value."""
    if value is None:
        return None
    plain = msgspec.to_builtins(value, enc_hook=str)
    return lines.clean(plain if isinstance(plain, str) else msgspec.json.encode(plain).decode())


def _documents(meta: dict[str, str], text: str) -> Iterator[Document]:
    for part, body in enumerate(parts(text.encode()), 1):
        yield Document(meta, body, part=part)
