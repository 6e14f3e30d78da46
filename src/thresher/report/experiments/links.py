"""Prediction of the outcome of a link from its context (HeidiX, experiment 3).

A rule decides for each link whether to follow it; the outcome of its target decides whether that was right. Only
targets that were read as pages count. Links to other hosts and links inside a host are separate, since the paper
looked at the former only. A crawler decides on the first link to a URL; all links are a second variant. Links
outside of blocks, as in sitemaps and feeds, have no context and are set aside.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from thresher.errors import UsageError
from thresher.reader.html.links import UNKNOWN
from thresher.report.experiments.evidence import Evidence
from thresher.report.experiments.figures import ratio
from thresher.report.plot import Axis, Chart, Series, Shape, draw
from thresher.store.corpus_files import open as open_corpus

BADNESS, BOILERPLATE = 10.0, 0.5  # the paper's thresholds
CURVE_POINTS = 100
MAX_BADNESS = 50.0  # of the curve, as in the paper's figure

Scope = Literal["other hosts", "own host"]
Chosen = Literal["", "paper's", "best"]
Counted = Literal["first link", "every link"]
Reals = NDArray[np.float64]
Flags = NDArray[np.bool_]


class Confusion(Struct, frozen=True):
    """A rule for following links, with its confusion matrix."""

    rule: str
    threshold: float | None
    chosen: Chosen  # "best": chosen in hindsight
    true_positives: int
    false_positives: int
    false_negatives: int
    true_negatives: int
    precision: float  # share of followed links that lead to a kept page
    recall: float  # share of links to kept pages that are followed
    f1: float


def confusion(
    rule: str, threshold: float | None, chosen: Chosen, positives: tuple[int, int], negatives: tuple[int, int]
) -> Confusion:
    """Return a rule from its (true, false) positives and its (true, false) negatives."""
    (right, wrong), (avoided, missed) = positives, negatives
    precision, recall = ratio(right, right + wrong), ratio(right, right + missed)
    f1 = ratio(2 * right, 2 * right + wrong + missed)
    return Confusion(rule, threshold, chosen, right, wrong, missed, avoided, precision, recall, f1)


PAPER = (
    confusion("Badness", BADNESS, "paper's", (69_273, 237_959), (342_430, 61_430)),
    confusion("boilerplate", BOILERPLATE, "paper's", (83_650, 58_039), (522_350, 47_053)),
)


class Curve(Struct, frozen=True):
    """Points of a line in a chart."""

    name: str
    x: list[float]
    y: list[float]


class Variant(Struct, frozen=True):
    """The rules on one selection of links."""

    scope: Scope
    counted: Counted
    links: int
    set_aside: int  # links without a context
    rules: list[Confusion]
    badness: list[Curve]  # share of links on pages of at least that Badness, to kept and to other pages
    boilerplate: list[Curve]  # share of links in blocks of at least that score, to kept and to other pages
    trade_offs: list[Curve]  # precision against recall, for each score


class LinkContext(Struct, frozen=True):
    """All variants, and the figures of the paper for comparison."""

    variants: list[Variant]
    paper: tuple[Confusion, ...] = PAPER


class _Links(NamedTuple):
    """Columns of links between fetched URLs, in the order in which they were found."""

    sources: NDArray[np.int64]
    targets: NDArray[np.int64]
    boilerplate: Reals
    badness: Reals  # NaN: unknown
    weight: Reals
    chance: Reals  # NaN: not predicted

    def only(self, chosen: NDArray[np.generic]) -> _Links:
        return _Links(*(column[chosen] for column in self))


def run(evidence: Evidence) -> LinkContext:
    """Evaluate every rule on links to other hosts and inside hosts, on first links and on all links."""
    links = _links(evidence)
    if not len(links.targets):
        evidence.need_links()
        raise UsageError(f"{evidence.directory} has no links to pages that it read; continue the crawl")
    hosts = np.unique(evidence.record.hosts, return_inverse=True)[1]
    own = hosts[links.sources] == hosts[links.targets]
    scopes: tuple[tuple[Scope, Flags], ...] = (("other hosts", ~own), ("own host", own))
    _, firsts = np.unique(links.targets, return_index=True)
    first = np.zeros(len(own), np.bool_)
    first[firsts] = True
    counts: tuple[tuple[Counted, Flags], ...] = (("first link", first), ("every link", np.ones_like(first)))
    return LinkContext(
        [
            _variant(scope, counted, links.only(inside & selected), evidence)
            for counted, selected in counts
            for scope, inside in scopes
        ]
    )


def _links(evidence: Evidence) -> _Links:
    """Return the links that a crawler may follow, to targets that were read as pages."""
    numbers, documents = evidence.record.numbers, evidence.documents
    columns = ("source", "target", "boilerplate", "source_badness", "weight", "chance", "rel")
    sources, targets = array("q"), array("q")  # there may be many millions
    scores = array("d"), array("d"), array("d"), array("d")
    for batch in open_corpus(evidence.directory).batches("links", columns):
        for source, target, *values, rel in zip(*(batch[name].to_pylist() for name in columns), strict=True):
            first, second = numbers.get(source.partition("://")[2]), numbers.get(target.partition("://")[2])
            if first is None or second is None or first == second or "nofollow" in (rel or ""):
                continue
            if documents[second]:
                sources.append(first)
                targets.append(second)
                for column, score in zip(scores, values, strict=True):
                    column.append(math.nan if score is None else score)
    return _Links(
        np.array(sources, np.int64),
        np.array(targets, np.int64),
        *(np.array(column, np.float64) for column in scores),
    )


def _variant(scope: Scope, counted: Counted, links: _Links, evidence: Evidence) -> Variant:
    placed = links.boilerplate != UNKNOWN
    set_aside = int((~placed).sum())
    links = links.only(placed)
    kept = evidence.gained[links.targets] > 0
    scores = {"Badness": -links.badness, "boilerplate": -links.boilerplate, "weight": links.weight}
    # The chance of a URL is recorded with the first link to it.
    has_chance = counted == "first link" and bool(np.isfinite(links.chance).any())
    if has_chance:
        scores["chance"] = links.chance
    return Variant(
        scope,
        counted,
        len(kept),
        set_aside,
        rules(links.boilerplate, links.badness, links.weight, links.chance if has_chance else None, kept),
        list(_shares_above(links.badness, kept, np.arange(MAX_BADNESS + 1))),
        list(_shares_above(links.boilerplate, kept, np.linspace(0.0, 1.0, 51))),
        [_trade_off(name, score, kept) for name, score in scores.items()],
    )


def rules(
    boilerplate: Reals, badness: Reals, weight: Reals, chance: Reals | None, kept: Flags
) -> list[Confusion]:
    """Evaluate each rule at the paper's thresholds and at the best ones."""
    good = badness <= BADNESS
    both = np.where(good, -boilerplate, -np.inf)
    found = [
        _judged("every link", np.ones_like(kept), kept),
        _judged("Badness", good, kept, BADNESS, "paper's"),
        _judged("boilerplate", boilerplate <= BOILERPLATE, kept, BOILERPLATE, "paper's"),
        _best("Badness", -badness, kept, -1),
        _best("boilerplate", -boilerplate, kept, -1),
        _judged("both", good & (boilerplate <= BOILERPLATE), kept, BOILERPLATE, "paper's"),
        _best("both", both, kept, -1),
        _best("weight", weight, kept, 1),
    ]
    return found if chance is None else [*found, _best("chance", chance, kept, 1)]


