"""The demo: a crawl of the embedded toy web, and what an oracle says of the result."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any

import thresher
from thresher.config import ConfigError
from thresher.crawl.ending import Ending
from thresher.crawl.start import crawl
from thresher.lab.toyweb import ToyWeb, reachable, seeds, serve, truth
from thresher.query.update import update

WEB = ToyWeb(slow_seconds=0.2, drip_seconds=0.4, crawl_delay=0.05)
SETTINGS: dict[str, dict[str, Any]] = {
    "polite": {"delay": 0.0, "contact": "demo@example.org", "backoff": 0.2, "robots_retry": 600.0},
    "policy": {"name": "bfs"},
    "budget": {"host_pages": 250},
}
SHOWN = 3
QUERY, SHOWN_LINES = '[word="p.*" %c] []{0,2} [word=".*ní"]', 6
MARK = ".thresher-demo"  # only a directory with this file is ever made anew


def run(directory: Path, progress: Callable[[dict[str, Any]], None]) -> Ending:
    """Crawl the toy web into a directory, made anew if an earlier demo made it, and index what was found."""
    if directory.exists():
        if not (directory / MARK).exists() and any(directory.iterdir()):
            raise ConfigError(f"{directory} is not empty and not an earlier demo's; choose another directory")
        shutil.rmtree(directory)
    given = [url for language in seeds(WEB).values() for url in language]
    with serve(WEB) as server:
        ending = crawl(
            directory, WEB.target, given, settings=SETTINGS, connect_to=server.connect_to, progress=progress
        )
    (directory / MARK).touch()
    update(directory, processes=1)
    return ending


def findings(directory: Path) -> dict[str, Any]:
    """What is in the corpus, beside what a perfect crawler would have kept."""
    corpus = thresher.open(directory)
    kept = [document.url for document in corpus]
    start = [url for language in seeds(WEB).values() for url in language]
    wanted = {found.group for _, found in reachable(WEB, start) if found.keepable}
    got = {truth(WEB, url).group for url in kept}
    samples = [
        {"url": document.url, "title": document.title, "text": document.text}
        for document in islice(corpus, SHOWN)
    ]
    return {
        "documents": len(kept),
        "good": len(wanted),
        "found": len(wanted & got),
        "strange": len(got - wanted),
        "query": QUERY,
        "concordance": corpus.ask("kwic", QUERY, size=SHOWN_LINES).records(),
        "hits": corpus.search(QUERY).count(),
        "samples": samples,
    }
