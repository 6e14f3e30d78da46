"""Paragraphs of documents: counted, compared and removed, with all columns that describe the text updated."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import compress
from typing import Any

import pyarrow as pa

from thresher.reader.quality.fingerprint import text_hash
from thresher.reader.quality.shingles import MAX_SHINGLED_CHARS, hash_shingles

Flags = Sequence[bool]


def paragraphs(text: str | None) -> list[str]:
    """Return the paragraphs of a document's text."""
    return text.split("\n") if text else []


def word_counts(texts: Sequence[str]) -> list[int]:
    """Return the number of words of each paragraph, as all steps count them.

    It is the count by which near duplicates are measured: punctuation is no word, and where words are written
    without spaces, the count is estimated from the characters. The first MAX_SHINGLED_CHARS characters count.
    """
    found: list[int] = hash_shingles([text[:MAX_SHINGLED_CHARS] for text in texts]).words.tolist()
    return found


def text_columns(text: str | None) -> dict[str, Any]:
    """Return the columns that depend on a text alone, as a crawl computes them."""
    return {
        "text_bytes": len((text or "").encode("utf-8", "replace")),
        "text_hash": text_hash(paragraphs(text)).hex(),
    }


def missing(before: Sequence[str], after: Sequence[str]) -> list[int] | None:
    """Return the places of the paragraphs that were removed; None if there are new paragraphs.

    >>> missing(["a", "b", "c"], ["b"]), missing(["a", "b"], ["b", "d"])
    ([0, 2], None)
    """
    rest = iter(after)
    expected = next(rest, None)
    found = []
    for place, paragraph in enumerate(before):
        if paragraph == expected:
            expected = next(rest, None)
        else:
            found.append(place)
    return found if expected is None else None


def without_paragraphs(batch: pa.RecordBatch, stays: Sequence[Flags]) -> pa.RecordBatch:
    """Return documents with the paragraphs that stay; a document without any is dropped."""
    if all(all(flags) for flags in stays):
        return batch
    rows = batch.to_pylist()
    changed = [row if all(flags) else _with(row, flags) for row, flags in zip(rows, stays, strict=True)]
    schema = batch.schema
    return pa.RecordBatch.from_pylist([row for row in changed if row["text"]], schema=schema)


def _with(row: Mapping[str, Any], flags: Flags) -> dict[str, Any]:
    every = paragraphs(row["text"])
    kept = list(compress(every, flags))
    text = "\n".join(kept)
    return {
        **row,
        "text": text,
        **text_columns(text),
        "paragraphs": _blocks(row["paragraphs"] or [], every, flags),
    }


def _blocks(blocks: Sequence[Mapping[str, Any]], every: Sequence[str], flags: Flags) -> list[Any]:
    """Return the blocks of a page without its removed paragraphs; blocks and paragraphs have the same order."""
    place, found = 0, []
    for block in blocks:
        is_next = place < len(every) and block["text"] == every[place]
        if not is_next or flags[place]:
            found.append(block)
        place += is_next
    return found
