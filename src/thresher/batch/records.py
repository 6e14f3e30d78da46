"""Runs on record: what was made of what, by which steps, so that any run can be told, compared and repeated."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec
import xxhash
from msgspec import Struct

from thresher._version import __version__
from thresher.store.corpus import CorpusError
from thresher.store.files import exclusive, is_locked, sync_directory

FOLDER = "runs"
LOCK = "lock"
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
    settings: dict[str, Any] = {}  # of the corpus, on which it depends as well
    depends: dict[str, list[str]] = {}  # … and, by function, what stands for code, models and the like
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
    last_step: str = ""  # up to which it was asked to go; empty: to the end of the recipe
    state: Literal["running", "done", "failed", "stopped"] = "running"
    inputs: dict[str, str] = {}  # files of the corpus, with their digests
    steps: list[StepRun] = []
    result: list[str] = []  # the shards that came out at the end, as seen from the corpus

    @property
    def keys(self) -> set[str]:
        return {piece.key for step in self.steps for piece in step.pieces}

    @property
    def labels(self) -> list[str]:
        return labels([step.name for step in self.steps])


def labels(names: Sequence[str]) -> list[str]:
    """Names of steps; where several have one name, each with its number."""
    return [
        name if names.count(name) == 1 else f"{name} {names[: place + 1].count(name)}"
        for place, name in enumerate(names)
    ]


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


@contextlib.contextmanager
def locked(directory: Path) -> Iterator[Path]:
    """The folder of runs, for one process at a time."""
    folder = directory / FOLDER
    folder.mkdir(exist_ok=True)
    busy = f"{directory} is being processed already, by process"
    with exclusive(folder / LOCK, lambda owner: CorpusError(f"{busy} {owner}; wait for it, or stop it")):
        yield folder


def numbers(directory: Path) -> list[int]:
    """The numbers of all runs of a corpus."""
    names = (path.name for path in (directory / FOLDER).glob("run-*.json"))
    return sorted(int(match[1]) for name in names if (match := NAMING.fullmatch(name)))


def runs(directory: Path) -> list[Run]:
    """All runs of a corpus, the first one first."""
    return [read(directory, number) for number in numbers(directory)]


def last(directory: Path) -> Run | None:
    """The last run."""
    known = numbers(directory)
    return read(directory, known[-1]) if known else None


def finished(directory: Path, number: int | None = None) -> Run:
    """The last run that was finished, or the one of a number, if it was."""
    wanted = [each for each in numbers(directory) if number in (None, each)]
    for each in reversed(wanted):
        if (run := read(directory, each)).state == "done":
            return run
    which = "finished run" if number is None else f"finished run {number}"
    raise CorpusError(f"{directory} has no {which} yet; make one: thresher process {directory}")


def read(directory: Path, number: int) -> Run:
    """The run of a number."""
    path = path_of(directory / FOLDER, number)
    try:
        run = msgspec.json.decode(path.read_bytes(), type=Run)
    except (OSError, msgspec.DecodeError) as fault:
        raise CorpusError(f"{path} cannot be read ({fault}); restore or delete it") from None
    if run.state == "running" and not is_locked(path.with_name(LOCK)):
        run.state = "stopped"  # it was killed
    return run


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
    before_steps, after_steps = (dict(zip(run.labels, run.steps, strict=True)) for run in (first, second))
    for label in dict.fromkeys([*before_steps, *after_steps]):
        found += _step_changes(label, before_steps.get(label), after_steps.get(label))
    return found


def differing(ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> list[str]:
    """The names under which two tables have other values."""
    return [name for name in sorted({*ours, *theirs}) if ours.get(name) != theirs.get(name)]


def _shortened(digests: Sequence[str]) -> str:
    return xxhash.xxh3_64_hexdigest("\0".join(digests).encode()) if digests else ""


def _step_changes(label: str, before: StepRun | None, after: StepRun | None) -> list[Change]:
    if before is None or after is None:
        return [Change("step", label, "" if before is None else "there", "" if after is None else "there")]
    found = []
    if before.version != after.version:
        found.append(Change("version", label, str(before.version), str(after.version)))
    for what, ours, theirs in (
        ("parameter", before.parameters, after.parameters),
        ("setting", before.settings, after.settings),
        ("figure", before.report, after.report),
    ):
        for name in differing(ours, theirs):
            told = str(ours.get(name)), str(theirs.get(name))
            found.append(Change(what, f"{label}.{name}", *told))
    for function in differing(before.depends, after.depends):
        was, now = (_shortened(one.depends.get(function, ())) for one in (before, after))
        found.append(Change("code or models", f"{label}.{function.partition(':')[2]}", was, now))
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
