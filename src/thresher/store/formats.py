"""Formats that a corpus is exported to: a function and a row in FORMATS for each."""

from __future__ import annotations

import contextlib
import re
import unicodedata
from collections.abc import Callable, Collection, Iterable, Iterator
from functools import cache, partial
from pathlib import Path
from typing import BinaryIO, cast
from xml.sax.saxutils import escape

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import zstandard
from isal import igzip
from msgspec import Struct

from thresher.store.corpus import Corpus, CorpusError, Document, documents
from thresher.store.segments import row_groups
from thresher.store.tables import DOCS
from thresher.url import tld

Batches = Iterable[pa.RecordBatch]


class Format(Struct, frozen=True):
    """How documents are written; `write` returns their number."""

    summary: str
    suffix: str
    write: Callable[[Batches, BinaryIO], int]


def export(
    corpus: Corpus,
    format_name: str,
    output: BinaryIO | Path,
    *,
    tlds: Collection[str] = (),
    opted_out: bool = False,
) -> int:
    """Write the documents of a corpus; returns how many. A path ending in .gz or .zst is compressed.

    Documents whose publishers opted out of text mining are left out unless `opted_out` asks for them; `tlds`
    takes only those from hosts under these top-level domains.
    """
    if format_name not in FORMATS:
        raise CorpusError(f"there is no format {format_name!r}; there are {', '.join(FORMATS)}")
    batches = corpus.batches("docs")
    if not opted_out:
        batches = map(_permitted, batches)
    if tlds:
        batches = map(partial(_under, frozenset(name.lstrip(".") for name in tlds)), batches)
    write = FORMATS[format_name].write
    if not isinstance(output, Path):
        return write(batches, output)
    with _opened(output) as out:
        return write(batches, out)


