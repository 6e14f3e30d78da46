"""The step `reread`: raw pages are read again with the current reader and judged again.

With `rejected`, rejected pages are read as well. Opt-outs in robots.txt are kept in the state of the crawl, which
changes while the outcomes stay. So rejected pages are chosen again after each commit, which is cheap, and read
again only if the choice differs.
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from pathlib import Path
from typing import Self

import msgspec
from msgspec.structs import replace

from thresher.errors import UsageError
from thresher.pipeline import sources
from thresher.pipeline.artifacts import ArtifactOutput, Task, digest_of
from thresher.pipeline.code_digests import PAGES, digest_with_imports, reading_environment
from thresher.pipeline.reread.archives import LIST_ARCHIVES, state_of
from thresher.pipeline.runs.run_log import FOLDER
from thresher.pipeline.steps.plans import Parameters, Plan, Stages, StepContext
from thresher.store.corpus_files import CorpusError, CorpusFiles
from thresher.store.imported_files import page_paths

# The likeness of two names from which one is taken for a misspelling of the other; any two reasons are less alike.
MISSPELT = 0.87
CHOOSE = "thresher.pipeline.reread.rejected:choose"
RUN = "thresher.pipeline.reread.rereading:run"  # apart, since the reader takes a while to load


class RereadStep(Parameters, frozen=True):
    """The parameters of the step: whether rejected pages are read again, and for which reasons."""

    rejected: bool = False
    reasons: tuple[str, ...] = ()  # as outcomes have them; empty: all but duplicates

    def __post_init__(self) -> None:
        if self.reasons and not self.rejected:
            raise ValueError("reasons choose among rejected pages; add rejected = true")

    def ready_for(self, corpus: CorpusFiles, /) -> Self:
        """Return the same parameters; raise UsageError for a reason that looks misspelt."""
        known = _reasons(corpus) if self.reasons else {}
        for reason in self.reasons:
            if reason not in known and (similar := _similar_to(reason, known)):
                raise UsageError(
                    f"no page was rejected for the reason {reason!r}; did you mean {similar!r}? Reasons are "
                    f"{', '.join(sorted(known))}"
                )
        return self


def _reasons(corpus: CorpusFiles) -> dict[str, int]:
    """Return the numbers of rejected pages by reason."""
    try:
        found: dict[str, int] = corpus.stats()["pages"]["rejected"]
    except CorpusError:  # nothing was crawled
        return {}
    return found


def _similar_to(reason: str, known: Iterable[str]) -> str:
    """Return the known reason that is very similar, or ""; an unknown reason may simply have rejected no page."""
    names = {name.casefold(): name for name in known}
    return next((names[one] for one in get_close_matches(reason.casefold(), names, 1, MISSPELT)), "")


def plan(work: StepContext) -> Plan:
    """Read raw pages again with the current reader and judge; a document without a raw page stays as it is."""
    config = work.corpus.config
    parameters = {
        "language": config.language,
        "reading": msgspec.to_builtins(replace(config.read, processes=1)),
        "judging": msgspec.to_builtins(config.judge),
    }
    environment = reading_environment(PAGES)
    code = (environment, digest_with_imports("judge.py"))
    directory = {"directory": str(work.corpus.directory.resolve())}
    locations = {**directory, "environment": environment}
    tasks = []
    for shard, archives in zip(work.shards, (yield from _archives(work)), strict=True):
        if archives:
            state = state_of(archives.path, work.corpus.directory)
            tasks.append(
                Task(RUN, (shard, archives), parameters, (*code, state), {**locations, "archives": state})
            )
        else:
            tasks.append(Task(RUN, (shard,), parameters, code, locations))
    if choosing := _choosing(work, directory):
        chosen = yield choosing
        tasks += [Task(RUN, (pages,), {**parameters, "added": True}, code, locations) for pages in chosen]
    return (yield tasks)


def _archives(work: StepContext) -> Stages[list[ArtifactOutput | None]]:
    """Return for each shard the list of archives that its documents name, or None if they name none."""
    if not page_paths(work.corpus.directory):
        return [None for _ in work.shards]
    found = yield [Task(LIST_ARCHIVES, (shard,)) for shard in work.shards]
    return [one if one.report["archives"] else None for one in found]


def _choosing(work: StepContext, locations: dict[str, str]) -> list[Task]:
    """Return the tasks that choose rejected pages, one for each file of outcomes."""
    parameters, directory = work.parameters, work.corpus.directory
    if not parameters.rejected:
        return []
    reasons = list(parameters.reasons)
    return [
        Task(
            CHOOSE, (file,), {"reasons": reasons, "length": length}, _commit(file.path.parents[1]), locations
        )
        for file, length in sources.files(work.corpus, "outcomes", directory / FOLDER)
    ]


def _commit(part: Path) -> tuple[str, ...]:
    """Return the digest that identifies the last commit of a crawl, or of one of its shards."""
    status = part / "status.json"
    return (digest_of(status),) if status.exists() else ()
