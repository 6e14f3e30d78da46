"""The step `paragraph_language`: paragraphs in other languages are removed from documents."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Self

import pyarrow as pa
from msgspec.structs import replace

from thresher.pipeline import document_shards
from thresher.pipeline.artifacts import Task
from thresher.pipeline.code_digests import LANGUAGES, check_environment, reading_environment
from thresher.pipeline.steps.paragraphs import paragraphs, without_paragraphs
from thresher.pipeline.steps.plans import Parameters, Plan, StepContext, codes
from thresher.store.corpus_files import CorpusFiles

RUN = "thresher.pipeline.steps.languages:run"


class ParagraphLanguageStep(Parameters, frozen=True):
    """The parameters of the step: the languages that stay.

    Without any, the language of the corpus stays, or, if it has none, the main language of each document.
    """

    languages: tuple[str, ...] = ()  # codes

    def ready_for(self, _: CorpusFiles, /) -> Self:
        """Return the same languages as the reader names them."""
        return replace(self, languages=codes(self.languages)) if self.languages else self


def plan(work: StepContext) -> Plan:
    """Remove paragraphs in other languages; paragraphs too short to identify stay."""
    ours = work.corpus.config.language
    wanted = list(work.parameters.languages or ([ours] if ours else []))
    environment = reading_environment(LANGUAGES)
    trained = [*wanted, *work.corpus.config.read.trained_languages]
    parameters, locations = {"languages": wanted, "trained": trained}, {"environment": environment}
    return (yield [Task(RUN, (shard,), parameters, (environment,), locations) for shard in work.shards])


def run(
    out: Path, inputs: Sequence[Path], *, languages: Sequence[str], trained: Sequence[str], environment: str
) -> dict[str, Any]:
    """Write the documents of a shard without paragraphs in other languages.

    Trained languages beside these are not recognised. Raise UsageError if this machine identifies languages
    differently from the one where the run began.
    """
    check_environment(environment)
    dropped: Counter[str] = Counter()
    documents = document_shards.write(out, _filtered(inputs[0], frozenset(languages), trained, dropped))
    return {"documents": documents, "paragraphs": dict(sorted(dropped.items()))}


def _filtered(
    shard: Path, wanted: frozenset[str], trained: Sequence[str], dropped: Counter[str]
) -> Iterator[pa.RecordBatch]:
    """Yield the documents of a shard, without paragraphs in languages that are not wanted."""
    from thresher.reader.language.identify import paragraph_languages  # its models take a while to load

    for batch in document_shards.batches(shard):
        stays = []
        texts, mains = (batch.column(name).to_pylist() for name in ("text", "language"))
        for text, main in zip(texts, mains, strict=True):
            named = paragraph_languages(paragraphs(text), trained) if text else []
            kept = [not code or code in (wanted or {main}) for code in named]
            dropped.update(code for code, stay in zip(named, kept, strict=True) if not stay)
            stays.append(kept)
        yield without_paragraphs(batch, stays)
