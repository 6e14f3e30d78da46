"""What a step of a run dropped, seen by laying its documents beside those it was given."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from msgspec import Struct

from thresher.batch import records, shards
from thresher.batch.paragraphs import missing, paragraphs
from thresher.batch.pieces import Pieces
from thresher.batch.records import FOLDER, Run
from thresher.store import corpus as corpora
from thresher.store.corpus import Corpus, CorpusError
from thresher.store.shards import standing

_COLUMNS = ("url", "seq", "host", "text")


class Dropped(NamedTuple):
    """A document that is gone, or a paragraph of one."""

    url: str
    host: str
    paragraph: int | None  # its number in the document, from 0; None: all of it
    words: int
    text: str


class Loss(Struct):
    """How much there was, and how much of it is gone."""

    documents: int = 0
    gone: int = 0  # documents
    changed: int = 0  # documents whose text became another one, not only less
    paragraphs: int = 0
    dropped: int = 0  # paragraphs, those of documents that are gone among them
    words: int = 0
    dropped_words: int = 0


class Comparison:
    """The documents of a run before a step and after it; figures are complete once all that went was told."""

    def __init__(self, directory: Path, step: str, number: int | None = None) -> None:
        """Of the last run that was finished, or of that number; of several steps of a name, "NAME 2" is one."""
        corpus = corpora.open(directory)
        run = records.finished(directory, number)
        places = _Places(corpus, run)
        if step not in run.labels[1:]:
            raise CorpusError(f"run {run.number} has no step {step!r}; it has {', '.join(run.labels[1:])}")
        place = run.labels.index(step)
        before, after = (places.of(run.steps[each].outputs) for each in (place - 1, place))
        # A step hands on as many shards as it was given, and what it adds comes behind them.
        self._shards = list(zip(before, after[: len(before)], strict=True))
        self.run = run.number
        self.total = Loss()
        self.hosts: dict[str, Loss] = {}

    def __iter__(self) -> Iterator[Dropped]:
        for before, after in self._shards:
            left = _Left(after)
            for row in _rows(before):
                yield from self._lost(row, left.text_of(row))

    def _lost(self, row: dict[str, Any], text: str | None) -> Iterator[Dropped]:
        """What went of a document of which a text is left, or nothing."""
        every = paragraphs(row["text"])
        gone = missing(every, paragraphs(text))
        losses = self.total, self.hosts.setdefault(row["host"] or "", Loss())
        sizes = [len(paragraph.split()) for paragraph in every]
        for loss in losses:
            loss.documents += 1
            loss.gone += text is None
            loss.paragraphs += len(every)
            loss.words += sum(sizes)
            if gone is None:
                loss.changed += 1
            else:
                loss.dropped += len(gone)
                loss.dropped_words += sum(sizes[place] for place in gone)
        url, host = row["url"], row["host"] or ""
        if text is None:
            yield Dropped(url, host, None, sum(sizes), row["text"] or "")
        else:
            for place in gone or ():
                yield Dropped(url, host, place, sizes[place], every[place])


class _Left:
    """The texts of a shard, asked for in about the order in which they stand."""

    def __init__(self, shard: Path) -> None:
        self._expected = Counter(_name(row) for row in _rows(shard, _COLUMNS[:2]))
        self._rows = _rows(shard)
        self._passed: dict[tuple[Any, ...], list[str]] = {}  # by those who reorder documents

    def text_of(self, row: dict[str, Any]) -> str | None:
        """What is left of a document; None: it is gone."""
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
    for batch in shards.batches(shard, columns):
        yield from batch.to_pylist()


def _name(row: dict[str, Any]) -> tuple[Any, ...]:
    return row["url"], row["seq"]


class _Places:
    """Where the shards of a run are, by their digests."""

    def __init__(self, corpus: Corpus, run: Run) -> None:
        self._run = run
        self._directory = corpus.directory
        pieces = Pieces(corpus.directory / FOLDER)
        files = {file.path.name: file.path for file in corpus.files("docs")}
        self._paths = {digest: files[name] for name, digest in run.inputs.items() if name in files}
        for step in run.steps:
            for piece in step.pieces:
                if (path := pieces.path(piece.key)).exists():
                    self._paths.setdefault(piece.digest, path)

    def of(self, digests: list[str]) -> list[Path]:
        if any(digest not in self._paths for digest in digests):
            raise CorpusError(
                f"results of run {self._run.number} are gone; make them again: thresher process {self._directory}"
            )
        return [standing(self._paths[digest]) for digest in digests]
