"""Runs on record: what was made of what, by which steps, so that any run can be told, compared and repeated."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import Struct

from thresher._version import __version__
from thresher.store.corpus import CorpusError
from thresher.store.files import sync_directory

FOLDER = "runs"
NAMING = re.compile(r"run-(\d{6})\.json")

State = Literal["made", "found", "failed", "waiting"]


class PieceRun(Struct, frozen=True):
    """A piece in a run: made in it, found as it was made before, or failed."""

    key: str
    function: str
    state: State
    digest: str = ""
    report: dict[str, Any] = {}
    seconds: float = 0.0
    cpu_seconds: float = 0.0
    attempts: int = 0
    fault: str = ""
    log: str = ""  # the end of what it wrote


class StepRun(Struct):
    """A step in a run."""

    name: str
    version: int
    parameters: dict[str, Any]
    pieces: list[PieceRun] = []
    outputs: list[str] = []  # digests of the shards that came out, in order
    done: bool = False

    def count(self, state: State) -> int:
        return sum(piece.state == state for piece in self.pieces)

    @property
    def report(self) -> dict[str, Any]:
        """The figures of the last stage, added up."""
        if not self.pieces:
            return {}
        last = self.pieces[-1].function
        found: dict[str, Any] = {}
        for piece in self.pieces:
            if piece.function == last:
                _add(found, piece.report)
        return found


class Run(Struct):
    """A run of a recipe."""

    number: int
    started: float  # seconds since 1970
    engine: str
    thresher: str = __version__
    ended: float = 0.0
    state: Literal["running", "done", "failed", "stopped"] = "running"
    inputs: dict[str, str] = {}  # files of the corpus, with their digests
    steps: list[StepRun] = []
    result: list[str] = []  # the shards that came out at the end, as seen from the corpus

    @property
    def keys(self) -> set[str]:
        return {piece.key for step in self.steps for piece in step.pieces}

    def label(self, place: int) -> str:
        """A step's name; of several of one name, with its number."""
        name = self.steps[place].name
        same = [other for other, step in enumerate(self.steps) if step.name == name]
        return name if len(same) == 1 else f"{name} {same.index(place) + 1}"


def _add(total: dict[str, Any], report: dict[str, Any]) -> None:
    for name, value in report.items():
        if isinstance(value, dict):
            _add(total.setdefault(name, {}), value)
        elif isinstance(value, int | float):
            total[name] = total.get(name, 0) + value


def path_of(folder: Path, number: int) -> Path:
    return folder / f"run-{number:06d}.json"


def save(folder: Path, run: Run, *, durable: bool = False) -> None:
    """Write a run down; whoever looks sees it as it was before, or as it is now."""
    path = path_of(folder, run.number)
    temporary = path.with_name(f"{path.name}.tmp")
    with temporary.open("wb") as file:
        file.write(msgspec.json.format(msgspec.json.encode(run), indent=1))
        if durable:
            file.flush()
            os.fsync(file.fileno())
    temporary.replace(path)
    if durable:
        sync_directory(folder)


def runs(directory: Path) -> list[Run]:
    """All runs of a corpus, the first one first."""
    found = [
        (int(match[1]), path)
        for path in (directory / FOLDER).glob("run-*.json")
        if (match := NAMING.fullmatch(path.name))
    ]
    return [_read(path) for _, path in sorted(found)]


def finished(directory: Path, number: int | None = None) -> Run:
    """The last run that was finished, or the one of a number, if it was."""
    found = [run for run in runs(directory) if run.state == "done" and number in (None, run.number)]
    if not found:
        which = "finished run" if number is None else f"finished run {number}"
        raise CorpusError(f"{directory} has no {which} yet; make one: thresher process {directory}")
    return found[-1]


def _read(path: Path) -> Run:
    try:
        return msgspec.json.decode(path.read_bytes(), type=Run)
    except (OSError, msgspec.DecodeError) as fault:
        raise CorpusError(f"{path} cannot be read ({fault}); restore or delete it") from None


class Change(Struct, frozen=True):
    """What is not the same in two runs."""

    what: str  # thresher, input, step, parameter, output …
    name: str
    before: str
    after: str


def changes(first: Run, second: Run) -> list[Change]:
    """What differs from one run to another: programs, inputs, steps, parameters, and what came out."""
    found = []
    if first.thresher != second.thresher:
        found.append(Change("thresher", "version", first.thresher, second.thresher))
    for name in sorted(first.inputs.keys() | second.inputs.keys()):
        before, after = first.inputs.get(name, ""), second.inputs.get(name, "")
        if before != after:
            found.append(Change("input", name, before[:8], after[:8]))
    before_steps, after_steps = (
        {run.label(place): step for place, step in enumerate(run.steps)} for run in (first, second)
    )
    for label in dict.fromkeys([*before_steps, *after_steps]):
        found += _step_changes(label, before_steps.get(label), after_steps.get(label))
    return found


def _step_changes(label: str, before: StepRun | None, after: StepRun | None) -> list[Change]:
    if before is None or after is None:
        return [Change("step", label, "" if before is None else "there", "" if after is None else "there")]
    found = []
    if before.version != after.version:
        found.append(Change("version", label, str(before.version), str(after.version)))
    for name in sorted(before.parameters.keys() | after.parameters.keys()):
        one, other = before.parameters.get(name), after.parameters.get(name)
        if one != other:
            found.append(Change("parameter", f"{label}.{name}", str(one), str(other)))
    for name in sorted(before.report.keys() | after.report.keys()):
        one, other = before.report.get(name), after.report.get(name)
        if one != other:
            found.append(Change("figure", f"{label}.{name}", str(one), str(other)))
    if before.outputs != after.outputs:
        same = len(set(before.outputs) & set(after.outputs))
        found.append(
            Change(
                "output",
                label,
                f"{len(before.outputs)} shards",
                f"{len(after.outputs)}, {same} of them the same",
            )
        )
    return found
