"""The documents and paragraphs that a step of a run dropped, found by comparing its input with its output."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from msgspec import Struct

from thresher.pipeline import document_shards
from thresher.pipeline.artifacts import ArtifactStore
from thresher.pipeline.runs import run_log
from thresher.pipeline.runs.run_log import FOLDER, Run
from thresher.pipeline.steps.paragraphs import missing, paragraphs, word_counts
from thresher.store import corpus_files as corpora
from thresher.store.corpus_files import CorpusError, CorpusFiles
from thresher.store.shard_layout import standing

_COLUMNS = ("url", "seq", "host", "text")


class Dropped(NamedTuple):
    """A dropped document, or a dropped paragraph of a document that stays."""

    url: str
    host: str
    paragraph: int | None  # its number in the document, from 0; None: the whole document
    words: int
    text: str


class Loss(Struct):
    """Counts of the input of a step, and of its losses and changes."""

    documents: int = 0
    gone: int = 0  # documents
    changed: int = 0  # documents that were left with another text
    paragraphs: int = 0
    dropped: int = 0  # paragraphs, including paragraphs of documents that are gone
    words: int = 0
    dropped_words: int = 0
    rewritten: int = 0  # changed documents with new paragraphs; it is unknown which of theirs were dropped


class RunComparison:
    """A comparison of the documents before and after a step of a run.

    Iterate over it for all dropped documents and paragraphs; `total` and `hosts` are complete after that.
    """

    def __init__(self, directory: Path, step: str, number: int | None = None) -> None:
        """Compare a step of the run of that number, or of the last finished run.

        If the recipe has several steps of one name, they are named "NAME 1", "NAME 2" and so on. Raise CorpusError
        if there is no such run or step, or if its results were removed.
        """
        corpus = corpora.open(directory)
        run = run_log.finished(directory, number)
        paths = _ShardPaths(corpus, run)
        if step not in run.labels[1:]:
            raise CorpusError(f"run {run.number} has no step {step!r}; it has {', '.join(run.labels[1:])}")
        place = run.labels.index(step)
        before, after = (paths.of(run.steps[each].outputs) for each in (place - 1, place))
        # A step leaves as many shards as it was given, in the same order; shards that it adds come after them.
        self._shards = list(zip(before, after[: len(before)], strict=True))
        self.run = run.number
        self.total = Loss()
        self.hosts: dict[str, Loss] = {}

    def __iter__(self) -> Iterator[Dropped]:
        for before, after in self._shards:
            remaining = _RemainingTexts(after)
            for row in _rows(before):
                yield from self._compare(row, remaining.text_of(row))

    def _compare(self, row: dict[str, Any], text: str | None) -> Iterator[Dropped]:
        """Count and yield the losses of a document; `text` is its text after the step, None if it was dropped."""
        every = paragraphs(row["text"])
        gone = missing(every, paragraphs(text))
        losses = self.total, self.hosts.setdefault(row["host"] or "", Loss())
        sizes = word_counts(every)
        for loss in losses:
            loss.documents += 1
            loss.gone += text is None
            loss.paragraphs += len(every)
            loss.words += sum(sizes)
            loss.changed += text is not None and gone != []
            if gone is None:
                loss.rewritten += 1
            else:
                loss.dropped += len(gone)
                loss.dropped_words += sum(sizes[place] for place in gone)
        url, host = row["url"], row["host"] or ""
        if text is None:
            yield Dropped(url, host, None, sum(sizes), row["text"] or "")
        else:
            for place in gone or ():
                yield Dropped(url, host, place, sizes[place], every[place])


class _RemainingTexts:
    """The texts of a shard, looked up in about the order in which they stand in it."""

    def __init__(self, shard: Path) -> None:
        self._expected = Counter(_name(row) for row in _rows(shard, _COLUMNS[:2]))
        self._rows = _rows(shard)
        self._passed: dict[tuple[Any, ...], list[str]] = {}  # read before they were looked up

    def text_of(self, row: dict[str, Any]) -> str | None:
        """Return the text of a document in this shard, or None if the document is not in it."""
        name = _name(row)
        if not self._expected[name]:
            return None
        self._expected[name] -= 1
        while name not in self._passed:
            other = next(self._rows)
            self._passed.setdefault(_name(other), []).append(other["text"] or "")
        texts = self._passed[name]
        text = texts.pop(0)
        if not texts:
            del self._passed[name]
        return text


def _rows(shard: Path, columns: tuple[str, ...] = _COLUMNS) -> Iterator[dict[str, Any]]:
    for batch in document_shards.batches(shard, columns):
        yield from batch.to_pylist()


def _name(row: dict[str, Any]) -> tuple[Any, ...]:
    return row["url"], row["seq"]


class _ShardPaths:
    """The paths of the shards of a run, by their digests."""

    def __init__(self, corpus: CorpusFiles, run: Run) -> None:
        self._run = run
        self._directory = corpus.directory
        store = ArtifactStore(corpus.directory / FOLDER)
        files = {file.path.name: file.path for file in corpus.files("docs")}
        self._paths = {digest: files[name] for name, digest in run.inputs.items() if name in files}
        for step in run.steps:
            for artifact in step.artifacts:
                if (path := store.path(artifact.key)).exists():
                    self._paths.setdefault(artifact.digest, path)

    def of(self, digests: list[str]) -> list[Path]:
        if any(digest not in self._paths for digest in digests):
            raise CorpusError(
                f"the results of run {self._run.number} were removed; "
                f"make them again: thresher process {self._directory}"
            )
        return [standing(self._paths[digest]) for digest in digests]
