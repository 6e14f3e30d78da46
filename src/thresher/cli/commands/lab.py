"""Commands for webs that exist on this machine only: toyweb, simulate, demo."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
from cyclopts import Parameter

from thresher.cli.app import AsJson, Directory, Many, PlotName, app, leave, print_json, read_status, say, show
from thresher.cli.exit_codes import INTERRUPTED
from thresher.config import size
from thresher.errors import UsageError

if TYPE_CHECKING:
    from thresher.simulation.comparison import PolicyResult
    from thresher.simulation.record import CrawlRecord

MAX_SIMULATED_HOSTS = 20_000  # of a toy web: two million pages, whose record takes 5 GB


@app.command
def toyweb(
    *,
    hosts: int = 60,
    seed: int = 1,
    port: int = 0,
    target: str = "cs",
    processes: int = 1,
    readable: Annotated[bool, Parameter(negative=())] = False,
    parameter: Annotated[dict[str, Any] | None, Parameter(name="--set", negative=())] = None,
    json: AsJson = False,
) -> None:
    """Serve a web of invented hosts on loopback; equal parameters give equal webs.

    Example: thresher toyweb --hosts 500 --seed 7 --port 8088 --set.calendar 0.1

    Prints the address to connect to and the URLs to start from, and serves until it is stopped. Only the crawler's
    --connect-to reaches its hosts. The texts are words as frequent as in their languages, which takes the extra
    lab (pip install 'thresher[lab]'); --readable does without.

    Parameters
    ----------
    hosts
        Number of hosts.
    seed
        Number from which the web is drawn.
    port
        Port to listen on; any free one if 0.
    target
        Language of the corpus that the web is for: most hosts have some of it, or pretend to.
    processes
        Number of processes that serve.
    readable
        Sentences that people can read, in cs, en, de, ru and tr.
    parameter
        Any other parameter of the toy web, by name.
    """
    from thresher.wording import counted
    from thresher_lab.toyweb import Server, ToyWeb, seeds, serve_forever

    if not 0 <= port < 1 << 16:
        raise UsageError(f"--port must be from 0 to 65535, got {port}; 0 means any free one")
    for name, value in (parameter or {}).items():
        if str(value).strip().lower().lstrip("+-") in ("nan", "inf", "infinity"):
            raise UsageError(f"--set.{name} must be finite, got {value}")
    try:
        base = msgspec.to_builtins(ToyWeb.readable() if readable else ToyWeb())
        table = {**base, "hosts": hosts, "seed": seed, "target": target, **(parameter or {})}
        web = msgspec.convert(table, ToyWeb, strict=False)
    except (msgspec.ValidationError, ValueError) as error:
        raise UsageError(f"toyweb: {error}") from None

    def ready(server: Server) -> None:
        start = seeds(web)
        if json:
            print_json({"connect_to": server.connect_to, "seeds": start})
            return
        say(f"serving {counted(hosts, 'host')}; crawl them with:")
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
    plot: Annotated[Path | None, PlotName] = None,
    json: AsJson = False,
) -> None:
    """Simulate crawls of a recorded web under several policies: text gained for bytes downloaded.

    Example: thresher simulate czech --policy bfs,spiderling --delay 1 --connections 50

    Any corpus is a record of the web it was crawled from, as far as that was crawled. A toy web as poor as the
    real one needs no crawl. The policies are compared with an oracle, which knows every page but must find a path
    to it, and with the ideal, which needs no path.

    Parameters
    ----------
    toyweb
        Number of hosts of a toy web instead of a corpus; each has about a hundred pages.
    seed
        Number from which the toy web is drawn.
    policy
        Policies to compare, with commas between them.
    lang
        Language whose text counts; the language of the corpus by default.
    seeds
        Files with one URL per line, or URLs; the seeds of the corpus or the toy web by default.
    budget
        Bytes to download at most: 500M, 20GB; three times as many as the ideal needs by default.
    delay
        Seconds between two requests to a host.
    connections
        Concurrent requests.
    repeat
        Number of runs with different random numbers; the table gives means and ranges.
    plot
        SVG file for a picture of the harvests, of the first run of each policy.
    """
    from thresher.cli.views.terminal import harvests
    from thresher.crawler.seeds import gather
    from thresher.reader.language.codes import language_code
    from thresher.simulation.comparison import repeated
    from thresher.simulation.simulate import HARVEST_LIMIT, SimulationTerms, ideal
    from thresher.store.corpus_files import check_output_file

    if plot:
        check_output_file(plot)
    if delay < 0:
        raise UsageError(f"--delay must be at least 0, got {delay:g}")
    if connections < 1:
        raise UsageError(f"--connections must be at least 1, got {connections}")
    language = language_code(lang) if lang else ""
    if directory is not None and toyweb is None:
        record, urls = _recorded(directory, language)
    elif directory is None and toyweb is not None:
        record, urls = _planned(toyweb, seed, language)
    else:
        raise UsageError(
            "simulate needs either the directory of a corpus or --toyweb HOSTS; "
            "try: thresher simulate --toyweb 500"
        )
    if seeds:
        urls = list(gather(seeds).urls)
    limit = size(budget) if budget else HARVEST_LIMIT * int(ideal(record).downloaded[-1:].sum())
    terms = SimulationTerms(delay=delay, connections=connections, bytes=limit)
    results = list(repeated(record, policy.split(","), record.find(urls), terms, repeat))
    if plot:
        _draw(plot, results, timed=delay > 0)
    if json:
        for result in results:
            print_json(result.row)
    else:
        show(harvests([result.row for result in results]))


def _draw(plot: Path, results: Sequence[PolicyResult], *, timed: bool) -> None:
    """Write a picture of the harvests, over time too if the simulation had delays."""
    from thresher.files.durable_files import replace
    from thresher.report.harvest_plot import harvest_plot

    *policies, ideal = results
    named = [
        (row.policy, harvest if timed else harvest._replace(seconds=0 * harvest.seconds))
        for row, harvest in policies
    ]
    replace(plot, harvest_plot(named, ideal.harvest).encode())
    say(f"picture in {plot}")


def _recorded(directory: Path, language: str) -> tuple[CrawlRecord, list[str]]:
    """Return the record of a corpus, and its seeds."""
    from thresher.simulation.record import load

    record = load(directory, language)
    return record, (directory / "seeds.txt").read_text("utf-8").split()


def _planned(hosts: int, seed: int, language: str) -> tuple[CrawlRecord, list[str]]:
    """Return the record of a toy web, and its seeds in the target language."""
    from thresher_lab.toyweb import ToyWeb, seeds
    from thresher_lab.toyweb.simulation_record import record_of

    if hosts > MAX_SIMULATED_HOSTS:
        raise UsageError(
            f"--toyweb must be at most {MAX_SIMULATED_HOSTS:,}, got {hosts}: the record is kept in memory"
        )
    try:
        web = ToyWeb.papers(hosts=hosts, seed=seed)
    except ValueError as error:
        raise UsageError(f"--toyweb: {error}") from None
    if language and language not in web.languages:
        raise UsageError(f"--lang {language} is not in the toy web; choose one of {', '.join(web.languages)}")
    web = web.but(target=language or web.target)
    return record_of(web), seeds(web)[web.target]


@app.command
def demo(directory: Directory = Path("thresher-demo"), *, json: AsJson = False) -> None:
    """Crawl a small web on this machine into a corpus, index it and show it; no network, under a minute.

    Example: thresher demo

    The web has 60 hosts in five languages, with menus, duplicates, traps and faults. The corpus is Czech, and is
    compared with the texts that a perfect crawl would keep.
    """
    from thresher import demo as demonstration
    from thresher.cli.views.demo import view
    from thresher.cli.views.terminal import progress, status_tables
    from thresher_lab.toyweb.demo_web import ToyDemoWeb

    web = ToyDemoWeb()
    say(f"crawling a toy web of {web.hosts} hosts on loopback for {web.language!r} into {directory}")
    with progress() as report:
        ending = demonstration.run(directory, web, report)
    if ending.reason == "interrupted":
        leave("interrupted", INTERRUPTED)
    status, found = read_status(directory), demonstration.findings(directory, web)
    if json:
        print_json({**status, "demo": found})
    else:
        show(status_tables(status))
        show(view(found, str(directory), _program(), _relative(sys.executable)))


def _program() -> str:
    """Return the command by which this program can be started again from here."""
    script = Path(sys.argv[0])
    if script.name != "thresher":
        return f"{_relative(sys.executable)} -m thresher.cli"
    on_path = shutil.which("thresher")
    return "thresher" if on_path and script.samefile(on_path) else _relative(str(script))


def _relative(path: str) -> str:
    """Return a path relative to the working directory if it is below it."""
    here = f"{Path.cwd()}{os.sep}"
    return path.removeprefix(here)
