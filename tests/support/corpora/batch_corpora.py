"""Small corpora for the pipeline, an engine that runs everything in this process, and the results of runs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from thresher.pipeline import document_shards
from thresher.pipeline.artifacts import ArtifactStore
from thresher.pipeline.runs.run_log import Run
from thresher.records import Block, LanguageShare, ReadResult, Reply, Verdict
from thresher.store.schemas import DOCS, document_row
from thresher.store.table_segments import TableSegments, seal, segment_path
from thresher.workers.protocol import Call, CallResult, perform

TEXTS = [["one", "two", "three"], ["four", "two", "five"], ["six", "one", "seven"]]


class Here:
    """An engine that runs all calls in this process, in order or backwards, and records them."""

    def __init__(self, *, backwards: bool = False) -> None:
        self.calls: list[Call] = []
        self._step = -1 if backwards else 1

    def run(self, calls: list[Call]) -> Iterator[CallResult]:
        for number, call in list(enumerate(calls))[:: self._step]:
            self.calls.append(call)
            yield perform(number, call)

    def close(self) -> None:
        pass


def write_shard(directory: Path, number: int, texts: list[str], *, is_sealed: bool = True) -> None:
    """Write a segment of the table of documents with these texts."""
    work = directory / f"work-{number}" / "docs"
    docs = TableSegments(work, DOCS, {}, 1 << 40)
    for place, text in enumerate(texts):
        url = f"http://h{place}.example.cz/{number}/{place}"
        reply = Reply(url, 200, b"", b"", 1_790_000_000.0 + place, 0.0, "192.0.2.7")
        page = ReadResult(
            url, "html", title="T", text=text, blocks=(Block(text, 0.1),), badness=float(len(text)),
            languages=(LanguageShare("cs", 10, 1.0),), opt_out=("noai",) if text == "seven" else (),
        )  # fmt: skip
        docs.append(
            *document_row(reply, page, Verdict(True, "", "cs", 0.9, 10), seq=place, depth=0, raw=None)
        )
    docs.flush()
    docs.close()
    (stream,) = work.glob("*.arrows")
    target = directory / "docs"
    target.mkdir(exist_ok=True)
    if is_sealed:
        seal(stream, stream.stat().st_size, segment_path(target, number, "parquet"))
    else:
        stream.rename(segment_path(target, number, "arrows"))


def recipe(directory: Path, *steps: dict[str, Any]) -> None:
    """Write a recipe into corpus.toml."""
    lines = ['language = "cs"', "schema = 1"]
    for step in steps:
        lines.append("[[process]]")
        lines += [f"{name} = {json.dumps(value)}" for name, value in step.items()]
    (directory / "corpus.toml").write_text("\n".join(lines) + "\n")


def small_corpus(directory: Path) -> Path:
    """Write a corpus of TEXTS, with a shard for each list and the default recipe."""
    for number, some in enumerate(TEXTS):
        write_shard(directory, number, some)
    recipe(directory)
    return directory


def made(run: Run) -> dict[str, int]:
    """Return the numbers of artifacts that a run made, by step; steps without any are left out."""
    return {step.name: count for step in run.steps if (count := step.count("made"))}


def texts(directory: Path, run: Run) -> list[list[str]]:
    """Return the texts of the last shards of a run, by shard."""
    store = ArtifactStore(directory / "runs")
    by_digest = {artifact.digest: artifact.key for step in run.steps for artifact in step.artifacts}
    return [
        [
            text
            for batch in document_shards.batches(store.path(by_digest[digest]), ["text"])
            for text in batch.column(0).to_pylist()
        ]
        for digest in run.steps[-1].outputs
    ]
