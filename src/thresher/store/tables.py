"""The tables of a corpus: their columns, and how records become rows of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from thresher import url
from thresher.page import Page, Reply, Verdict

_TIME = pa.timestamp("us", "UTC")


def _list_of(item: pa.DataType) -> pa.DataType:
    # "element" is Parquet's name for it: a table is the same before and after it is sealed.
    return pa.list_(pa.field("element", item))


def _table(**columns: pa.DataType) -> pa.Schema:
    return pa.schema(columns)


_LANGUAGE = pa.struct([("code", pa.string()), ("bytes", pa.int64()), ("share", pa.float64())])
# Large strings: 64-bit offsets, so that no heap of long texts is too much for one batch.
_PARAGRAPH = pa.struct(
    [("text", pa.large_string()), ("boilerplate", pa.float64()), ("language", pa.string())]
)

DOCS = _table(
    url=pa.string(),
    host=pa.string(),
    domain=pa.string(),
    fetched=_TIME,  # null: nobody knows; some archives do not tell
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
    author=pa.string(),
    published=pa.string(),
    modified=pa.string(),
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
    chance=pa.float32(),  # that its target is kept; null: the policy does not tell, or the link is not the first
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


def document_row(
    reply: Reply, page: Page, verdict: Verdict, *, seq: int, depth: int, raw: tuple[str, int | None] | None
) -> tuple[Any, ...]:
    """A kept page as a row of DOCS; `raw` is where its WARC record stands, None where it was not kept.

    Of an imported page, `raw` is the path of its archive, and `seq`, as it has no outcome, is negative: the number
    of its record in there. A saved page has no offset: the file is the page.
    """
    host = url.host(page.url)
    warc_file, warc_offset = raw if raw is not None else (None, None)
    return (
        page.url,
        host,
        url.domain(host),
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
        page.license,
        page.opt_out,
        warc_file,
        warc_offset,
        page.raw_hash.hex(),
        depth,
        seq,
        page.metadata.author,
        page.metadata.published,
        page.metadata.modified,
        page.metadata.site_name,
        page.metadata.language_declared,
        page.signs.suspicion,
    )


def link_columns(
    page: Page, verdict: Verdict, weights: Sequence[float], chances: Sequence[float | None]
) -> list[list[Any]]:
    """The links of a page as columns of LINKS, with the expected yield of each, and its chance to be kept."""
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
