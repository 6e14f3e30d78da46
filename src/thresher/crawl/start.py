"""Start a crawl, or let one go on: the verb behind `thresher crawl`."""

from __future__ import annotations

import asyncio
import errno
import os
import resource
import signal
import socket
from collections.abc import Callable, Iterable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import uvloop

from thresher import config as configuration
from thresher._version import __version__
from thresher.config import Config, ConfigError, Cycles
from thresher.crawl.ending import CrawlFault, Ending
from thresher.crawl.fetch import MAX_RESERVED_FILES
from thresher.crawl.loop import Crawl
from thresher.crawl.priority import Priorities
from thresher.crawl.scope import Gate
from thresher.crawl.seeds import Seeds, gather, known_seeds
from thresher.crawl.shards.coordinator import Coordinator
from thresher.crawl.yields import compile_threshold
from thresher.engine import choose
from thresher.engine.calls import Engine
from thresher.read.codes import known_languages, nearest, normalise
from thresher.store.files import locked

NO_SEED = "no seed is in scope: look at [scope] in corpus.toml, --tld and the seeds"
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
Settings = Mapping[str, Mapping[str, Any]]


def crawl(
    directory: str | Path,
    language: str = "",
    seeds: Iterable[str] = (),
    *,
    settings: Settings | None = None,
    connect_to: str = "",
    engine: str = "local",
    progress: Callable[[dict[str, Any]], None] = lambda _: None,
    complain: Callable[[str], None] = lambda _: None,
) -> Ending:
    """Crawl into a directory until the crawl ends; start it anew, or continue where it stopped.

    `settings` are tables of corpus.toml and are written there: {"budget": {"pages": 1000}}. `engine` is where the
    shards of a crawl run that has any: "local", "ray", "ray:HOST:PORT".

    >>> crawl("czech", "cs", ["https://example.cz/"], settings={"polite": {"contact": "me@example.org"}})
    ... # doctest: +SKIP
    Ending(reason='done')
    """
    choose.check(engine)
    directory = Path(directory)
    gathered = gather(seeds) if (seeds := list(seeds)) else Seeds(())
    for complaint in gathered.complaints:
        complain(complaint)
    address = parse_address(connect_to) if connect_to else None
    config = prepare(directory, language, gathered, settings or {}, open_web=not connect_to, engine=engine)
    try:
        if config.shards.count:
            return _crawl_shards(directory, config, engine, connect_to, progress)
        raise_file_limit(config.fetch.connections)
        return uvloop.run(_run(directory, config, gathered, address, progress))
    except OSError as fault:
        raise fault_of_disk(directory, fault) from fault


def fault_of_disk(directory: Path, fault: OSError) -> CrawlFault:
    """What the disk did to a crawl, and the cure."""
    if scratch := _scratch_at_fault(directory, fault):
        return CrawlFault(
            f"the folder {scratch} on {socket.gethostname()}, in which shards are to work, cannot be used: "
            f"{fault.strerror}. Give one that can be written to on every machine with --scratch, or none with "
            f'--scratch "". Everything reported so far is safe'
        )
    if fault.errno in FULL:
        return CrawlFault(
            f"disk_full: no space left for {directory}. Everything reported so far is safe; "
            f"make room and go on with: thresher crawl {directory}"
        )
    return CrawlFault(f"{directory}: {fault}. Everything reported so far is safe")


def _scratch_at_fault(directory: Path, fault: OSError) -> str:
    """The folder that shards of a corpus work in, if that is where a fault happened; or ""."""
    scratch = configuration.load(directory).shards.scratch if (directory / "corpus.toml").exists() else ""
    if not scratch or not fault.filename:
        return ""
    where, folder = Path(os.fsdecode(fault.filename)).absolute(), Path(scratch)
    is_above = where in folder.parents and where not in directory.absolute().parents
    return scratch if folder == where or folder in where.parents or is_above else ""


def _crawl_shards(
    directory: Path,
    config: Config,
    engine: str,
    connect_to: str,
    progress: Callable[[dict[str, Any]], None],
) -> Ending:
    gate = Gate(config.scope)
    if not any(gate.admits(url, None) for url in known_seeds(directory)):
        raise ConfigError(NO_SEED)
    with locked(directory), closing(choose.engine(engine)) as place:
        return uvloop.run(_lead(directory, config, place, connect_to, progress))


async def _lead(
    directory: Path,
    config: Config,
    engine: Engine,
    connect_to: str,
    progress: Callable[[dict[str, Any]], None],
) -> Ending:
    coordinator = Coordinator(directory, config, engine, connect_to=connect_to, progress=progress)
    _stop_on_signals(coordinator.stop)
    return await coordinator.run()


async def _run(
    directory: Path,
    config: Config,
    seeds: Seeds,
    connect_to: tuple[str, int] | None,
    progress: Callable[[dict[str, Any]], None],
) -> Ending:
    async with Crawl(directory, config, connect_to=connect_to, progress=progress) as crawl:
        _stop_on_signals(crawl.stop)
        urls = (
            seeds.urls if crawl.books.seen.count else known_seeds(directory)
        )  # killed before the first commit
        crawl.seed(urls)
        if not crawl.books.seen.count:
            raise ConfigError(NO_SEED)
        crawl.commit()
        return await crawl.run()


