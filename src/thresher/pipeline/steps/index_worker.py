"""The tasks of the step `index`: annotate shards, and update the index with them.

An index identifies documents by keys. Steps may change anything about a document, so its key is a hash of
everything that the index holds of it: a document that changed is deleted and added again. The key leaves out the
authority, which comes from the links of other pages, and the order of the documents, as a new order moves all of
them. `thresher index` takes documents before any step and gives them other keys, so that it and this step replace
each other's documents.
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

from thresher.annotate.registry import annotator as annotator_for
from thresher.annotate.user_modules import folders_of, importable_from
from thresher.pipeline import document_shards
from thresher.pipeline.steps.indexing import MANIFEST, WRITTEN
from thresher.search.index.documents import (
    NEEDED,
    IndexableDocuments,
    authorities,
    page_keys,
    source_of,
    text_of,
)
from thresher.search.index.manifest import FOLDER as INDEX
from thresher.search.index.segment_builder import IndexDocument
from thresher.search.index.update import update
from thresher.store import corpus_files as corpora
from thresher.store.corpus_files import CorpusFiles

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
    out: Path, inputs: Sequence[Path], *, language: str, annotator: str, opted_out: bool, directory: str
) -> dict[str, Any]:
    """Write the tokens of the documents of a shard, with all that an index holds of each document."""
    ready = None
    folders = folders_of(Path(directory))
    documents = 0
    seen: Counter[int] = Counter()
    with (
        importable_from(folders),  # an annotator may import more modules when it is called
        pq.ParquetWriter(out / FILE, _SCHEMA, compression="zstd") as writer,
    ):
        for batch in document_shards.batches(inputs[0], (*NEEDED, document_shards.REPEATED.name)):
            rows: list[tuple[Any, ...]] = []
            for key, page in zip(page_keys(batch, opted_out), batch.to_pylist(), strict=True):
                if key is not None:
                    ready = ready or annotator_for(language, annotator or None, folders=folders)
                    made = source_of(text_of(key, page), ready)
                    known = list(made.meta.items()), list(made.dimensions.items())
                    content = _key(page["url"], page["seq"], made.lines, made.attributes, *known)
                    seen[content] += 1  # equal documents get different keys
                    rows.append((_key(content, seen[content]), made.lines, list(made.attributes), *known))
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
    """Update the index of a corpus with annotated shards.

    `versions` has the versions of the annotators of imported texts, by language.
    """
    place = Path(directory)
    corpus = corpora.open(place)
    documents = AnnotatedDocuments(corpus, [path / FILE for path in inputs], annotator, lowercase, versions)
    with importable_from(folders_of(place)):
        changes = update(place, order=order, lowercase=lowercase, documents=documents)
    manifest = place / INDEX / MANIFEST
    (out / WRITTEN).write_text(str(manifest.stat().st_mtime_ns))
    (out / MANIFEST).write_bytes(manifest.read_bytes())
    return {"added": changes.added, "deleted": changes.deleted, "tokens": changes.tokens}


class AnnotatedDocuments:
    """Annotated shards and imported texts, as `update` takes documents; `lowercase` is part of the keys of both."""

    def __init__(
        self,
        corpus: CorpusFiles,
        files: Sequence[Path],
        annotator: str,
        lowercase: bool,
        versions: Mapping[str, str],
    ) -> None:
        self._corpus, self._files = corpus, files
        self._imports = IndexableDocuments(corpus, annotator=annotator, processes=1)
        self._lowercase = lowercase
        self._import_settings = (lowercase, sorted(versions.items()))

    def keys(self) -> set[int]:
        """Return the keys of all documents."""
        found = {_key(key, *self._import_settings) for key in self._imports.import_keys()}
        for batch in self._batches(["key"]):
            found.update(_key(key, self._lowercase) for key in batch.column(0).to_pylist())
        return found

    def new(self, known: Container[int]) -> Iterator[IndexDocument]:
        """Yield the documents with unknown keys."""
        authority = authorities(self._corpus)
        for batch in self._batches(None):
            for row in batch.to_pylist():
                key = _key(row["key"], self._lowercase)
                if key not in known:
                    meta, dimensions = dict(row["meta"]), dict(row["dimensions"])
                    dimensions["authority"] = authority.get(meta.get("host", ""), 0.0)
                    yield IndexDocument(key, row["tokens"], tuple(row["attributes"]), meta, dimensions)
        for source in self._imports.imported(_KnownImports(known, self._import_settings)):
            yield replace(source, key=_key(source.key, *self._import_settings))

    def _batches(self, columns: list[str] | None) -> Iterator[pa.RecordBatch]:
        for path in self._files:
            with pq.ParquetFile(path) as file:
                yield from file.iter_batches(document_shards.BATCH_DOCUMENTS, columns=columns)


class _KnownImports:
    """The known imports, looked up by the keys that `thresher index` gives them."""

    def __init__(self, known: Container[int], settings: tuple[Any, ...]) -> None:
        self._known, self._settings = known, settings

    def __contains__(self, key: object) -> bool:
        return _key(key, *self._settings) in self._known


def _key(*values: Any) -> int:
    """Return a hash of values as a key."""
    return xxhash.xxh3_64_intdigest(msgspec.msgpack.encode(values))
