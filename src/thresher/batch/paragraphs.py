"""Paragraphs taken out of documents, with all that is told of a text put right."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import compress
from typing import Any

import pyarrow as pa

from thresher.read.fingerprint import text_hash

Flags = Sequence[bool]


def paragraphs(text: str | None) -> list[str]:
    """The paragraphs of a document's text."""
    return text.split("\n") if text else []


def told(text: str | None) -> dict[str, Any]:
    """The columns that depend on a text alone, as a crawl tells them."""
    return {
        "text_bytes": len((text or "").encode("utf-8", "replace")),
        "text_hash": text_hash(paragraphs(text)).hex(),
    }


def missing(before: Sequence[str], after: Sequence[str]) -> list[int] | None:
    """Which paragraphs are not there any more; None if others are there instead."""
    rest = iter(after)
    awaited = next(rest, None)
    found = []
    for place, paragraph in enumerate(before):
        if paragraph == awaited:
            awaited = next(rest, None)
        else:
            found.append(place)
    return found if awaited is None else None


def left(batch: pa.RecordBatch, stays: Sequence[Flags]) -> pa.RecordBatch:
    """Documents with those of their paragraphs that stay; a document that has none left is gone."""
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
        **told(text),
        "paragraphs": _blocks(row["paragraphs"] or [], every, flags),
    }


def _blocks(blocks: Sequence[Mapping[str, Any]], every: Sequence[str], flags: Flags) -> list[Any]:
    """The blocks of a page without those that were paragraphs of its text and are gone; they come in one order."""
    place, found = 0, []
    for block in blocks:
        is_next = place < len(every) and block["text"] == every[place]
        if not is_next or flags[place]:
            found.append(block)
        place += is_next
    return found
