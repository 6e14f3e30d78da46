"""The function behind `thresher crawl`: start a crawl, or continue one."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import uvloop

from thresher._version import __version__
from thresher.config import Config, parse_address
from thresher.crawler.crawl_state import CrawlState
from thresher.crawler.engine import Crawl
from thresher.crawler.frontier.url_scope import UrlScope
from thresher.crawler.parts import crawl_parts
from thresher.crawler.prepare import Settings, prepare
from thresher.crawler.process_limits import fault_of_disk, raise_file_limit
from thresher.crawler.seeds import Seeds, gather, known_seeds
from thresher.crawler.shards.coordinator import Coordinator
from thresher.crawler.stop_reasons import Ending
from thresher.errors import UsageError
from thresher.files.durable_files import locked
from thresher.store.corpus_files import upgrade
from thresher.workers import registry
from thresher.workers.protocol import Engine

_log = logging.getLogger(__name__)

NO_SEED = "no seed is in scope: look at [scope] in corpus.toml, --tld and the seeds"
STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM)
INTERRUPTED = 130  # exit code of a process that stops at once


def crawl(
    directory: str | Path,
    language: str = "",
    seeds: Iterable[str] = (),
    *,
    settings: Settings | None = None,
    connect_to: str = "",
    engine: str = "local",
    progress: Callable[[dict[str, Any]], None] = lambda _: None,
    remark: Callable[[str], None] = lambda _: None,
) -> Ending:
    """Crawl into a directory until the crawl ends; start a new crawl, or continue where the last one stopped.

    Parameters
    ----------
    directory
        The corpus; it is made if it does not exist.
    language
        Code of the language; of an existing corpus it may be left out.
    seeds
        URLs to start from, or files with one URL per line.
    settings
        Tables of corpus.toml, which are written there: {"budget": {"max_pages": 1000}}.
    connect_to
        ADDR:PORT that every connection goes to. It is remembered; "none" leads such a corpus to the web.
    engine
        Where the shards of a crawl run that has any: "local", "ray", "ray:HOST:PORT".
    progress
        Is called with the status after each commit.
    remark
        Is called with each remark for the user, such as a seed that is not a URL.

    >>> crawl("czech", "cs", ["https://example.cz/"], settings={"polite": {"contact": "me@example.org"}})
    ... # doctest: +SKIP
    Ending(reason='done')
    """
    registry.check(engine)
    directory = Path(directory)
    gathered = gather(seeds) if (seeds := list(seeds)) else Seeds(())
    for text in gathered.remarks:
        remark(text)
    config = prepare(directory, language, gathered, settings or {}, connect_to=connect_to, engine=engine)
    if address := config.fetch.fixed_address:
        remembered = "" if connect_to else ", as before; --connect-to none would go to the web"
        remark(f"every connection goes to {address}, in plain HTTP, private addresses included{remembered}")
    _log.info(
        "thresher %s crawls %s in %r, policy %s", __version__, directory, config.language, config.policy.name
    )
    try:
        upgrade(directory)
        with _signal_handlers_restored():
            ending = _crawl(directory, config, gathered, engine, progress)
    except OSError as fault:
        raise fault_of_disk(directory, fault) from fault
    _log.info("the crawl ended: %s", f"{ending.reason} {ending.detail}".strip())
    return ending


def _crawl(
    directory: Path,
    config: Config,
    seeds: Seeds,
    engine: str,
    progress: Callable[[dict[str, Any]], None],
) -> Ending:
    if config.shards.count:
        return _crawl_shards(directory, config, engine, progress)
    raise_file_limit(config.fetch.connections)
    return uvloop.run(_run(directory, config, seeds, progress))


def _crawl_shards(
    directory: Path,
    config: Config,
    engine: str,
    progress: Callable[[dict[str, Any]], None],
) -> Ending:
    scope = UrlScope(config.scope)
    if not any(scope.admits(url, None) for url in known_seeds(directory)):
        raise UsageError(NO_SEED)
    with locked(directory), closing(registry.engine(engine)) as place:
        return uvloop.run(_lead(directory, config, place, progress))


async def _lead(
    directory: Path,
    config: Config,
    engine: Engine,
    progress: Callable[[dict[str, Any]], None],
) -> Ending:
    coordinator = Coordinator(
        directory, config, engine, connect_to=config.fetch.fixed_address, progress=progress
    )
    _stop_on_signals(coordinator.stop)
    return await coordinator.run()


async def _run(
    directory: Path,
    config: Config,
    seeds: Seeds,
    progress: Callable[[dict[str, Any]], None],
) -> Ending:
    address = config.fetch.fixed_address
    connect_to = parse_address(address) if address else None
    with closing(CrawlState(directory, config)) as state:
        async with Crawl(state, crawl_parts(config, connect_to), progress=progress) as crawl:
            _stop_on_signals(crawl.stop)
            # Without a URL seen, a crawl before was killed before its first commit: all its seeds are queued again.
            crawl.seed(seeds.urls if state.seen.count else known_seeds(directory))
            if not state.seen.count:
                raise UsageError(NO_SEED)
            crawl.commit()
            return await crawl.run()


@contextmanager
def _signal_handlers_restored() -> Iterator[None]:
    """Restore signal handlers at the end: uvloop leaves its own, which ignore signals after the loop is closed."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in STOP_SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler or signal.SIG_DFL)


def _stop_on_signals(end: Callable[[], None]) -> None:
    """Commit and stop on the first signal; stop at once on the second, since commits are safe.

    Python handles signals in the main thread alone, so in others there is nothing to do.
    """
    if threading.current_thread() is not threading.main_thread():
        return
    asked = False

    def stop() -> None:
        nonlocal asked
        if asked:
            os._exit(INTERRUPTED)
        asked = True
        end()

    for number in STOP_SIGNALS:
        asyncio.get_running_loop().add_signal_handler(number, stop)
