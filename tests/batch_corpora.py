"""Small corpora for batch, an engine that does everything at once, and what came of a run."""

from __future__ import annotations

import contextlib
import io
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from thresher.batch import shards
from thresher.batch.pieces import Pieces
from thresher.batch.records import Run
from thresher.cli import main
from thresher.engine.calls import Call, Ended, perform
from thresher.page import Block, LanguageShare, Page, Reply, Verdict
from thresher.store.segments import Segments, seal, segment_path
from thresher.store.tables import DOCS, document_row

TEXTS = [["one", "two", "three"], ["four", "two", "five"], ["six", "one", "seven"]]


class Here:
    """An engine that does everything here and now, in order or backwards, and counts it."""

    def __init__(self, *, backwards: bool = False) -> None:
        self.calls: list[Call] = []
        self._step = -1 if backwards else 1

    def run(self, calls: list[Call]) -> Iterator[Ended]:
        for number, call in list(enumerate(calls))[:: self._step]:
            self.calls.append(call)
            yield perform(number, call)

    def close(self) -> None:
        pass


def write_shard(directory: Path, number: int, texts: list[str], *, is_sealed: bool = True) -> None:
    """A segment of the table of documents with these texts."""
    work = directory / f"work-{number}" / "docs"
    docs = Segments(work, DOCS, {}, 1 << 40)
    for place, text in enumerate(texts):
        url = f"http://h{place}.example.cz/{number}/{place}"
        reply = Reply(url, 200, b"", b"", 1_790_000_000.0 + place, 0.0, "192.0.2.7")
        page = Page(
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
    """A corpus of TEXTS, a shard of each, with the usual recipe."""
    for number, some in enumerate(TEXTS):
        write_shard(directory, number, some)
    recipe(directory)
    return directory


def made(run: Run) -> dict[str, int]:
    """How many pieces were made, by step, where some were."""
    return {step.name: count for step in run.steps if (count := step.count("made"))}


def texts(directory: Path, run: Run) -> list[list[str]]:
    """The texts that came out at the end, by shard."""
    pieces = Pieces(directory / "runs")
    by_digest = {piece.digest: piece.key for step in run.steps for piece in step.pieces}
    return [
        [
            text
            for batch in shards.batches(pieces.path(by_digest[digest]), ["text"])
            for text in batch.column(0).to_pylist()
        ]
        for digest in run.steps[-1].outputs
    ]


def told(*arguments: object) -> tuple[int, str, str]:
    """What the command line says: its code, what it wrote, and what it told people."""
    out, err = io.TextIOWrapper(io.BytesIO()), io.StringIO()
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stderr(err):
        patch.setattr(sys, "argv", ["thresher", *map(str, arguments)])
        patch.setattr(sys, "stdout", out)
        try:
            main()
            code = 0
        except SystemExit as ending:
            code = int(ending.code or 0)
    out.flush()
    return code, out.buffer.getvalue().decode(), err.getvalue()  # type: ignore[attr-defined]
