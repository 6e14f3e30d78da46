"""Results that no run needs any more, collected."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import msgspec

from thresher.batch import records
from thresher.batch.failures import Failures
from thresher.batch.pieces import Pieces
from thresher.batch.run import locked


class Collected(NamedTuple):
    """What was removed, or would be."""

    pieces: int
    bytes: int
    kept: int  # pieces


def collect(directory: Path, *, runs: int = 1, dry_run: bool = False) -> Collected:
    """Remove all results but those of the last so many runs that were finished; the records of runs stay."""
    with locked(directory) as folder:
        finished = [run for run in records.runs(directory) if run.state == "done"]
        needed: set[str] = set().union(*(run.keys for run in finished[len(finished) - runs :]))
        pieces = Pieces(folder)
        present = pieces.all_keys()
        gone = [key for key in present if key not in needed]
        size = sum(pieces.size(key) if dry_run else pieces.remove(key) for key in gone)
        return Collected(len(gone), size, len(present) - len(gone))


def forget_results(directory: Path) -> None:
    """Remove all results, and what failed pieces wrote: documents may stand there that are to be forgotten."""
    if not (directory / records.FOLDER).is_dir():
        return
    with locked(directory) as folder:
        pieces = Pieces(folder)
        for key in pieces.all_keys():
            pieces.remove(key)
        failures = Failures(folder)
        for failure in failures.all():
            failures.forget(failure.key)
        for run in records.runs(directory):
            for step in run.steps:
                step.pieces = [msgspec.structs.replace(piece, log="", fault="") for piece in step.pieces]
            records.save(folder, run, durable=True)
