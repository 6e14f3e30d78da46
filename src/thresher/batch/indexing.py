"""Shards annotated, and an index made of them: the work of the step `index`."""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from thresher.annotate.annotators import annotator as annotator_for
from thresher.batch import shards
from thresher.query.build import Source
from thresher.query.manifest import FILE as MANIFEST
from thresher.query.manifest import FOLDER as INDEX
from thresher.query.sources import NEEDED, Documents, authorities, page_keys, source_of, text_of
from thresher.query.update import update
from thresher.store import corpus as corpora
from thresher.store.corpus import Corpus

FILE = "tokens.parquet"
_COLUMNS: list[tuple[str, pa.DataType]] = [
    ("key", pa.uint64()),
    ("tokens", pa.large_binary()),
    ("attributes", pa.list_(pa.string())),
    ("meta", pa.map_(pa.string(), pa.string())),
    ("dimensions", pa.map_(pa.string(), pa.float64())),
]
_SCHEMA = pa.schema(_COLUMNS)


def annotate(
    out: Path, inputs: Sequence[Path], *, language: str, annotator: str, opted_out: bool
) -> dict[str, Any]:
    """The documents of a shard as tokens, with all that an index has of them."""
    ready = None
    documents = 0
    with pq.ParquetWriter(out / FILE, _SCHEMA, compression="zstd") as writer:
        for batch in shards.batches(inputs[0], (*NEEDED, shards.REPEATED.name)):
            rows: list[tuple[Any, ...]] = []
            for key, page in zip(page_keys(batch, opted_out), batch.to_pylist(), strict=True):
                if key is not None:
                    ready = ready or annotator_for(language, annotator or None)
                    made = source_of(text_of(key, page), ready)
                    known = list(made.meta.items()), list(made.dimensions.items())
                    rows.append((key, made.lines, list(made.attributes), *known))
            columns = zip(*rows, strict=True) if rows else [()] * len(_COLUMNS)
            arrays = [
                pa.array(list(column), kind) for column, (_, kind) in zip(columns, _COLUMNS, strict=True)
            ]
            writer.write_batch(pa.RecordBatch.from_arrays(arrays, schema=_SCHEMA))
            documents += len(rows)
    return {"documents": documents}


def index(
    out: Path, inputs: Sequence[Path], *, order: str, lowercase: bool, annotator: str, directory: str
) -> dict[str, Any]:
    """Bring the index of a corpus up to date with shards."""
    place = Path(directory)
    corpus = corpora.open(place)
    documents = Annotated(corpus, [path / FILE for path in inputs], annotator)
    changes = update(place, order=order, lowercase=lowercase, documents=documents)
    (out / MANIFEST).write_bytes((place / INDEX / MANIFEST).read_bytes())
    return {"added": changes.added, "deleted": changes.deleted, "tokens": changes.tokens}


class Annotated:
    """Documents that were annotated, and imports beside them."""

    def __init__(self, corpus: Corpus, files: Sequence[Path], annotator: str) -> None:
        self._corpus, self._files = corpus, files
        self._others = Documents(corpus, annotator=annotator, processes=1)

    def keys(self) -> set[int]:
        found = self._others.import_keys()
        for batch in self._batches(["key"]):
            keys: list[Any] = batch.column(0).to_pylist()
            found.update(keys)
        return found

    def new(self, known: Container[int]) -> Iterator[Source]:
        authority = authorities(self._corpus)
        for batch in self._batches(None):
            for row in batch.to_pylist():
                if row["key"] not in known:
                    meta, dimensions = dict(row["meta"]), dict(row["dimensions"])
                    dimensions["authority"] = authority.get(meta.get("host", ""), 0.0)
                    yield Source(row["key"], row["tokens"], tuple(row["attributes"]), meta, dimensions)
        yield from self._others.imported(known)

    def _batches(self, columns: list[str] | None) -> Iterator[pa.RecordBatch]:
        for path in self._files:
            with pq.ParquetFile(path) as file:
                yield from file.iter_batches(shards.AT_ONCE, columns=columns)
