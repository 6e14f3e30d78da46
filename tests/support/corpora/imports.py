"""Imports in tests: examples of all formats, importing a file, and the documents that it leaves."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import zstandard

from support.command_line import CommandResult
from thresher.importing.corpora import ImportReport, import_files
from thresher.store.imported_files import ImportedDocument, documents
from thresher.store.token_lines import CloseTag, OpenTag, Token, read

Records = list[Token | OpenTag | CloseTag]

VERTICAL_EXAMPLE = b"<doc id='v'>\n<s>\nA\tX\ta\nb\tY\tb\n</s>\n</doc>\n"


def parquet(text: str = "One.") -> bytes:
    """Return a Parquet file with one document."""
    out = io.BytesIO()
    pq.write_table(pa.table({"id": ["p"], "text": [text]}), out)
    return out.getvalue()


# For each format, the name and the bytes of a file, and bytes that cannot be imported.
EXAMPLES = {
    "vertical": ("a.vert", VERTICAL_EXAMPLE),
    "text": ("a.txt", b"One.\nTwo.\n"),
    "conllu": ("a.conllu", b"# newdoc id = c\n1\tA\ta\tDET\t_\t_\t_\t_\t_\t_\n\n"),
    "tei": ("a.xml", b"<TEI xml:id='t'><text><p><w>A</w></p></text></TEI>"),
    "jsonl": ("a.jsonl", b'{"id": "j", "text": "One."}\n'),
    "parquet": ("a.parquet", parquet()),
}
DAMAGED = {
    "vertical": b"a\tb\n",
    "conllu": b"1\ta\n",
    "tei": b"<TEI><text>",
    "jsonl": b'{"text": "a"}\n{',
    "parquet": parquet()[:-9],
    "text": "a".encode("utf-16"),
}
PACKERS: dict[str, Callable[[bytes], bytes]] = {
    ".gz": gzip.compress,
    ".zst": zstandard.ZstdCompressor().compress,
    ".xz": lzma.compress,
    ".bz2": bz2.compress,
}


def bring(directory: Path, name: str, data: bytes | str, **options: Any) -> ImportReport:
    """Import a file of these bytes into the corpus DIRECTORY/corpus."""
    path = directory / name
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    return import_files(directory / "corpus", [path], language="cs", **options)


def brought(data: bytes | str, name: str, **options: Any) -> tuple[list[ImportedDocument], tuple[str, ...]]:
    """Import a file of these bytes into a new corpus, and return its documents and the remarks about it."""
    with tempfile.TemporaryDirectory() as directory:
        found = bring(Path(directory), name, data, **options)
        stored = list(documents(Path(directory) / "corpus"))
    assert found.documents == len(stored)
    assert found.tokens == sum(document.count or 0 for document in stored)
    for document in stored:
        check(document)
    return stored, found.remarks


def check(document: ImportedDocument) -> None:
    """Assert that a document has text or tokens, and complete, non-empty structures, none within its like."""
    if document.tokens is None:
        assert document.text and document.count is None
        assert all(document.text.split("\n")), "no blank paragraphs"
        return
    assert document.text is None
    opened: dict[str, int] = {}
    tokens = 0
    for record in read(document.tokens):
        if isinstance(record, OpenTag):
            assert record.name not in opened
            opened[record.name] = tokens
        elif isinstance(record, CloseTag):
            assert opened.pop(record.name) < tokens, "no empty structures"
        else:
            tokens += 1
    assert not opened
    assert tokens == document.count > 0


def records(document: ImportedDocument) -> Records:
    """Return the lines of a document as records."""
    assert document.tokens is not None
    return list(read(document.tokens))


def words(document: ImportedDocument) -> list[str]:
    """Return the words of a document."""
    return [record.values[0] for record in records(document) if isinstance(record, Token)]


def run_import(*arguments: str | Path, **options: Any) -> CommandResult:
    """Run `thresher import` in a process of its own."""
    line = [sys.executable, "-m", "thresher.cli", "import", *map(str, arguments)]
    done = subprocess.run(line, capture_output=True, check=False, timeout=120, **options)
    found = CommandResult(done.returncode, done.stdout.decode(), done.stderr.decode())
    assert "Traceback" not in found.stderr, found.stderr
    return found


def stored_files(directory: Path) -> list[str]:
    """Return the names of all files in the folder of imports of the corpus DIRECTORY/corpus."""
    return sorted(path.name for path in (directory / "corpus" / "imports").glob("*"))
