"""The commands that process a corpus in steps, and tell what was made of what."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from thresher.cli.app import AsJson, Directory, app, print_json, say, show
from thresher.config import ConfigError, duration

if TYPE_CHECKING:
    from thresher.batch.records import Change, Run
    from thresher.engine.calls import Engine

LISTED_HOSTS = 20  # that lost the most words
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
    json: AsJson = False,
) -> None:
    """Run the steps that corpus.toml lists over a corpus; what was done before is not done again.

    Example: thresher process czech

    A recipe is a list of steps: [[process]] with step = "filter", max_badness = 10, and so on. Without one, exact
    and near duplicates are left out and the rest is counted. Results are kept in DIR/runs until `thresher gc`.

    Parameters
    ----------
    step
        Stop after this step.
    engine
        Where the work is done: local, in processes of this machine; ray, or ray:HOST:PORT, on a Ray cluster, whose
        nodes must all see the directory under the same path.
    processes
        How many of them on this machine; left out, one for each processor.
    status
        Only tell how the last run stands.
    dry_run
        Only tell what would be run, and why.
    retry_failed
        Also try pieces again that failed too often.
    deadline
        How long one piece may take.
    """
    from thresher.batch.dry import dry_run as planned
    from thresher.batch.run import process as run_recipe

    if status:
        _tell_status(directory, json)
        return
    if dry_run:
        missing = planned(directory, last_step=step)
        if json:
            print_json([one._asdict() for one in missing])
        for one in missing:
            say(f"{one.step}: {one.missing:,} of {one.total:,} pieces ({one.why}), and what builds on them")
            if one.given_up:
                say(
                    f"{one.given_up:,} of them failed too often, and are tried again with --retry-failed only"
                )
        if not missing:
            say("everything is there; nothing would be run")
        return
    start = time.monotonic()
    with _engine(engine, processes) as chosen, _progress() as progress:
        run = run_recipe(
            directory,
            chosen,
            engine_name=engine,
            last_step=step,
            retry_failed=retry_failed,
            deadline=duration(deadline),
            progress=progress,
        )
    if json:
        print_json(run)
    for done in run.steps[1:]:
        counts = f"{done.count('made'):,} pieces made, {done.count('found'):,} there"
        say(f"{done.name}: {counts}; {_figures(done.report)}")
    made = sum(one.count("made") for one in run.steps)
    say(f"run {run.number}: {made:,} pieces made in {time.monotonic() - start:.1f} s")


@app.command
def runs(
    directory: Directory,
    first: int | None = None,
    second: int | None = None,
    /,
    *,
    dropped: str = "",
    output: Annotated[Path | None, Parameter(name=["--output", "-o"])] = None,
    json: AsJson = False,
) -> None:
    """Tell which runs there were, what differs between two of them, or what a step dropped.

    Example: thresher runs czech 3 5

    Parameters
    ----------
    first
        Number of a run, to be told in full, or compared with the second.
    second
        Number of another run.
    dropped
        Tell what this step of a run dropped, of the last finished one if no number is given.
    output
        With --dropped: a file for all that was dropped, a JSON object a line; .gz and .zst compress.
    """
    from thresher.batch import records

    _check(directory)
    if dropped:
        if second is not None:
            raise ConfigError("--dropped tells of one run; leave the second number out")
        _tell_dropped(directory, dropped, first, output, json)
        return
    if output:
        raise ConfigError("-o is for what a step dropped; say which: --dropped STEP")
    known = {run.number: run for run in records.runs(directory)}
    for number in (first, second):
        if number is not None and number not in known:
            raise ConfigError(
                f"there is no run {number}; there are {', '.join(map(str, known)) or 'none yet'}"
            )
    if first is not None and second is not None:
        _tell_changes(records.changes(known[first], known[second]), json)
    elif first is not None:
        if json:
            print_json(known[first])
        _tell(known[first])
    else:
        _tell_runs(list(known.values()), directory, json)


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
        How many finished runs keep their results.
    dry_run
        Only tell what would be removed.
    """
    from thresher.batch.collect import collect
    from thresher.terminal import amount

    _check(directory)
    if keep < 1:
        raise ConfigError(f"--keep {keep} would leave nothing; try --keep 1")
    found = collect(directory, runs=keep, dry_run=dry_run)
    if json:
        print_json(found._asdict())
    verb = "would be removed" if dry_run else "removed"
    say(f"{found.pieces:,} results with {amount(found.bytes)} {verb}, {found.kept:,} kept")


