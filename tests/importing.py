"""What the tests of imports have in common: a file imported, and all that came of it."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from thresher.store.imports import Imported, ImportedDocument, documents, import_files
from thresher.store.lines import Close, Open, Token, read

Records = list[Token | Open | Close]

VERTICAL_EXAMPLE = b"<doc id='v'>\n<s>\nA\tX\ta\nb\tY\tb\n</s>\n</doc>\n"


def bring(directory: Path, name: str, data: bytes | str, **options: Any) -> Imported:
    """Import a file of these bytes into the corpus DIRECTORY/corpus."""
    path = directory / name
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    return import_files(directory / "corpus", [path], language="cs", **options)


def brought(data: bytes | str, name: str, **options: Any) -> tuple[list[ImportedDocument], tuple[str, ...]]:
    """The documents of a file of these bytes, and the remarks about it, from a corpus of its own."""
    with tempfile.TemporaryDirectory() as directory:
        found = bring(Path(directory), name, data, **options)
        stored = list(documents(Path(directory) / "corpus"))
    assert found.documents == len(stored)
    assert found.tokens == sum(document.count or 0 for document in stored)
    for document in stored:
        check(document)
    return stored, found.remarks


def check(document: ImportedDocument) -> None:
    """What holds for every document: text or tokens, whole structures with tokens in them, none in its like."""
    if document.tokens is None:
        assert document.text and document.count is None
        assert all(document.text.split("\n")), "no blank paragraphs"
        return
    assert document.text is None
    opened: dict[str, int] = {}
    tokens = 0
    for record in read(document.tokens):
        if isinstance(record, Open):
            assert record.name not in opened
            opened[record.name] = tokens
        elif isinstance(record, Close):
            assert opened.pop(record.name) < tokens, "no empty structures"
        else:
            tokens += 1
    assert not opened
    assert tokens == document.count > 0


def records(document: ImportedDocument) -> Records:
    """The lines of a document as records."""
    assert document.tokens is not None
    return list(read(document.tokens))


def words(document: ImportedDocument) -> list[str]:
    """The words of a document."""
    return [record.values[0] for record in records(document) if isinstance(record, Token)]
