"""Processor time of a crawl by stage: the pages of its WARC taken through each stage again, in this process."""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar
from unittest.mock import patch

import msgspec
import uvloop

from thresher import config as configuration
from thresher.config import Config, parse_address
from thresher.crawler.crawl_state import CrawlState
from thresher.crawler.engine import Crawl
from thresher.crawler.fetching.fetcher import Fetcher, user_agent
from thresher.crawler.manners.robots import ALLOW_ALL
from thresher.crawler.page_visit import ReadPage
from thresher.crawler.parts import crawl_parts
from thresher.judge import CLAIM_NOT_NEEDED
from thresher.reader import extract
from thresher.reader.html import boilerplate, links, scan_page
from thresher.reader.quality import fingerprint
from thresher.records import Candidate, ReadResult, Reply
from thresher.store.warc import records
from thresher.urls import host

WARM_UP = 50  # pages read before the clock runs: models load, caches fill
T = TypeVar("T")


class Clock:
    """Processor time by stage; the time of an inner stage counts for the inner one alone."""

    def __init__(self) -> None:
        self.seconds: defaultdict[str, float] = defaultdict(float)
        self._within = [0.0]  # seconds spent by inner stages, for each stage under way

    def call(self, stage: str, function: Callable[..., T], *arguments: Any) -> T:
        started = time.process_time()
        self._within.append(0.0)
        result = function(*arguments)
        spent = time.process_time() - started
        self.seconds[stage] += spent - self._within.pop()
        self._within[-1] += spent
        return result

    @contextmanager
    def watching(self, *watched: tuple[str, object, Sequence[str]]) -> Iterator[None]:
        """Count all calls of some functions of an object or a module, each as a stage."""
        with ExitStack() as stack:
            for stage, owner, names in watched:
                for name in names:
                    counted = partial(self.call, stage, getattr(owner, name))
                    stack.enter_context(patch.object(owner, name, counted))
            yield

    def per_page(self, pages: int) -> dict[str, float]:
        return {stage: 1e3 * seconds / pages for stage, seconds in self.seconds.items()}


def milliseconds(corpus: Path, connect_to: str, scratch: Path, every: int) -> dict[str, Any]:
    """Return processor milliseconds per page for each stage of the reader and of the main process.

    `every`: one page of so many is taken, all over the crawl, since its first pages are mostly lists of links. The
    first pages are not timed, since first use loads models and libraries; no page is read before its turn, since it
    would be in the caches.
    """
    config = configuration.load(corpus)
    replies = list(islice(_html_replies(corpus), 0, None, every))
    _reader_stages(replies[:WARM_UP], config)
    reading = _reader_stages(replies[WARM_UP:], config)
    pages = [extract.read(reply, config.language, config.read) for reply in replies]
    _main_stages(replies[:WARM_UP], pages[:WARM_UP], config, scratch / "warm-up")
    main = _main_stages(replies[WARM_UP:], pages[WARM_UP:], config, scratch / "timed")
    timed = pages[WARM_UP:]
    return {
        "sample": len(timed),
        "html_kb": sum(page.html_bytes for page in timed) / len(timed) / 1e3,
        "links": sum(len(page.links) for page in timed) / len(timed),
        "reader": reading,
        "main": main | _fetching(replies[WARM_UP:], config, connect_to),
    }


def _html_replies(corpus: Path) -> Iterator[Reply]:
    for path in sorted((corpus / "warc").iterdir()):
        for record in records(path):
            if record.kind == "response":
                reply = record.reply()
                if reply.status == 200 and "html" in (reply.header("Content-Type") or ""):
                    yield reply


def _reader_stages(replies: list[Reply], config: Config) -> dict[str, float]:
    clock = Clock()
    encode, reply_from = msgspec.msgpack.Encoder().encode, msgspec.msgpack.Decoder(Reply).decode
    settings = msgspec.structs.replace(
        config.read, shingles=config.judge.near_duplicates or config.read.shingles
    )
    with clock.watching(
        ("unpack", extract, ["unpack"]),
        ("decode", extract, ["sniff_kind", "decode"]),
        ("scan", scan_page, ["scan"]),
        ("scores", boilerplate, ["score", "cut"]),
        ("links", links, ["links", "licence"]),
        ("signs", extract, ["spam_signals"]),
        ("metadata", extract, ["metadata"]),
        ("language", extract, ["languages", "paragraph_languages"]),
        ("badness", extract, ["badness"]),
        ("fingerprints", fingerprint, ["raw_hash", "text_hash"]),
        ("shingles, for near duplicates", extract, ["page_shingles"]),
        ("directives", extract, ["directives"]),
    ):
        for reply in replies:
            frame = encode(reply)
            received = clock.call("receive", reply_from, frame)
            page = clock.call("page and blocks", extract.read, received, config.language, settings)
            clock.call("send", encode, page)
    return clock.per_page(len(replies))


def _main_stages(
    replies: list[Reply], pages: list[ReadResult], config: Config, scratch: Path
) -> dict[str, float]:
    """Process a page that was fetched and read as the crawl does, without network and readers."""
    clock = Clock()
    encode, page_from = msgspec.msgpack.Encoder().encode, msgspec.msgpack.Decoder(ReadResult).decode
    by_url = {reply.url: (reply, page) for reply, page in zip(replies, pages, strict=True)}
    scratch.mkdir(parents=True)
    crawl = Crawl(CrawlState(scratch, config), crawl_parts(config))
    crawl.seed(by_url)
    crawl.commit()
    state = crawl.state
    taken: list[Candidate] = []
    with clock.watching(
        ("writer", state.writer, ["same_body", "same_text", "record_page"]),
        ("policy", state.policy, ["weigh_links", "learn", "expected_yields"]),
        ("yields", state.yields, ["expected", "learn"]),
        ("seen", state.seen, ["unseen", "add"]),
        ("frontier", state.frontier, ["add", "take", "free", "finish", "reweigh"]),
    ):
        while candidate := state.frontier.take():
            taken.append(candidate)
            state.frontier.free(host(candidate.url), 0.0)
        for number, candidate in enumerate(taken, 1):
            reply, page = by_url[candidate.url]
            frame = encode(page)
            clock.call("to and from reader", encode, reply)
            page = clock.call("to and from reader", page_from, frame)
            read = ReadPage(candidate, reply, page, ALLOW_ALL, CLAIM_NOT_NEEDED)
            clock.call("judge, scope, the rest", crawl.page_visit.process, read)
            if number % config.store.commit_pages == 0:
                clock.call("commit", crawl.commit)
    clock.call("commit", crawl.commit)
    state.close()
    return clock.per_page(len(taken))


def _fetching(replies: list[Reply], config: Config, connect_to: str) -> dict[str, float]:
    """Fetch the same pages once more and discard them."""

    async def fetch_all() -> float:
        fetcher = Fetcher(
            config.fetch,
            user_agent(config.polite.contact),
            connect_to=parse_address(connect_to),
            language=config.language,
        )
        started = time.process_time()
        await asyncio.gather(*[fetcher.fetch(reply.url) for reply in replies])
        spent = time.process_time() - started
        await fetcher.close()
        return spent

    return {"fetch": 1e3 * uvloop.run(fetch_all()) / len(replies)}
