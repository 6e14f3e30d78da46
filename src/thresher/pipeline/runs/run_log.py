"""Records of runs: inputs, steps, artifacts and versions, so that any run can be shown, compared and repeated."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec
import xxhash
from msgspec import Struct, field

from thresher._version import __version__
from thresher.errors import DataError
from thresher.files.durable_files import exclusive, is_locked, replace
from thresher.store.checked_files import json_file
from thresher.store.corpus_files import CorpusError
from thresher.wording import ReportView

FOLDER = "runs"
LOCK = "lock"
NAMING = re.compile(r"run-(\d{6})\.json")

State = Literal["made", "found", "failed", "waiting"]


class ArtifactRun(Struct, frozen=True):
    """An artifact in a run: made by the run, found from an earlier one, failed or still waiting."""

    key: str
    function: str
    state: State
    digest: str = ""
    report: dict[str, Any] = {}
    seconds: float = 0.0
    cpu_seconds: float = 0.0
    attempts: int = 0
    fault: str = ""
    log: str = ""  # the end of its output


class StepRun(Struct):
    """A step in a run."""

    name: str
    version: int
    parameters: dict[str, Any]
    artifacts: list[ArtifactRun] = field(name="pieces", default_factory=list)  # the name on disk
    outputs: list[str] = []  # digests of the resulting shards, in order
    settings: dict[str, Any] = {}  # settings of the corpus that the step depends on
    depends: dict[str, list[str]] = {}  # digests of code, models and the like, by function
    done: bool = False

    def count(self, state: State) -> int:
        """Return the number of artifacts in a state."""
        return sum(artifact.state == state for artifact in self.artifacts)

    @property
    def report(self) -> dict[str, Any]:
        """The sums of the counts that the tasks of the last stage report."""
        if not self.artifacts:
            return {}
        last = self.artifacts[-1].function
        total: dict[str, Any] = {}
        for artifact in self.artifacts:
            if artifact.function == last:
                _add(total, artifact.report)
        return total


class Run(ReportView, Struct):
    """A run of a recipe. At a prompt and in notebooks it shows its steps."""

    number: int
    started: float  # seconds since 1970
    engine: str
    thresher: str = __version__
    ended: float = 0.0
    last_step: str = ""  # the step that it was to end with; empty: the last one of the recipe
    state: Literal["running", "done", "failed", "stopped"] = "running"
    inputs: dict[str, str] = {}  # digests of the files of the corpus, by name
    steps: list[StepRun] = []
    result: list[str] = []  # paths of the final shards, relative to the corpus

    def rows(self) -> list[dict[str, Any]]:
        """Return the steps with the numbers of their artifacts and what they counted."""
        return [
            {
                "step": step.name,
                **{state: step.count(state) for state in ("made", "found", "failed", "waiting")},
                "counts": step.report,
            }
            for step in self.steps
        ]

    def __repr__(self) -> str:
        steps = "; ".join(
            f"{row['step']}: {row['made']:,} made, {row['found']:,} found"
            + (f", {row['failed']:,} failed" if row["failed"] else "")
            for row in self.rows()
        )
        return f"<Run {self.number}, {self.state}: {steps}>"

    @property
    def keys(self) -> set[str]:
        """The keys of all artifacts of the run."""
        return {artifact.key for step in self.steps for artifact in step.artifacts}

    @property
    def labels(self) -> list[str]:
        """The names of the steps, numbered where several have one name."""
        return labels([step.name for step in self.steps])


def labels(names: Sequence[str]) -> list[str]:
    """Return the names of steps, numbered where several have one name.

    >>> labels(["filter", "index", "filter"])
    ['filter 1', 'index', 'filter 2']
    """
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
    """Return the path of the record of a run."""
    return folder / f"run-{number:06d}.json"


def save(folder: Path, run: Run) -> None:
    """Write the record of a run, atomically and durably."""
    replace(path_of(folder, run.number), msgspec.json.format(msgspec.json.encode(run), indent=1))


@contextlib.contextmanager
def locked(directory: Path) -> Iterator[Path]:
    """Lock the folder of runs and return it; raise CorpusError while another process holds the lock."""
    folder = directory / FOLDER
    folder.mkdir(exist_ok=True)
    busy = f"{directory} is being processed by process"
    with exclusive(folder / LOCK, lambda owner: CorpusError(f"{busy} {owner}; wait for it, or stop it")):
        yield folder


def numbers(directory: Path) -> list[int]:
    """Return the numbers of all runs of a corpus, in order."""
    names = (path.name for path in (directory / FOLDER).glob("run-*.json"))
    return sorted(int(match[1]) for name in names if (match := NAMING.fullmatch(name)))


def runs(directory: Path) -> list[Run]:
    """Return all runs of a corpus, in order."""
    return [read(directory, number) for number in numbers(directory)]


def last(directory: Path) -> Run | None:
    """Return the last run of a corpus, or None if there are none."""
    known = numbers(directory)
    return read(directory, known[-1]) if known else None


def finished(directory: Path, number: int | None = None) -> Run:
    """Return the run of that number, or the last one; raise CorpusError unless it finished."""
    wanted = [each for each in numbers(directory) if number in (None, each)]
    for each in reversed(wanted):
        if (run := read(directory, each)).state == "done":
            return run
    missing = "finished run" if number is None else f"finished run {number}"
    raise CorpusError(f"{directory} has no {missing}; make one: thresher process {directory}")


def read(directory: Path, number: int) -> Run:
    """Return the run of that number; raise CorpusError if its record cannot be read."""
    path = path_of(directory / FOLDER, number)
    try:
        run = json_file(path, Run)
    except (OSError, DataError) as fault:
        raise CorpusError(f"{fault}, or delete {path.name}") from None
    if run.state == "running" and not is_locked(path.with_name(LOCK)):
        run.state = "stopped"  # its process was killed
    return run


class RunChange(Struct, frozen=True):
    """A difference between two runs."""

    kind: str = field(name="what")  # thresher, input, step, parameter, output …
    name: str
    before: str
    after: str


def changes(first: Run, second: Run) -> list[RunChange]:
    """Return the differences between two runs: versions, inputs, steps, parameters, code, counts and outputs."""
    found = []
    if first.thresher != second.thresher:
        found.append(RunChange("thresher", "version", first.thresher, second.thresher))
    for name in sorted(first.inputs.keys() | second.inputs.keys()):
        before, after = first.inputs.get(name, ""), second.inputs.get(name, "")
        if before != after:
            found.append(RunChange("input", name, before[:8], after[:8]))
    before_steps, after_steps = (dict(zip(run.labels, run.steps, strict=True)) for run in (first, second))
    for label in dict.fromkeys([*before_steps, *after_steps]):
        found += _step_changes(label, before_steps.get(label), after_steps.get(label))
    return found


def differing(ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> list[str]:
    """Return the names under which two tables have different values."""
    return [name for name in sorted({*ours, *theirs}) if ours.get(name) != theirs.get(name)]


def _digest_of_digests(digests: Sequence[str]) -> str:
    return xxhash.xxh3_64_hexdigest("\0".join(digests).encode()) if digests else ""


def _step_changes(label: str, before: StepRun | None, after: StepRun | None) -> list[RunChange]:
    if before is None or after is None:
        return [RunChange("step", label, "" if before is None else "there", "" if after is None else "there")]
    found = []
    if before.version != after.version:
        found.append(RunChange("version", label, str(before.version), str(after.version)))
    for kind, ours, theirs in (
        ("parameter", before.parameters, after.parameters),
        ("setting", before.settings, after.settings),
        ("count", before.report, after.report),
    ):
        for name in differing(ours, theirs):
            values = str(ours.get(name)), str(theirs.get(name))
            found.append(RunChange(kind, f"{label}.{name}", *values))
    for function in differing(before.depends, after.depends):
        was, now = (_digest_of_digests(one.depends.get(function, ())) for one in (before, after))
        found.append(RunChange("code or models", f"{label}.{function.partition(':')[2]}", was, now))
    if before.outputs != after.outputs:
        same = len(set(before.outputs) & set(after.outputs))
        found.append(
            RunChange(
                "output",
                label,
                f"{len(before.outputs)} shards",
                f"{len(after.outputs)}, {same} of them unchanged",
            )
        )
    return found
