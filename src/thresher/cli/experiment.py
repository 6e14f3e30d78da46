"""The papers' experiments as commands: `thresher experiment NAME DIR`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

from cyclopts import App, Parameter

from thresher.cli.app import AsJson, Directory, Many, app, print_json, say, show
from thresher.config import ConfigError, size

experiment = App(
    name="experiment",
    help="The papers' experiments, tables and figures on a crawl of your own.\n\n"
    "Example: thresher experiment links czech\n\n"
    "Each puts its figures and a picture into the directory runs of the corpus.",
)
app.command(experiment)

Plot = Annotated[Path | None, Parameter(help="SVG file for the picture, beside the one in runs.")]
Lang = Annotated[str, Parameter(help="Count text in this language, if it is not that of the corpus.")]


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
    """Do good seeds make a good crawl? Yield and Badness of seeds against the yield of what grew from them.

    Example: thresher experiment seeds czech --crawls 40

    Each page is counted for the seed that it was found from. Where seeds are few, small crawls from random pages of
    the record are made on paper instead.

    Parameters
    ----------
    crawls
        Make so many crawls on paper, however many seeds there are.
    group
        Seeds of each crawl on paper.
    max_bytes
        Bytes that each of them downloads; the size of the record by the number of crawls if left out.
    seed
        Another number, other random pages.
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
    """Does it pay to begin anew from the best URLs? A crawl in phases against one without a break, on paper.

    Example: thresher experiment cyclic czech --phases 5

    After each phase the frontier is emptied; the next begins with URLs from good pages and good blocks.

    Parameters
    ----------
    phases
        Phases, the first a tenth as long as the others.
    max_bytes
        Bytes that each crawl downloads; half of the record if left out.
    badness
        The highest Badness of a page whose URLs are chosen.
    boilerplate
        Chosen are links whose blocks score below that.
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
    """Does its context tell where a link leads? Precision, recall and F1 of Badness, boilerplate and the policy.

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
    """What do thresholds of yield save and cost? Domains, bytes and text above each, and under rules t(n).

    Example: thresher experiment thresholds czech --threshold "0.03 * (log10(n) - 1)"

    Parameters
    ----------
    threshold
        Rules of your own, beside the usual ones: expressions of n, the pages of a domain.
    min_pages
        Close no domain before it has so many pages; as the corpus has it if left out.
    min_bytes
        … and so many bytes: 512k.
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
    """Which domains gave text for their bytes? And the yield over the crawl, by snapshots and by depth.

    Example: thresher experiment domains czech --every 400M

    Parameters
    ----------
    every
        Bytes of a snapshot: 400M; a fiftieth of the crawl if left out.
    """
    _perform("domains", directory, lang, {"every": size(every) if every else 0}, plot, json)


def _perform(
    name: str, directory: Path, lang: str, settings: dict[str, Any], plot: Path | None, json: bool
) -> None:
    """Make an experiment, store it, and tell of it."""
    from thresher.cli.experiment_views import VIEWS
    from thresher.crawl.start import language_code
    from thresher.lab.experiments import EXPERIMENTS, replace, report, save
    from thresher.lab.experiments.evidence import gather

    if plot and not plot.parent.is_dir():
        raise ConfigError(f"{plot.parent} is no directory; make it, or give --plot another place")
    evidence = gather(directory, language_code(lang) if lang else "")
    made = EXPERIMENTS[name]
    result = made.run(evidence, **settings)
    svg = made.picture(result)
    said = report(name, lang or evidence.config.language, settings, result)
    files = save(directory, said, svg)
    if plot:
        replace(plot, svg.encode())
    if json:
        print_json(said)
    else:
        views: Sequence[Any] = VIEWS[name](result)
        show(*views)
    say(f"figures in {files.json}, picture in {plot or files.svg}")
