"""Imports of archives and saved pages in tests, and the documents that they leave."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import thresher
from support.samples.archive_files import paragraphs
from thresher.importing.corpora import ImportReport
from thresher.importing.run import import_files
from thresher.store.corpus_files import Document


def bring_pages(directory: Path, name: str, data: bytes, **options: Any) -> ImportReport:
    """Import a file of these bytes into the English corpus DIRECTORY/corpus."""
    path = directory / name
    path.write_bytes(data)
    return import_files(directory / "corpus", [path], language="en", **options)


def pages(directory: Path) -> list[Document]:
    """Return the documents of the corpus DIRECTORY/corpus."""
    return list(thresher.open(directory / "corpus"))


def texts(found: Sequence[Document]) -> list[str]:
    """Return the texts of documents."""
    return [document.text for document in found]


def text(number: int) -> str:
    """Return the text of the page of that number, as it is read."""
    return "\n".join(paragraphs(number))
