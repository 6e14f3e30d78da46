"""The demo: crawl a small web on loopback, index the corpus and compare it with a perfect crawl."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from itertools import islice
from pathlib import Path
from typing import Any, Protocol

from msgspec import Struct

import thresher
from thresher.crawler.api import crawl
from thresher.crawler.stop_reasons import Ending
from thresher.errors import UsageError
from thresher.search.index.update import update

SETTINGS: dict[str, dict[str, Any]] = {
    "polite": {"delay": 0.0, "contact": "demo@example.org", "backoff": 0.2, "robots_retry": 600.0},
    "policy": {"name": "bfs"},
    "budget": {"host_pages": 250},
}
SAMPLE_DOCUMENTS = 3
QUERY = '"uvařila" []{0,2} "polévku"'  # "she cooked … soup"
CONCORDANCE_LINES = 6  # one of a document, so that they come from many hosts
NODE = '"polévk.*"'  # of the collocates: "soup" in all its cases
COLLOCATES = 8
ATTRIBUTE = "lc"  # of the collocates: words in small letters, which need no annotator
MARK = ".thresher-demo"  # The demo deletes a directory only if this file is in it.


class Assessment(Struct, frozen=True):
    """Texts of a corpus compared with the texts that a perfect crawler keeps."""

    good: int  # distinct texts that a perfect crawler keeps
    found: int  # texts of them in the corpus
    strange: int  # texts in the corpus that a perfect crawler rejects


class DemoWeb(Protocol):
    """A web to crawl, with an oracle that knows all its pages. Implemented in `thresher_lab.toyweb`."""

    @property
    def language(self) -> str:
        """Language of the corpus."""

    @property
    def hosts(self) -> int:
        """Number of hosts."""

    @property
    def seeds(self) -> list[str]:
        """URLs at which the crawl starts."""

    def serve(self) -> AbstractContextManager[str]:
        """Serve the web on loopback until the block is left; the value is its "ADDRESS:PORT"."""

    def assess(self, urls: Iterable[str]) -> Assessment:
        """Compare the URLs of a corpus with the pages that a perfect crawler keeps."""


def run(directory: Path, web: DemoWeb, progress: Callable[[dict[str, Any]], None]) -> Ending:
    """Crawl the web into the directory and index the corpus. A corpus of an earlier demo is replaced."""
    if directory.exists():
        if not (directory / MARK).exists() and any(directory.iterdir()):
            raise UsageError(f"{directory} is not empty and not an earlier demo's; choose another directory")
        shutil.rmtree(directory)
    with web.serve() as address:
        ending = crawl(
            directory, web.language, web.seeds, settings=SETTINGS, connect_to=address, progress=progress
        )
    (directory / MARK).touch()
    update(directory, processes=1)
    return ending


def findings(directory: Path, web: DemoWeb) -> dict[str, Any]:
    """Return samples of the corpus, a concordance, collocates and the comparison with a perfect crawl."""
    corpus = thresher.open(directory)
    kept = [document.url for document in corpus]
    assessment = web.assess(kept)
    samples = [
        {"url": document.url, "title": document.title, "text": document.text}
        for document in islice(corpus, SAMPLE_DOCUMENTS)
    ]
    search = corpus.search(QUERY)
    lines = search.concordance(distinct="doc", size=CONCORDANCE_LINES)
    near = corpus.search(NODE).collocates(attribute=ATTRIBUTE, limit=COLLOCATES)
    return {
        "documents": len(kept),
        "good": assessment.good,
        "found": assessment.found,
        "strange": assessment.strange,
        "query": QUERY,
        "hits": search.count(),
        "concordance": lines.records(),
        "origins": search.origins(lines),
        "collocates": near.records(),
        "samples": samples,
    }
