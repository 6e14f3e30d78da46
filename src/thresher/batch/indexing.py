"""Shards annotated, and an index made of them: the work of the step `index`.

An index knows documents by their keys. Steps may change anything about a document, so the key of one is a hash of
all that the index has of it: what is not the same any more is deleted and added. Only its authority, which comes
from the links of others, is not part of it, nor is the order in which documents stand: another moves all of them.
`thresher index` takes documents as they came and knows them by other keys, so each replaces what the other left.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import xxhash
from msgspec.structs import replace

from thresher.annotate.annotators import annotator as annotator_for
from thresher.batch import shards
from thresher.batch.steps.indexing import MANIFEST, WRITTEN
from thresher.query.build import Source
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
    seen: Counter[int] = Counter()
    with pq.ParquetWriter(out / FILE, _SCHEMA, compression="zstd") as writer:
        for batch in shards.batches(inputs[0], (*NEEDED, shards.REPEATED.name)):
            rows: list[tuple[Any, ...]] = []
            for key, page in zip(page_keys(batch, opted_out), batch.to_pylist(), strict=True):
                if key is not None:
                    ready = ready or annotator_for(language, annotator or None)
                    made = source_of(text_of(key, page), ready)
                    known = list(made.meta.items()), list(made.dimensions.items())
                    told = _key(page["url"], page["seq"], made.lines, made.attributes, *known)
                    seen[told] += 1
                    rows.append((_key(told, seen[told]), made.lines, list(made.attributes), *known))
            columns = zip(*rows, strict=True) if rows else [()] * len(_COLUMNS)
            arrays = [
                pa.array(list(column), kind) for column, (_, kind) in zip(columns, _COLUMNS, strict=True)
            ]
            writer.write_batch(pa.RecordBatch.from_arrays(arrays, schema=_SCHEMA))
            documents += len(rows)
    return {"documents": documents}


def index(
    out: Path,
    inputs: Sequence[Path],
    *,
    order: str,
    lowercase: bool,
    annotator: str,
    versions: Mapping[str, str],
    directory: str,
) -> dict[str, Any]:
    """Bring the index of a corpus up to date with shards; imports are annotated in these versions, by language."""
    place = Path(directory)
    corpus = corpora.open(place)
    documents = Annotated(corpus, [path / FILE for path in inputs], annotator, lowercase, versions)
    changes = update(place, order=order, lowercase=lowercase, documents=documents)
    manifest = place / INDEX / MANIFEST
    (out / WRITTEN).write_text(str(manifest.stat().st_mtime_ns))
    (out / MANIFEST).write_bytes(manifest.read_bytes())
    return {"added": changes.added, "deleted": changes.deleted, "tokens": changes.tokens}


class Annotated:
    """Documents that were annotated, and imports beside them; whether words are made small counts for both."""

    def __init__(
        self,
        corpus: Corpus,
        files: Sequence[Path],
        annotator: str,
        lowercase: bool,
        versions: Mapping[str, str],
    ) -> None:
        self._corpus, self._files = corpus, files
        self._others = Documents(corpus, annotator=annotator, processes=1)
        self._lowercase = lowercase
        self._of_others = (lowercase, sorted(versions.items()))

    def keys(self) -> set[int]:
        found = {_key(key, *self._of_others) for key in self._others.import_keys()}
        for batch in self._batches(["key"]):
            found.update(_key(key, self._lowercase) for key in batch.column(0).to_pylist())
        return found

    def new(self, known: Container[int]) -> Iterator[Source]:
        authority = authorities(self._corpus)
        for batch in self._batches(None):
            for row in batch.to_pylist():
                key = _key(row["key"], self._lowercase)
                if key not in known:
                    meta, dimensions = dict(row["meta"]), dict(row["dimensions"])
                    dimensions["authority"] = authority.get(meta.get("host", ""), 0.0)
                    yield Source(key, row["tokens"], tuple(row["attributes"]), meta, dimensions)
        for source in self._others.imported(_Known(known, self._of_others)):
            yield replace(source, key=_key(source.key, *self._of_others))

    def _batches(self, columns: list[str] | None) -> Iterator[pa.RecordBatch]:
        for path in self._files:
            with pq.ParquetFile(path) as file:
                yield from file.iter_batches(shards.AT_ONCE, columns=columns)


class _Known:
    """Imports that are known, asked for by the keys that they have elsewhere."""

    def __init__(self, known: Container[int], told: tuple[Any, ...]) -> None:
        self._known, self._told = known, told

    def __contains__(self, key: object) -> bool:
        return _key(key, *self._told) in self._known


def _key(*told: Any) -> int:
    return xxhash.xxh3_64_intdigest(msgspec.msgpack.encode(told))
