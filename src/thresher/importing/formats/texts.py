"""Running text: plain files, JSON lines and Parquet tables."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from thresher.importing.formats.document import (
    MAX_DOCUMENT_BYTES,
    NOT_UTF8,
    ImportOptions,
    ImportRemarks,
    SourceDocument,
    is_utf8,
)
from thresher.importing.formats.source import ImportFileError, SourceFile
from thresher.store import token_lines
from thresher.store.schemas import DOCS
from thresher.store.token_lines import count_ends

BATCH_BYTES = 8 << 20  # of a Parquet file that are in memory at once, approximately
MAX_ROWS = 1024  # of a Parquet file that are in memory at once
PORTION_BYTES = 1 << 20  # of plain text that are split into paragraphs at once

NO_TEXT = "a document without text, left out"

# A row with these columns is a page that Thresher exported.
OUR_MARKS = frozenset({"url", "paragraphs", "text_hash", "raw_hash", "warc_file"})
# The columns of such a page that become metadata; the others are bookkeeping, or repeat the text.
OUR_METADATA = (
    *("url", "host", "domain", "title", "author", "published", "modified", "fetched", "site_name", "license"),
    *("opt_out", "language", "language_share", "language_declared", "badness", "suspicion"),
)
OUR_BOOKKEEPING = frozenset(DOCS.names) - {*OUR_METADATA}

_BLANK_LINE = re.compile(r"\n[^\S\n]*\n")
_BLANK_LINE_OF_BYTES = re.compile(rb"\n[ \t\r]*\n")
_VISIBLE = re.compile(rb"[^\s]")
_PLACES_TO_CUT = (b"\n\n", b"\n", b" ")  # the best first


def read_text(source: SourceFile, options: ImportOptions, remarks: ImportRemarks) -> Iterator[SourceDocument]:
    """Yield a plain file as one document, in parts if it is long, or each of its lines as a document."""
    if options.split == "line":
        for number, line in source.lines():
            if text := "\n".join(paragraphs(_decoded(line, remarks, number))):
                yield from _documents({}, text)
        return
    part, number = 1, 1
    spaced: bool | None = None
    for portion in _gathered(source.text_chunks(), MAX_DOCUMENT_BYTES):
        if spaced is None:
            spaced = _is_spaced(portion)
        found = []
        for small in _portions(portion, PORTION_BYTES):  # so that only a little is in memory in several forms
            found.append(_tidy(_decoded(small, remarks, number), spaced).encode())
            number += count_ends(small)
        body = b"\n".join(filter(None, found))
        del found, portion
        if body:
            yield SourceDocument({}, body, part=part)
            part += 1


def read_jsonl(
    source: SourceFile, options: ImportOptions, remarks: ImportRemarks
) -> Iterator[SourceDocument]:
    """Yield a document for each line, which is an object; its other fields become metadata."""
    for number, line in source.lines():
        if not line.strip():
            continue
        try:
            fields = msgspec.json.decode(_decoded(line, remarks, number), type=dict[str, Any])
        except (msgspec.DecodeError, UnicodeError, RecursionError) as fault:
            raise ImportFileError(
                f"{source.name}, line {number:,} is not a JSON object: {fault}; repair or delete the line"
            ) from None
        yield from _row(f"{source.name}, line {number:,}", fields, options, remarks, number)


def read_parquet(
    source: SourceFile, options: ImportOptions, remarks: ImportRemarks
) -> Iterator[SourceDocument]:
    """Yield a document for each row; the other columns become metadata."""
    try:
        with source.seekable() as file, pq.ParquetFile(file, buffer_size=1 << 20) as table:
            _check_column(source.name, table.schema_arrow, options.text_column)
            number = 0
            for group in range(table.num_row_groups):
                about = table.metadata.row_group(group)
                rows = BATCH_BYTES * about.num_rows // max(about.total_byte_size, 1)
                for batch in table.iter_batches(min(max(rows, 1), MAX_ROWS), row_groups=[group]):
                    for fields in batch.to_pylist():
                        number += 1
                        yield from _row(f"{source.name}, row {number:,}", fields, options, remarks, number)
    except (pa.ArrowException, OSError) as fault:
        if isinstance(fault, OSError) and fault.errno is not None:
            raise
        # Arrow reports a truncated file as an OSError without a number.
        raise ImportFileError(
            f"{source.name} is not a complete Parquet file: {fault}; get it once more"
        ) from None


def paragraphs(text: str) -> list[str]:
    r"""Return the lines of a text that are not blank, without control characters.

    >>> paragraphs("One.\r\n\n\tTwo.\f")
    ['One.', 'Two.']
    """
    return [clean for line in text.splitlines() if (clean := token_lines.clean(line).strip())]


def parts(text: bytes) -> Iterator[bytes]:
    """Yield a text in parts of at most MAX_DOCUMENT_BYTES, cut between paragraphs, lines or words if possible."""
    return (part.strip(b"\n") for part in _portions(text, MAX_DOCUMENT_BYTES))


def _tidy(text: str, spaced: bool) -> str:
    """Return the paragraphs of a text, one per line; in spaced text, blank lines separate paragraphs."""
    if not spaced:
        return "\n".join(paragraphs(text))
    even = "\n".join(text.splitlines())
    return "\n".join(filter(None, (" ".join(paragraphs(each)) for each in _BLANK_LINE.split(even))))


def _gathered(chunks: Iterable[bytes], longest: int) -> Iterator[bytes]:
    """Join chunks into portions of at most `longest` bytes."""
    gathered = bytearray()
    for chunk in chunks:
        gathered += chunk
        while len(gathered) > longest:
            end = _cut(gathered, 0, longest)
            with memoryview(gathered) as view:
                portion = bytes(view[:end])
            del gathered[:end]
            yield portion
            del portion  # so that a long portion is in memory only once
    yield bytes(gathered)


def _portions(text: bytes, longest: int) -> Iterator[bytes]:
    """Divide a text into portions of at most `longest` bytes."""
    start = 0
    while len(text) - start > longest:
        end = _cut(text, start, start + longest)
        yield text[start:end]
        start = end
    yield text[start:]


def _cut(text: bytes | bytearray, start: int, end: int) -> int:
    """Return where to cut: after a blank line, a line or a word in the second half, or else between characters."""
    for place in _PLACES_TO_CUT:
        found = text.rfind(place, (start + end) // 2, end)
        if found >= 0:
            return found + len(place)
    return next((at for at in range(end, max(end - 4, start), -1) if text[at] & 0xC0 != 0x80), end)


def _is_spaced(text: bytes) -> bool:
    """Return whether there are blank lines between other lines."""
    start = _VISIBLE.search(text)
    blank = _BLANK_LINE_OF_BYTES.search(text, start.start()) if start else None
    return blank is not None and _VISIBLE.search(text, blank.end()) is not None


def _decoded(data: bytes, remarks: ImportRemarks, number: int) -> str:
    """Return bytes as text; `number` is that of their first line, for remarks."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        for nth, line in enumerate(data.split(b"\n"), number):
            if not is_utf8(line):
                remarks.add(NOT_UTF8, nth)
        return data.decode("utf-8", "replace")