def _permitted(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The documents that nobody opted out."""
    reasons = pc.list_value_length(batch.column("opt_out")).fill_null(0)
    return batch.filter(pc.equal(reasons, pa.scalar(0)))


def _under(tlds: frozenset[str], batch: pa.RecordBatch) -> pa.RecordBatch:
    """The documents from hosts under these top-level domains."""
    inside = [tld(host or "") in tlds for host in batch.column("host").to_pylist()]
    return batch.filter(pa.array(inside, pa.bool_()))  # the type is told: a batch may be empty by now


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[BinaryIO]:
    """A file that is there only once it is whole; a pipe or a device is written to as it is."""
    special = path.exists() and not path.is_file()
    target = path if special else path.with_name(path.name + ".tmp")
    try:
        with target.open("wb") as file, _compressed(file, path.suffix) as out:
            yield out
        if not special:
            target.replace(path)
    except BaseException:
        if not special:
            target.unlink(missing_ok=True)
        raise


def _compressed(file: BinaryIO, suffix: str) -> contextlib.AbstractContextManager[BinaryIO]:
    """Compression by file name, without names or times in it: the same corpus gives the same bytes."""
    if suffix == ".gz":
        gzip = igzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=0)  # type: ignore[no-untyped-call]
        return cast(BinaryIO, gzip)
    if suffix == ".zst":
        return cast(BinaryIO, zstandard.ZstdCompressor().stream_writer(file, closefd=False))
    return contextlib.nullcontext(file)


def write_jsonl(batches: Batches, out: BinaryIO) -> int:
    """One JSON object per line, with every column."""
    encoder = msgspec.json.Encoder()
    count = 0
    for batch in batches:
        rows = batch.to_pylist()
        out.write(encoder.encode_lines(rows))
        count += len(rows)
    return count


def write_text(batches: Batches, out: BinaryIO) -> int:
    """One paragraph per line, a blank line between documents."""
    count = 0
    for batch in batches:
        for document in documents(batch):
            lines = paragraphs(document.text)
            if not lines:
                continue
            if count:
                out.write(b"\n")
            out.write("".join([f"{line}\n" for line in lines]).encode())
            count += 1
    return count


def write_vertical(batches: Batches, out: BinaryIO) -> int:
    """One token per line, as Sketch Engine and CWB (`cwb-encode -x`) take it; <g/> is for no space."""
    count = 0
    for batch in batches:
        for document in documents(batch):
            out.write(vertical(document).encode())
            count += 1
    return count


def write_parquet(batches: Batches, out: BinaryIO) -> int:
    """The table of documents, as one Parquet file."""
    count = 0
    with pq.ParquetWriter(out, DOCS, compression="zstd") as writer:
        for group in row_groups(batches):
            writer.write_table(group, row_group_size=group.num_rows)
            count += group.num_rows
    return count


FORMATS: dict[str, Format] = {
    "jsonl": Format("one JSON object per line, with every column", ".jsonl", write_jsonl),
    "parquet": Format("the table of documents as one file", ".parquet", write_parquet),
    "txt": Format("one paragraph per line, a blank line between documents", ".txt", write_text),
    "vertical": Format("one token per line, for Sketch Engine and CWB", ".vert", write_vertical),
}


# C0 and C1 controls: they would break lines, tables and terminals.
_CONTROLS_TO_SPACE = dict.fromkeys([*range(0x20), *range(0x7F, 0xA0)], " ")
_ATTRIBUTES = ("url", "host", "domain", "language", "title", "license")


def paragraphs(text: str) -> list[str]:
    """The lines of a text that are not blank, spaces made single, without control characters."""
    lines = [line if line.isprintable() else line.translate(_CONTROLS_TO_SPACE) for line in text.splitlines()]
    return [" ".join(words) for line in lines if (words := line.split())]


def vertical(document: Document) -> str:
    """A document as vertical text; escaped as in XML, so that no token can be taken for a tag."""
    attributes = {name: getattr(document, name) for name in _ATTRIBUTES}
    attributes["fetched"] = document.fetched.isoformat(timespec="seconds")
    start = "".join([f' {name}="{_attribute(value)}"' for name, value in attributes.items()])
    lines = [f"<doc{start}>"]
    for paragraph in paragraphs(document.text):
        lines.append("<p>")
        for token, glued in tokens(paragraph):
            if glued:
                lines.append("<g/>")
            lines.append(escape(token) if token[0] in "&<>" else token)  # words have none of them
        lines.append("</p>")
    lines.append("</doc>\n")
    return "\n".join(lines)


def _attribute(value: str) -> str:
    return escape(" ".join(paragraphs(value)), {'"': "&quot;"})


def tokens(paragraph: str) -> Iterator[tuple[str, bool]]:
    """The tokens of a paragraph, and whether each follows the one before it without a space.

    >>> [token for token, glued in tokens("Don't pay 3.50 (e-mail us).")]
    ["Don't", 'pay', '3.50', '(', 'e-mail', 'us', ')', '.']
    """
    end = -1
    for match in _token().finditer(paragraph):
        yield match[0], match.start() == end
        end = match.end()


# Scripts that put no spaces between words: Thai, Lao, Myanmar, Khmer, Kana, Bopomofo, Han.
_UNSPACED = (
    "\u0e01-\u0e3a\u0e40-\u0e4e\u0e81-\u0ece\u1000-\u103f\u1050-\u108f\u1780-\u17d3"
    "\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff\uff66-\uff9f\u3105-\u312f"
    "\u2e80-\u2fdf\u3005-\u3007\u3021-\u3029\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
)
# Beyond the basic plane, the blocks of scripts and of letters are taken whole: little else is in them.
_HIGH_LETTERS = "\U00010000-\U0001cfff\U0001d400-\U0001d7ff\U0001e000-\U0001efff\U000e0100-\U000e01ef"
_JOINERS = "\u00ad\u200c\u200d"  # soft hyphen, and what Persian and Indic words are written with


@cache
def _token() -> re.Pattern[str]:
    """A word or number, one character of a script without spaces, or one other sign; each with its marks."""
    # Python's \w leaves out combining marks, without which most scripts of India fall to pieces.
    basic_plane = [chr(code) for code in range(0x80, 0x10000)]
    mark = "".join(char for char in basic_plane if unicodedata.category(char).startswith("M"))
    unspaced = re.compile(f"[{_UNSPACED}]")
    letter = "".join(char for char in basic_plane if char.isalnum() and not unspaced.match(char))
    word = f"[0-9A-Za-z_{letter}{mark}{_JOINERS}{_HIGH_LETTERS}]"
    joint = r"(?:['’-]|(?<=\d)[.,:](?=\d))"  # inside words, and inside numbers
    return re.compile(f"[{_UNSPACED}][{mark}]*+|{word}++(?:{joint}{word}++)*+|\\S(?:[{mark}]|\u200d\\S)*+")
