"""The public function `crawl`: a crawl from Python, with progress, in scripts and in notebooks."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

from thresher.config import PolicyName, size
from thresher.corpus import Corpus, seconds, several
from thresher.corpus import open as open_corpus
from thresher.errors import UsageError
from thresher.wording import counted

if TYPE_CHECKING:
    from thresher.crawler.stop_reasons import Ending

Status = Mapping[str, Any]
Report = Callable[[Status], None]
Settings = Mapping[str, Mapping[str, Any]]

# An object of its own, so that a policy that is left out differs from "learned", which changes an existing corpus.
DEFAULT_POLICY: PolicyName = type("Default", (str,), {})("learned")
REPORT_EVERY_S = 10.0  # between two lines of progress


def crawl(
    path: str | os.PathLike[str],
    language: str = "",
    seeds: str | Iterable[str] = (),
    *,
    contact: str | None = None,
    max_pages: int | None = None,
    max_bytes: int | str | None = None,
    max_time: float | str | None = None,
    tlds: Sequence[str] | str = (),
    policy: PolicyName = DEFAULT_POLICY,
    progress: Report | bool | None = None,
    settings: Settings | None = None,
    connect_to: str | None = None,
) -> Corpus:
    """Crawl into a directory until the crawl ends, and return the corpus; continue it if it exists.

    Pages are safe after each commit, about once a second; after a crash or Ctrl-C, `thresher.crawl(path)` resumes.
    `ending` of the returned corpus says why the crawl ended. In a notebook the crawl runs in a thread of its own.

    Parameters
    ----------
    path
        Directory of the corpus. A new one needs a language and seeds.
    language
        Code of the language of the corpus, such as "cs".
    seeds
        URLs, or files with one URL per line.
    contact
        E-mail address or URL where webmasters can reach you; sent with every request, and required on the open web.
    max_pages, max_bytes, max_time
        Budgets over the whole crawl: pages; bytes or "20GB"; seconds or "2h".
    tlds
        Top-level domains that the crawl stays in.
    policy
        Order of URLs. If it is left out, an existing corpus keeps its policy.
    progress
        Called with the status after each commit. None prints a line to stderr every ten seconds. Notices about
        seeds and settings go to stderr as well, unless it is False.
    settings
        Tables of corpus.toml: {"polite": {"delay": 2.0}}. Parameters that are given win.
    connect_to
        ADDR:PORT that every connection goes to, for tests and replays; remembered until "none" is given.

    Settings are written to corpus.toml; settings that are not given stay as they are there.

    Raises
    ------
    UsageError
        A parameter or a setting cannot be used.
    CrawlError
        The crawl cannot continue: the disk is full, or no host can be reached. Committed pages are safe.
    KeyboardInterrupt
        Ctrl-C; all that is under way was committed or stays queued.

    Examples
    --------
    >>> corpus = thresher.crawl("fresh", "cs", seeds, max_pages=20, connect_to=web, progress=False, settings=fast)
    >>> corpus.ending.reason
    'page budget'
    >>> thresher.crawl("fresh", max_pages=25, connect_to=web, progress=False).stats()["pages"]["fetched"] >= 25
    True
    """
    from thresher.crawler import api

    options: dict[str, dict[str, Any]] = {}
    for section, values in (settings or {}).items():
        if not isinstance(values, Mapping):
            raise UsageError(
                f"settings must be tables of corpus.toml, as {{'polite': {{'delay': 2.0}}}}; got {settings!r}"
            )
        options[section] = dict(values)
    given = {
        ("polite", "contact"): contact,
        ("budget", "max_pages"): max_pages,
        ("budget", "max_bytes"): size(max_bytes) if isinstance(max_bytes, str) else max_bytes,
        ("budget", "max_time"): None if max_time is None else seconds(max_time),
        ("scope", "tlds"): several(tlds) or None,
        ("policy", "name"): None if policy is DEFAULT_POLICY else policy,
    }
    for (table, name), value in given.items():
        if value is not None:
            options.setdefault(table, {})[name] = value
    usual = _silent if progress is False else _ProgressLog()

    def run(report: Report) -> Ending:
        return api.crawl(
            Path(path),
            language,
            several(seeds),
            settings=options,
            connect_to=connect_to or "",
            progress=report,
            remark=_silent if progress is False else _print,
        )

    report = progress if callable(progress) else usual
    ending = _beside_event_loop(run, report) if _in_event_loop() else run(report)
    if ending.reason == "interrupted":
        raise KeyboardInterrupt
    corpus = open_corpus(path)
    corpus.ending = ending
    return corpus


def _silent(_: object) -> None:
    """Report nothing."""


def _print(message: str) -> None:
    print(f"thresher: {message}", file=sys.stderr, flush=True)


class _ProgressLog:
    """A line on stderr every REPORT_EVERY_S seconds, the first one at once."""

    def __init__(self) -> None:
        self._next = 0.0

    def __call__(self, status: Status) -> None:
        if time.monotonic() >= self._next:
            self._next = time.monotonic() + REPORT_EVERY_S
            pages = status["pages"]
            waiting = status.get("waiting")
            _print(
                f"{counted(pages['fetched'], 'page')} fetched, {pages['kept']:,} kept, "
                f"{status['bytes']['text'] / 1e6:,.1f} MB of text, {counted(status['queue'], 'URL')} queued"
                + (f"; waiting for {waiting['text']}" if waiting else "")
            )


class _Stopped(Exception):
    """The crawl in another thread is to stop."""


def _in_event_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def _beside_event_loop(run: Callable[[Report], Ending], report: Report) -> Ending:
    """Run a crawl in a thread, since the event loop of a notebook runs in this one.

    Ctrl-C, which reaches the main thread alone, stops the crawl at its next commit.
    """
    stop = threading.Event()

    def reported(status: Status) -> None:
        if stop.is_set():
            raise _Stopped
        report(status)

    with ThreadPoolExecutor(1, thread_name_prefix="crawl") as thread:
        crawl = thread.submit(run, reported)
        try:
            return crawl.result()
        except KeyboardInterrupt:
            stop.set()
            raise
