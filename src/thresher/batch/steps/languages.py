"""Paragraphs in another language than the corpus, taken out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Self

import pyarrow as pa
from msgspec.structs import replace

from thresher.batch import shards
from thresher.batch.code import LANGUAGES, means, must_be_able
from thresher.batch.paragraphs import left, paragraphs
from thresher.batch.pieces import Task
from thresher.batch.steps.plans import Parameters, Plan, Work, codes
from thresher.store.corpus import Corpus

RUN = "thresher.batch.steps.languages:run"


class Languages(Parameters, frozen=True):
    """Codes of the languages that stay; none: that of the corpus, or, if it has none, of each document."""

    languages: tuple[str, ...] = ()

    def ready_for(self, _: Corpus, /) -> Self:
        return replace(self, languages=codes(self.languages)) if self.languages else self


def plan(work: Work) -> Plan:
    """Take out paragraphs in other languages; those too short to tell stay."""
    ours = work.corpus.config.language
    wanted = list(work.parameters.languages or ([ours] if ours else []))
    able = means(LANGUAGES)
    told, where = {"languages": wanted}, {"able": able}
    return (yield [Task(RUN, (shard,), told, (able,), where) for shard in work.shards])


def run(out: Path, inputs: Sequence[Path], *, languages: Sequence[str], able: str) -> dict[str, Any]:
    """The documents of a shard without such paragraphs, told by those who are able to."""
    must_be_able(able)
    dropped: Counter[str] = Counter()
    documents = shards.write(out, _left(inputs[0], frozenset(languages), dropped))
    return {"documents": documents, "paragraphs": dict(sorted(dropped.items()))}


def _left(shard: Path, wanted: frozenset[str], dropped: Counter[str]) -> Iterator[pa.RecordBatch]:
    from thresher.read.language import paragraph_languages  # its models take a while to load

    for batch in shards.batches(shard):
        stays = []
        texts, mains = (batch.column(name).to_pylist() for name in ("text", "language"))
        for text, main in zip(texts, mains, strict=True):
            named = paragraph_languages(paragraphs(text)) if text else []
            kept = [not code or code in (wanted or {main}) for code in named]
            dropped.update(code for code, stay in zip(named, kept, strict=True) if not stay)
            stays.append(kept)
        yield left(batch, stays)
