"""Costs of a page, a URL and a host, for planning large crawls and for simulated webs.

python -m bench.costs [--only links,seen,queue,hosts,lines] [--urls 1000000]

links: how many links pages of the recorded web have, where they lead, how many are on every page of a host, and the
bytes of one in a message between shards. seen, queue, hosts: bytes on disk and in memory, and the time to open them
again. URLs come from the recorded web, numbered, so that there are enough of them. lines: processor time of a
question and of a message between two shards.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import itertools
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import uvloop

from bench.measure import emit, say
from bench.webs import Missing, unpacked
from thresher.config import PolicySettings, ScopeSettings
from thresher.crawler.frontier.frontier import Frontier
from thresher.crawler.frontier.host_scheduler import HostScheduler, make_scheduler
from thresher.crawler.frontier.seen import BloomFilter, Keys, SeenUrls
from thresher.crawler.frontier.url_scope import UrlScope
from thresher.crawler.policy.learned.feature_layout import HINTS, MARK
from thresher.crawler.policy.policy import CrawlPolicy, make_policy
from thresher.crawler.policy.yield_stats import YieldStats
from thresher.crawler.shards.outbox import Outbox
from thresher.crawler.shards.peers import PeerExchange
from thresher.crawler.shards.protocol import Peer, PeerRequest, ReserveAddress
from thresher.crawler.storage.kv_state import KeyValueState
from thresher.reader.extract import read
from thresher.records import Candidate, Link, Reply
from thresher.store.shard_layout import Shard, owner
from thresher.urls import domain, host, key

SAMPLE = 80  # pages of a host
FEWEST = 20  # pages of a host, at least, to find the links on every page of it
PORTION = 10_000  # URLs between two commits
URLS_OF_HOST = 100
HEADERS = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n"
QUESTIONS = 1_000
MESSAGES, LINKS = 300, 10  # messages between shards, and links of each
KINDS = ("links", "seen", "queue", "hosts", "lines")

_encode = msgspec.msgpack.Encoder().encode


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.costs", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--only", default=",".join(KINDS))
    parser.add_argument("--urls", type=int, default=1_000_000)
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)  # measured in this process
    asked = parser.parse_args()
    for kind in asked.only.split(","):
        if asked.here:
            emit({"name": kind, **MEASURES[kind](asked.urls)})
            continue
        say(kind)
        # Each in a process of its own: memory that one has left behind would count for the next.
        command = [sys.executable, "-m", "bench.costs", "--here", "--only", kind, "--urls", str(asked.urls)]
        subprocess.run(command, check=True)


def _links(_: int) -> dict[str, Any]:
    """Measure the links of pages of the recorded web."""
    try:
        sites = unpacked() / "sites"
    except Missing as reason:
        return {"skipped": str(reason)}
    counts: Counter[str] = Counter()
    menus, sizes = [], []
    for site in sorted(sites.iterdir()):
        inside: Counter[bytes] = Counter()
        out: Counter[bytes] = Counter()
        pages = 0
        for url, links in _pages(site):
            pages += 1
            for link in links:
                where = _whereto(link.url, site.name)
                counts[where] += 1
                counts["out_to_front"] += where == "out" and link.url.count("/") == 3 and link.url[-1] == "/"
                (out if where == "out" else inside)[key(link.url)] += 1
                if where == "out":
                    sizes.append(len(_encode(_candidate(link.url, url))))
        counts["pages"] += pages
        if pages >= FEWEST:
            menus.append([sum(times > pages / 2 for times in each.values()) for each in (inside, out)])
    pages = counts.pop("pages")
    return {
        "pages": pages,
        **{f"{where}_per_page": count / pages for where, count in counts.items()},
        "menu_inside": statistics.mean(menu[0] for menu in menus),
        "menu_out": statistics.mean(menu[1] for menu in menus),
        "candidate_bytes": statistics.mean(sizes),
    }


def _pages(site: Path) -> Iterator[tuple[str, list[Link]]]:
    """Return some pages of a host with the links that a crawl may follow."""
    files = sorted(file for file in site.rglob("*.htm*") if file.is_file())
    scope = UrlScope(ScopeSettings())
    for file in random.Random(1).sample(files, min(SAMPLE, len(files))):
        url = f"https://{site.name}/{file.relative_to(site).as_posix()}"
        page = read(Reply(url, 200, HEADERS, file.read_bytes(), 0.0, 0.1, "192.0.2.1"))
        if page.kind == "html":
            followed = [link for link in page.links if "nofollow" not in link.rel]
            yield url, [link for link in followed if scope.admits(link.url, site.name)]


def _whereto(url: str, source: str) -> str:
    target = host(url)
    if target == source:
        return "inside"
    return "next_door" if domain(target) == domain(source) else "out"


def _candidate(url: str, source: str) -> Candidate:
    return Candidate(url, source, "page", 3, 0.125, hints=bytes(range(HINTS + MARK)))


def _seen(urls: int) -> dict[str, Any]:
    """Measure the set of URLs that were ever queued."""
    dice = random.Random(1)
    with tempfile.TemporaryDirectory(prefix="thresher-bench-") as directory:
        state = KeyValueState(Path(directory))
        seen, bloom = SeenUrls(state), BloomFilter()
        started = time.process_time()
        for _ in range(0, urls, PORTION):
            seen.add([dice.randbytes(16) for _ in range(PORTION)])
            state.commit()
        spent = time.process_time() - started
        bloom_steps = {}
        for number in range(0, 32 * urls, PORTION):
            bloom.add(_random_keys(dice, PORTION))
            if number + PORTION in (urls, 8 * urls, 32 * urls):
                bloom_steps[f"filter_bytes_of_{(number + PORTION) // 10**6}M"] = bloom.bytes / (
                    number + PORTION
                )
        disk = _closed(state, directory)
        started_wall, started = time.perf_counter(), time.process_time()
        state = KeyValueState(Path(directory))
        SeenUrls(state)
        opened, opened_wall = time.process_time() - started, time.perf_counter() - started_wall
        state.close()
    return {
        "urls": urls,
        "disk_bytes": disk / urls,
        **bloom_steps,
        "add_us": 1e6 * spent / urls,
        "open_s_per_million": opened_wall * 1e6 / urls,
        "open_cpu_s_per_million": opened * 1e6 / urls,
    }


def _random_keys(dice: random.Random, count: int) -> Keys:
    return np.frombuffer(dice.randbytes(16 * count), np.uint64).reshape(-1, 2)


def _queue(urls: int) -> dict[str, Any]:
    """Measure queued URLs, a hundred to a host."""
    return _frontier(urls, urls // URLS_OF_HOST)


def _hosts(urls: int) -> dict[str, Any]:
    """Measure hosts with two queued URLs each."""
    return _frontier(urls // 5, urls // 10)


def _learned_policy(state: KeyValueState) -> tuple[CrawlPolicy, HostScheduler]:
    """Return the default policy with its scheduler."""
    settings, dice = PolicySettings(), random.Random(1)
    return make_policy(settings, "cs", state, YieldStats(state), dice), make_scheduler(settings, dice)


def _frontier(urls: int, hosts: int) -> dict[str, Any]:
    patterns = _url_pairs()
    with tempfile.TemporaryDirectory(prefix="thresher-bench-") as directory:
        state = KeyValueState(Path(directory))
        policy, turns = _learned_policy(state)
        frontier = Frontier(state, lambda: 0.0, policy, turns)
        before = _resident()
        for first in range(0, urls, PORTION):
            frontier.add(
                policy.weigh_urls([_numbered(n, hosts, patterns) for n in range(first, first + PORTION)])
            )
            frontier.flush()
            state.commit()
            frontier.committed()
        grown = _resident() - before
        disk = _closed(state, directory)
        del frontier
        gc.collect()
        state = KeyValueState(Path(directory))
        policy, turns = _learned_policy(state)
        started, started_wall = time.process_time(), time.perf_counter()
        Frontier(state, lambda: 0.0, policy, turns)
        opened, opened_wall = time.process_time() - started, time.perf_counter() - started_wall
        state.close()
    return {
        "urls": urls,
        "hosts": hosts,
        "disk_bytes_per_url": disk / urls,
        "memory_bytes_per_host": grown / hosts,
        "memory_mb": grown / 1e6,
        "open_s_per_million_hosts": opened_wall * 1e6 / hosts,
        "open_cpu_s_per_million_hosts": opened * 1e6 / hosts,
    }


class _Station:
    """One of two shards that only exchange messages."""

    def __init__(self, directory: Path, number: int) -> None:
        self.arrived = asyncio.Event()
        self.state = KeyValueState(directory / str(number))
        self.outbox = Outbox(self.state, Shard(number, 2))
        self.exchange = PeerExchange(Shard(number, 2), 1, "", self.outbox)

    def receive(self, _links: Sequence[Candidate]) -> None:
        self.arrived.set()

    def answer(self, _request: PeerRequest, reply: Callable[[float | str], None]) -> None:
        reply(0.0)

    def fail(self, fault: BaseException) -> None:
        raise SystemExit(str(fault))

    def commit(self) -> None:
        self.outbox.flush()
        self.state.commit()
        self.outbox.durable(self.outbox.committed())
        self.exchange.durable()


def _lines(_: int) -> dict[str, Any]:
    """Return the cost of requests, some at a time, and of batches, a commit each, for both sides together."""
    with tempfile.TemporaryDirectory() as directory:
        return uvloop.run(_spoken(Path(directory)))


async def _spoken(directory: Path) -> dict[str, Any]:
    stations = [_Station(directory, number) for number in range(2)]
    peers = [Peer(1, "127.0.0.1", await station.exchange.serve("127.0.0.1", station)) for station in stations]
    for station in stations:
        station.exchange.update(peers)
    first, second = stations
    await first.exchange.request(1, ReserveAddress("192.0.2.1"))
    costs = {}
    for together in (1, 5, 20):
        started = time.process_time()
        for _ in range(QUESTIONS // together):
            await asyncio.gather(
                *(first.exchange.request(1, ReserveAddress("192.0.2.1")) for _ in range(together))
            )
        costs[f"question_cpu_ms_{together}_at_a_time"] = 1e3 * (time.process_time() - started) / QUESTIONS
    patterns = _url_pairs()
    links = [_numbered(number, 1_000, patterns) for number in range(1_000)]
    abroad = [link for link in links if owner(host(link.url), 2)][:LINKS]
    started = time.process_time()
    for _ in range(MESSAGES):
        first.outbox.route(abroad)
        first.commit()
        await second.arrived.wait()
        second.arrived.clear()
        second.commit()
    costs["message_cpu_ms"] = 1e3 * (time.process_time() - started) / MESSAGES
    for station in stations:
        await station.exchange.close()
        station.state.close()
    return costs


def _url_pairs() -> list[tuple[str, str]]:
    """Return the paths of links and of the pages that contain them."""
    sites = unpacked() / "sites"
    pairs = (
        ("/" + link.url.split("/", 3)[-1], "/" + url.split("/", 3)[-1])
        for site in sorted(sites.iterdir())
        for url, links in itertools.islice(_pages(site), 8)
        for link in links
    )
    return list(dict.fromkeys(pairs))


def _numbered(number: int, hosts: int, patterns: list[tuple[str, str]]) -> Candidate:
    dice = random.Random(number)
    path, source = patterns[dice.randrange(len(patterns))]
    at = f"https://www.host-{dice.randrange(hosts)}.cz"
    return _candidate(f"{at}{path}{'&' if '?' in path else '?'}n={dice.getrandbits(32)}", at + source)


def _closed(state: KeyValueState, directory: str) -> int:
    """Return the bytes on disk once all compactions are done."""
    state.compact()
    state.close()
    return sum(file.stat().st_size for file in Path(directory).iterdir())


def _resident() -> int:
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


MEASURES = {"links": _links, "seen": _seen, "queue": _queue, "hosts": _hosts, "lines": _lines}

if __name__ == "__main__":
    main()
