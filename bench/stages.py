"""Where the time of a crawl goes: the pages of its WARC taken through each stage again, in this process."""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import uvloop

from thresher import config as configuration
from thresher.config import Config
from thresher.crawl.fetch import Fetcher, user_agent
from thresher.crawl.loop import Crawl
from thresher.crawl.start import parse_address
from thresher.judge import judge
from thresher.page import Candidate, Page, Reply
from thresher.read import (
    badness,
    boilerplate,
    directives,
    fingerprint,
    html,
    language,
    links,
    metadata,
    read,
    signs,
    trained,
)
from thresher.read.decode import decode, unpack
from thresher.store.warc import records
from thresher.url import host, key, tld

WARM_UP = 50  # pages read before the clock runs: models load, caches fill
T = TypeVar("T")


class Clock:
    """Adds up processor time by stage."""

    def __init__(self) -> None:
        self.seconds: defaultdict[str, float] = defaultdict(float)

    @contextmanager
    def over(self, stage: str) -> Iterator[None]:
        started = time.process_time()
        yield
        self.seconds[stage] += time.process_time() - started

    def call(self, stage: str, function: Callable[..., T], *arguments: Any) -> T:
        started = time.process_time()
        result = function(*arguments)
        self.seconds[stage] += time.process_time() - started
        return result

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
    reader = _reader_stages(replies[WARM_UP:], config)
    pages = [read(reply, config.language, config.read) for reply in replies]
    _main_stages(replies[:WARM_UP], pages[:WARM_UP], config, scratch / "warm-up")
    main = _main_stages(replies[WARM_UP:], pages[WARM_UP:], config, scratch / "timed")
    timed = pages[WARM_UP:]
    return {
        "sample": len(timed),
        "html_kb": sum(page.html_bytes for page in timed) / len(timed) / 1e3,
        "links": sum(len(page.links) for page in timed) / len(timed),
        "reader": reader,
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
    settings = config.read
    expected = trained.badness_model(config.language)
    encode, reply_from = msgspec.msgpack.Encoder().encode, msgspec.msgpack.Decoder(Reply).decode
    for reply in replies:
        frame = encode(reply)
        clock.call("receive", reply_from, frame)
        encoding, content_type = reply.header("Content-Encoding") or "", reply.header("Content-Type") or ""
        body = clock.call("unpack", unpack, reply.body, encoding, settings.max_decoded_bytes).body
        document = clock.call("decode", decode, body, content_type, tld(host(reply.url)))
        markup = clock.call("scan", html.scan, document.utf8, 2 * settings.max_links)
        scores = clock.call("scores", boilerplate.score, markup)
        cut = clock.call("scores", boilerplate.cut, scores, markup, settings.mode)
        found = clock.call("links", links.links, markup, reply.url, scores.tolist(), cut, settings.max_links)
        texts = [text for text, score in zip(markup.texts, scores.tolist(), strict=True) if score < cut]
        clock.call("signs", signs.signs, texts, found, reply.url)
        clock.call(
            "metadata",
            metadata.metadata,
            *(markup.metas, markup.json_ld, markup.times, markup.bylines, markup.title, markup.language),
            reply.fetched,
        )
        clock.call("language", language.languages, "\n".join(texts))
        if expected:
            clock.call("badness", badness.badness, "\n".join(texts), expected)
        clock.call("fingerprints", fingerprint.raw_hash, body)
        clock.call("fingerprints", fingerprint.text_hash, texts)
        clock.call("directives", directives.directives, {}, markup.metas, reply.fetched)
        clock.call("send", encode, read(reply, config.language, settings))
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
    taken: list[Candidate] = []
    with clock.over("frontier"):
        while candidate := crawl.frontier.take():
            taken.append(candidate)
            crawl.frontier.free(host(candidate.url), 0.0)
    for number, candidate in enumerate(taken, 1):
        reply, page = by_url[candidate.url]
        frame = encode(page)
        clock.call("to and from reader", encode, reply)
        page = clock.call("to and from reader", page_from, frame)
        with clock.over("judge"):
            raw_seen, text_seen = crawl.ledger.seen_before(page)
            verdict = judge(page, config.language, config.judge, raw_seen=raw_seen, text_seen=text_seen)
        with clock.over("yields"):
            weights = crawl.yields.expected([link.url for link in page.links])
        added = clock.call("ledger", crawl.ledger.record_page, candidate, reply, page, verdict, weights)
        with clock.over("yields"):
            crawl.yields.learn(host(candidate.url), len(reply.body), added)
        with clock.over("seen"):
            onward = [Candidate(link.url, candidate.url, "page", 1) for link in page.links]
            keys = [key(link.url) for link in onward]
            fresh = [
                n for n in crawl.seen.unseen(keys) if crawl.gate.admits(onward[n].url, host(candidate.url))
            ]
            crawl.seen.add([keys[n] for n in fresh])
        with clock.over("frontier"):
            crawl.frontier.add(onward[n] for n in fresh)
            crawl.frontier.finish(candidate)
        if number % config.store.commit_pages == 0:
            clock.call("commit", crawl.commit)
    clock.call("commit", crawl.commit)
    crawl.ledger.close()
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
