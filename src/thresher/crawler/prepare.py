"""Preparation of a crawl: the settings of a corpus, checked and written to corpus.toml, and its seeds.

`--connect-to` is a setting like any other, so that a corpus of a test web or of a replay never continues on the
open web. Versions before schema 2 did not write it down. A corpus that they made does not go to the web before the
user has chosen, once: if it holds pages from an address that only `--connect-to` reaches, or, where raw pages were
not kept, no page that shows its address. The choice of the web is written down as `none`.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import chain, islice
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from thresher import config as configuration
from thresher._version import __version__
from thresher.config import SCHEMA, Config, CycleSettings
from thresher.config.config_file import edited
from thresher.config.toml_tables import flat, readable, toml
from thresher.crawler.fetching.address_guard import refusal
from thresher.crawler.frontier.url_scope import UrlScope
from thresher.crawler.policy.prioritisers import Priorities
from thresher.crawler.policy.yield_stats import compile_threshold
from thresher.crawler.seeds import Seeds, known_seeds
from thresher.crawler.storage.crawl_writer import crawl_lock
from thresher.errors import DataError, UsageError
from thresher.files import durable_files
from thresher.reader.language.codes import language_code, normalise
from thresher.reader.language.custom_models import trained_languages
from thresher.store import warc

_log = logging.getLogger(__name__)

Settings = Mapping[str, Mapping[str, Any]]

CONNECT_TO_SINCE = 2  # schema that introduced the setting
SAMPLED_RECORDS = 20  # of a WARC file, to find the addresses of its pages


def prepare(
    directory: Path,
    language: str,
    seeds: Seeds,
    settings: Settings,
    *,
    connect_to: str = "",
    engine: str = "local",
) -> Config:
    """Return the settings of a new corpus, or of an existing one with changes; check and write them.

    Nothing is written if anything is wrong.
    """
    path = directory / "corpus.toml"
    is_new = not path.exists()
    if is_new and directory.exists() and (not directory.is_dir() or any(directory.iterdir())):
        raise UsageError(f"{directory} is not a corpus and not empty; choose another directory")
    code = language_code(language) if language else ""
    config = _new_config(directory, code, seeds) if is_new else _existing_config(directory, code)
    if connect_to:
        settings = {**settings, "fetch": {**settings.get("fetch", {}), "connect_to": connect_to}}
    changed = replace(with_settings(config, settings), schema=SCHEMA)
    _check_shards(None if is_new else config, changed, engine)
    if not changed.fetch.fixed_address:
        if not changed.fetch.connect_to and not is_new:
            _check_origin_of_pages(directory, config)
        if not changed.polite.contact:
            raise UsageError(
                "webmasters must be able to reach you: give --contact with an e-mail address or a URL "
                "(it is sent with every request, and kept in corpus.toml)"
            )
        configuration.check_contact(changed.polite.contact)
    if is_new:
        _write(path, configuration.dump(changed))
    else:
        with crawl_lock(directory):  # a corpus in use is refused before its settings change
            _write_changes(path, config, changed)
    if seeds.urls:
        known = known_seeds(directory)
        _write(directory / "seeds.txt", "".join(f"{url}\n" for url in dict.fromkeys((*known, *seeds.urls))))
    return changed


def _new_config(directory: Path, language: str, seeds: Seeds) -> Config:
    if not language:
        raise UsageError(
            f"{directory} is a new corpus and needs a language: give --lang CODE, for example --lang cs"
        )
    if not seeds.urls:
        raise UsageError(f"{directory} is a new corpus and needs --seeds FILE or URLs to start from")
    return Config(language=language, thresher=__version__)


def _existing_config(directory: Path, language: str) -> Config:
    config = configuration.load(directory)
    if normalise(config.language) != config.language:
        raise UsageError(
            f"{directory}/corpus.toml: language must be the code of a known language, got {config.language!r}; "
            "no page would be kept"
        )
    if language and language != config.language:
        raise UsageError(
            f"{directory} is a corpus in {config.language!r}, not {language!r}; choose another directory"
        )
    return config


def change_settings(directory: Path, settings: Settings) -> Config:
    """Change settings of a corpus and return all of them; raise UsageError if any value cannot be used."""
    path = directory / "corpus.toml"
    config = configuration.load(directory)
    changed = with_settings(config, settings)
    _check_shards(config, changed, engine="")
    _write_changes(path, config, changed)
    return changed


def _write_changes(path: Path, before: Config, changed: Config) -> None:
    if changed == before:
        return
    _write(path, edited(configuration.read_text(path), changed))
    for (key, setting, old), (_, _, new) in zip(flat(before), flat(changed), strict=True):
        if new != old:
            _log.info(
                "%s is %s now, was %s", key, *(toml(readable(value, setting.unit)) for value in (new, old))
            )


def with_settings(config: Config, settings: Settings) -> Config:
    """Return a config with some settings changed; raise UsageError if any value cannot be used."""
    tables: dict[str, Any] = msgspec.to_builtins(config)
    for name, section in settings.items():
        tables[name] = {**tables.get(name, {}), **section}
    changed = configuration.parse(tables, "settings")
    if changed.polite.contact != config.polite.contact:
        configuration.check_contact(changed.polite.contact)
    UrlScope(changed.scope)  # raises UsageError for a top-level domain that is none
    compile_threshold(changed.policy.threshold or "0")
    _check_cycles(changed.cycles)
    Priorities(changed.policy)  # raises UsageError for an unknown name
    _check_trained_languages(changed.read.trained_languages)
    return changed


def _check_trained_languages(names: Sequence[str]) -> None:
    known = trained_languages()
    for name in names:
        if name not in known:
            raise UsageError(
                f"read.trained_languages names {name!r}, which was not trained here; there are: "
                f"{', '.join(known) or 'none'}; train it with thresher language train {name} SAMPLE"
            )


def _check_shards(before: Config | None, changed: Config, engine: str) -> None:
    """Raise UsageError for another number of shards, shards in cycles, or an engine without shards."""
    count = changed.shards.count
    if before and before.shards.count != count:
        raise UsageError(
            f"this corpus was made with {before.shards.count or 'no'} shards, which decide where each host is; "
            f"for {count or 'no'} shards start a new one"
        )
    if count and changed.cycles.pages:
        raise UsageError("a crawl in cycles has no shards: leave out --shards, or --cycle-pages")
    if not count and engine not in ("", "local"):
        fix = "start a new corpus in another directory with --shards N" if before else "give --shards N, too"
        raise UsageError(
            "a crawl without shards is one process of this machine; "
            f"for engine {engine!r} {fix}, for example --shards 4"
        )


def _check_cycles(cycles: CycleSettings) -> None:
    """Raise UsageError for settings of cycles without cycles."""
    if cycles.pages:
        return
    for name in ("count", "domain_pages", "selection"):
        if value := getattr(cycles, name):
            raise UsageError(
                f"cycles.{name} = {str(value).lower()} needs cycles of a size: give --cycle-pages, for example "
                "--cycle-pages 2500, or pages under [cycles] in corpus.toml"
            )


def _check_origin_of_pages(directory: Path, config: Config) -> None:
    """Raise UsageError if a version that did not remember --connect-to may have crawled a corpus with it."""
    if not (directory / "state").exists() and not (directory / "shards").exists():
        return  # it was never crawled
    addresses = _page_addresses(directory)
    if hidden := next((address for address in addresses if refusal(address)), ""):
        evidence = f"has pages from {hidden}"
    elif not addresses and config.schema < CONNECT_TO_SINCE:
        evidence = "does not show where its pages come from"
    else:
        return
    raise UsageError(
        f"{directory} {evidence}, so an older version may have crawled it with --connect-to: "
        "give --connect-to ADDR:PORT to continue there, or --connect-to none to go to the web; either is remembered"
    )


def _page_addresses(directory: Path) -> set[str]:
    """Return the addresses that some stored pages came from."""
    files = chain(directory.glob("warc/*.warc.gz"), directory.glob("shards/*/e*/warc/*.warc.gz"))
    found: set[str] = set()
    for path in files:
        with suppress(warc.WarcError, OSError):  # the end of a file may never have been committed
            found.update(record.address for record in islice(warc.records(path), SAMPLED_RECORDS))
        if found - {""}:
            break
    return found - {""}


def _write(path: Path, text: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        durable_files.replace(path, text.encode())
    except OSError as fault:
        raise DataError(f"{path} cannot be written: {fault.strerror}") from None
