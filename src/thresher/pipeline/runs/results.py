"""The results of a run, as a corpus with the documents of its last step."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa

from thresher.pipeline import document_shards
from thresher.pipeline.runs import run_log
from thresher.pipeline.runs.run_log import Run
from thresher.store import corpus_files as corpora
from thresher.store.corpus_files import CorpusError, CorpusFiles
from thresher.store.schemas import DOCS
from thresher.store.shard_layout import standing


class ProcessedCorpus(CorpusFiles):
    """A corpus with the documents of a run, and with its own other tables."""

    # Steps work on pages. Imported texts would stand unprocessed beside the results, so they are not part of it.
    has_imports = False

    def __init__(self, corpus: CorpusFiles, files: Sequence[Path]) -> None:
        super().__init__(corpus.directory, corpus.config)
        self._shards = files

    def batches(
        self, table: str, columns: Sequence[str] | None = None, *, imported: bool = True
    ) -> Iterator[pa.RecordBatch]:
        """Yield a table of the corpus in batches; its documents come from the run, imported pages included."""
        if table != "docs":
            return super().batches(table, columns, imported=imported)
        names = list(columns or DOCS.names)
        return (batch for shard in self._shards for batch in document_shards.batches(shard, names))


def processed(directory: Path, number: int | None = None) -> ProcessedCorpus:
    """Return the results of a run: the run of that number, or the last one that finished.

    Raise CorpusError if there is no such run, or if its results were removed.
    """
    corpus = corpora.open(directory)
    return ProcessedCorpus(corpus, _files(directory, run_log.finished(directory, number)))


def _files(directory: Path, run: Run) -> list[Path]:
    found = [standing(directory / name) for name in run.result]
    missing = [path for path in found if not path.exists()]
    if missing:
        raise CorpusError(
            f"the results of run {run.number} were removed ({missing[0]}); "
            f"make them again: thresher process {directory}"
        )
    return found
