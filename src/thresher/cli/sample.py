"""The command that takes a near-uniform sample of pages by a random walk."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
from cyclopts import Parameter

from thresher.cli.app import DONE, FAULT, INTERRUPTED, AsJson, Many, app, print_json, say, show
from thresher.cli.visiting import Connections, ConnectTo, Contact, Delay, counting, warn_of

if TYPE_CHECKING:
    from rich.table import Table

    from thresher.crawl.estimate import Estimate

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
    """Take a near-uniform sample of the pages around some seeds, and tell what all pages are like.

    Example: thresher sample czech-sample --lang cs --seeds seeds.txt --pages 2000 --contact me@example.org

    Walkers follow random links and jump to random URLs heard of. Popular pages, which such a walk visits too often,
    weigh as much less as the walk was likelier to come there. Shares come with 95 % intervals (a bootstrap over
    hosts). The sample is one of the pages that the walk has heard of: the more pages, the more of the web these
    are. Each page is downloaded once.

    Parameters
    ----------
    lang
        Language that pages are asked for in.
    seeds
        Files with one URL a line, or URLs.
    pages
        Pages to visit.
    walkers
        Walkers under way at once; each waits for one host at a time.
    seed
        Number that chance starts from.
    """
    from thresher.crawl.sample import sample as take
    from thresher.crawl.seeds import gather
    from thresher.crawl.visitor import Terms
    from thresher.terminal import amount

    given = gather(seeds)
    for complaint in given.complaints:
        say(complaint)
    warn_of(connect_to)
    if directory is not None:
        directory.mkdir(parents=True, exist_ok=True)
    terms = Terms(lang, contact, delay, connections, connect_to)
    with counting(pages, "pages") as progress:
        taken = take(given.urls, terms, pages=pages, walkers=walkers, seed=seed, progress=progress)
    if directory is not None:
        lines = b"".join(msgspec.json.encode(row) + b"\n" for row in taken.rows)
        (directory / "sample.jsonl").write_bytes(lines)
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
        f"{len(taken.rows):,} pages of {taken.known:,} URLs heard of{where}; {taken.failed:,} led to no page, "
        f"{amount(taken.downloaded)} downloaded"
    )
    if taken.interrupted:
        say("interrupted: the sample is smaller than asked for")
        sys.exit(INTERRUPTED)
    sys.exit(DONE if taken.rows else FAULT)


def _table(name: str, estimates: Sequence[Estimate]) -> Table:
    """The largest shares with their intervals, for people."""
    from rich.table import Table
    from rich.text import Text

    from thresher.terminal import harmless

    table = Table(box=None, padding=(0, 1), header_style="bold")
    table.add_column(name, min_width=20)
    for column in ("share", "95 % interval"):
        table.add_column(column, justify="right")
    for each in estimates[:SHOWN]:
        cells = (harmless(each.value, 40), f"{each.share:.1%}", f"{each.low:.1%} to {each.high:.1%}")
        table.add_row(*map(Text, cells))
    if len(estimates) > SHOWN:
        table.add_row(Text(f"and {len(estimates) - SHOWN:,} more", style="dim"))
    return table
