"""The command that finds out which candidates are good seeds."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from thresher.cli.app import DONE, FAULT, INTERRUPTED, AsJson, app, print_json, say, show
from thresher.cli.visiting import Connections, ConnectTo, Contact, Delay, counting, warn_of

if TYPE_CHECKING:
    from rich.table import Table

    from thresher.crawl.appraise import Appraisal


@app.command
def seeds(
    files: Annotated[list[str], Parameter(name="FILE", help="Files with one URL a line, or URLs.")],
    *,
    lang: str,
    output: Annotated[Path | None, Parameter(name=["--output", "-o"])] = None,
    delay: Delay = None,
    connections: Connections = None,
    contact: Contact = None,
    connect_to: ConnectTo = "",
    json: AsJson = False,
) -> None:
    """Visit candidates once, politely, and tell which are good seeds, the best first.

    Example: thresher seeds candidates.txt --lang cs -o seeds.txt --contact me@example.org

    The score of a page is its yield (bytes of text in the language for each byte downloaded) and up to 0.1 for
    links, 50 of which bring half, times the share of what can be seen of it that is in the language. Good are pages
    that a crawl would keep, and pages with little text and at least 5 links if what can be seen is in the language.
    Exit code 1: none is good.

    Parameters
    ----------
    lang
        Language of the corpus that they are to be seeds of.
    output
        Seeds file to write: the good ones, each after a comment with its score.
    """
    from thresher.crawl.appraise import appraise_all, seed_list
    from thresher.crawl.seeds import gather
    from thresher.crawl.visitor import Terms

    given = gather(files)
    for complaint in given.complaints:
        say(complaint)
    warn_of(connect_to)
    terms = Terms(lang, contact, delay, connections, connect_to)
    with counting(len(given.urls), "candidates") as progress:
        found = appraise_all(given.urls, terms, progress)
    if json:
        for seed in found.seeds:
            print_json(seed)
    else:
        show(_table(found.seeds))
    good = sum(seed.good for seed in found.seeds)
    if output is not None:
        output.write_text(seed_list(found.seeds), "utf-8")
    say(f"{good:,} of {len(given.urls):,} are good seeds" + (f": {output}" if output else ""))
    if found.interrupted:
        say(f"interrupted: {len(given.urls) - len(found.seeds):,} were not visited")
        sys.exit(INTERRUPTED)
    sys.exit(DONE if good else FAULT)


def _table(seeds: Sequence[Appraisal]) -> Table:
    """Candidates for people: those that are good with their figures, the others with the reason."""
    from rich.table import Table
    from rich.text import Text

    from thresher.terminal import amount, harmless

    table = Table(box=None, padding=(0, 1), header_style="bold")
    for name in ("seed", "score", "yield", "text", "languages", "bad", "boiler", "own", "other", "verdict"):
        table.add_column(
            name, justify="left" if name in ("seed", "languages", "verdict") else "right", no_wrap=True
        )
    for seed in seeds:
        languages = " ".join(f"{share.code} {share.share:.0%}" for share in seed.languages[:2])
        cells = [
            f"{seed.score:.3f}",
            f"{seed.rate:.3f}",
            amount(seed.text_bytes),
            languages or "-",
            "-" if seed.badness is None else f"{seed.badness:.1f}",
            f"{seed.boilerplate:.0%}",
            f"{seed.own_links:,}",
            f"{seed.other_links:,}",
        ]
        if seed.verdict is None:
            cells = [""] * len(cells)
        why = "good" if seed.good else f"{seed.reason} {seed.detail}".strip()
        style = "" if seed.good else "dim"
        cells = [harmless(seed.url, 48), *cells, harmless(why, 60)]
        table.add_row(*(Text(cell, style=style) for cell in cells))
    return table
