"""The command that visits candidates and ranks them as seeds."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

from cyclopts import Parameter

from thresher.cli.app import AsJson, Many, OutputName, app, print_json, say, show
from thresher.cli.commands.visiting import Connections, ConnectTo, Contact, Delay, counting, warn_about
from thresher.cli.exit_codes import DONE, FAULT, INTERRUPTED
from thresher.errors import UsageError

if TYPE_CHECKING:
    from thresher.cli.views.tables import FigureTable
    from thresher.crawler.sampling.commoncrawl import RankedSeeds
    from thresher.crawler.sampling.seed_ranking import SeedRanking

FIGURES = ("score", "yield", "text", "bad", "boil", "links")  # of Badness, boilerplate, links inside and out


@app.command
def seeds(
    files: Annotated[
        list[str],
        Parameter(
            name="FILE",
            negative=(),
            help="Files with one URL per line, or URLs; or files of an index of Common Crawl (Parquet or CDXJ).",
        ),
    ],
    *,
    lang: str,
    tld: Annotated[list[str] | None, Many] = None,
    per_host: int | None = None,
    max_seeds: int | None = None,
    visit: Annotated[bool, Parameter(negative=())] = False,
    output: Annotated[Path | None, OutputName] = None,
    delay: Delay = None,
    connections: Connections = None,
    contact: Contact = None,
    connect_to: ConnectTo = "",
    json: AsJson = False,
) -> None:
    """Visit candidates once, politely, and rank them as seeds, the best first.

    Example: thresher seeds candidates.txt --lang cs -o seeds.txt --contact me@example.org

    The score of a page is its yield (bytes of text in the language per byte downloaded) plus up to 0.1 for links,
    times the share of its visible text that is in the language; 50 links reach half of the 0.1. A page is good if a
    crawl would keep it, or if it has little text, at least 5 links, and visible text in the language.
    Exit code 1: none is good, or none can be reached.

    An index of Common Crawl contains candidates: pages with the given main language, pages of the largest
    hosts first, for each host the shortest URLs. Common Crawl has visited them, so they are visited again only with
    --visit: thresher seeds cc-index/*.parquet --lang cs --tld cz -o seeds.txt

    Parameters
    ----------
    lang
        Language of the corpus: cs, or ces.
    tld
        index: only hosts under these top-level domains.
    per_host
        index: seeds per host at most; 3 by default.
    max_seeds
        index: seeds in all at most; 10,000 by default.
    visit
        index: visit the candidates.
    output
        Seeds file to write: the good ones, each after a comment with its score.
    """
    from thresher.crawler.sampling.commoncrawl import is_index
    from thresher.crawler.sampling.page_visitor import VisitSettings
    from thresher.crawler.sampling.seed_ranking import appraise_all, seed_list
    from thresher.crawler.seeds import gather
    from thresher.files.durable_files import replace
    from thresher.reader.language.codes import language_code
    from thresher.store.corpus_files import check_output_file

    if output is not None:
        check_output_file(output)
    indexes = ["://" not in name and is_index(Path(name)) for name in files]
    if all(indexes):
        tlds = tuple(map(_tld, tld or ()))
        chosen = _choose(files, language_code(lang), tlds, per_host, max_seeds)
        if not visit or not chosen.seeds:
            _write_unvisited(chosen, output, as_json=json)
        files = [seed.url for seed in chosen.seeds]
    elif any(indexes):
        raise UsageError("give either files of an index of Common Crawl or lists of URLs, not both at once")
    elif tld or per_host is not None or max_seeds is not None or visit:
        raise UsageError("--tld, --per-host, --max-seeds and --visit need files of an index of Common Crawl")
    candidates = gather(files)
    for remark in candidates.remarks:
        say(remark)
    warn_about(connect_to)
    terms = VisitSettings(lang, contact, delay, connections, connect_to)
    with counting(len(candidates.urls), "candidates") as progress:
        ranked = appraise_all(candidates.urls, terms, progress)
    if json:
        for seed in ranked.seeds:
            print_json(seed)
    else:
        for table in _tables(ranked.seeds):
            show(table)
    good = sum(seed.good for seed in ranked.seeds)
    if output is not None:
        replace(output, seed_list(ranked.seeds).encode())
    say(f"{good:,} of {len(candidates.urls):,} are good seeds" + (f": {output}" if output else ""))
    if ranked.interrupted:
        say(f"interrupted: {len(candidates.urls) - len(ranked.seeds):,} were not visited")
        sys.exit(INTERRUPTED)
    sys.exit(DONE if good else FAULT)


def _tld(name: str) -> str:
    from thresher.selection import top_level_domain

    try:
        return top_level_domain(name)
    except UsageError as fault:
        raise UsageError(f"--tld {fault}") from None


def _choose(
    files: Sequence[str], language: str, tlds: tuple[str, ...], per_host: int | None, max_seeds: int | None
) -> RankedSeeds:
    """Choose candidates from an index and report rows that were left out."""
    from thresher.crawler.sampling.commoncrawl import SeedCriteria, choose

    defaults = SeedCriteria()
    criteria = SeedCriteria(
        language,
        tlds,
        defaults.per_host if per_host is None else per_host,
        defaults.max_seeds if max_seeds is None else max_seeds,
    )
    with counting(None, "pages of the index") as progress:
        chosen = choose([Path(name) for name in files], criteria, progress)
    if chosen.malformed:
        say(f"lines left out because they cannot be parsed: {chosen.malformed:,}")
    if chosen.unknown_language:
        say(f"pages left out because the index does not name their language: {chosen.unknown_language:,}")
    say(f"{chosen.pages:,} of {chosen.rows:,} pages of the index meet the criteria")
    return chosen


def _write_unvisited(chosen: RankedSeeds, output: Path | None, *, as_json: bool) -> NoReturn:
    """Print or write the candidates of an index as seeds, and exit."""
    from thresher.crawler.sampling.commoncrawl import seed_list
    from thresher.files.durable_files import replace

    if as_json:
        for seed in chosen.seeds:
            print_json(seed)
    elif output is None:
        sys.stdout.write(seed_list(chosen.seeds))
    if output is not None and chosen.seeds:
        replace(output, seed_list(chosen.seeds).encode())
    hosts = len({seed.host for seed in chosen.seeds})
    where = f": {output}" if output and chosen.seeds else ""
    say(f"{len(chosen.seeds):,} seeds of {hosts:,} hosts{where}")
    sys.exit(DONE if chosen.seeds else FAULT)


def _tables(seeds: Sequence[SeedRanking]) -> Iterator[FigureTable]:
    """Return tables of the visited candidates with their measures, then of the failures."""
    from thresher.cli.views.tables import FigureTable

    pages = FigureTable((*FIGURES, "languages", "verdict", "seed"), text=("languages", "verdict", "seed"))
    failures = FigureTable(("failed", "seed"), text=("failed", "seed"))
    for seed in seeds:
        table = failures if seed.verdict is None else pages
        table.add(*_cells(seed), style="" if seed.good else "dim")
    yield from (table for table in (pages, failures) if table.rows)


def _cells(seed: SeedRanking) -> list[str]:
    """Return the cells of a candidate's row."""
    from thresher.cli.views.terminal import amount

    why = "good" if seed.good else f"{seed.reason} {seed.detail}".strip()
    if seed.verdict is None:
        return [why, seed.url]
    figures = (
        f"{seed.score:.3f}",
        f"{seed.rate:.3f}",
        amount(seed.text_bytes),
        "-" if seed.badness is None else f"{seed.badness:.1f}",
        f"{seed.boilerplate:.0%}",
        f"{seed.own_links:,}+{seed.other_links:,}",
    )
    languages = " ".join(f"{share.code} {share.share:.0%}" for share in seed.languages[:2]) or "-"
    return [*figures, languages, why, seed.url]