def raise_file_limit(connections: int) -> None:
    """As many open files as the connections need, as far as the system lets us; beyond, fewer are opened."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = connections + MAX_RESERVED_FILES
    if hard != resource.RLIM_INFINITY:
        wanted = min(wanted, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def _stop_on_signals(end: Callable[[], None]) -> None:
    """Once: commit and stop. Twice: stop now; what was committed is safe."""
    asked = False

    def stop() -> None:
        nonlocal asked
        if asked:
            os._exit(130)
        asked = True
        end()

    for name in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(name, stop)


def prepare(
    directory: Path, language: str, seeds: Seeds, settings: Settings, *, open_web: bool, engine: str = "local"
) -> Config:
    """The config of a new corpus or of an existing one with changed settings, checked and written."""
    path = directory / "corpus.toml"
    fresh = not path.exists()
    if fresh and directory.exists() and (not directory.is_dir() or any(directory.iterdir())):
        raise ConfigError(f"{directory} is not a corpus and not empty; choose another directory")
    code = language_code(language) if language else ""
    if fresh:
        if not code:
            raise ConfigError("which language? Start a new corpus with --lang CODE, for example --lang cs")
        if not seeds.urls:
            raise ConfigError(f"{directory} is a new corpus and needs --seeds FILE or URLs to start from")
        config = Config(language=code, thresher=__version__)
    else:
        config = configuration.load(directory)
        if code and code != config.language:
            raise ConfigError(
                f"{directory} is a corpus in {config.language!r}, not {code!r}; choose another directory"
            )
    changed = _changed(config, settings)
    compile_threshold(changed.policy.threshold or "0")
    _check_cycles(changed.cycles)
    _check_shards(None if fresh else config, changed, engine)
    Priorities(changed.policy)  # so that a wrong name is told before anything is written
    if open_web and not changed.polite.contact:
        raise ConfigError(
            "webmasters must be able to reach you: give --contact with an e-mail address or a URL "
            "(it is sent with every request, and kept in corpus.toml)"
        )
    if fresh or changed != config:
        _write(directory / "corpus.toml", configuration.dump(changed))
    if seeds.urls:
        known = known_seeds(directory)
        _write(directory / "seeds.txt", "".join(f"{url}\n" for url in dict.fromkeys((*known, *seeds.urls))))
    return changed


def _check_shards(before: Config | None, changed: Config, engine: str) -> None:
    """How many shards there are is fixed; and they do not wait for each other, as they would have to in cycles."""
    count = changed.shards.count
    if before and before.shards.count != count:
        raise ConfigError(
            f"this corpus was made with {before.shards.count or 'no'} shards, on which hangs whose a host is; "
            f"for {count or 'no'} shards start a new one"
        )
    if count and changed.cycles.pages:
        raise ConfigError("a crawl in cycles has no shards: leave out --shards, or --cycle-pages")
    if not count and engine != "local":
        cure = "start a new corpus in another directory with --shards N" if before else "give --shards N, too"
        raise ConfigError(
            "a crawl without shards is one process of this machine; "
            f"for engine {engine!r} {cure}, for example --shards 4"
        )


def _check_cycles(cycles: Cycles) -> None:
    """What is said of cycles makes no sense where there are none."""
    if cycles.pages:
        return
    for name in ("count", "domain_pages", "selection"):
        if value := getattr(cycles, name):
            raise ConfigError(
                f"cycles.{name} = {str(value).lower()} needs cycles of a size: give --cycle-pages, for example "
                "--cycle-pages 2500, or pages under [cycles] in corpus.toml"
            )


def _changed(config: Config, settings: Settings) -> Config:
    tables: dict[str, Any] = msgspec.to_builtins(config)
    for name, section in settings.items():
        tables[name] = {**tables.get(name, {}), **section}
    return configuration.parse(tables, "settings")


def _write(path: Path, text: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_name(f"{path.name}.tmp")
        with temporary.open("w", encoding="utf-8") as out:
            out.write(text)
            out.flush()
            os.fsync(out.fileno())
        temporary.replace(path)
    except OSError as fault:
        raise ConfigError(f"{path} cannot be written: {fault.strerror}") from None


def language_code(asked: str) -> str:
    """The code under which a language is known here; ConfigError offers the nearest ones."""
    code = normalise(asked)
    if code is None:
        offered = ", ".join(f"{near} ({known_languages()[near]})" for near in nearest(asked))
        raise ConfigError(
            f"unknown language {asked!r}; did you mean {offered or 'a code such as cs, ur, tr'}?"
        )
    return code


def parse_address(text: str) -> tuple[str, int]:
    """`127.0.0.1:8088` or `[::1]:8088` as an address and a port."""
    address, colon, port = text.rpartition(":")
    if not colon or not address or not port.isdigit() or not 0 < int(port) < 65536:
        raise ConfigError(f"--connect-to {text!r} is not ADDR:PORT; try 127.0.0.1:8088")
    return address.strip("[]"), int(port)
