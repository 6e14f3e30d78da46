"""The command that finds out which candidates are good seeds."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

from cyclopts import Parameter

from thresher.cli.app import DONE, FAULT, INTERRUPTED, AsJson, Many, app, print_json, say, show
from thresher.cli.visiting import Connections, ConnectTo, Contact, Delay, counting, warn_of
from thresher.config import ConfigError

if TYPE_CHECKING:
    from rich.table import Table
    from rich.text import Text

    from thresher.crawl.appraise import Appraisal
    from thresher.crawl.indexes import Chosen

# Columns with their least width: score, yield, bytes of text, Badness, boilerplate, links inside and out.
FIGURES = {"score": 5, "yield": 5, "text": 7, "bad": 4, "boil": 4, "links": 5}


@app.command
def seeds(
    files: Annotated[
        list[str],
        Parameter(
            name="FILE",
            help="Files with one URL a line, or URLs; or files of an index of Common Crawl (Parquet or CDXJ).",
        ),
    ],
    *,
    lang: str,
    tld: Annotated[list[str] | None, Many] = None,
    per_host: int | None = None,
    max_seeds: int | None = None,
    visit: Annotated[bool, Parameter(negative=())] = False,
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

    An index of Common Crawl gives candidates itself: pages in the language (the main one of each), those of the
    hosts with the most such pages first, of each host those with the shortest URLs. Its crawler has seen them, so
    they are visited only with --visit: thresher seeds cc-index/*.parquet --lang cs --tld cz -o seeds.txt

    Parameters
    ----------
    lang
        Language of the corpus that they are to be seeds of: cs, or ces.
    tld
        index: only hosts under these top-level domains.
    per_host
        index: at most so many of a host; 3 if left out.
    max_seeds
        index: at most so many in all; 10,000 if left out.
    visit
        index: visit the candidates, too.
    output
        Seeds file to write: the good ones, each after a comment with its score.
    """
    from thresher.crawl.appraise import appraise_all, seed_list
    from thresher.crawl.indexes import is_index
    from thresher.crawl.seeds import gather
    from thresher.crawl.start import language_code
    from thresher.crawl.visitor import Terms
    from thresher.store.files import publish

    if output is not None and not output.parent.is_dir():
        raise ConfigError(f"{output} cannot be written: {output.parent} is no directory; make it first")
    indexes = ["://" not in name and is_index(Path(name)) for name in files]
    if all(indexes):
        tlds = tuple(map(_tld, tld or ()))
        chosen = _choose(files, language_code(lang), tlds, per_host, max_seeds)
        if not visit or not chosen.seeds:
            _hand_over(chosen, output, as_json=json)
        files = [seed.url for seed in chosen.seeds]
    elif any(indexes):
        raise ConfigError("give files of an index of Common Crawl and lists of URLs one after the other")
    elif tld or per_host is not None or max_seeds is not None or visit:
        raise ConfigError("--tld, --per-host, --max-seeds, --visit are for files of an index of Common Crawl")
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
        for table in _tables(found.seeds):
            show(table)
    good = sum(seed.good for seed in found.seeds)
    if output is not None:
        publish(output, seed_list(found.seeds).encode())
    say(f"{good:,} of {len(given.urls):,} are good seeds" + (f": {output}" if output else ""))
    if found.interrupted:
        say(f"interrupted: {len(given.urls) - len(found.seeds):,} were not visited")
        sys.exit(INTERRUPTED)
    sys.exit(DONE if good else FAULT)


def _tld(name: str) -> str:
    from thresher.url import top_level

    found = top_level(name)
    if found is None:
        raise ConfigError(f"--tld {name!r} is no top-level domain; try one without dots in it: cz")
    return found


def _choose(
    files: Sequence[str], language: str, tlds: tuple[str, ...], per_host: int | None, most: int | None
) -> Chosen:
    """Candidates of an index; what is odd about it is told."""
    from thresher.crawl.indexes import Wishes, choose

    usual = Wishes()
    wishes = Wishes(
        language,
        tlds,
        usual.per_host if per_host is None else per_host,
        usual.most if most is None else most,
    )
    with counting(None, "pages of the index") as progress:
        chosen = choose([Path(name) for name in files], wishes, progress)
    if chosen.odd:
        say(f"{chosen.odd:,} lines make no sense and are left out")
    if chosen.unknown:
        say(f"{chosen.unknown:,} pages are left out: the index does not tell their language")
    say(f"{chosen.pages:,} of {chosen.rows:,} pages of the index are as wished")
    return chosen


def _hand_over(chosen: Chosen, output: Path | None, *, as_json: bool) -> NoReturn:
    """Candidates of an index as seeds, unvisited."""
    from thresher.crawl.indexes import seed_list
    from thresher.store.files import publish

    if as_json:
        for seed in chosen.seeds:
            print_json(seed)
    elif output is None:
        sys.stdout.write(seed_list(chosen.seeds))
    if output is not None and chosen.seeds:
        publish(output, seed_list(chosen.seeds).encode())
    hosts = len({seed.host for seed in chosen.seeds})
    where = f": {output}" if output and chosen.seeds else ""
    say(f"{len(chosen.seeds):,} seeds of {hosts:,} hosts{where}")
    sys.exit(DONE if chosen.seeds else FAULT)


def _tables(seeds: Sequence[Appraisal]) -> Iterator[Table]:
    """Candidates for people: the pages with their figures, then those that could not be visited."""
    from rich.table import Table

    pages = Table(box=None, padding=(0, 1), collapse_padding=True, pad_edge=False, header_style="bold")
    for name, width in FIGURES.items():
        pages.add_column(name, justify="right", no_wrap=True, min_width=width)
    pages.add_column("languages", no_wrap=True, min_width=7)
    pages.add_column("verdict", no_wrap=True, min_width=8)
    pages.add_column("seed", no_wrap=True, min_width=10)
    failures = Table(box=None, padding=(0, 1), collapse_padding=True, pad_edge=False, header_style="bold")
    for name in ("failed", "seed"):
        failures.add_column(name, no_wrap=True)
    for seed in seeds:
        table = failures if seed.verdict is None else pages
        table.add_row(*_cells(seed), style="" if seed.good else "dim")
    yield from (table for table in (pages, failures) if table.row_count)


def _cells(seed: Appraisal) -> list[Text]:
    """A candidate's row."""
    from rich.text import Text

    from thresher.terminal import amount, harmless

    why = "good" if seed.good else f"{seed.reason} {seed.detail}".strip()
    if seed.verdict is None:
        return [Text(harmless(why, 40)), Text(harmless(seed.url))]
    figures = (
        f"{seed.score:.3f}",
        f"{seed.rate:.3f}",
        amount(seed.text_bytes),
        "-" if seed.badness is None else f"{seed.badness:.1f}",
        f"{seed.boilerplate:.0%}",
        f"{seed.own_links:,}+{seed.other_links:,}",
    )
    languages = " ".join(f"{share.code} {share.share:.0%}" for share in seed.languages[:2]) or "-"
    return [Text(cell) for cell in (*figures, languages, harmless(why, 24), harmless(seed.url))]
