"""Pages that a crawl rejected for their language, read and judged as pages of a corpus in another language.

A crawl keeps no documents in other languages than its own, but its outcomes name the main language of every page,
and raw pages are stored. Only the pages in the other language are read, in reader processes as in a crawl.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any, NamedTuple

import pyarrow.compute as pc

from thresher.config import Config
from thresher.errors import UsageError
from thresher.judge import Judge
from thresher.reasons import LANGUAGE_REASONS
from thresher.records import ReadResult
from thresher.store.corpus_files import CorpusFiles
from thresher.workers.reader_pool import ReaderPool

PAGES_AT_ONCE = 64  # with at most 8 MiB each in memory
COLUMNS = ("url", "time", "warc_file", "warc_offset")


class JudgedPage(NamedTuple):
    """A page that was read for another language, and whether a corpus in that language keeps it."""

    url: str
    page: ReadResult
    keep: bool


def reread(corpus: CorpusFiles, language: str) -> Iterator[JudgedPage]:
    """Read the pages in a language that the crawl rejected for it; raise UsageError if no raw page was stored."""
    wanted = (
        (pc.field("language") == language)
        & (pc.field("outcome") == "rejected")
        & pc.field("reason").isin(LANGUAGE_REASONS)
    )
    outcomes = corpus.outcomes([*COLUMNS, "language", "outcome", "reason"]).filter(wanted)
    rows = outcomes.select(list(COLUMNS)).to_pylist()
    stored = [row for row in rows if row["warc_file"] is not None]
    if rows and not stored:
        raise UsageError(
            f"{corpus.directory} has {len(rows):,} rejected pages in {language!r}, but their raw pages were not "
            'stored, so they cannot be judged again; crawl with keep_raw = "all" in [store] of corpus.toml'
        )
    return _read(corpus, language, stored) if stored else iter(())


def _read(corpus: CorpusFiles, language: str, rows: list[dict[str, Any]]) -> Iterator[JudgedPage]:
    config = Config(language=language)
    judge = Judge(config)
    with asyncio.Runner() as loop:
        readers = ReaderPool(config.read, language)
        loop.run(readers.start())
        try:
            for start in range(0, len(rows), PAGES_AT_ONCE):
                yield from loop.run(_judged(corpus, readers, judge, rows[start : start + PAGES_AT_ONCE]))
        finally:
            loop.run(readers.close())


async def _judged(
    corpus: CorpusFiles, readers: ReaderPool, judge: Judge, rows: list[dict[str, Any]]
) -> list[JudgedPage]:
    replies = (
        (None, corpus.reply(row["url"], row["warc_file"], row["warc_offset"], row["time"])) for row in rows
    )
    return [
        JudgedPage(reply.url, page, judge.verdict(page, reply).keep)
        async for _, reply, page in readers.read_in_order(replies, PAGES_AT_ONCE)
        if isinstance(page, ReadResult)  # else it stalled or killed its reader
    ]
