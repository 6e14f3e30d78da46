"""Results that no run needs any more, collected."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import msgspec

from thresher.batch import records
from thresher.batch.failures import Failures
from thresher.batch.pieces import Pieces


class Collected(NamedTuple):
    """What was removed, or would be."""

    pieces: int
    bytes: int
    kept: int  # pieces


def collect(directory: Path, *, runs: int = 1, dry_run: bool = False) -> Collected:
    """Remove all results but those of the last so many runs that went through the recipe; their records stay.

    What was begun since, or went only up to a step, is kept too: it may be gone on with.
    """
    with records.locked(directory) as folder:
        needed: set[str] = set()
        whole = 0
        for run in reversed(records.runs(directory)):
            needed |= run.keys
            whole += run.state == "done" and not run.last_step
            if whole == runs:
                break
        pieces = Pieces(folder)
        present = pieces.all_keys()
        gone = [key for key in present if key not in needed]
        size = sum(pieces.size(key) if dry_run else pieces.remove(key) for key in gone)
        return Collected(len(gone), size, len(present) - len(gone))


def forget_results(directory: Path) -> None:
    """Remove all results, and what failed pieces wrote: documents may stand there that are to be forgotten."""
    if not (directory / records.FOLDER).is_dir():
        return
    with records.locked(directory) as folder:
        Pieces(folder).remove_all()
        Failures(folder).forget_all()
        for run in records.runs(directory):
            for step in run.steps:
                step.pieces = [msgspec.structs.replace(piece, log="", fault="") for piece in step.pieces]
            records.save(folder, run, durable=True)
