"""Tables of experiments for people, beside the figures of the papers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from thresher.cli.views.tables import FigureTable
from thresher.cli.views.terminal import amount
from thresher.report.experiments.cyclic import CyclicSelection
from thresher.report.experiments.domains import Domains
from thresher.report.experiments.figures import CrawlPortion
from thresher.report.experiments.links import Confusion, LinkContext, Variant
from thresher.report.experiments.seeds import PAPER_R2, SeedQuality
from thresher.report.experiments.thresholds import Thresholds

ROWS = 20  # of domains, snapshots and depths


def seeds(result: SeedQuality) -> list[Any]:
    """Return the fits between seeds and crawls."""
    ways = {
        "found": "pages found from each seed of the crawl",
        "replayed": "simulated crawls from random pages",
    }
    rows = [
        (
            f"{relation.seeds} of seeds",
            f"{relation.crawl} of the crawl",
            *(
                (
                    f"{relation.fit.points}",
                    f"{relation.fit.slope:+.4f}",
                    f"{relation.fit.r2:.3f}",
                    f"{relation.fit.adjusted_r2:.3f}",
                )
                if relation.fit
                else ("", "", "no fit", "")
            ),
        )
        for relation in result.relations
    ]
    return [
        _table(
            f"Seeds and crawls: {ways[result.way]}, {len(result.crawls)} of them, {result.too_small} too small",
            ("measure", "predicts", "points", "slope", "R²", "adjusted"),
            rows,
            left=2,
        ),
        f"The paper: document yields of 20 crawls, adjusted R² = {PAPER_R2:.3f}",
    ]


def cyclic(result: CyclicSelection) -> list[Any]:
    """Return the phases, and both crawls as a whole."""
    rows = [
        (
            f"{number}",
            f"{phase.seeds:,}",
            *_crawled(phase.cyclic),
            f"{phase.unbroken.document_yield:.3f}" if phase.unbroken else "at its end",
            f"{phase.unbroken.byte_yield:.3f}" if phase.unbroken else "",
            f"{phase.decline.adjusted_r2:.2f}" if phase.decline else "",
        )
        for number, phase in enumerate(result.phases, 1)
    ]
    whole = result.unbroken
    rows.append(
        ("all", "", *_crawled(result.cyclic), f"{whole.document_yield:.3f}", f"{whole.byte_yield:.3f}", "")
    )
    columns = (
        "phase",
        "seeds",
        "documents",
        "download",
        "text",
        "Yd",
        "Yb",
        "unbroken Yd",
        "Yb",
        "decline R²",
    )
    return [
        _table(
            f"In phases, from URLs of Badness ≤ {result.badness:g} and boilerplate < {result.boilerplate:g}, "
            "and without a break",
            columns,
            rows,
            left=0,
        ),
        *(["No more phases: no URL was left to begin with"] if len(result.phases) < result.wanted else []),
    ]


def _crawled(part: CrawlPortion) -> tuple[str, ...]:
    return (
        f"{part.documents:,}",
        amount(part.bytes),
        amount(part.text_bytes),
        f"{part.document_yield:.3f}",
        f"{part.byte_yield:.3f}",
    )


def links(result: LinkContext) -> list[Any]:
    """Return the rules on every selection of links, then the rules of the paper."""
    columns = ("rule", "threshold", "true +", "false +", "false −", "true −", "precision", "recall", "F1")
    tables = [
        _table(_choice(one), columns, map(_rule, one.rules), left=1) for one in result.variants if one.links
    ]
    return [
        *tables,
        _table("The paper: 711,092 links to other hosts", columns, map(_rule, result.paper), left=1),
    ]


def _choice(variant: Variant) -> str:
    counted = "the first link to each page" if variant.counted == "first link" else "every link"
    return f"{counted}, {variant.scope}: {variant.links:,} ({variant.set_aside:,} without context set aside)"


def _rule(one: Confusion) -> tuple[str, ...]:
    sign = "≥" if one.rule in ("weight", "chance") else "≤"
    counts = (one.true_positives, one.false_positives, one.false_negatives, one.true_negatives)
    return (
        one.rule,
        "" if one.threshold is None else f"{sign} {one.threshold:.3g} {one.chosen}",
        *(f"{count:,}" for count in counts),
        f"{one.precision:.3f}",
        f"{one.recall:.3f}",
        f"{one.f1:.3f}",
    )


def thresholds(result: Thresholds) -> list[Any]:
    """Return the table of the paper, then the rules."""
    levels = [
        (
            "none" if level.threshold is None else f"{level.threshold:g}",
            f"{level.domains:,}",
            amount(level.bytes),
            amount(level.text_bytes),
            f"{level.byte_yield:.4f}",
        )
        for level in result.levels
    ]
    rules = [
        (
            rule.threshold or "none",
            f"{rule.closed:,} of {rule.domains:,}",
            amount(rule.bytes),
            amount(rule.text_bytes),
            f"{rule.byte_yield:.4f}",
            f"{rule.saved:.1%}",
            f"{rule.lost:.1%}",
        )
        for rule in result.rules
    ]
    return [
        _table("Domains above a yield", ("above", "domains", "download", "text", "yield"), levels, left=0),
        _table(
            f"Domains closed during the crawl, after {result.min_pages} pages and {amount(result.min_bytes)}",
            ("t(n)", "closed", "download", "text", "yield", "saved", "lost"),
            rules,
            left=1,
        ),
    ]


def domains(result: Domains) -> list[Any]:
    """Return the largest domains, and the crawl in snapshots and by depth."""
    yields = ("download", "documents", "kept", "Yd", "Yb")
    most = [
        (row.domain, f"{row.pages:,}", amount(row.bytes), amount(row.text_bytes), _rate(row))
        for row in result.domains[:ROWS]
    ]
    every = max(1, -(-len(result.snapshots) // ROWS))
    return [
        _table(
            f"Largest downloads, of {len(result.domains):,} domains",
            ("domain", "pages", "download", "text", "yield"),
            most,
            left=1,
        ),
        _table(
            f"Snapshots of {amount(result.every)}" + (f", one of {every}" if every > 1 else ""),
            yields,
            [(amount(row.downloaded), *_yields(row)) for row in result.snapshots[every - 1 :: every]],
            left=0,
        ),
        _table(
            "By number of links from a seed",
            ("links", *yields),
            [
                (f"{row.depth}", amount(row.figures.bytes), *_yields(row.figures))
                for row in result.iterations[:ROWS]
            ],
            left=0,
        ),
    ]


def _rate(domain: Any) -> str:
    return f"{domain.text_bytes / domain.bytes:.3f}"


def _yields(part: CrawlPortion) -> tuple[str, ...]:
    return f"{part.documents:,}", f"{part.kept:,}", f"{part.document_yield:.3f}", f"{part.byte_yield:.3f}"


VIEWS: dict[str, Callable[[Any], Sequence[Any]]] = {
    "seeds": seeds,
    "cyclic": cyclic,
    "links": links,
    "thresholds": thresholds,
    "domains": domains,
}


def _table(title: str, columns: Sequence[str], rows: Iterable[Sequence[str]], *, left: int) -> FigureTable:
    """Return a table whose first `left` columns are words."""
    return FigureTable(columns, rows, text=columns[:left], title=title)
