"""Raw pages read again, with today's reader, and judged again; if asked for, also those that were not kept.

What a robots.txt says of uses by models is in the state of the crawl, which changes while the outcomes stay. So
pages that were not kept are chosen anew after each commit, which takes little, and read anew if others were chosen.
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from pathlib import Path
from typing import Self

import msgspec
from msgspec.structs import replace

from thresher.batch import sources
from thresher.batch.archives import NAMED, look
from thresher.batch.code import PAGES, digest_of_room, means
from thresher.batch.pieces import Output, Task, digest_of
from thresher.batch.records import FOLDER
from thresher.batch.steps.plans import Parameters, Plan, Stages, Work
from thresher.config import ConfigError
from thresher.store.corpus import Corpus, CorpusError
from thresher.store.pages import page_paths

MISSPELT = 0.87  # likeness of a name and what may be meant by it; of two that there are, it is less
CHOOSE = "thresher.batch.rejected:choose"
RUN = "thresher.batch.rereading:run"  # a module of its own: reader and engine take a while to load


class Reread(Parameters, frozen=True):
    """Whether pages that were not kept are read again, too, and which ones, by the reason in their outcomes."""

    rejected: bool = False
    reasons: tuple[str, ...] = ()  # none: all, but that there was such a page already

    def __post_init__(self) -> None:
        if self.reasons and not self.rejected:
            raise ValueError("reasons choose among pages that were not kept; add rejected = true")

    def ready_for(self, corpus: Corpus, /) -> Self:
        known = _reasons(corpus) if self.reasons else {}
        for reason in self.reasons:
            if reason not in known and (meant := _nearly(reason, known)):
                raise ConfigError(
                    f"no page was left out for the reason {reason!r}; did you mean {meant!r}? There are "
                    f"{', '.join(sorted(known))}"
                )
        return self


def _reasons(corpus: Corpus) -> dict[str, int]:
    """Why pages were not kept, and how many for each reason."""
    try:
        found: dict[str, int] = corpus.stats()["pages"]["rejected"]
    except CorpusError:  # nothing was crawled: there are no figures
        return {}
    return found


def _nearly(reason: str, known: Iterable[str]) -> str:
    """The reason that was meant, or "": it may be one for which no page was left out."""
    names = {name.casefold(): name for name in known}
    return next((names[one] for one in get_close_matches(reason.casefold(), names, 1, MISSPELT)), "")


def plan(work: Work) -> Plan:
    """Read the raw pages of documents again, with today's reader and judge; what has no raw page stays as it is."""
    config = work.corpus.config
    told = {
        "language": config.language,
        "reading": msgspec.to_builtins(replace(config.read, processes=1)),
        "judging": msgspec.to_builtins(config.judge),
    }
    able = means(PAGES)
    code = (able, digest_of_room("judge.py"))
    directory = {"directory": str(work.corpus.directory.resolve())}
    where = {**directory, "able": able}
    tasks = []
    for shard, archives in zip(work.shards, (yield from _archives(work)), strict=True):
        if archives:
            seen = look(archives.path, work.corpus.directory)
            told_where = {**where, "archives": seen}
            tasks.append(Task(RUN, (shard, archives), told, (*code, seen), told_where))
        else:
            tasks.append(Task(RUN, (shard,), told, code, where))
    if choosing := _choosing(work, directory):
        chosen = yield choosing
        tasks += [Task(RUN, (pages,), {**told, "added": True}, code, where) for pages in chosen]
    return (yield tasks)


def _archives(work: Work) -> Stages[list[Output | None]]:
    """For each shard the archives that its documents name, if there are any."""
    if not page_paths(work.corpus.directory):
        return [None for _ in work.shards]
    found = yield [Task(NAMED, (shard,)) for shard in work.shards]
    return [one if one.report["archives"] else None for one in found]


def _choosing(work: Work, where: dict[str, str]) -> list[Task]:
    """The tasks that choose pages which were not kept, one for each file of outcomes."""
    asked, directory = work.parameters, work.corpus.directory
    if not asked.rejected:
        return []
    reasons = list(asked.reasons)
    return [
        Task(CHOOSE, (file,), {"reasons": reasons, "length": length}, _commit(file.path.parents[1]), where)
        for file, length in sources.files(work.corpus, "outcomes", directory / FOLDER)
    ]


def _commit(part: Path) -> tuple[str, ...]:
    """Which commit of a crawl, or of one of its shards, it is."""
    status = part / "status.json"
    return (digest_of(status),) if status.exists() else ()
