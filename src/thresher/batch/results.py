"""What a run left: a corpus whose documents are those of its last step."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa

from thresher.batch import records, shards
from thresher.batch.records import Run
from thresher.store import corpus as corpora
from thresher.store.corpus import Corpus, CorpusError
from thresher.store.shards import standing
from thresher.store.tables import DOCS


class Processed(Corpus):
    """A corpus with other documents; all else is as it was."""

    has_imports = False  # steps work on pages: beside what they left, an import would be what it was before

    def __init__(self, corpus: Corpus, files: Sequence[Path]) -> None:
        super().__init__(corpus.directory, corpus.config)
        self._shards = files

    def batches(
        self, table: str, columns: Sequence[str] | None = None, *, imported: bool = True
    ) -> Iterator[pa.RecordBatch]:
        """A table as of now; documents, however they came, as the run left them."""
        if table != "docs":
            return super().batches(table, columns, imported=imported)
        names = list(columns or DOCS.names)
        return (batch for shard in self._shards for batch in shards.batches(shard, names))


def processed(directory: Path, number: int | None = None) -> Processed:
    """The corpus as a run left it: the last one that was finished, or that of a number."""
    corpus = corpora.open(directory)
    return Processed(corpus, _files(directory, records.finished(directory, number)))


def _files(directory: Path, run: Run) -> list[Path]:
    found = [standing(directory / name) for name in run.result]
    missing = [path for path in found if not path.exists()]
    if missing:
        raise CorpusError(
            f"results of run {run.number} are gone ({missing[0]}); make them again: thresher process {directory}"
        )
    return found
