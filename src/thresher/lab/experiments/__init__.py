"""The papers' experiments on a crawl of one's own: each is a function, a picture and a row in `EXPERIMENTS`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from thresher._version import __version__
from thresher.lab.experiments import cyclic, domains, links, seeds, thresholds
from thresher.store.files import sync_directory


class Experiment(NamedTuple):
    """What it is called for, how it is done, and how it looks."""

    promise: str
    run: Callable[..., Any]  # of the evidence and settings of its own
    picture: Callable[[Any], str]  # SVG of what `run` gave


EXPERIMENTS: dict[str, Experiment] = {
    "seeds": Experiment("Do good seeds make a good crawl?", seeds.run, seeds.picture),
    "cyclic": Experiment("Does it pay to begin anew from the best URLs?", cyclic.run, cyclic.picture),
    "links": Experiment("Does its context tell where a link leads?", links.run, links.picture),
    "thresholds": Experiment(
        "What do thresholds of yield save and cost?", thresholds.run, thresholds.picture
    ),
    "domains": Experiment("Which domains gave text for their bytes?", domains.run, domains.picture),
}


class Report(msgspec.Struct, frozen=True):
    """An experiment as it is stored: what was asked, and what came out."""

    experiment: str
    thresher: str
    language: str
    settings: dict[str, Any]
    result: Any


class Files(NamedTuple):
    """Where a report lies."""

    json: Path
    svg: Path


def report(name: str, language: str, settings: dict[str, Any], result: Any) -> Report:
    """The report of an experiment by this version."""
    return Report(name, __version__, language, settings, result)


def save(directory: Path, said: Report, svg: str) -> Files:
    """Put a report and its picture into the runs of a corpus, in place of those of the last time."""
    runs = directory / "runs"
    runs.mkdir(exist_ok=True)
    files = Files(runs / f"experiment-{said.experiment}.json", runs / f"experiment-{said.experiment}.svg")
    replace(files.json, msgspec.json.encode(said))
    replace(files.svg, svg.encode())
    return files


def replace(path: Path, data: bytes) -> None:
    """Write a whole file at once: whoever reads it finds the old one or the new one."""
    temporary = path.with_name(f".{path.name}.new")
    try:
        temporary.write_bytes(data)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
    sync_directory(path.parent)