def _judged(
    rule: str, follow: Flags, kept: Flags, threshold: float | None = None, chosen: Chosen = ""
) -> Confusion:
    right, wrong = int((follow & kept).sum()), int((follow & ~kept).sum())
    missed = int(kept.sum()) - right
    return confusion(rule, threshold, chosen, (right, wrong), (len(kept) - right - wrong - missed, missed))


def _swept(score: Reals, kept: Flags) -> tuple[Reals, NDArray[np.int64], NDArray[np.int64]]:
    """Return all thresholds, falling, and the numbers of links at or above each: links to kept pages, all links.

    A link without a score is never followed.
    """
    known = np.isfinite(score)
    order = np.argsort(-score[known], kind="stable")
    sorted_score = score[known][order]
    last = np.flatnonzero(np.diff(sorted_score, append=np.nan) != 0)  # equal scores are followed together
    return sorted_score[last], kept[known][order].cumsum()[last], last + 1


def _best(rule: str, score: Reals, kept: Flags, sign: int) -> Confusion:
    """Return the rule with the threshold of the highest F1; `sign` converts scores back to the measure."""
    thresholds, right, followed = _swept(score, kept)
    if not len(thresholds):
        return _judged(rule, np.zeros_like(kept), kept, None, "best")
    place = int(np.argmax(2 * right / (followed + kept.sum())))
    return _judged(rule, score >= thresholds[place], kept, sign * float(thresholds[place]), "best")


