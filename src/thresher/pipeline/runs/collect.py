"""Garbage collection: the removal of artifacts that no recent run needs."""

from __future__ import annotations

from pathlib import Path

from msgspec import Struct, field
from msgspec.structs import replace

from thresher.pipeline.artifacts import ArtifactStore
from thresher.pipeline.runs import run_log
from thresher.pipeline.runs.failures import FailureLog


class Collected(Struct, frozen=True):
    """Counts of the artifacts that were removed, or would be, and of the others."""

    artifacts: int = field(name="pieces")  # the name that `thresher gc --json` writes
    bytes: int
    kept: int  # artifacts


def collect(directory: Path, *, runs: int = 1, dry_run: bool = False) -> Collected:
    """Remove all artifacts except for the last `runs` runs that finished the whole recipe; run records stay.

    Artifacts of later runs, unfinished or only up to a step, are kept too, so that such a run can be continued.
    """
    with run_log.locked(directory) as folder:
        needed: set[str] = set()
        whole = 0
        for run in reversed(run_log.runs(directory)):
            needed |= run.keys
            whole += run.state == "done" and not run.last_step
            if whole == runs:
                break
        store = ArtifactStore(folder)
        present = store.all_keys()
        unneeded = [key for key in present if key not in needed]
        size = sum(store.size(key) if dry_run else store.remove(key) for key in unneeded)
        return Collected(len(unneeded), size, len(present) - len(unneeded))


def forget_results(directory: Path) -> None:
    """Remove all artifacts and the logs of failed tasks, since they may contain documents to be erased."""
    if not (directory / run_log.FOLDER).is_dir():
        return
    with run_log.locked(directory) as folder:
        ArtifactStore(folder).remove_all()
        FailureLog(folder).remove_all()
        for run in run_log.runs(directory):
            for step in run.steps:
                step.artifacts = [replace(artifact, log="", fault="") for artifact in step.artifacts]
            run_log.save(folder, run)