def _check(directory: Path) -> None:
    """Say so where there is no corpus."""
    import thresher

    thresher.open(directory)


def _tell_status(directory: Path, json: bool) -> None:
    from thresher.batch import records

    _check(directory)
    run = records.last(directory)
    if json:
        print_json(run)
    if run:
        _tell(run)
    else:
        say(f"there are no runs yet; make one: thresher process {directory}")


def _tell(run: Run) -> None:
    """A run for people."""
    from rich.table import Table

    table = Table("step", "version", "there", "made", "failed", "waiting", "CPU s", "figures", box=None)
    for step in run.steps:
        counts = [f"{step.count(state):,}" for state in ("found", "made", "failed", "waiting")]
        cpu = sum(piece.cpu_seconds for piece in step.pieces)
        table.add_row(step.name, str(step.version), *counts, f"{cpu:.1f}", _figures(step.report))
    show(f"run {run.number}: {run.state}", table)
    for step in run.steps:
        for piece in step.pieces:
            if piece.fault:
                say(f"{step.name}, {piece.key}: {piece.fault} ({piece.attempts} attempts in this run)")


def _tell_runs(known: list[Run], directory: Path, json: bool) -> None:
    from thresher.terminal import span

    if json:
        print_json(known)
    for run in known:
        when = time.strftime("%Y-%m-%d %H:%M", time.localtime(run.started))
        steps = ", ".join(step.name for step in run.steps[1:])
        say(f"{run.number}  {when}  {run.state}  {span(max(run.ended - run.started, 0))}  {steps}")
    if not known:
        say(f"there are no runs yet; make one: thresher process {directory}")


def _tell_changes(changes: list[Change], json: bool) -> None:
    if json:
        print_json(changes)
    for change in changes:
        say(f"{change.what} {change.name}: {change.before or 'nothing'} became {change.after or 'nothing'}")
    if not changes:
        say("nothing differs")


def _tell_dropped(directory: Path, step: str, number: int | None, output: Path | None, json: bool) -> None:
    """What a step dropped: all of it into a file, and for people how much, of which hosts."""
    import msgspec
    from rich.table import Table

    from thresher.batch.dropped import Comparison
    from thresher.export.output import opened

    compared = Comparison(directory, step, number)
    if output:
        with opened(output) as out:
            for one in compared:
                out.write(msgspec.json.encode(one._asdict()) + b"\n")
    else:
        deque(compared, maxlen=0)
    most = sorted(compared.hosts.items(), key=lambda item: (-item[1].dropped_words, item[0]))
    if json:
        print_json({"run": compared.run, "step": step, "total": compared.total, "hosts": dict(most)})
    table = Table("", "documents", "gone", "changed", "paragraphs", "dropped", "words", "dropped", box=None)
    for name, loss in [("all", compared.total), *most[:LISTED_HOSTS]]:
        if name == "all" or loss.gone or loss.changed or loss.dropped:
            table.add_row(name, *(f"{figure:,}" for figure in msgspec.structs.astuple(loss)))
    show(f"run {compared.run}, {step}", table)
    if output:
        say(f"all that was dropped is in {output}")


def _figures(report: dict[str, Any]) -> str:
    told = []
    for name, value in report.items():
        if isinstance(value, dict):
            told += [
                f"{name} {inner} {one:,}" for inner, one in value.items() if isinstance(one, int | float)
            ]
        else:
            told.append(f"{name} {value:,}")
    return ", ".join(told)


@contextmanager
def _engine(name: str, processes: int) -> Iterator[Engine]:
    from thresher.engine.choose import engine

    chosen = engine(name, processes)
    try:
        yield chosen
    finally:
        chosen.close()


@contextmanager
def _progress() -> Iterator[Any]:
    """A line on a terminal that tells how far the stage is; a plain line now and then otherwise."""
    from rich.console import Console

    from thresher.terminal import PLAIN_EVERY, span

    console = Console(stderr=True)
    last = time.monotonic()

    def line(progress: Any) -> str:
        left = f", {span(progress.left)} left" if progress.left is not None else ""
        return f"{progress.step}: {progress.done:,} of {progress.total:,} pieces{left}"

    if console.is_terminal:
        with console.status("") as shown:
            yield lambda progress: shown.update(line(progress))
        return

    def tell(progress: Any) -> None:
        nonlocal last
        if time.monotonic() - last >= PLAIN_EVERY:
            last = time.monotonic()
            say(line(progress))

    yield tell
