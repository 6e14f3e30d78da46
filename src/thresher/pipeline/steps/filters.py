"""The step `filter`: the documents that meet a DocumentFilter."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Self

import msgspec
import pyarrow as pa
from msgspec.structs import replace

from thresher.pipeline import document_shards
from thresher.pipeline.artifacts import Task
from thresher.pipeline.steps.plans import Parameters, Plan, StepContext, codes
from thresher.selection import DocumentFilter
from thresher.store.corpus_files import CorpusFiles


class FilterStep(DocumentFilter, Parameters, frozen=True, forbid_unknown_fields=True):
    """The parameters of the step: the conditions of a DocumentFilter."""

    def ready_for(self, _: CorpusFiles, /) -> Self:
        """Return the same conditions with languages as the reader names them."""
        return replace(self, languages=codes(self.languages)) if self.languages else self


def plan(work: StepContext) -> Plan:
    """Leave documents out by language, quality, length, host, date, licence or opt-out."""
    parameters = msgspec.to_builtins(work.parameters)
    return (
        yield [Task("thresher.pipeline.steps.filters:run", (shard,), parameters) for shard in work.shards]
    )


def run(out: Path, inputs: Sequence[Path], **parameters: Any) -> dict[str, Any]:
    """Write the documents of a shard that are selected, and count the others by reason."""
    where = msgspec.convert(parameters, DocumentFilter)
    dropped: Counter[str] = Counter()
    kept = document_shards.write(out, _kept(inputs[0], where, dropped))
    return {"documents": kept, "dropped": dict(sorted(dropped.items()))}


def _kept(shard: Path, where: DocumentFilter, dropped: Counter[str]) -> Iterator[pa.RecordBatch]:
    for batch in document_shards.batches(shard):
        reasons = where.reasons(batch)
        dropped.update(filter(None, reasons))
        yield batch.filter(pa.array([not reason for reason in reasons], pa.bool_()))
