"""Webs that are described page by page, for simulated crawls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from thresher.simulation.record import CrawlRecord


def recorded(
    pages: Sequence[tuple[str, int, int]],
    links: Mapping[int, Sequence[int]],
    originals: Mapping[int, int] | None = None,
) -> CrawlRecord:
    """Return a record of pages, each with URL, bytes and worth."""
    urls = [url for url, _, _ in pages]
    targets = [target for number in range(len(pages)) for target in links.get(number, [])]
    lengths = [len(links.get(number, [])) for number in range(len(pages))]
    return CrawlRecord(
        urls=urls,
        hosts=[url.split("/")[2] for url in urls],
        bytes=np.array([size for _, size, _ in pages]),
        worth=np.array([worth for _, _, worth in pages]),
        originals=np.array([(originals or {}).get(number, number) for number in range(len(pages))]),
        starts=np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
        targets=np.array(targets, np.int64),
        anchors=[""] * len(targets),
        boilerplate=np.full(len(targets), 0.5),
        in_text=np.zeros(len(targets), np.bool_),
        rels={},
        badness=np.full(len(pages), np.nan),
        redirects=np.zeros(len(pages), np.bool_),
        languages=["cs" if worth else "" for _, _, worth in pages],
        language="cs",
        listings={},
        sitemaps={},
        numbers={url.partition("://")[2]: number for number, url in enumerate(urls)},
    )