def _check_column(name: str, schema: pa.Schema, column: str) -> None:
    if column not in schema.names:
        raise ImportFileError(
            f"{name} has no column {column!r} but {', '.join(schema.names)}; "
            "name the one with the text: --text-column"
        )
    kind = schema.field(column).type
    if isinstance(kind, pa.DictionaryType):
        kind = kind.value_type
    if not (pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)):
        raise ImportFileError(
            f"{name}: column {column!r} is {kind}, not text; name the one with the text: --text-column"
        )


def _row(
    where: str, fields: Mapping[str, Any], options: ImportOptions, remarks: ImportRemarks, number: int
) -> Iterator[SourceDocument]:
    """Yield the document of a row or an object, in parts if it is long."""
    column = options.text_column
    text = fields.get(column)
    if column not in fields or not isinstance(text, str | None):
        fault = (
            f"has no field {column!r}" if column not in fields else f"has a {column!r} that is not a string"
        )
        others = ", ".join(name for name in fields if name != column)
        raise ImportFileError(
            f"{where} {fault}; name the field with the text: --text-column (other fields: {others or 'none'})"
        )
    body = "\n".join(paragraphs(text or ""))
    if not body:
        remarks.add(NO_TEXT, number)
        return
    known = _our_metadata(fields) if fields.keys() >= OUR_MARKS else fields
    values = {token_lines.clean_name(name): _value(value) for name, value in known.items() if name != column}
    yield from _documents({name: value for name, value in values.items() if value is not None}, body)


def _our_metadata(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the metadata of a page that Thresher exported, under the names of a crawl."""
    found = {name: value for name, value in fields.items() if name not in OUR_BOOKKEEPING and value != ""}
    if isinstance(opt_outs := fields.get("opt_out"), list):
        found["opt_out"] = " ".join(map(str, opt_outs)) or None
    return found


def _value(value: Any) -> str | None:
    """Return a field as text, lists and objects as JSON; None stands for no value."""
    if value is None:
        return None
    plain = msgspec.to_builtins(value, enc_hook=str)
    return token_lines.clean(plain if isinstance(plain, str) else msgspec.json.encode(plain).decode())


def _documents(meta: dict[str, str], text: str) -> Iterator[SourceDocument]:
    for part, body in enumerate(parts(text.encode()), 1):
        yield SourceDocument(meta, body, part=part)
