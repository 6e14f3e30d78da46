"""The papers' experiments, for any crawl: each is a function, a picture and a row in `EXPERIMENTS`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from thresher._version import __version__
from thresher.files.durable_files import replace
from thresher.report.experiments import cyclic, domains, links, seeds, thresholds


class Experiment(NamedTuple):
    """An experiment: the question it answers, its function and its picture."""

    question: str
    run: Callable[..., Any]  # from evidence and the settings of the experiment to its result
    picture: Callable[[Any], str]  # from the result to SVG


EXPERIMENTS: dict[str, Experiment] = {
    "seeds": Experiment("Do good seeds make a good crawl?", seeds.run, seeds.picture),
    "cyclic": Experiment("Does it pay to restart from the best URLs?", cyclic.run, cyclic.picture),
    "links": Experiment("Does the context of a link predict its target?", links.run, links.picture),
    "thresholds": Experiment(
        "How much do thresholds of yield save and lose?", thresholds.run, thresholds.picture
    ),
    "domains": Experiment("Which domains yield text?", domains.run, domains.picture),
}


class Report(msgspec.Struct, frozen=True):
    """A stored result of an experiment, with version and settings."""

    experiment: str
    thresher: str
    language: str
    settings: dict[str, Any]
    result: Any


class ReportFiles(NamedTuple):
    """The files of a report."""

    json: Path
    svg: Path


def report(name: str, language: str, settings: dict[str, Any], result: Any) -> Report:
    """Return the report of an experiment by this version of Thresher."""
    return Report(name, __version__, language, settings, result)


def save(directory: Path, result: Report, svg: str) -> ReportFiles:
    """Write a report and its picture to `runs/` of a corpus; they replace the last ones of the experiment."""
    runs = directory / "runs"
    runs.mkdir(exist_ok=True)
    files = ReportFiles(
        runs / f"experiment-{result.experiment}.json", runs / f"experiment-{result.experiment}.svg"
    )
    replace(files.json, msgspec.json.encode(result))
    replace(files.svg, svg.encode())
    return files
