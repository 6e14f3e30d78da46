"""The tables of a corpus: their columns, and how records become rows of them.

Segments of schema 1 hold "" for unknown authors, sites, declared languages and licences, dates as text, and 1970
for an unknown time of download. They stay as they are on disk. `aligned`, through which every reader gets its
batches, gives them the types and the nulls of schema 2.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from thresher import urls
from thresher.records import ReadResult, Reply, Verdict, day_or_none

_TIME = pa.timestamp("us", "UTC")


def _list_of(item: pa.DataType) -> pa.DataType:
    # Parquet calls the items "element": a table has the same schema before and after sealing.
    return pa.list_(pa.field("element", item))


def _table(**columns: pa.DataType) -> pa.Schema:
    return pa.schema(columns)


_LANGUAGE = pa.struct([("code", pa.string()), ("bytes", pa.int64()), ("share", pa.float64())])
# Large strings have 64-bit offsets, so that a batch may hold more than 2 GiB of text.
_PARAGRAPH = pa.struct(
    [("text", pa.large_string()), ("boilerplate", pa.float64()), ("language", pa.string())]
)

DOCS = _table(
    url=pa.string(),
    host=pa.string(),
    domain=pa.string(),
    fetched=_TIME,  # null: unknown; some archives do not say
    status=pa.int32(),
    charset_declared=pa.string(),
    charset=pa.string(),
    language=pa.string(),
    language_share=pa.float64(),
    language_bytes=pa.int64(),
    languages=_list_of(_LANGUAGE),
    badness=pa.float64(),
    title=pa.string(),
    text=pa.large_string(),
    paragraphs=_list_of(_PARAGRAPH),
    html_bytes=pa.int64(),
    text_bytes=pa.int64(),
    text_hash=pa.string(),
    license=pa.string(),
    opt_out=_list_of(pa.string()),
    warc_file=pa.string(),  # null: the raw page was not kept; a path: it is in an archive that was imported
    warc_offset=pa.int64(),
    raw_hash=pa.string(),
    depth=pa.int32(),
    seq=pa.int64(),
    author=pa.string(),  # null: unknown, as for the next four and the licence
    published=pa.date32(),  # the day as the page states it, without regard to time zones
    modified=pa.date32(),
    site_name=pa.string(),
    language_declared=pa.string(),
    suspicion=pa.float64(),
)

# 32 bits are enough for the scores of links: there are eighty of them for each document.
LINKS = _table(
    source=pa.string(),
    target=pa.string(),
    anchor=pa.string(),
    boilerplate=pa.float32(),
    in_text=pa.bool_(),
    rel=pa.string(),
    source_badness=pa.float32(),
    source_kept=pa.bool_(),
    weight=pa.float32(),
    chance=pa.float32(),  # that its target is kept; null: the policy predicts none, or an earlier link led there
)

OUTCOMES = _table(
    seq=pa.int64(),
    url=pa.string(),
    host=pa.string(),
    domain=pa.string(),
    time=_TIME,
    status=pa.int32(),
    outcome=pa.string(),
    reason=pa.string(),
    bytes=pa.int64(),
    text_bytes=pa.int64(),
    language=pa.string(),
    weight=pa.float64(),
    depth=pa.int32(),
    source=pa.string(),
    detail=pa.string(),
    warc_file=pa.string(),  # null: the raw page was not kept
    warc_offset=pa.int64(),
)

SCHEMAS = {"docs": DOCS, "links": LINKS, "outcomes": OUTCOMES}

_NULL_IF_EMPTY = frozenset(("author", "site_name", "language_declared", "license"))
_CONVERTED = frozenset((*_NULL_IF_EMPTY, "published", "modified", "fetched"))


def aligned(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Return a batch with exactly the columns of `schema`; a column or field that its segment lacks is null.

    Values of older segments become the ones that the current version writes.
    """
    if batch.schema.equals(schema) and _CONVERTED.isdisjoint(schema.names):
        return batch
    present = frozenset(batch.schema.names)
    arrays = [
        _converted(batch.column(field.name), field)
        if field.name in present
        else pa.nulls(batch.num_rows, field.type)
        for field in schema
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _converted(column: Any, field: pa.Field[Any]) -> Any:
    """Return a column with the type of a field, and null where the value is unknown."""
    if pa.types.is_date(field.type) and (
        pa.types.is_string(column.type) or pa.types.is_large_string(column.type)
    ):
        return pa.array([day_or_none(text) for text in column.to_pylist()], field.type)
    if column.type != field.type:
        column = column.cast(field.type)
    if field.name in _NULL_IF_EMPTY and pa.types.is_string(field.type):
        return _without(column, pc.equal(column, pa.scalar("", column.type)))
    if field.name == "fetched" and pa.types.is_timestamp(field.type):
        return _without(column, pc.equal(column, pa.scalar(0, field.type)))
    return column


def _without(column: Any, unknown: Any) -> Any:
    return pc.if_else(unknown, pa.scalar(None, column.type), column) if pc.any(unknown).as_py() else column


def document_row(
    reply: Reply,
    page: ReadResult,
    verdict: Verdict,
    *,
    seq: int,
    depth: int,
    raw: tuple[str, int | None] | None,
) -> tuple[Any, ...]:
    """Return a kept page as a row of DOCS.

    `raw` is the file and the offset of the WARC record, None if the raw page was not kept. For an imported page it
    is the path of the archive, and `seq` is the negative number of its record there, since the page has no outcome.
    A saved page has no offset: the file is the page.
    """
    host = urls.host(page.url)
    warc_file, warc_offset = raw if raw is not None else (None, None)
    return (
        page.url,
        host,
        urls.domain(host),
        reply.fetched or None,
        reply.status,
        page.charset_declared,
        page.charset,
        verdict.language,
        verdict.language_share,
        verdict.language_bytes,
        page.languages,
        page.badness,
        page.metadata.title or page.title,
        page.text,
        page.blocks,
        page.html_bytes,
        len(page.text.encode("utf-8", "replace")),
        page.text_hash.hex(),
        page.license or None,
        page.opt_out,
        warc_file,
        warc_offset,
        page.raw_hash.hex(),
        depth,
        seq,
        page.metadata.author or None,
        day_or_none(page.metadata.published),
        day_or_none(page.metadata.modified),
        page.metadata.site_name or None,
        page.metadata.language_declared or None,
        page.spam_signals.suspicion,
    )


def link_columns(
    page: ReadResult, verdict: Verdict, weights: Sequence[float], chances: Sequence[float | None]
) -> list[list[Any]]:
    """Return the links of a page as columns of LINKS, with their expected yields and chances to be kept."""
    links = page.links
    count = len(links)
    return [
        [page.url] * count,
        [link.url for link in links],
        [link.anchor for link in links],
        [link.boilerplate for link in links],
        [link.in_text for link in links],
        [link.rel for link in links],
        [page.badness] * count,
        [verdict.keep] * count,
        list(weights),
        list(chances),
    ]
