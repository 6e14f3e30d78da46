"""A small corpus in shards."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

from support.invariants import SETTINGS, expected
from thresher import config as configuration
from thresher.crawler.api import crawl
from thresher.crawler.storage.crawl_writer import CrawlWriter, LinkScores
from thresher.judge import Judgement
from thresher.records import Candidate, ReadResult, Reply, Verdict
from thresher.store import shard_layout
from thresher.urls import host
from thresher_lab.toyweb import ToyWeb, serve

COUNT = 3
PAGES = 165  # of 192, of which the shards have 66, 14 and 112: so each has fetched many when they are spent
WEB = ToyWeb.calm(
    hosts=12,
    licensed=0.0,
    rich_hosts=0.9,
    hidden_hosts=0.0,
    pages_per_host=(8, 12),
    page_bytes=(4_000, 6_000),
)
STORE = {"segment_bytes": 3_000, "warc_bytes": 30_000, "commit_pages": 8, "keep_raw": "all"}
JUDGE = {"language": False, "min_language_share": 0.0, "min_text_chars": 200, "max_badness": 0.0}


def make(directory: Path) -> Path:
    """Crawl a toy web with several shards into many small files, and return the directory."""
    settings: dict[str, dict[str, Any]] = {
        **SETTINGS,
        "store": STORE,
        "judge": JUDGE,
        "budget": {"max_pages": PAGES},
    }
    hosts = sorted({host(url) for url in expected(WEB)})
    with serve(WEB) as server:
        crawl(
            directory,
            "cs",
            [f"http://{name}/" for name in hosts],
            settings={**settings, "shards": {"count": COUNT}},
            connect_to=server.connect_to,
        )
    return directory


def parts(directory: Path) -> list[Path]:
    return shard_layout.parts(directory, configuration.load(directory))


def next_epoch(part: Path) -> Path:
    """Make a newer epoch with the files of a part; the older one stays."""
    *_, latest = shard_layout.epochs(part.parent)
    newer = shard_layout.epoch_folder(part.parent, latest + 1)
    shutil.copytree(part, newer.with_name("making"), copy_function=os.link)
    newer.with_name("making").rename(newer)
    return newer


def add_pages(directory: Path) -> list[str]:
    """Add a page to each shard, in open segments, and return the URLs."""
    config = configuration.load(directory)
    urls = []
    for part in parts(directory):
        shard = shard_layout.shard_of(part, config)
        url = f"http://{shard.number}.example.cz/"
        digest = bytes([shard.number] * 16)
        body = f"<p>Strana v části {shard.number}.</p>".encode()
        reply = Reply(
            url, 200, b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n", body, 1_790_000_000.0, 0.0, ""
        )
        page = ReadResult(
            url, "html", text=f"Strana v části {shard.number}.", text_hash=digest, raw_hash=digest
        )
        status = json.loads((part / "status.json").read_bytes())
        writer = CrawlWriter(part, config, lambda: 0.0, shard)
        writer.record_page(
            Candidate(url), reply, Judgement(Verdict(True, "", "cs", 1.0, 10), page), 10, LinkScores((), ())
        )
        writer.commit({name: figure for name, figure in status.items() if name != "files"})
        writer.close()
        urls.append(url)
    return urls
