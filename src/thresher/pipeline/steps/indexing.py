"""The step `index`: annotates every shard, then updates the index of the corpus.

The index is not an artifact: there is one for the corpus, and other commands may change it. The artifact of this
step holds a copy of the manifest and is valid only as long as the index still has that manifest.
"""

from __future__ import annotations

from pathlib import Path
from typing import Self

from thresher.annotate.user_modules import folders_of
from thresher.pipeline.artifacts import Task
from thresher.pipeline.steps.plans import Parameters, Plan, StepContext
from thresher.store.corpus_files import CorpusFiles

_WORK = "thresher.pipeline.steps.index_worker"  # apart, since annotators and the index take a while to load
IS_CURRENT = "thresher.pipeline.steps.indexing:is_current"
MANIFEST = "manifest.json"
ORDERS = ("quality", "authority", "recency", "length", "input")  # "input": the order of the shards
WRITTEN = "written"  # a file with the modification time of the manifest, in nanoseconds


class IndexStep(Parameters, frozen=True):
    """The parameters of the step, as for `thresher index`."""

    annotator: str = ""
    order: str = "quality"
    lowercase: bool = True
    opted_out: bool = False

    def __post_init__(self) -> None:
        if self.order not in ORDERS:
            raise ValueError(f"unknown order {self.order!r}; choose one of {', '.join(ORDERS)}")

    def ready_for(self, corpus: CorpusFiles, /) -> Self:
        """Return the same parameters; raise UsageError if the annotator cannot be used for the corpus."""
        if self.annotator:
            _version(corpus.config.language, self.annotator, corpus.directory)
        return self


def plan(work: StepContext) -> Plan:
    """Update the index with the documents that are left; imported texts and tokens are indexed as they are."""
    from thresher.store import imported_files

    asked, language, directory = work.parameters, work.corpus.config.language, work.corpus.directory
    parameters = {"language": language, "annotator": asked.annotator, "opted_out": asked.opted_out}
    version = _version(language, asked.annotator, directory) if work.shards else ""
    locations = {"directory": str(directory.resolve())}
    annotated = yield [
        Task(f"{_WORK}:annotate", (shard,), parameters, (version,), locations) for shard in work.shards
    ]
    imported = imported_files.files(directory)
    others = {file.language or language for file in imported if not file.attributes}
    settings = {
        "order": asked.order,
        "lowercase": asked.lowercase,
        "annotator": asked.annotator,
        "versions": {code: _version(code, asked.annotator, directory) for code in sorted(others)},
    }
    known = tuple(f"{file.path.name}: {','.join(file.sha256)}" for file in imported)
    yield [Task(f"{_WORK}:index", tuple(annotated), settings, known, locations, IS_CURRENT)]
    return work.shards


def _version(language: str, annotator: str, directory: Path) -> str:
    """Return the version of an annotator; the module of a user's own may lie beside the corpus."""
    from thresher.annotate.registry import version_of

    return version_of(language, annotator or None, folders=folders_of(directory))


def is_current(path: Path, *, directory: str) -> bool:
    """Return whether the index has not changed since an artifact was made.

    The modification time is compared as well: a rebuilt index may have the same manifest, to the byte.
    """
    present = Path(directory) / "index" / MANIFEST
    try:
        written, manifest = present.stat().st_mtime_ns, present.read_bytes()
        return str(written) == (path / WRITTEN).read_text() and manifest == (path / MANIFEST).read_bytes()
    except FileNotFoundError:
        return False
