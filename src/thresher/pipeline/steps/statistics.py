"""The step `statistics`: counts by language, host, top-level domain and year of publication."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from thresher.pipeline import document_shards
from thresher.pipeline.artifacts import Task
from thresher.pipeline.steps.paragraphs import paragraphs, word_counts
from thresher.pipeline.steps.plans import Parameters, Plan, StepContext
from thresher.selection import day_of
from thresher.urls import tld

FILE = "statistics.json"
_HERE = "thresher.pipeline.steps.statistics"
_COLUMNS = ("host", "language", "published", "text")
_BY = ("language", "host", "tld", "year")

Stats = dict[str, Any]


class StatisticsStep(Parameters, frozen=True):
    """The parameters of the step: how many languages, hosts and so on are listed, most documents first."""

    most: Annotated[int, Meta(ge=1)] = 100


def plan(work: StepContext) -> Plan:
    """Count documents, characters and words, by language, host, top-level domain and year."""
    counted = yield [Task(f"{_HERE}:count", (shard,)) for shard in work.shards]
    yield [Task(f"{_HERE}:add_up", tuple(counted), {"most": work.parameters.most})]
    return work.shards


def count(out: Path, inputs: Sequence[Path]) -> Stats:
    """Write the counts of a shard."""
    totals: Counter[str] = Counter()
    by: dict[str, Counter[str]] = {name: Counter() for name in _BY}
    for batch in document_shards.batches(inputs[0], _COLUMNS):
        rows = batch.to_pylist()
        for row in rows:
            text: str = row["text"] or ""
            totals.update(documents=1, characters=len(text))
            by["language"][row["language"] or ""] += 1
            by["host"][row["host"] or ""] += 1
            by["tld"][tld(row["host"] or "")] += 1
            by["year"][_year(row)] += 1
        totals["words"] += sum(word_counts([each for row in rows for each in paragraphs(row["text"])]))
    _write(out, {**totals, **{name: dict(sorted(some.items())) for name, some in by.items()}})
    return dict(totals)


def add_up(out: Path, inputs: Sequence[Path], *, most: int) -> Stats:
    """Write the sums of the counts of all shards."""
    totals: Counter[str] = Counter()
    by: dict[str, Counter[str]] = {name: Counter() for name in _BY}
    for one in inputs:
        counts = msgspec.json.decode((one / FILE).read_bytes())
        for name in _BY:
            by[name].update(counts.pop(name))
        totals.update(counts)
    found = {name: dict(_most(some.items(), most)) for name, some in by.items()}
    distinct = {f"{name}s": len(some) for name, some in by.items()}
    _write(out, {**totals, **distinct, **found})
    return {**totals, **distinct}


def _most(items: Iterable[tuple[str, int]], most: int) -> list[tuple[str, int]]:
    return sorted(items, key=lambda item: (-item[1], item[0]))[:most]


def _year(row: dict[str, Any]) -> str:
    return day_of(row["published"])[:4]


def _write(out: Path, counts: Stats) -> None:
    (out / FILE).write_bytes(msgspec.json.format(msgspec.json.encode(counts), indent=1))
