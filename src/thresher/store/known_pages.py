"""Hashes of pages that a corpus has: a crawl or an import does not keep a page a second time.

Both classes implement `thresher.judge.KnownPages`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from thresher.store.imported_files import FOLDER, page_batches, page_paths

HASH_BYTES = 8  # kept of each hash: among billions of pages, as good as all sixteen
MAX_RECENT = 1 << 20  # digests in a Python set before they are merged into the sorted array
EARLIER_PAGE = (
    "an earlier page"  # the name of every page that an import knows: hashes do not say which one it was
)


class ImportedPages:
    """Hashes of imported pages and of their texts, twelve bytes each, with the file that holds the page.

    Nothing is imported while a crawl runs, so they are read once, when the crawl starts or resumes.
    """

    def __init__(self, files: Sequence[Path] = ()) -> None:
        self._names = [f"{FOLDER}/{path.name}" for path in files]
        self._raw = _table(_hashes(files, "raw_hash"))
        self._text = _table(_hashes(files, "text_hash"))

    @classmethod
    def of(cls, directory: Path) -> ImportedPages:
        """Return the imported pages of a corpus."""
        return cls(page_paths(directory))

    def same_body(self, raw_hash: bytes) -> str:
        """Return the first file that has a page of these bytes, "" if there is none."""
        return self._file(self._raw, raw_hash)

    def same_text(self, text_hash: bytes) -> str:
        """Return the first file that has a page with this text, "" if there is none."""
        return self._file(self._text, text_hash)

    def _file(self, table: _Table, digest: bytes) -> str:
        if not digest or not len(table.numbers):
            return ""
        number = np.uint64(int.from_bytes(digest[:HASH_BYTES]))
        place = int(np.searchsorted(table.numbers, number))
        found = place < len(table.numbers) and table.numbers[place] == number
        return self._names[int(table.files[place])] if found else ""


class DocumentHashes:
    """Hashes of the documents of a corpus and of the pages that an import has judged since."""

    def __init__(self) -> None:
        self._raw = HashSet()
        self._text = HashSet()

    def add_documents(self, batches: Iterable[pa.RecordBatch]) -> None:
        """Add documents of a corpus, from batches with the columns raw_hash and text_hash in hexadecimal."""
        for batch in batches:
            for known, column in ((self._raw, "raw_hash"), (self._text, "text_hash")):
                known.update(bytes.fromhex(digest) for digest in batch.column(column).to_pylist() if digest)

    def add(self, raw_hash: bytes, text_hash: bytes) -> None:
        """Add a page; `text_hash` is b"" if the page was not kept."""
        self._raw.add(raw_hash)
        self._text.add(text_hash)

    def same_body(self, raw_hash: bytes) -> str:
        """Return EARLIER_PAGE if a page had these bytes, otherwise ""."""
        return EARLIER_PAGE if raw_hash in self._raw else ""

    def same_text(self, text_hash: bytes) -> str:
        """Return EARLIER_PAGE if a kept page had this text, otherwise ""."""
        return EARLIER_PAGE if text_hash in self._text else ""


class HashSet:
    """A set of digests in eight bytes each: recent ones in a Python set, the others in a sorted array."""

    def __init__(self) -> None:
        self._sorted: NDArray[np.uint64] = np.array([], np.uint64)
        self._recent: set[int] = set()

    def __contains__(self, digest: bytes) -> bool:
        if not digest:
            return False
        number = int.from_bytes(digest[:HASH_BYTES])
        if number in self._recent:
            return True
        place = int(np.searchsorted(self._sorted, np.uint64(number)))
        return place < len(self._sorted) and int(self._sorted[place]) == number

    def add(self, digest: bytes) -> None:
        """Add a digest; b"" is ignored."""
        if digest:
            self._recent.add(int.from_bytes(digest[:HASH_BYTES]))
            if len(self._recent) >= MAX_RECENT:
                self._merge()

    def update(self, digests: Iterable[bytes]) -> None:
        """Add several digests."""
        for digest in digests:
            self.add(digest)

    def _merge(self) -> None:
        recent = np.fromiter(self._recent, np.uint64, len(self._recent))
        self._sorted = np.union1d(self._sorted, recent)
        self._recent = set()


class _Table(NamedTuple):
    """The first bytes of hashes in ascending order, and the places of their files."""

    numbers: NDArray[np.uint64]
    files: NDArray[np.uint32]


def _hashes(files: Sequence[Path], column: str) -> Iterable[tuple[int, NDArray[np.uint64]]]:
    for place, path in enumerate(files):
        for batch in page_batches(path, [column]):
            known = [text[: 2 * HASH_BYTES] for text in batch.column(column).to_pylist() if text]
            yield place, np.frombuffer(bytes.fromhex("".join(known)), ">u8").astype(np.uint64)


def _table(found: Iterable[tuple[int, NDArray[np.uint64]]]) -> _Table:
    numbers, files = [np.empty(0, np.uint64)], [np.empty(0, np.uint32)]
    for place, some in found:
        numbers.append(some)
        files.append(np.full(len(some), place, np.uint32))
    whole = np.concatenate(numbers)
    order = np.argsort(whole, kind="stable")  # of two files with a page, the first is named
    return _Table(whole[order], np.concatenate(files)[order])
