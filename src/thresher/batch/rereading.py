"""Raw pages read again, and judged again, in a process that may stall or die: the work of the step `reread`.

Whether a page stalls its reader also depends on what else the machine is doing. So one that does is read once more
when all others are through; that it cannot be read is no verdict, and a document stays as it was.
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
from msgspec.structs import replace

from thresher.batch import shards
from thresher.batch.archives import must_look
from thresher.batch.code import must_be_able
from thresher.config import Judging, Reading
from thresher.engine.local import IN_FLIGHT, Readers
from thresher.judge import age, judge
from thresher.page import Failure, Page, Reply
from thresher.store.corpus import Corpus
from thresher.store.corpus import open as open_corpus
from thresher.store.files import StoreError
from thresher.store.segments import column_array
from thresher.store.tables import DOCS, document_row

Row = dict[str, Any]

# What a page is not to blame for alone: others are on the machine, and have been in the memory of its reader.
PASSING = ("reader stalled", "reader died", "out of memory")
OTHERS = ("read", "without raw page", "could not be read")  # figures that are no reasons to drop a document


def run(
    out: Path,
    inputs: Sequence[Path],
    *,
    directory: str,
    language: str,
    reading: dict[str, Any],
    judging: dict[str, Any],
    able: str,
    added: bool = False,
    archives: str = "",
) -> dict[str, Any]:
    """The documents of a shard as they are read today; of pages that were not kept, those that are added now.

    Those who do it must be `able` to read as is expected of them, and see the archives that a shard names.
    """
    must_be_able(able)
    shard, *named = inputs
    for folder in named:
        must_look(folder, Path(directory), archives)
    figures: Counter[str] = Counter()
    again = _Again(
        open_corpus(directory),
        language,
        msgspec.convert(reading, Reading),
        msgspec.convert(judging, Judging),
        added=added,
    )
    with asyncio.Runner() as loop:
        loop.run(again.start())
        try:
            documents = shards.write(out, again.batches(loop, shard, figures))
        finally:
            loop.run(again.close())
    dropped = {name: count for name, count in sorted(figures.items()) if name not in OTHERS}
    others = {name.replace(" ", "_"): figures[name] for name in OTHERS}
    return {"documents": documents, **({"added": documents} if added else {}), **others, "dropped": dropped}


class _Again:
    """Reads the raw pages of documents in a process of its own: one that stalls, or dies, costs one page."""

    def __init__(
        self, corpus: Corpus, language: str, reading: Reading, judging: Judging, *, added: bool
    ) -> None:
        self._corpus, self._language, self._judging, self._added = corpus, language, judging, added
        self._readers = Readers(reading, language)

    async def start(self) -> None:
        await self._readers.start()

    async def close(self) -> None:
        await self._readers.close()

    def batches(self, loop: asyncio.Runner, shard: Path, figures: Counter[str]) -> Iterator[pa.RecordBatch]:
        for batch in shards.batches(shard):
            yield loop.run(self._batch(batch, figures))

    async def _batch(self, batch: pa.RecordBatch, figures: Counter[str]) -> pa.RecordBatch:
        rows = batch.select(
            ["url", "warc_file", "warc_offset", "seq", "depth", "opt_out", "fetched"]
        ).to_pylist()
        made: dict[int, tuple[Any, ...]] = {}
        stays: list[int] = []
        again: list[tuple[int, Reply]] = []

        def judged(place: int, reply: Reply, page: Page | Failure) -> None:
            if isinstance(page, Failure):
                figures[page.reason] += 1
                return
            figures["read"] += 1
            verdict = judge(page, self._language, self._judging, age=age(reply))
            if verdict.keep:
                made[place] = self._row(rows[place], reply, page, verdict)
            else:
                figures[verdict.reason] += 1

        async for place, reply, page in self._pages(rows):
            if reply is None or page is None:
                figures["without raw page"] += 1
                stays.append(place)
            elif _is_passing(page):
                again.append((place, reply))
            else:
                judged(place, reply, page)
        for place, reply in again:  # one at a time, and nothing else is under way
            page = await self._readers.read(reply)
            if not _is_passing(page):
                judged(place, reply, page)
                continue
            figures["could not be read"] += 1
            if not self._added:
                stays.append(place)
        return _joined(batch, stays, dict(sorted(made.items())))

    async def _pages(self, rows: list[Row]) -> AsyncIterator[tuple[int, Reply | None, Page | Failure | None]]:
        """The page of each row, in order; some are being read while others are waited for."""
        coming: deque[tuple[int, Reply | None, asyncio.Task[Page | Failure] | None]] = deque()
        for place, row in enumerate(rows):
            reply = self._raw(row)
            task = asyncio.ensure_future(self._readers.read(reply)) if reply else None
            coming.append((place, reply, task))
            if len(coming) > IN_FLIGHT:
                first, its_reply, its_task = coming.popleft()
                yield first, its_reply, await its_task if its_task else None
        for place, reply, task in coming:
            yield place, reply, await task if task else None

    def _raw(self, row: Row) -> Reply | None:
        if row["warc_file"] is None:
            return None
        try:
            return self._corpus.reply(row["url"], row["warc_file"], row["warc_offset"], row["fetched"])
        except StoreError:
            if Path(row["warc_file"]).is_absolute():  # an archive that was imported need not be kept
                return None
            raise

    def _row(self, row: Row, reply: Reply, page: Page, verdict: Any) -> tuple[Any, ...]:
        # What a robots.txt said of its host is not on the page.
        opt_out = tuple(dict.fromkeys((*page.opt_out, *(row["opt_out"] or ()))))
        raw = (row["warc_file"], row["warc_offset"])
        fetched = (
            row["fetched"].timestamp() if row["fetched"] else 0.0
        )  # a WARC date may be rounded otherwise
        reply = replace(reply, fetched=fetched)
        return document_row(
            reply, replace(page, opt_out=opt_out), verdict, seq=row["seq"], depth=row["depth"], raw=raw
        )


def _is_passing(page: Page | Failure) -> bool:
    return isinstance(page, Failure) and page.reason in PASSING


def _joined(batch: pa.RecordBatch, stays: Sequence[int], made: dict[int, tuple[Any, ...]]) -> pa.RecordBatch:
    """Documents as they were, and as they are now, in their order."""
    columns = zip(*made.values(), strict=True) if made else ([] for _ in DOCS)
    arrays = [column_array(list(column), field.type) for column, field in zip(columns, DOCS, strict=True)]
    now = pa.RecordBatch.from_arrays(arrays, schema=DOCS)
    if not stays:
        return now
    order = pa.array([*stays, *made]).cast(pa.int64())
    both = pa.Table.from_batches([batch.select(DOCS.names).take(pa.array(stays, pa.int64())).cast(DOCS), now])
    return both.take(pc.sort_indices(order)).combine_chunks().to_batches()[0]
