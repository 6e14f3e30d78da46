"""The papers' experiments as commands: `thresher experiment NAME DIR`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

from cyclopts import App, Parameter

from thresher.cli.app import AsJson, Directory, Many, PlotName, app, print_json, say, show
from thresher.config import size

experiment = App(
    name="experiment",
    help="Repeat the papers' experiments, tables and figures on a crawl of your own.\n\n"
    "Example: thresher experiment links czech\n\n"
    "Results and a picture are written to the directory runs of the corpus.",
)
app.command(experiment)

Plot = Annotated[Path | None, PlotName, Parameter(help="SVG file for a copy of the picture.")]
Lang = Annotated[str, Parameter(help="Count text in this language instead of the language of the corpus.")]


@experiment.command
def seeds(
    directory: Directory,
    *,
    crawls: int = 0,
    group: int = 5,
    max_bytes: str | None = None,
    seed: int = 1,
    lang: Lang = "",
    plot: Plot = None,
    json: AsJson = False,
) -> None:
    """Compare yield and Badness of seeds with the yield of the crawls from them.

    Example: thresher experiment seeds czech --crawls 40

    Each page is counted for the seed from which it was found. With few seeds, small crawls from random pages of the
    record are simulated instead.

    Parameters
    ----------
    crawls
        Simulate this number of crawls, even if there are many seeds.
    group
        Seeds of each simulated crawl.
    max_bytes
        Bytes that each of them downloads; by default the size of the record divided by the number of crawls.
    seed
        Seed of the random numbers that choose pages.
    """
    limit = size(max_bytes) if max_bytes else 0
    settings = {"crawls": crawls, "group": group, "max_bytes": limit, "seed": seed}
    _perform("seeds", directory, lang, settings, plot, json)


@experiment.command
def cyclic(
    directory: Directory,
    *,
    phases: int = 5,
    max_bytes: str | None = None,
    badness: float = 10.0,
    boilerplate: float = 0.5,
    lang: Lang = "",
    plot: Plot = None,
    json: AsJson = False,
) -> None:
    """Compare a simulated crawl that restarts from the best URLs with one without a break.

    Example: thresher experiment cyclic czech --phases 5

    After each phase the frontier is emptied; the next phase begins with URLs from good blocks of good pages.

    Parameters
    ----------
    phases
        Phases; the first is a tenth as long as the others.
    max_bytes
        Bytes that each crawl downloads; half of the record by default.
    badness
        Maximum Badness of a page with chosen URLs.
    boilerplate
        Upper bound, exclusive, of the boilerplate score of a block with chosen URLs.
    """
    settings = {
        "phases": phases,
        "max_bytes": size(max_bytes) if max_bytes else 0,
        "badness": badness,
        "boilerplate": boilerplate,
    }
    _perform("cyclic", directory, lang, settings, plot, json)


@experiment.command
def links(directory: Directory, *, lang: Lang = "", plot: Plot = None, json: AsJson = False) -> None:
    """Measure how the context of a link predicts its target: precision, recall and F1 of several rules.

    Example: thresher experiment links czech --plot links.svg
    """
    _perform("links", directory, lang, {}, plot, json)


@experiment.command
def thresholds(
    directory: Directory,
    *,
    threshold: Annotated[list[str] | None, Many] = None,
    min_pages: int | None = None,
    min_bytes: str | None = None,
    lang: Lang = "",
    plot: Plot = None,
    json: AsJson = False,
) -> None:
    """Measure savings and losses by thresholds of yield: domains, bytes and text under rules t(n).

    Example: thresher experiment thresholds czech --threshold "0.03 * (log10(n) - 1)"

    Parameters
    ----------
    threshold
        More rules: expressions of n, the pages of a domain.
    min_pages
        Pages of a domain before it may be closed; by default the setting of the corpus.
    min_bytes
        Bytes of a domain before it may be closed, as 512k; by default the setting of the corpus.
    """
    settings = {
        "rules": tuple(threshold or ()),
        "min_pages": min_pages,
        "min_bytes": size(min_bytes) if min_bytes else None,
    }
    _perform("thresholds", directory, lang, settings, plot, json)


@experiment.command
def domains(
    directory: Directory,
    *,
    every: str | None = None,
    lang: Lang = "",
    plot: Plot = None,
    json: AsJson = False,
) -> None:
    """List domains by download and text, and the yield over the crawl by snapshots and by depth.

    Example: thresher experiment domains czech --every 400M

    Parameters
    ----------
    every
        Bytes of a snapshot, as 400M; a fiftieth of the crawl by default.
    """
    _perform("domains", directory, lang, {"every": size(every) if every else 0}, plot, json)


def _perform(
    name: str, directory: Path, lang: str, settings: dict[str, Any], plot: Path | None, json: bool
) -> None:
    """Run an experiment, print its tables, and store its result and picture."""
    from thresher.cli.views.experiments import VIEWS
    from thresher.files.durable_files import replace
    from thresher.reader.language.codes import language_code
    from thresher.report.experiments import EXPERIMENTS, report, save
    from thresher.report.experiments.evidence import gather
    from thresher.store.corpus_files import check_output_file

    if plot:
        check_output_file(plot)
    evidence = gather(directory, language_code(lang) if lang else "")
    chosen = EXPERIMENTS[name]
    result = chosen.run(evidence, **settings)
    svg = chosen.picture(result)
    stored = report(name, lang or evidence.config.language, settings, result)
    if json:
        print_json(stored)
    else:
        views: Sequence[Any] = VIEWS[name](result)
        show(*views)
    if plot:
        replace(plot, svg.encode())
    try:
        files = save(directory, stored, svg)
    except OSError as fault:  # the corpus may be on a medium that cannot be written to
        say(
            f"the result is not stored in {directory}: {fault.strerror}"
            + (f"; picture in {plot}" if plot else "")
        )
    else:
        say(f"result in {files.json}, picture in {plot or files.svg}")
