"""Records of the webs that policies are compared on: a real one that is crawled once, and the toy web's plan."""

from __future__ import annotations

import hashlib
import json
import pickle
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bench import webs
from bench.contenders import thresher
from bench.crawl.realweb import PORTAL
from bench.measure import CACHE, say
from thresher.config import load
from thresher.errors import UsageError
from thresher.simulation import record as records
from thresher.simulation.record import CrawlRecord
from thresher_lab import toyweb
from thresher_lab.toyweb import ToyWeb, page_samples, seeds, simulation_record
from thresher_lab.toyweb.simulation_record import record_of

# Everything is fetched and every text kept, in any language. A host that asks for a long delay is left out:
# the crawl would last as long as the slowest of them.
SETTINGS: dict[str, dict[str, Any]] = {
    "judge": {"language": False, "max_badness": 0.0},
    "polite": {"delay": 0.0, "ip_delay": 0.0, "max_crawl_delay": 1.0},
    "policy": {"name": "bfs"},
    "fetch": {"connections": 50},
    "store": {"keep_raw": "none"},
}
CRAWLED_FOR = "cs"  # some language has to be named
ENDED = ("done", "waiting")

Flags = NDArray[np.bool_]


class Case(NamedTuple):
    """A web, a language to harvest and the start of the crawl."""

    web: str
    language: str
    start: str
    record: CrawlRecord
    seeds: list[int]

    def __str__(self) -> str:
        return f"{self.web} web, {self.language}, from {self.start}"

    @property
    def names(self) -> dict[str, str]:
        return {"web": self.web, "language": self.language, "start": self.start}


def real_cases(languages: Sequence[str]) -> Iterator[Case]:
    """Yield the real web for each language: from its seeds and the portal, then from the portal alone.

    Raises Missing if the web is not available.
    """
    directory = _crawled()
    known = _known_languages()
    strangers = [language for language in languages if language not in known]
    if strangers:
        raise webs.Missing(f"the real web has no seeds in {', '.join(strangers)}; it has {', '.join(known)}")
    for language, record in zip(languages, records.load_each(directory, languages), strict=True):
        own: list[str] = known[language]["seeds"]
        yield Case("real", language, "seeds and portal", record, record.find([*own, PORTAL]))
        yield Case("real", language, "portal", record, record.find([PORTAL]))


def toy_case(hosts: int) -> Case:
    """Return the papers' toy web from its seeds in the target language."""
    web = ToyWeb.papers(hosts=hosts)
    record = _planned(web)
    return Case("toy", web.target, "seeds", record, record.find(seeds(web)[web.target]))


def inside_hosts(record: CrawlRecord) -> CrawlRecord:
    """Return the record without links to other hosts."""
    hosts = host_numbers(record)
    inside = hosts[np.repeat(np.arange(len(record.urls)), np.diff(record.starts))] == hosts[record.targets]
    places = np.flatnonzero(inside)
    return record._replace(
        starts=np.searchsorted(places, record.starts),
        targets=record.targets[places],
        anchors=[record.anchors[place] for place in places.tolist()],
        boilerplate=record.boilerplate[places],
        in_text=record.in_text[places],
        rels={new: record.rels[old] for new, old in enumerate(places.tolist()) if old in record.rels},
    )


def host_numbers(record: CrawlRecord) -> NDArray[np.int64]:
    """Return the number of each URL's host."""
    return np.unique(record.hosts, return_inverse=True)[1]


def _known_languages() -> dict[str, Any]:
    listed = webs.home() / "languages.json"
    if not listed.exists():
        raise webs.Missing(f"{listed} does not exist: set THRESHER_WEB to the directory of public.tar.zst")
    known: dict[str, Any] = json.loads(listed.read_text("utf-8"))
    return known


def _crawled() -> Path:
    """Return the corpus of a whole crawl of the real web, made on first use and when the settings change."""
    directory = CACHE / "policy-real"
    partial = directory.with_suffix(".partial")
    if _has_settings(directory):
        return directory
    known = _known_languages()
    with webs.real() as web:
        say("crawling the whole of the real web once; some minutes …")
        for old in (directory, partial):
            shutil.rmtree(old, ignore_errors=True)
        start = [*web.seeds, *(url for language in known.values() for url in language["seeds"])]
        figures = thresher(partial, replace(web, hosts=[]), CRAWLED_FOR, start, SETTINGS)
    if figures["ending"] not in ENDED:
        raise webs.Missing(
            f"the crawl of the real web did not come to its end: {figures['ending']}; try again"
        )
    partial.rename(directory)  # only whole records have this name
    return directory


def _has_settings(directory: Path) -> bool:
    try:
        config = load(directory)
    except UsageError:
        return False
    return all(
        getattr(getattr(config, section), name) == value
        for section, table in SETTINGS.items()
        for name, value in table.items()
    )


def _planned(web: ToyWeb) -> CrawlRecord:
    """Return the record of a toy web, kept until the web or the code that plans it changes."""
    sources = [Path(module.__file__ or "") for module in (simulation_record, page_samples, records)]
    sources += sorted(Path(toyweb.__path__[0]).glob("*.py"))
    digest = hashlib.sha256(repr(web).encode() + b"".join(source.read_bytes() for source in sources))
    kept = CACHE / f"policy-toy-{web.hosts}-{digest.hexdigest()[:16]}.pickle"
    if kept.exists():
        with kept.open("rb") as packed:
            found: CrawlRecord = pickle.load(packed)
            return found
    say(f"planning a toy web of {web.hosts:,} hosts …")
    record = record_of(web)
    CACHE.mkdir(parents=True, exist_ok=True)
    for old in CACHE.glob(f"policy-toy-{web.hosts}-*"):
        old.unlink()
    partial = kept.with_suffix(".partial")
    with partial.open("wb") as packed:
        pickle.dump(record, packed, pickle.HIGHEST_PROTOCOL)
    partial.rename(kept)
    return record
