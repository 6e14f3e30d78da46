"""What there is in a corpus: documents, characters and words, by language, host, top-level domain and year."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from thresher.batch import shards
from thresher.batch.pieces import Task
from thresher.batch.steps.plans import Parameters, Plan, Work
from thresher.url import tld

FILE = "statistics.json"
_HERE = "thresher.batch.steps.statistics"
_COLUMNS = ("host", "language", "fetched", "published", "text")
_BY = ("language", "host", "tld", "year")

Figures = dict[str, Any]


class Statistics(Parameters, frozen=True):
    """How many of each kind are told, those with the most documents."""

    most: Annotated[int, Meta(ge=1)] = 100


def plan(work: Work) -> Plan:
    """Count documents, characters and words, by language, host, top-level domain and year."""
    counted = yield [Task(f"{_HERE}:count", (shard,)) for shard in work.shards]
    yield [Task(f"{_HERE}:add_up", tuple(counted), {"most": work.parameters.most})]
    return work.shards


def count(out: Path, inputs: Sequence[Path]) -> Figures:
    """The figures of a shard."""
    totals: Counter[str] = Counter()
    by: dict[str, Counter[str]] = {name: Counter() for name in _BY}
    for batch in shards.batches(inputs[0], _COLUMNS):
        for row in batch.to_pylist():
            text: str = row["text"] or ""
            totals.update(documents=1, characters=len(text), words=len(text.split()))
            by["language"][row["language"] or ""] += 1
            by["host"][row["host"] or ""] += 1
            by["tld"][tld(row["host"] or "")] += 1
            by["year"][_year(row)] += 1
    _write(out, {**totals, **{name: dict(sorted(some.items())) for name, some in by.items()}})
    return dict(totals)


def add_up(out: Path, inputs: Sequence[Path], *, most: int) -> Figures:
    """The figures of all shards."""
    totals: Counter[str] = Counter()
    by: dict[str, Counter[str]] = {name: Counter() for name in _BY}
    for one in inputs:
        figures = msgspec.json.decode((one / FILE).read_bytes())
        for name in _BY:
            by[name].update(figures.pop(name))
        totals.update(figures)
    found = {name: dict(_most(some.items(), most)) for name, some in by.items()}
    distinct = {f"{name}s": len(some) for name, some in by.items()}
    _write(out, {**totals, **distinct, **found})
    return {**totals, **distinct}


def _most(items: Iterable[tuple[str, int]], most: int) -> list[tuple[str, int]]:
    return sorted(items, key=lambda item: (-item[1], item[0]))[:most]


def _year(row: dict[str, Any]) -> str:
    if found := re.match(r"\d{4}", row["published"] or ""):
        return found[0]
    return str(row["fetched"].year) if row["fetched"] else ""


def _write(out: Path, figures: Figures) -> None:
    (out / FILE).write_bytes(msgspec.json.format(msgspec.json.encode(figures), indent=1))
