"""The command that takes a near-uniform sample of pages by a random walk."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
from cyclopts import Parameter

from thresher.cli.app import AsJson, Many, app, print_json, say, show
from thresher.cli.commands.visiting import Connections, ConnectTo, Contact, Delay, counting, warn_about
from thresher.cli.exit_codes import DONE, FAULT, INTERRUPTED

if TYPE_CHECKING:
    from thresher.cli.views.tables import FigureTable
    from thresher.crawler.sampling.estimate import Estimate

SHOWN = 12  # values of one kind


@app.command
def sample(
    directory: Annotated[Path | None, Parameter(help="Directory that gets sample.jsonl.")] = None,
    *,
    lang: str,
    seeds: Annotated[list[str], Many],
    pages: int,
    walkers: int = 20,
    seed: int | None = None,
    delay: Delay = None,
    connections: Connections = None,
    contact: Contact = None,
    connect_to: ConnectTo = "",
    json: AsJson = False,
) -> None:
    """Take a near-uniform sample of the pages around some seeds, and estimate shares of all pages.

    Example: thresher sample czech-sample --lang cs --seeds seeds.txt --pages 2000 --contact me@example.org

    Walkers follow random links and jump to random known URLs. Such a walk visits popular pages too often; their
    weights are lower by as much as they were more probable. Shares come with 95 % intervals (a bootstrap over
    hosts). The sample represents the pages that the walk has found links to: the more pages, the larger a part of
    the web they are. Each page is downloaded once.

    Parameters
    ----------
    lang
        Language that is requested from servers.
    seeds
        Files with one URL per line, or URLs.
    pages
        Pages to visit.
    walkers
        Concurrent walkers; each waits for one host at a time.
    seed
        Seed of the random numbers.
    """
    from thresher.cli.views.terminal import amount
    from thresher.crawler.sampling.page_visitor import VisitSettings
    from thresher.crawler.sampling.sample import sample as take
    from thresher.crawler.seeds import gather
    from thresher.files.durable_files import replace

    gathered = gather(seeds)
    for remark in gathered.remarks:
        say(remark)
    warn_about(connect_to)
    if directory is not None:
        directory.mkdir(parents=True, exist_ok=True)
    terms = VisitSettings(lang, contact, delay, connections, connect_to)
    with counting(pages, "pages") as progress:
        taken = take(gathered.urls, terms, pages=pages, walkers=walkers, seed=seed, progress=progress)
    if directory is not None:
        lines = b"".join(msgspec.json.encode(row) + b"\n" for row in taken.rows)
        replace(directory / "sample.jsonl", lines)
    if json:
        for row in taken.rows:
            print_json(row)
    elif taken.rows:
        for name, estimates in (
            ("language", taken.languages),
            ("top-level domain", taken.tlds),
            ("size", taken.sizes),
        ):
            show(_table(name, estimates))
    where = f" in {directory / 'sample.jsonl'}" if directory is not None else ""
    say(
        f"{len(taken.rows):,} pages of {taken.known:,} known URLs{where}; {taken.failed:,} led to no page, "
        f"{amount(taken.downloaded)} downloaded"
    )
    if taken.interrupted:
        say("interrupted: the sample is smaller than requested")
        sys.exit(INTERRUPTED)
    sys.exit(DONE if taken.rows else FAULT)


def _table(name: str, estimates: Sequence[Estimate]) -> FigureTable:
    """Return a table of the largest shares with their intervals."""
    from thresher.cli.views.tables import FigureTable

    table = FigureTable((name, "share", "95 % interval"), text=(name,))
    for each in estimates[:SHOWN]:
        table.add(each.value, f"{each.share:.1%}", f"{each.low:.1%} to {each.high:.1%}")
    if len(estimates) > SHOWN:
        table.add(f"and {len(estimates) - SHOWN:,} more", "", "", style="dim")
    return table
