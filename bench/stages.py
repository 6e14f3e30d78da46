"""Where the time of a crawl goes: the pages of its WARC taken through each stage again, in this process."""

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
from thresher.config import Config
from thresher.crawl.fetch import Fetcher, user_agent
from thresher.crawl.loop import Crawl
from thresher.crawl.robots import ALLOW_ALL
from thresher.crawl.start import parse_address
from thresher.page import Candidate, Page, Reply
from thresher.read import boilerplate, fingerprint, html, links, reader
from thresher.store.warc import records
from thresher.url import host

WARM_UP = 50  # pages read before the clock runs: models load, caches fill
T = TypeVar("T")


class Clock:
    """Adds up processor time by stage; what one stage spends within another counts for the inner one alone."""

    def __init__(self) -> None:
        self.seconds: defaultdict[str, float] = defaultdict(float)
        self._within = [0.0]  # for each stage under way, what others have spent within it

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
        """Count, for a stage each, all calls of some functions of an object or a module."""
        with ExitStack() as stack:
            for stage, owner, names in watched:
                for name in names:
                    counted = partial(self.call, stage, getattr(owner, name))
                    stack.enter_context(patch.object(owner, name, counted))
            yield

    def per_page(self, pages: int) -> dict[str, float]:
        return {stage: 1e3 * seconds / pages for stage, seconds in self.seconds.items()}


def milliseconds(corpus: Path, connect_to: str, scratch: Path, every: int) -> dict[str, Any]:
    """Processor milliseconds per page for each stage of the reader and of the main process.

    `every`: of so many pages one is taken, all over the crawl, since its first pages are mostly lists of links.
    The first pages are not timed, since first uses load models and libraries; no page is read before its turn,
    since caches would know it.
    """
    config = configuration.load(corpus)
    replies = list(islice(_html_replies(corpus), 0, None, every))
    _reader_stages(replies[:WARM_UP], config)
    reading = _reader_stages(replies[WARM_UP:], config)
    pages = [reader.read(reply, config.language, config.read) for reply in replies]
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
    settings = msgspec.structs.replace(config.read, runs=config.judge.near_duplicates or config.read.runs)
    with clock.watching(
        ("unpack", reader, ["unpack"]),
        ("decode", reader, ["sniff_kind", "decode"]),
        ("scan", html, ["scan"]),
        ("scores", boilerplate, ["score", "cut"]),
        ("links", links, ["links", "licence"]),
        ("signs", reader, ["signs"]),
        ("metadata", reader, ["metadata"]),
        ("language", reader, ["languages", "paragraph_languages"]),
        ("badness", reader, ["badness"]),
        ("fingerprints", fingerprint, ["raw_hash", "text_hash"]),
        ("runs, for near duplicates", reader, ["runs"]),
        ("directives", reader, ["directives"]),
    ):
        for reply in replies:
            frame = encode(reply)
            received = clock.call("receive", reply_from, frame)
            page = clock.call("page and blocks", reader.read, received, config.language, settings)
            clock.call("send", encode, page)
    return clock.per_page(len(replies))


def _main_stages(replies: list[Reply], pages: list[Page], config: Config, scratch: Path) -> dict[str, float]:
    """What the crawl does with a page that was fetched and read, without network and readers."""
    clock = Clock()
    encode, page_from = msgspec.msgpack.Encoder().encode, msgspec.msgpack.Decoder(Page).decode
    by_url = {reply.url: (reply, page) for reply, page in zip(replies, pages, strict=True)}
    scratch.mkdir(parents=True)
    crawl = Crawl(scratch, config)
    crawl.seed(by_url)
    crawl.commit()
    books = crawl.books
    taken: list[Candidate] = []
    with clock.watching(
        ("ledger", books.ledger, ["seen_before", "record_page"]),
        ("policy", books.guide, ["found", "learn", "weights"]),
        ("yields", books.yields, ["expected", "learn"]),
        ("seen", books.seen, ["unseen", "add"]),
        ("frontier", books.frontier, ["add", "take", "free", "finish", "reweigh"]),
    ):
        while candidate := books.frontier.take():
            taken.append(candidate)
            books.frontier.free(host(candidate.url), 0.0)
        for number, candidate in enumerate(taken, 1):
            reply, page = by_url[candidate.url]
            frame = encode(page)
            clock.call("to and from reader", encode, reply)
            page = clock.call("to and from reader", page_from, frame)
            harvest = (candidate, reply, page, ALLOW_ALL, None)
            clock.call("judge, scope, the rest of the harvest", crawl.visits.harvest, *harvest)
            if number % config.store.commit_pages == 0:
                clock.call("commit", crawl.commit)
    clock.call("commit", crawl.commit)
    books.close()
    return clock.per_page(len(taken))


def _fetching(replies: list[Reply], config: Config, connect_to: str) -> dict[str, float]:
    """The same pages fetched once more and thrown away."""

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
