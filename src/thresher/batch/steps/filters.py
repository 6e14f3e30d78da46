"""Documents by what is known of them: language, quality, length, and what their publishers said."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated, Any, Self

import msgspec
import pyarrow as pa
from msgspec import Meta
from msgspec.structs import replace

from thresher.batch import shards
from thresher.batch.pieces import Task
from thresher.batch.steps.plans import Parameters, Plan, Work, codes
from thresher.store.corpus import Corpus

Share = Annotated[float, Meta(ge=0, le=1)]


class Filter(Parameters, frozen=True):
    """Bounds; a document of which something is not known passes."""

    languages: tuple[str, ...] = ()  # codes; empty: any
    min_language_share: Share = 0.0
    max_badness: float | None = None
    max_suspicion: Share = 1.0  # of being made by a machine
    min_chars: int = 0
    hosts: tuple[str, ...] = ()  # names, or patterns as *.cz; empty: any
    not_hosts: tuple[str, ...] = ()
    opted_out: bool = True  # whether pages whose publishers opted out of text mining stay

    def ready_for(self, _: Corpus, /) -> Self:
        return replace(self, languages=codes(self.languages)) if self.languages else self


def plan(work: Work) -> Plan:
    """Leave documents out by language, quality, length, host or opt-out."""
    told = msgspec.to_builtins(work.parameters)
    return (yield [Task("thresher.batch.steps.filters:run", (shard,), told) for shard in work.shards])


def run(out: Path, inputs: Sequence[Path], **parameters: Any) -> dict[str, Any]:
    """The documents of a shard that pass."""
    bounds = msgspec.convert(parameters, Filter)
    dropped: Counter[str] = Counter()
    kept = shards.write(out, _kept(inputs[0], bounds, dropped))
    return {"documents": kept, "dropped": dict(sorted(dropped.items()))}


def _kept(shard: Path, bounds: Filter, dropped: Counter[str]) -> Iterator[pa.RecordBatch]:
    for batch in shards.batches(shard):
        reasons = _reasons(batch, bounds)
        dropped.update(reason for reason in reasons if reason)
        yield batch.filter(pa.array([not reason for reason in reasons], pa.bool_()))


def _reasons(batch: pa.RecordBatch, bounds: Filter) -> list[str]:
    """Why each document is left out; empty if it is not. The first reason counts."""
    tests: list[tuple[str, list[bool]]] = []
    if bounds.languages:
        tests.append(("language", [code in bounds.languages for code in _values(batch, "language")]))
    if bounds.min_language_share:
        shares = _values(batch, "language_share")
        tests.append(("language share", [s is None or s >= bounds.min_language_share for s in shares]))
    if bounds.max_badness is not None:
        found = _values(batch, "badness")
        tests.append(("badness", [one is None or one <= bounds.max_badness for one in found]))
    if bounds.max_suspicion < 1:
        found = _values(batch, "suspicion")
        tests.append(("suspicion", [one is None or one <= bounds.max_suspicion for one in found]))
    if bounds.min_chars:
        texts = _values(batch, "text")
        tests.append(("length", [len(text or "") >= bounds.min_chars for text in texts]))
    if bounds.hosts or bounds.not_hosts:
        hosts = [host or "" for host in _values(batch, "host")]
        tests.append(("host", [_is_wanted(host, bounds) for host in hosts]))
    if not bounds.opted_out:
        tests.append(("opt-out", [not reasons for reasons in _values(batch, "opt_out")]))
    return [next((name for name, passes in tests if not passes[row]), "") for row in range(batch.num_rows)]


def _is_wanted(host: str, bounds: Filter) -> bool:
    if any(fnmatchcase(host, pattern) for pattern in bounds.not_hosts):
        return False
    return not bounds.hosts or any(fnmatchcase(host, pattern) for pattern in bounds.hosts)


def _values(batch: pa.RecordBatch, column: str) -> list[Any]:
    return batch.column(column).to_pylist()
