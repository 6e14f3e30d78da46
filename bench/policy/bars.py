"""Demands on the learned policy, and whether the figures meet them."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Sequence
from math import inf
from statistics import fmean, median
from typing import Any

from bench.policy.runs import ORACLE
from thresher.report.experiments.links import confusion

OURS = "learned"
STARTS = {"seeds and portal": 0.82, "portal": 0.72}  # areas on the real web
TOY_AREA = 0.75
AHEAD = 0.12  # of the best other, on average
AHEAD_SHARE = 5 / 6  # of languages where it is ahead of each other
POLITE_LOSS = 0.05
MOST_OF_BFS = 0.15
YIELD_OF_BFS = 10.0
RELEVANT = 0.94  # NCL-Crawl: 93.99 %
LINK_F1 = 0.614  # HeidiX: the best of its rules
LIVE_DISTANCE = 0.10

COUNTS = ("true_positives", "false_positives", "true_negatives", "false_negatives")

Figures = dict[str, Any]
Rows = Sequence[Figures]

_SIGNS: dict[str, Callable[[float, float], bool]] = {"≥": operator.ge, "≤": operator.le, ">": operator.gt}


def bars(rows: Rows) -> list[Figures]:
    """Return every demand with the measured value; a part that was not run has none."""
    found = []
    for start, least in STARTS.items():
        here = picked(rows, name="policy", web="real", start=start)
        found += [
            _bar(f"area, real web, {start}", "≥", least, mean_area(here, OURS)),
            _bar(f"ahead of the best other, {start}", "≥", AHEAD, _ahead(here)),
            _bar(f"languages ahead of each other policy, {start}", "≥", AHEAD_SHARE, _share_ahead(here)),
            _bar(f"lost by politeness, {start}", "≤", POLITE_LOSS, _lost(rows, "real", start)),
            _bar(f"downloads for 90 % of bfs's, {start}", "≤", MOST_OF_BFS, most_of_bfs(here, OURS)),
        ]
    toy = picked(rows, name="policy", web="toy")
    ours = picked(toy, policy=OURS)
    found += [
        _bar("area, toy web", "≥", TOY_AREA, mean_area(toy, OURS)),
        _bar("lost by politeness, toy web", "≤", POLITE_LOSS, _lost(rows, "toy", "seeds")),
        _bar("downloads for 90 % of bfs's, toy web", "≤", MOST_OF_BFS, most_of_bfs(toy, OURS)),
        _bar("yield, times that of bfs, toy web", "≥", YIELD_OF_BFS, _only(ours, "yield_of_bfs")),
    ]
    sites = picked(rows, name="among good sites", policy=OURS)
    found.append(
        _bar("in the language among good sites, toy web", "≥", RELEVANT, _only(sites, "in_language"))
    )
    for web in ("real", "toy"):
        for scope in ("other hosts", "own host"):
            weighed = picked(rows, name="links", web=web, scope=scope, rule="chance")
            f1 = pooled(weighed)["f1"] if weighed else None
            found.append(_bar(f"F1 of links, {web} web, {scope}", ">", LINK_F1, f1))
    live = picked(rows, name="live")
    found.append(_bar("live and simulated apart", "≤", LIVE_DISTANCE, _only(live, "largest_distance")))
    return found


def picked(rows: Rows, **wanted: str) -> list[Figures]:
    """Return the rows that have these values."""
    return [row for row in rows if all(row.get(name) == value for name, value in wanted.items())]


def pooled(rows: Rows) -> Figures:
    """Return a rule for links over several languages, with its predictions counted together."""
    counts = {field: sum(row[field] for row in rows) for field in ("links", *COUNTS)}
    guesses = [counts[field] for field in COUNTS]
    rule = confusion(
        rows[0]["rule"], None, rows[0]["chosen"], (guesses[0], guesses[1]), (guesses[2], guesses[3])
    )
    return {**counts, "precision": rule.precision, "recall": rule.recall, "f1": rule.f1}


def mean_area(rows: Rows, policy: str) -> float | None:
    return _mean(picked(rows, policy=policy), "area")


def most_of_bfs(rows: Rows, policy: str) -> float | None:
    """Return the median over languages; infinite if most of them never reached it."""
    shares = [row["most_of_bfs"] for row in picked(rows, policy=policy)]
    return median(inf if share is None else share for share in shares) if shares else None


def best_other(rows: Rows) -> str | None:
    """Return the best of the policies that a crawl can have, except the learned one."""
    return max(_others(rows), key=lambda policy: mean_area(rows, policy) or 0.0, default=None)


def _others(rows: Rows) -> list[str]:
    return [policy for policy in dict.fromkeys(row["policy"] for row in rows) if policy not in (OURS, ORACLE)]


def _ahead(rows: Rows) -> float | None:
    ours, other = mean_area(rows, OURS), best_other(rows)
    theirs = mean_area(rows, other) if other else None
    return None if ours is None or theirs is None else ours - theirs


def _share_ahead(rows: Rows) -> float | None:
    """Return the lowest share of languages, over all other policies, in which ours is ahead."""
    ours = {row["language"]: row["area"] for row in picked(rows, policy=OURS)}
    others = _others(rows)
    if not ours or not others:
        return None
    return min(
        fmean(ours[row["language"]] > row["area"] for row in picked(rows, policy=policy)) for policy in others
    )


def _lost(rows: Rows, web: str, start: str) -> float | None:
    calm = _mean(picked(rows, name="policy", web=web, start=start, policy=OURS), "area")
    polite = _mean(picked(rows, name="polite", web=web, start=start, policy=OURS), "area")
    return None if calm is None or polite is None else calm - polite


def _mean(rows: Rows, field: str) -> float | None:
    return fmean(row[field] for row in rows) if rows else None


def _only(rows: Iterable[Figures], field: str) -> float | None:
    value: float | None = next((row[field] for row in rows), None)
    return value


def _bar(demand: str, sign: str, bar: float, value: float | None) -> Figures:
    met = "not measured" if value is None else "yes" if _SIGNS[sign](value, bar) else "no"
    shown = None if value == inf else value  # JSON has no infinity
    return {"name": "bar", "demand": demand, "bar": f"{sign} {bar:.3g}", "value": shown, "met": met}
