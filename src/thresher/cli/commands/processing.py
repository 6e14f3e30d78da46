"""The commands `process`, `runs` and `gc`: run the steps of a corpus, and show and delete their results."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from thresher.cli.app import AsJson, Directory, OutputName, app, print_json, say, show
from thresher.cli.log_options import DEFAULT_LOG, LogOptions
from thresher.config import duration
from thresher.errors import UsageError
from thresher.wording import counted

if TYPE_CHECKING:
    from thresher.pipeline.runs.run import StageProgress
    from thresher.pipeline.runs.run_log import Run, RunChange
    from thresher.workers.protocol import Engine

LISTED_HOSTS = 20  # hosts that lost the most words
Flag = Annotated[bool, Parameter(negative=())]


@app.command
def process(
    directory: Directory,
    *,
    step: str = "",
    engine: str = "local",
    processes: int = 0,
    status: Flag = False,
    dry_run: Flag = False,
    retry_failed: Flag = False,
    deadline: str = "6h",
    log: LogOptions = DEFAULT_LOG,
    json: AsJson = False,
) -> None:
    """Run the steps that corpus.toml lists over a corpus; results that exist are not computed again.

    Example: thresher process czech

    A recipe is a list of steps: [[process]] with step = "filter", max_badness = 10, and so on. Without one, exact
    and near duplicates are dropped and the rest is counted. Results stay in DIR/runs until `thresher gc`.

    Parameters
    ----------
    step
        End after this step.
    engine
        Where tasks run: local, in processes of this machine; ray, or ray:HOST:PORT, on a Ray cluster, whose nodes
        must all see the directory under the same path.
    processes
        Number of processes on this machine; by default one for each processor.
    status
        Only show the state of the last run.
    dry_run
        Only show what would run, and why.
    retry_failed
        Also retry tasks that failed in every attempt.
    deadline
        Time limit for one task.
    """
    from thresher.cli.views.progress_line import progress_line
    from thresher.pipeline.runs.dry import dry_run as planned
    from thresher.pipeline.runs.run import process as run_recipe
    from thresher.store import imported_files
    from thresher.workers.registry import check as check_engine

    check_engine(engine)
    if processes < 0:
        raise UsageError(f"--processes must be at least 0, got {processes}; 0 means one for each processor")
    limit = duration(deadline)
    if status:
        _show_status(directory, json)
        return
    if dry_run:
        missing = planned(directory, last_step=step)
        if json:
            print_json([pending._asdict() for pending in missing])
        for pending in missing:
            say(
                f"{pending.step}: {pending.missing:,} of {pending.total:,} artifacts ({pending.why}), "
                "and all that build on them"
            )
            if pending.given_up:
                say(
                    f"{pending.given_up:,} of them failed in every attempt; to retry them, add --retry-failed"
                )
        if not missing:
            say("all results exist; nothing would run")
        return
    start = time.monotonic()
    with log.writing(directory, "process"), _engine(engine, processes) as chosen, progress_line() as line:
        run = run_recipe(
            directory,
            chosen,
            engine_name=engine,
            last_step=step,
            retry_failed=retry_failed,
            deadline=limit,
            progress=lambda stage: line(stage_line(stage)),
        )
    if json:
        print_json(run)
    for done in run.steps[1:]:
        counts = f"artifacts made {done.count('made'):,}, found {done.count('found'):,}"
        say("; ".join(filter(None, (f"{done.name}: {counts}", _counts(done.report)))))
    if texts := sum(file.rows for file in imported_files.files(directory)):
        say(f"{counted(texts, 'imported text')} took no part: recipes process pages")
    artifacts = sum(each.count("made") for each in run.steps)
    say(f"run {run.number}: artifacts made {artifacts:,}, in {time.monotonic() - start:.1f} s")


@app.command
def runs(
    directory: Directory,
    first: int | None = None,
    second: int | None = None,
    /,
    *,
    dropped: str = "",
    output: Annotated[Path | None, OutputName] = None,
    json: AsJson = False,
) -> None:
    """List the runs of a corpus, show or compare them, or show the documents that a step dropped.

    Example: thresher runs czech 3 5

    Parameters
    ----------
    first
        Number of a run, to show in full or to compare with the second.
    second
        Number of another run.
    dropped
        Show what this step dropped in the run of the first number, or else in the last finished run.
    output
        With --dropped: write all dropped documents and paragraphs to a file, one JSON object per line; .gz and .zst
        compress it.
    """
    from thresher.pipeline.runs import run_log

    _check(directory)
    if dropped:
        if second is not None:
            raise UsageError("--dropped shows one run; leave the second number out")
        _show_dropped(directory, dropped, first, output, json)
        return
    if output:
        raise UsageError("-o writes the documents that a step dropped; name the step: --dropped STEP")
    known = {run.number: run for run in run_log.runs(directory)}
    for number in (first, second):
        if number is not None and number not in known:
            raise UsageError(
                f"{directory} has no run {number}; choose one of {', '.join(map(str, known)) or 'none yet'}"
            )
    if first is not None and second is not None:
        _show_changes(run_log.changes(known[first], known[second]), json)
    elif first is not None:
        if json:
            print_json(known[first])
        _show_run(known[first])
    else:
        _show_runs(list(known.values()), directory, json)


@app.command
def gc(
    directory: Directory,
    *,
    keep: int = 1,
    dry_run: Flag = False,
    json: AsJson = False,
) -> None:
    """Remove results of `thresher process` that the last runs do not need.

    Example: thresher gc czech --keep 2

    Parameters
    ----------
    keep
        Number of finished runs that keep their results.
    dry_run
        Only show what would be removed.
    """
    from thresher.cli.views.terminal import amount
    from thresher.pipeline.runs.collect import collect

    _check(directory)
    if keep < 1:
        raise UsageError(f"--keep must be at least 1, got {keep}")
    found = collect(directory, runs=keep, dry_run=dry_run)
    if json:
        print_json(found)
    verb = "would be removed" if dry_run else "removed"
    say(f"{counted(found.artifacts, 'result')} with {amount(found.bytes)} {verb}, {found.kept:,} kept")


def _check(directory: Path) -> None:
    """Raise an error if there is no corpus."""
    import thresher

    thresher.open(directory)


def _show_status(directory: Path, json: bool) -> None:
    from thresher.pipeline.runs import run_log

    _check(directory)
    run = run_log.last(directory)
    if json:
        print_json(run)
    elif run:
        _show_run(run)
    else:
        say(f"there are no runs yet; make one: thresher process {directory}")


def _show_run(run: Run) -> None:
    """Show the steps of a run as a table, and the faults of its tasks."""
    from thresher.cli.views.tables import FigureTable

    columns = ("step", "version", "found", "made", "failed", "waiting", "CPU s", "counts")
    table = FigureTable(columns, text=("step",), folded=("counts",))
    for step in run.steps:
        counts = [f"{step.count(state):,}" for state in ("found", "made", "failed", "waiting")]
        cpu = sum(artifact.cpu_seconds for artifact in step.artifacts)
        table.add(step.name, str(step.version), *counts, f"{cpu:.1f}", _counts(step.report))
    show(f"run {run.number}: {run.state}", table)
    for step in run.steps:
        for artifact in step.artifacts:
            if artifact.fault:
                say(
                    f"{step.name}, {artifact.key}: {artifact.fault} ({artifact.attempts} attempts in this run)"
                )


def _show_runs(known: list[Run], directory: Path, json: bool) -> None:
    from thresher.cli.views.tables import FigureTable
    from thresher.cli.views.text import span

    if json:
        print_json(known)
        return
    if not known:
        say(f"there are no runs yet; make one: thresher process {directory}")
        return
    table = FigureTable(
        ("run", "started", "state", "time", "steps"), text=("started", "state"), folded=("steps",)
    )
    for run in known:
        when = time.strftime("%Y-%m-%d %H:%M", time.localtime(run.started))
        steps = ", ".join(step.name for step in run.steps[1:])
        table.add(str(run.number), when, run.state, span(max(run.ended - run.started, 0)), steps)
    show(table)


def _show_changes(changes: list[RunChange], json: bool) -> None:
    from thresher.cli.views.tables import FigureTable

    if json:
        print_json(changes)
        return
    if not changes:
        say("nothing differs")
        return
    columns = ("kind", "name", "before", "after")
    show(
        FigureTable(
            columns,
            ((one.kind, one.name, one.before or "nothing", one.after or "nothing") for one in changes),
            text=columns,
        )
    )


def _show_dropped(directory: Path, step: str, number: int | None, output: Path | None, json: bool) -> None:
    """Show how much a step dropped, in all and by host; write the dropped texts to a file if one is given."""
    import msgspec

    from thresher.cli.views.tables import FigureTable
    from thresher.exporting.output import opened
    from thresher.pipeline.runs.dropped import RunComparison

    compared = RunComparison(directory, step, number)
    if output:
        with opened(output) as out:
            for one in compared:
                out.write(msgspec.json.encode(one._asdict()) + b"\n")
    else:
        deque(compared, maxlen=0)
    most = sorted(compared.hosts.items(), key=lambda item: (-item[1].dropped_words, item[0]))
    if json:
        print_json({"run": compared.run, "step": step, "total": compared.total, "hosts": dict(most)})
        return
    names = ("documents", "gone", "changed", "paragraphs", "dropped", "words", "dropped", "rewritten")
    table = FigureTable(("host", *names), text=("host",))
    for name, loss in [("all", compared.total), *most[:LISTED_HOSTS]]:
        if name == "all" or loss.gone or loss.changed or loss.dropped:
            table.add(name, *(f"{figure:,}" for figure in msgspec.structs.astuple(loss)))
    show(f"run {compared.run}, {step}", table)
    if output:
        say(f"all dropped documents and paragraphs are in {output}")


def _counts(report: dict[str, Any]) -> str:
    """Return the counts of a report on one line."""
    parts = []
    for name, value in report.items():
        if isinstance(value, dict):
            parts += [
                f"{name} {inner} {one:,}" for inner, one in value.items() if isinstance(one, int | float)
            ]
        else:
            parts.append(f"{name} {value:,}")
    return ", ".join(parts)


@contextmanager
def _engine(name: str, processes: int) -> Iterator[Engine]:
    from thresher.workers.registry import engine

    chosen = engine(name, processes)
    try:
        yield chosen
    finally:
        chosen.close()


def stage_line(stage: StageProgress) -> str:
    """Return the progress of a stage on one line."""
    from thresher.cli.views.terminal import span

    left = f", {span(stage.left)} left" if stage.left is not None else ""
    waiting = stage.total - stage.done
    task = stage.function.rpartition(":")[2]
    waited = f"; waiting for {waiting:,} × {task}" if waiting else ""
    return f"{stage.step}: artifacts made {stage.done:,} of {stage.total:,}{left}{waited}"
