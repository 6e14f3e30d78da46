"""Properties of every corpus of the toy web, however often its crawler was killed."""

from __future__ import annotations

import gzip
from collections import Counter
from pathlib import Path

from fastwarc.warc import ArchiveIterator as FastIterator
from warcio.archiveiterator import ArchiveIterator

import thresher
from support.webs.toy_webs import all_seeds
from thresher.config import ScopeSettings
from thresher.crawler.frontier.url_scope import UrlScope
from thresher.store.shard_layout import parts
from thresher.urls import host, key
from thresher_lab.toyweb import ToyWeb, reachable, truth

HOST_PAGES = 250
TOLERANCE = 0.002  # seconds; the server reads its clock when a request has arrived
SETTINGS = {
    "polite": {"delay": 0.0, "contact": "test@example.org", "backoff": 0.05, "robots_retry": 600.0},
    "policy": {"name": "bfs"},
    "budget": {"host_pages": HOST_PAGES},
    "fetch": {"connections": 50},
}


def expected(web: ToyWeb) -> dict[str, bool]:
    """Return every URL that an obedient crawler has to fetch, and whether its text is to be kept."""
    scope = UrlScope(ScopeSettings())
    walk = reachable(web, all_seeds(web), follow=lambda url: scope.admits(url, None))
    return {url: found.keepable for url, found in walk if not found.trap and found.kind != "robots"}


def check_crawl(directory: Path, web: ToyWeb) -> None:
    """Check that the corpus has every document that the oracle expects, once, and no other."""
    corpus = thresher.open(directory)
    outcomes = corpus.outcomes().to_pylist()
    wanted = expected(web)
    urls = [row["url"] for row in outcomes]
    shards = corpus.config.shards.count or 1
    numbers = [row["seq"] for row in outcomes]
    for shard in range(shards):
        own = [number for number in numbers if number % shards == shard]
        assert own == [shard + shards * place for place in range(len(own))]
    assert [url for url, count in Counter(map(key, urls)).items() if count > 1] == []

    tried = {key(url) for url in urls}
    lost = [url for url in wanted if key(url) not in tried]
    assert lost == []
    answered = {row["url"] for row in outcomes if row["outcome"] != "disallowed"}
    assert [url for url in answered if truth(web, url).disallowed] == []

    kept = corpus.documents(["url"]).column("url").to_pylist()
    groups = Counter(truth(web, url).group for url in kept)
    assert [group for group, count in groups.items() if count > 1] == []
    assert {truth(web, url).group for url, keepable in wanted.items() if keepable} - set(groups) == set()
    assert [url for url in kept if not truth(web, url).keepable] == []
    assert sorted(kept) == sorted(row["url"] for row in outcomes if row["outcome"] == "kept")


def check_raw(directory: Path) -> None:
    """Check that every answered URL has one WARC record that its row leads to and other tools can read."""
    corpus = thresher.open(directory)
    rows = {
        (row["warc_file"], row["warc_offset"]): row["url"]
        for row in corpus.outcomes(["url", "warc_file", "warc_offset"]).to_pylist()
        if row["warc_file"] is not None
    }
    records = {}
    folders = [part / "warc" for part in parts(directory, corpus.config)]
    # A shard that was replaced before its first commit has no folder yet.
    for path in sorted(path for folder in folders if folder.is_dir() for path in folder.iterdir()):
        gzip.decompress(path.read_bytes())
        with path.open("rb") as file:
            reader = ArchiveIterator(file, check_digests="raise")
            for record in reader:
                record.raw_stream.read()
                if record.rec_type == "response":
                    records[path.name, reader.get_record_offset()] = record.rec_headers.get_header(
                        "WARC-Target-URI"
                    )
        with path.open("rb") as file:
            assert all(record.verify_block_digest() for record in FastIterator(file, parse_http=False))
    assert records == rows
    for document in corpus:
        assert corpus.raw(document).url == document.url


def check_stats(directory: Path) -> None:
    """Check that the statistics of the status agree with the tables."""
    corpus = thresher.open(directory)
    outcomes = corpus.outcomes().to_pandas()
    stats = corpus.stats()
    assert stats["bytes"]["downloaded"] == outcomes["bytes"].sum()
    assert (
        stats["bytes"]["text"]
        == outcomes["text_bytes"].sum()
        == corpus.documents(["text_bytes"])["text_bytes"].to_pandas().sum()
    )
    assert stats["pages"]["kept"] == (outcomes["outcome"] == "kept").sum() == len(corpus)
    assert stats["pages"]["failed"] == (outcomes["outcome"] == "failed").sum()
    assert stats["seen_urls"] == len(outcomes) + stats["queue"] + stats["queue_closed"]
    leftovers = [path.name for path in directory.rglob("*") if path.name.endswith((".tmp", ".open"))]
    assert leftovers == []


def check_journal(journal: Path, web: ToyWeb, delay: float) -> Counter[str]:
    """Check the server's journal for obedience to robots.txt and delays; return the number of requests by URL."""
    last: dict[str, float] = {}
    requests: Counter[str] = Counter()
    hasty = []
    for line in journal.read_text().splitlines():
        moment, name, path, _ = line.split("\t")
        url = f"http://{name}{path}"
        if path != "/robots.txt":
            assert not truth(web, url).disallowed, url
        requests[url] += 1
        if name in last:
            gap = float(moment) - last[name]
            if gap < delay - TOLERANCE:
                hasty.append((gap, url))
        last[name] = float(moment)
    assert hasty == []
    assert {host(url) for url in requests} == set(last)
    return requests


def fetched_again(requests: Counter[str], web: ToyWeb) -> int:
    """Return how many requests were repeated that an undisturbed crawl makes once."""
    return sum(
        count - 1
        for url, count in requests.items()
        if not url.endswith("/robots.txt") and truth(web, url).kind not in ("flaky", "error")
    )