def _shares_above(score: Reals, kept: Flags, bounds: Reals) -> Iterator[Curve]:
    """Yield the shares of links with at least each score, to kept and to other pages (Figures 4 and 5)."""
    for name, selected in (("kept", kept), ("not kept", ~kept)):
        values = np.sort(score[selected & ~np.isnan(score)])
        above = len(values) - np.searchsorted(values, bounds)
        yield Curve(name, bounds.tolist(), (above / max(len(values), 1)).tolist())


def _trade_off(name: str, score: Reals, kept: Flags) -> Curve:
    """Return precision against recall for thresholds of one score."""
    _, right, followed = _swept(score, kept)
    if not kept.any() or not len(right):
        return Curve(name, [], [])
    recall = right / kept.sum()
    wanted = np.linspace(0.02, 1.0, CURVE_POINTS)  # below, precision is that of a handful of links
    places = np.unique(np.searchsorted(recall, wanted[wanted <= recall[-1]]))
    return Curve(name, recall[places].tolist(), (right / followed)[places].tolist())


def picture(result: LinkContext) -> str:
    """Draw the paper's two figures for first links, then precision against recall for both scopes."""
    firsts = [variant for variant in result.variants if variant.counted == "first link" and variant.links]
    share = Axis("links at or above", "share", reach=(0.0, 1.0))
    badness = [line for variant in firsts for line in _lines(variant.badness, variant.scope)]
    boilerplate = [line for variant in firsts for line in _lines(variant.boilerplate, variant.scope)]
    return draw(
        [
            Chart("Badness of pages that link", Axis("Badness of the linking page"), share, badness),
            Chart("Boilerplate scores of links", Axis("score of the link's block"), share, boilerplate),
            *(_trade_offs(variant) for variant in firsts if any(curve.x for curve in variant.trade_offs)),
        ]
    )


def _lines(curves: Sequence[Curve], scope: Scope) -> list[Series]:
    shape: Shape = "line" if scope == "other hosts" else "dashes"
    return [Series(f"{curve.name}, {scope}", curve.x, curve.y, shape) for curve in curves]


def _trade_offs(variant: Variant) -> Chart:
    return Chart(
        f"Prediction of good links: {variant.scope}",
        Axis("recall", "share", reach=(0.0, 1.0)),
        Axis("precision", "share", reach=(0.0,)),
        [*(Series(curve.name, curve.x, curve.y) for curve in variant.trade_offs), _everything(variant)],
    )


def _everything(variant: Variant) -> Series:
    precision = variant.rules[0].precision
    return Series("every link", [0.0, 1.0], [precision, precision], "rule")
