"""Commands of the lab: webs that nobody else is bothered with."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
from cyclopts import Parameter

from thresher.cli.app import (
    INTERRUPTED,
    AsJson,
    Directory,
    Many,
    app,
    leave,
    print_json,
    read_status,
    say,
    show,
)
from thresher.config import ConfigError, size

if TYPE_CHECKING:
    from thresher.lab.comparison import Result
    from thresher.lab.record import Record

MOST_PLANNED = 20_000  # hosts of a toy web that is crawled on paper: two million pages, 5 GB


@app.command
def toyweb(
    *,
    hosts: int = 60,
    seed: int = 1,
    port: int = 0,
    target: str = "cs",
    processes: int = 1,
    parameter: Annotated[dict[str, Any] | None, Parameter(name="--set", negative=())] = None,
    json: AsJson = False,
) -> None:
    """Serve a whole web on loopback, the same for everyone who asks with the same parameters.

    Example: thresher toyweb --hosts 500 --seed 7 --port 8088 --set.calendar 0.1

    Prints where to connect to and where to start, and serves until stopped. Only the crawler's --connect-to
    reaches its hosts.

    Parameters
    ----------
    hosts
        Number of hosts.
    seed
        Another number, another web.
    port
        Port to listen on; any free one if 0.
    target
        The language that a corpus is to be built of.
    processes
        Processes that serve.
    parameter
        Any other parameter of the toy web, by name.
    """
    from thresher.lab.toyweb import Server, ToyWeb, seeds, serve_forever

    try:
        table = {"hosts": hosts, "seed": seed, "target": target, **(parameter or {})}
        web = msgspec.convert(table, ToyWeb, strict=False)
    except (msgspec.ValidationError, ValueError) as fault:
        raise ConfigError(f"toyweb: {fault}") from None

    def ready(server: Server) -> None:
        start = seeds(web)
        if json:
            print_json({"connect_to": server.connect_to, "seeds": start})
            return
        say(f"serving {hosts:,} hosts; crawl them with:")
        say(
            f"thresher crawl toy --lang {target} --connect-to {server.connect_to} --delay 0 "
            f"--seeds {' '.join(start[target])}"
        )

    serve_forever(web, port, processes, ready=ready)


@app.command
def simulate(
    directory: Directory | None = None,
    *,
    toyweb: int | None = None,
    seed: int = 1,
    policy: str = "bfs,spiderling",
    lang: str = "",
    seeds: Annotated[list[str] | None, Many] = None,
    budget: str | None = None,
    delay: float = 0.0,
    connections: int = 1,
    repeat: int = 1,
    plot: Path | None = None,
    json: AsJson = False,
) -> None:
    """Crawl a recorded web again on paper, under other policies: how much text for how much downloading?

    Example: thresher simulate czech --policy bfs,spiderling --delay 1 --connections 50

    Any corpus is a record of the web it was crawled from, as far as that was crawled. A toy web as poor as the
    real one needs no crawl. Beside the policies stand an oracle, which knows every page but has to find a way
    there, and the ideal, which need not.

    Parameters
    ----------
    toyweb
        Instead of a corpus, a toy web of so many hosts, about a hundred pages each.
    seed
        Another number, another toy web.
    policy
        Policies to compare, with commas between them.
    lang
        Count text in this language, if it is not that of the corpus.
    seeds
        Files with one URL a line, or URLs; those of the corpus or the toy web if left out.
    budget
        Download no more than that: 500M, 20GB; three times what the ideal needs if left out.
    delay
        Seconds between two requests to a host.
    connections
        Requests under way at once.
    repeat
        Crawl so many times with other chance, and tell means and ranges.
    plot
        SVG file for a picture of the harvests, of the first run of each.
    """
    from thresher.crawl.seeds import gather
    from thresher.crawl.start import language_code
    from thresher.lab.comparison import repeated
    from thresher.lab.simulate import FURTHER, Terms, ideal
    from thresher.terminal import harvests

    if plot and not plot.parent.is_dir():
        raise ConfigError(f"{plot.parent} is no directory; make it, or give --plot another place")
    language = language_code(lang) if lang else ""
    if directory is not None and toyweb is None:
        record, urls = _recorded(directory, language)
    elif directory is None and toyweb is not None:
        record, urls = _planned(toyweb, seed, language)
    else:
        raise ConfigError(
            "simulate takes the directory of a corpus or --toyweb HOSTS, one of the two; "
            "try: thresher simulate --toyweb 500"
        )
    if seeds:
        urls = list(gather(seeds).urls)
    limit = size(budget) if budget else FURTHER * int(ideal(record).downloaded[-1:].sum())
    terms = Terms(delay=delay, connections=connections, bytes=limit)
    results = list(repeated(record, policy.split(","), record.find(urls), terms, repeat))
    if plot:
        _draw(plot, results, timed=delay > 0)
    if json:
        for result in results:
            print_json(result.row)
    else:
        show(harvests([result.row for result in results]))


def _draw(plot: Path, results: Sequence[Result], *, timed: bool) -> None:
    """The harvests as a picture; time has a part in it where hosts have their rests."""
    from thresher.lab.experiments import replace
    from thresher.lab.harvest_plot import harvest_plot

    *policies, ideal = results
    named = [
        (row.policy, harvest if timed else harvest._replace(seconds=0 * harvest.seconds))
        for row, harvest in policies
    ]
    replace(plot, harvest_plot(named, ideal.harvest).encode())
    say(f"picture in {plot}")


def _recorded(directory: Path, language: str) -> tuple[Record, list[str]]:
    """The record of a corpus, and its seeds."""
    from thresher.lab.record import load

    record = load(directory, language)
    return record, (directory / "seeds.txt").read_text("utf-8").split()


def _planned(hosts: int, seed: int, language: str) -> tuple[Record, list[str]]:
    """The record of a toy web, and its seeds in the target language."""
    from thresher.lab.toyrecord import record_of
    from thresher.lab.toyweb import ToyWeb, seeds

    if hosts > MOST_PLANNED:
        raise ConfigError(f"--toyweb {hosts}: no more than {MOST_PLANNED:,} hosts, or memory runs short")
    try:
        web = ToyWeb.papers(hosts=hosts, seed=seed)
    except ValueError as fault:
        raise ConfigError(f"--toyweb: {fault}") from None
    if language and language not in web.languages:
        raise ConfigError(f"--lang {language}: a toy web has only {', '.join(web.languages)}")
    web = web.but(target=language or web.target)
    return record_of(web), seeds(web)[web.target]


@app.command
def demo(directory: Directory = Path("thresher-demo"), *, json: AsJson = False) -> None:
    """Crawl an embedded web into a corpus and show it: no network, under a minute.

    Example: thresher demo
    """
    from thresher.inspect import view_demo
    from thresher.lab import demo as lab
    from thresher.terminal import figures, progress

    say(f"crawling a toy web of {lab.WEB.hosts} hosts on loopback for {lab.WEB.target!r} into {directory}")
    with progress() as tell:
        ending = lab.run(directory, tell)
    if ending.reason == "interrupted":
        leave("interrupted", INTERRUPTED)
    status, found = read_status(directory), lab.findings(directory)
    if json:
        print_json({**status, "demo": found})
    else:
        show(figures(status))
        show(view_demo(found, directory))
