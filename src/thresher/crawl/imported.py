"""Pages that were imported into a corpus: a crawl is not to keep them a second time."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from thresher.store.pages import FOLDER, batches, page_paths

HASH_BYTES = 8  # that are remembered of each: among billions of pages, as good as all sixteen


class Imported:
    """Hashes of imported pages and of their texts, twelve bytes for each, and in which file the page is.

    Nothing is imported while a crawl is at work, so they are read once, when it begins or goes on.
    """

    def __init__(self, files: Sequence[Path] = ()) -> None:
        self._names = [f"{FOLDER}/{path.name}" for path in files]
        self._raw = _table(_hashes(files, "raw_hash"))
        self._text = _table(_hashes(files, "text_hash"))

    @classmethod
    def of(cls, directory: Path) -> Imported:
        """Those of a corpus."""
        return cls(page_paths(directory))

    def raw(self, digest: bytes) -> str:
        """The first file that has a page of these bytes, "" if there is none."""
        return self._file(self._raw, digest)

    def text(self, digest: bytes) -> str:
        """The first file that has a page with this text, "" if there is none."""
        return self._file(self._text, digest)

    def _file(self, table: _Table, digest: bytes) -> str:
        if not digest or not len(table.numbers):
            return ""
        number = np.uint64(int.from_bytes(digest[:HASH_BYTES]))
        place = int(np.searchsorted(table.numbers, number))
        found = place < len(table.numbers) and table.numbers[place] == number
        return self._names[int(table.files[place])] if found else ""


class _Table(NamedTuple):
    """Beginnings of hashes, in order, and the places of the files that have them."""

    numbers: NDArray[np.uint64]
    files: NDArray[np.uint32]


def _hashes(files: Sequence[Path], column: str) -> Iterable[tuple[int, NDArray[np.uint64]]]:
    for place, path in enumerate(files):
        for batch in batches(path, [column]):
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
