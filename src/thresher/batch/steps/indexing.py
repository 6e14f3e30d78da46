"""The index of what a recipe leaves: every shard is annotated, then the index is brought up to date.

The index is not a result among others: it is one, and others may change it. So its piece is done only as long as
the index is as it left it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Self

from thresher.batch.pieces import Task
from thresher.batch.steps.plans import Parameters, Plan, Work
from thresher.store.corpus import Corpus

_WORK = "thresher.batch.indexing"  # a module of its own: annotators and the index take a while to load
IS_CURRENT = "thresher.batch.steps.indexing:is_current"
MANIFEST = "manifest.json"
ORDERS = ("quality", "authority", "recency", "length", "input")  # the last: as documents came
WRITTEN = "written"  # when the manifest was, in nanoseconds


class Indexing(Parameters, frozen=True):
    """As `thresher index` has them."""

    annotator: str = ""
    order: str = "quality"
    lowercase: bool = True
    opted_out: bool = False

    def __post_init__(self) -> None:
        if self.order not in ORDERS:
            raise ValueError(f"order = {self.order!r} is none; there are {', '.join(ORDERS)}")

    def ready_for(self, corpus: Corpus, /) -> Self:
        from thresher.annotate.annotators import version_of

        if self.annotator:
            version_of(corpus.config.language, self.annotator)
        return self


def plan(work: Work) -> Plan:
    """Bring the index up to date with what is left; imports that are not pages join it as they are."""
    from thresher.annotate.annotators import version_of
    from thresher.store import imports

    asked, language, directory = work.parameters, work.corpus.config.language, work.corpus.directory
    told = {"language": language, "annotator": asked.annotator, "opted_out": asked.opted_out}
    version = version_of(language, asked.annotator or None) if work.shards else ""
    annotated = yield [Task(f"{_WORK}:annotate", (shard,), told, (version,)) for shard in work.shards]
    imported = imports.files(directory)
    others = {file.language or language for file in imported if not file.attributes}
    how = {
        "order": asked.order,
        "lowercase": asked.lowercase,
        "annotator": asked.annotator,
        "versions": {code: version_of(code, asked.annotator or None) for code in sorted(others)},
    }
    known = tuple(f"{file.path.name}: {','.join(file.sha256)}" for file in imported)
    where = {"directory": str(directory.resolve())}
    yield [Task(f"{_WORK}:index", tuple(annotated), how, known, where, IS_CURRENT)]
    return work.shards


def is_current(path: Path, *, directory: str) -> bool:
    """Whether the index is still as a piece left it; one built anew may have the same manifest."""
    there = Path(directory) / "index" / MANIFEST
    try:
        written, manifest = there.stat().st_mtime_ns, there.read_bytes()
        return str(written) == (path / WRITTEN).read_text() and manifest == (path / MANIFEST).read_bytes()
    except FileNotFoundError:
        return False
