"""The task of the step `reread`: read the raw pages of a shard again and judge them.

Pages are read in a process of its own, which may stall or die. Whether a page stalls its reader depends on the load
of the machine as well. So such a page is read once more when all others are done. That a page cannot be read is not
a verdict: its document stays as it was.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
from msgspec.structs import replace

from thresher.config import Config, JudgeSettings, ReadSettings
from thresher.errors import DataError
from thresher.judge import Judge
from thresher.pipeline import document_shards
from thresher.pipeline.code_digests import check_environment
from thresher.pipeline.reread.archives import check_archives
from thresher.reasons import OUT_OF_MEMORY, READER_DIED, READER_STALLED
from thresher.records import Failure, ReadResult, Reply, with_opt_outs
from thresher.store.corpus_files import CorpusFiles
from thresher.store.corpus_files import open as open_corpus
from thresher.store.schemas import DOCS, document_row
from thresher.store.table_segments import column_array
from thresher.workers.reader_pool import ReaderPool

Row = dict[str, Any]

# Failures that may be due to the load of the machine, or to pages that the reader has read before.
TRANSIENT = (READER_STALLED, READER_DIED, OUT_OF_MEMORY)
# Counts that are not reasons to drop a document.
NO_REASONS = ("read", "without raw page", "could not be read")


def run(
    out: Path,
    inputs: Sequence[Path],
    *,
    directory: str,
    language: str,
    reading: dict[str, Any],
    judging: dict[str, Any],
    environment: str,
    added: bool = False,
    archives: str = "",
) -> dict[str, Any]:
    """Write the documents of a shard as the current reader and judge see them.

    With `added`, the shard holds rejected pages, and the documents are the pages that are kept now. Raise an error
    if this machine reads differently from the one where the run began (`environment`), or sees other `archives`.
    """
    check_environment(environment)
    shard, *archive_lists = inputs
    for folder in archive_lists:
        check_archives(folder, Path(directory), archives)
    counts: Counter[str] = Counter()
    rereader = _Rereader(
        open_corpus(directory),
        language,
        msgspec.convert(reading, ReadSettings),
        msgspec.convert(judging, JudgeSettings),
        added=added,
    )
    with asyncio.Runner() as loop:
        loop.run(rereader.start())
        try:
            documents = document_shards.write(out, rereader.batches(loop, shard, counts))
        finally:
            loop.run(rereader.close())
    dropped = {name: count for name, count in sorted(counts.items()) if name not in NO_REASONS}
    others = {name.replace(" ", "_"): counts[name] for name in NO_REASONS}
    return {"documents": documents, **({"added": documents} if added else {}), **others, "dropped": dropped}


class _Rereader:
    """Reads the raw pages of documents in a process of its own; if that stalls or dies, one page is lost."""

    def __init__(
        self,
        corpus: CorpusFiles,
        language: str,
        reading: ReadSettings,
        judging: JudgeSettings,
        *,
        added: bool,
    ) -> None:
        self._corpus, self._added = corpus, added
        self._judge = Judge(Config(language=language, judge=judging))
        self._readers = ReaderPool(reading, language)

    async def start(self) -> None:
        await self._readers.start()

    async def close(self) -> None:
        await self._readers.close()

    def batches(self, loop: asyncio.Runner, shard: Path, counts: Counter[str]) -> Iterator[pa.RecordBatch]:
        for batch in document_shards.batches(shard):
            yield loop.run(self._batch(batch, counts))

    async def _batch(self, batch: pa.RecordBatch, counts: Counter[str]) -> pa.RecordBatch:
        rows = batch.select(
            ["url", "warc_file", "warc_offset", "seq", "depth", "opt_out", "fetched"]
        ).to_pylist()
        made: dict[int, tuple[Any, ...]] = {}
        stays: list[int] = []
        retries: list[tuple[int, Reply]] = []

        def judged(place: int, reply: Reply, page: ReadResult | Failure) -> None:
            if isinstance(page, Failure):
                counts[page.reason] += 1
                return
            counts["read"] += 1
            verdict = self._judge.verdict(page, reply)
            if verdict.keep:
                made[place] = self._row(rows[place], reply, page, verdict)
            else:
                counts[verdict.reason] += 1

        def raw_pages() -> Iterator[tuple[int, Reply]]:
            for place, row in enumerate(rows):
                if reply := self._raw(row):
                    yield place, reply
                else:
                    counts["without raw page"] += 1
                    stays.append(place)

        async for place, reply, page in self._readers.read_in_order(raw_pages()):
            if _is_transient(page):
                retries.append((place, reply))
            else:
                judged(place, reply, page)
        for place, reply in retries:  # one at a time, with no other page in the reader
            page = await self._readers.read(reply)
            if not _is_transient(page):
                judged(place, reply, page)
                continue
            counts["could not be read"] += 1
            if not self._added:
                stays.append(place)
        return _joined(batch, stays, dict(sorted(made.items())))

    def _raw(self, row: Row) -> Reply | None:
        if row["warc_file"] is None:
            return None
        try:
            return self._corpus.reply(row["url"], row["warc_file"], row["warc_offset"], row["fetched"])
        except DataError:
            if Path(row["warc_file"]).is_absolute():  # users need not keep archives that they imported
                return None
            raise

    def _row(self, row: Row, reply: Reply, page: ReadResult, verdict: Any) -> tuple[Any, ...]:
        # The page does not have the opt-outs from the robots.txt of its host, which the row has.
        page = with_opt_outs(page, row["opt_out"] or ())
        raw = (row["warc_file"], row["warc_offset"])
        # The date in the WARC record may be rounded differently, so the date of the row is kept.
        fetched = row["fetched"].timestamp() if row["fetched"] else 0.0
        reply = replace(reply, fetched=fetched)
        return document_row(reply, page, verdict, seq=row["seq"], depth=row["depth"], raw=raw)


def _is_transient(page: ReadResult | Failure) -> bool:
    return isinstance(page, Failure) and page.reason in TRANSIENT


def _joined(batch: pa.RecordBatch, stays: Sequence[int], made: dict[int, tuple[Any, ...]]) -> pa.RecordBatch:
    """Return the documents that stay as they were and the ones that were made again, in their order."""
    columns = zip(*made.values(), strict=True) if made else ([] for _ in DOCS)
    arrays = [column_array(list(column), field.type) for column, field in zip(columns, DOCS, strict=True)]
    now = pa.RecordBatch.from_arrays(arrays, schema=DOCS)
    if not stays:
        return now
    order = pa.array([*stays, *made]).cast(pa.int64())
    both = pa.Table.from_batches([batch.select(DOCS.names).take(pa.array(stays, pa.int64())).cast(DOCS), now])
    return both.take(pc.sort_indices(order)).combine_chunks().to_batches()[0]
