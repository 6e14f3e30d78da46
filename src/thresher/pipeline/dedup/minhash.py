"""MinHash: find documents that share most of their shingles with another document.

1. `sign` computes signatures: for each document the smallest hash of its shingles under many permutations. The
   share of equal places in two signatures estimates the Jaccard similarity of the documents.
2. `band` hashes bands of places; similar documents almost certainly have a band in common.
3. `gather` finds the bands that occur more than once, as it does for the shingles of paragraphs.
4. `match` pairs each document of a band with the first and with the previous document of the band, and keeps the
   pairs with similar signatures.
5. `cluster` joins pairs. Of a cluster, the first document in the order of the corpus stays.
6. `conclude` derives which documents of a shard are dropped.

Each is a function from files to a file, as for paragraphs. Matching needs eight bytes of memory for each slot of a
range of bands, clustering four bytes for each document of the corpus, in a file that is mapped into memory.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from thresher.pipeline.dedup.conclude import write_conclusion
from thresher.pipeline.dedup.files import DedupFileError, DedupReader, number, writing
from thresher.pipeline.dedup.gather import GatheredRange
from thresher.pipeline.dedup.kernels.signatures import NO_DOCUMENT, flatten, hash_bands, pair, unite
from thresher.pipeline.dedup.kernels.signatures import sign as sign_runs
from thresher.pipeline.dedup.scatter import MEMORY, Hashes, Ids, Numbers, ParagraphBlocks, Scattered, checked
from thresher.reader.quality.shingles import MAX_SHINGLED_CHARS, hash_shingles

PLACES = 128  # of a signature; the standard error of the similarity is at most 0.044
THRESHOLD = 0.8  # similarity from which documents count as the same
MIN_RECALL = 0.98  # probability of finding two documents that are exactly as similar as the threshold
MAX_DOCUMENT_CHARACTERS = 5 * MAX_SHINGLED_CHARS  # of a document that are hashed
MAX_CHARACTERS = 1 << 20  # hashed together
COMPARED_TOGETHER = 1 << 12  # pairs
_ROW_BYTES = 4 * PLACES
_PART = 1 << 20  # numbers that are read or written together

_dice = np.random.Generator(np.random.PCG64(128))
_FACTORS = (_dice.integers(0, 1 << 31, PLACES, np.uint32) << np.uint32(1)) | np.uint32(1)
_TERMS = _dice.integers(0, 1 << 32, PLACES, np.uint32)


class Bands(NamedTuple):
    """The number of bands of a signature, and the number of places in each."""

    many: int
    height: int


def bands(threshold: float) -> Bands:
    """Return the highest bands that find two documents at the threshold with a probability of MIN_RECALL.

    >>> bands(0.8), bands(0.5)
    (Bands(many=18, height=7), Bands(many=42, height=3))
    """
    if not 0 < threshold <= 1:
        raise DedupFileError(
            f"threshold must be above 0 and at most 1, got {threshold}; try threshold = {THRESHOLD}"
        )
    fit = [
        height for height in range(1, 17) if 1 - (1 - threshold**height) ** (PLACES // height) >= MIN_RECALL
    ]
    height = max(fit, default=1)
    return Bands(PLACES // height, height)


def sign(documents: Iterable[Sequence[str]], output: Path) -> None:
    """Write the signatures of all documents of a shard.

    Of a paragraph, the first MAX_SHINGLED_CHARS characters count, of a document the first MAX_DOCUMENT_CHARACTERS.
    """
    counts, words = [np.empty(0, np.uint32)], [np.empty(0, np.uint32)]
    with writing(output) as writer:
        for texts, sizes in _together(documents):
            found = hash_shingles(texts)
            which = np.repeat(np.arange(len(sizes)), sizes)
            runs, many = (
                np.bincount(which, weights=each, minlength=len(sizes)).astype(np.int64)
                for each in (found.counts, found.words)
            )
            rows = np.empty((len(sizes), PLACES), np.uint32)
            sign_runs(found.hashes, runs, _FACTORS, _TERMS, rows)
            writer.put(rows)
            counts.append(runs.astype(np.uint32))
            words.append(many.astype(np.uint32))
        writer.put_named("counts", np.concatenate(counts))
        writer.put_named("words", np.concatenate(words))
        writer.numbers["documents"] = sum(map(len, counts))


def _together(documents: Iterable[Sequence[str]]) -> Iterator[tuple[list[str], list[int]]]:
    """Yield portions of documents: their paragraphs, and the number of paragraphs of each."""
    texts: list[str] = []
    sizes: list[int] = []
    characters = 0
    for document in documents:
        left = MAX_DOCUMENT_CHARACTERS
        for text in document:
            texts.append(text[: min(left, MAX_SHINGLED_CHARS)])
            left -= len(texts[-1])
            characters += len(texts[-1])
        sizes.append(len(document))
        if characters >= MAX_CHARACTERS:
            yield texts, sizes
            texts, sizes, characters = [], [], 0
    if sizes:
        yield texts, sizes


def band(signed: Path, output: Path, *, threshold: float = THRESHOLD, memory: int = MEMORY) -> None:
    """Write the bands of a shard's signatures, in the format in which `scatter` writes shingles."""
    cut = bands(threshold)
    together = max(1, min(_PART, checked(memory) // 8) // PLACES)
    with DedupReader(signed) as file, writing(output) as writer:
        counts = file.array("counts", np.uint32).astype(np.int64)
        blocks = ParagraphBlocks(writer, memory)
        for first in range(0, len(counts), together):
            theirs = counts[first : first + together]
            rows = file.part(first * _ROW_BYTES, np.uint32, len(theirs) * PLACES).reshape(-1, PLACES)
            hashes = np.empty(len(theirs) * cut.many, np.uint64)
            found = hash_bands(rows, theirs, *cut, hashes)
            blocks.add(np.where(theirs > 0, cut.many, 0), hashes[:found])
        blocks.close()


def match(
    gathered: Path,
    output: Path,
    banded: Sequence[Path],
    signed: Sequence[Path],
    *,
    threshold: float = THRESHOLD,
) -> None:
    """Write the pairs of documents that share a band of one range and have similar signatures."""
    rows = _Rows(signed)
    with GatheredRange(gathered) as file, writing(output) as writer:
        firsts, latest = (np.full(file.slots, NO_DOCUMENT, np.uint32) for _ in range(2))
        places = []
        for block, (base, documents) in enumerate(_blocks(banded)):
            ids, owners = file.read(file.entries(block), documents)
            pairs = np.empty(2 * len(ids), np.uint64)
            pairs = np.unique(pairs[: pair(ids, owners, base, firsts, latest, pairs)])
            pairs = pairs[rows.similarity(pairs) >= threshold]
            places.append((writer.put(pairs), len(pairs)))
        writer.put_named("places", np.array(places, np.int64).reshape(-1))


def _blocks(banded: Sequence[Path]) -> Iterator[tuple[int, int]]:
    """Yield, for each block, the number in the corpus of its first document, and the number of its documents."""
    base = 0
    for path in banded:
        with Scattered(path) as file:
            for block in file.blocks:
                yield base + block.first, block.paragraphs
            base += file.count("counts")


class _Rows:
    """The signatures of all documents of the corpus, by the numbers of the documents."""

    def __init__(self, signed: Sequence[Path]) -> None:
        self._paths = signed
        sizes = [number(path, "documents") for path in signed]
        self._bounds = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        for path, size in zip(signed, sizes, strict=True):
            if path.stat().st_size < size * _ROW_BYTES:
                raise DedupFileError(f"{path} is cut short; delete it and run the step again")
        if self._bounds[-1] >= NO_DOCUMENT:
            raise DedupFileError(
                f"similar_documents takes at most {NO_DOCUMENT:,} documents, got {self._bounds[-1]:,}; "
                "divide the corpus"
            )

    def similarity(self, pairs: Hashes) -> NDArray[np.float64]:
        """Return the estimated similarity of the documents of each pair."""
        found = np.empty(len(pairs))
        for begin in range(0, len(pairs), COMPARED_TOGETHER):
            some = pairs[begin : begin + COMPARED_TOGETHER]
            later, earlier = (
                (some >> np.uint64(32)).astype(np.int64),
                (some & np.uint64(NO_DOCUMENT)).astype(np.int64),
            )
            same = self._of(later) == self._of(earlier)
            found[begin : begin + len(some)] = same.mean(axis=1)
        return found

    def _of(self, documents: Numbers) -> NDArray[np.uint32]:
        rows = np.empty((len(documents), PLACES), np.uint32)
        shards = np.searchsorted(self._bounds, documents, side="right") - 1
        for shard in np.unique(shards).tolist():
            # A new mapping each time, so that the pages that were read do not count as memory of this process.
            mapped = np.memmap(self._paths[shard], np.uint32, "r", 0, (self._size(shard), PLACES))
            here = shards == shard
            rows[here] = mapped[documents[here] - self._bounds[shard]]
        return rows

    def _size(self, shard: int) -> int:
        return int(self._bounds[shard + 1] - self._bounds[shard])


def cluster(matched: Sequence[Path], output: Path, *, documents: int) -> None:
    """Write the first document of the cluster of each document; `documents` is their number in the corpus."""
    output.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryFile(dir=output.parent) as file, writing(output) as writer:
        file.truncate(4 * max(1, documents))
        mapped = np.memmap(file, np.uint32, "r+")
        parents: Ids = np.frombuffer(mapped.data, np.uint32)[:documents]
        for begin in range(0, documents, _PART):
            part = parents[begin : begin + _PART]
            part[:] = np.arange(begin, begin + len(part), dtype=np.uint32)
        less = sum(unite(pairs, parents) for path in matched for pairs in _pairs(path, documents))
        flatten(parents)
        writer.put_named("firsts", parents)
        writer.numbers |= {"documents": documents, "clusters": documents - less}


def _pairs(path: Path, documents: int) -> Iterator[Hashes]:
    with DedupReader(path) as file:
        for offset, many in file.array("places", np.int64).reshape(-1, 2).tolist():
            for begin in range(0, many, _PART):
                pairs = file.part(
                    offset + 8 * begin, np.uint64, min(_PART, many - begin), below=documents << 32
                )
                if len(pairs) and int((pairs & np.uint64(NO_DOCUMENT)).max()) >= documents:
                    raise DedupFileError(
                        f"{path} belongs to another corpus; delete it and run the step again"
                    )
                yield pairs


def conclude(signed: Path, output: Path, clusters: Path, *, first_document: int = 0) -> None:
    """Write which documents of a shard are dropped: all but the first of each cluster.

    `conclude.dropped` and `conclude.losses` read the file. `first_document` is the number in the corpus of the
    first document of the shard.
    """
    with DedupReader(signed) as file, DedupReader(clusters) as found:
        words = file.array("words", np.uint32)
        firsts = found.array("firsts", np.uint32, first_document, len(words))
    gone = firsts != np.arange(first_document, first_document + len(words))
    write_conclusion(output, gone, words, np.ones(len(words), np.int64))
