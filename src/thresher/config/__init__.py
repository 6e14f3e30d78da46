"""Settings of a corpus, as corpus.toml holds them.

The sections with all defaults, ranges and descriptions are in `thresher.config.settings`.
"""

from __future__ import annotations

import ipaddress
import re
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from thresher.config.settings import (
    GIB,
    KIB,
    MIB,
    BudgetSettings,
    CycleSettings,
    FetchSettings,
    JudgeSettings,
    PolicyName,
    PolicySettings,
    PoliteSettings,
    ReadSettings,
    ScopeSettings,
    ShardSettings,
    StoreSettings,
)
from thresher.config.toml_tables import (
    MAX_TOML_BYTES,
    SHOWN_VALUE,
    Section,
    about,
    convert,
    duration,
    flat,
    readable,
    size,
    tables,
    toml,
)
from thresher.errors import NoCorpusError, UsageError

__all__ = [
    "GIB",
    "KIB",
    "MIB",
    "SCHEMA",
    "BudgetSettings",
    "Config",
    "CycleSettings",
    "FetchSettings",
    "JudgeSettings",
    "PolicyName",
    "PolicySettings",
    "PoliteSettings",
    "ReadSettings",
    "ScopeSettings",
    "Section",
    "ShardSettings",
    "StoreSettings",
    "check_contact",
    "dump",
    "duration",
    "load",
    "parse",
    "parse_address",
    "read_text",
    "size",
]

SCHEMA = 2  # of a corpus directory; a newer one is refused

# Keys of corpus.toml that have another name now. They are read, with a warning, for one release.
RENAMED = {
    "budget.pages": "budget.max_pages",
    "budget.bytes": "budget.max_bytes",
    "budget.seconds": "budget.max_time",
    "read.runs": "read.shingles",
}


class Config(Section, frozen=True):
    """All settings of a corpus."""

    language: Annotated[str, about("Language of the corpus, fixed when it is made.")] = ""
    thresher: Annotated[str, about("Version of Thresher that made the corpus.")] = ""
    schema: Annotated[int, about("Version of the layout of the directory.")] = SCHEMA
    scope: ScopeSettings = ScopeSettings()
    budget: BudgetSettings = BudgetSettings()
    polite: PoliteSettings = PoliteSettings()
    fetch: FetchSettings = FetchSettings()
    read: ReadSettings = ReadSettings()
    judge: JudgeSettings = JudgeSettings()
    store: StoreSettings = StoreSettings()
    policy: PolicySettings = PolicySettings()
    cycles: CycleSettings = CycleSettings()
    shards: ShardSettings = ShardSettings()
    process: Annotated[
        tuple[dict[str, Any], ...],
        about("Recipe of `thresher process`: for each step [[process]] with step = NAME and its parameters."),
    ] = ()


def load(directory: Path) -> Config:
    """Return the settings of a corpus.

    Raise NoCorpusError if there is no corpus, and UsageError, which names the setting, if its file cannot be used.
    """
    path = directory / "corpus.toml"
    try:
        text = read_text(path)
    except (FileNotFoundError, NotADirectoryError):
        raise NoCorpusError(directory) from None
    except (OSError, UnicodeDecodeError) as fault:
        raise UsageError(f"{path} cannot be read: {fault}") from None
    config = parse(tables(text, str(path)), str(path))
    if not config.language:
        raise UsageError(
            f'{path}: language is missing; add the language of the corpus, for example language = "cs"'
        )
    return config


def read_text(path: Path) -> str:
    """Return the text of a corpus.toml with the line ends that it has; some editors begin it with a mark."""
    with path.open("rb") as file:
        text = file.read(MAX_TOML_BYTES + 1)
    if len(text) > MAX_TOML_BYTES:
        raise UsageError(
            f"{path} is larger than {MAX_TOML_BYTES >> 20} MiB; settings are short: repair the file"
        )
    return text.decode("utf-8-sig")


def parse(table: Mapping[str, Any], where: str = "corpus.toml") -> Config:
    """Return the settings in the tables of corpus.toml.

    >>> parse({"polite": {"dealy": 3}})
    Traceback (most recent call last):
    thresher.errors.UsageError: corpus.toml: polite.dealy is not a setting; did you mean polite.delay?
    """
    schema = table.get("schema", SCHEMA)
    if isinstance(schema, int) and schema > SCHEMA:
        raise UsageError(
            f"{where}: schema = {toml(schema)} was made by a newer thresher ({table.get('thresher', 'unknown')}); "
            f"this one knows schema {SCHEMA}: upgrade with pip install -U thresher"
        )
    config = convert(_with_new_names(table, where), Config, where)
    if (scratch := config.shards.scratch) and not Path(scratch).is_absolute():
        raise UsageError(
            f"{where}: shards.scratch must be the whole path of a folder, which shards on other machines need, "
            f"got {toml(scratch)}; for example scratch = {toml(f'/scratch/{scratch}')}"
        )
    for name in ("include", "exclude"):
        for pattern in getattr(config.scope, name):
            try:
                re.compile(pattern)
            except (re.error, RecursionError, OverflowError) as fault:
                shown = pattern if len(pattern) <= SHOWN_VALUE else f"{pattern[:SHOWN_VALUE]}…"
                raise UsageError(
                    f"{where}: scope.{name} must be regular expressions, got {shown!r}: {fault}"
                ) from None
    if address := config.fetch.fixed_address:
        parse_address(address, f"{where}: fetch.connect_to")
    return config


def _with_new_names(table: Mapping[str, Any], where: str) -> Mapping[str, Any]:
    """Return the tables with the present names of settings, and warn of each old one."""
    for old, new in RENAMED.items():
        (section, before), after = old.split("."), new.split(".")[1]
        settings = table.get(section)
        if not isinstance(settings, Mapping) or before not in settings:
            continue
        if after in settings:
            raise UsageError(
                f"{where}: {old} is the old name of {new}, and both are given; delete one, for example {before}"
            )
        warnings.warn(
            f"{where}: {old} is {new} now; the old name will not be read by the next release",
            FutureWarning,
            stacklevel=2,
        )
        renamed = {after if name == before else name: value for name, value in settings.items()}
        table = {**table, section: renamed}
    return table


def parse_address(text: str, name: str = "--connect-to") -> tuple[str, int]:
    """Return the address and the port in a text such as `127.0.0.1:8088` or `[::1]:8088`."""
    address, colon, port = text.rpartition(":")
    is_port = re.fullmatch("[0-9]{1,5}", port) and 0 < int(port) < 65536
    if not colon or not _is_ip_address(address.strip("[]")) or not is_port:
        raise UsageError(
            f"{name} must be ADDR:PORT with an IP address, got {text!r}; for example 127.0.0.1:8088"
        )
    return address.strip("[]"), int(port)


def _is_ip_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


_E_MAIL = re.compile(r"[^@\s<>\"]+@[^@\s<>\"/]+\.[^@\s<>\"/.]+")
_WEB_PAGE = re.compile(r"https?://[^\s/]+\.[^\s]+")


def check_contact(contact: str) -> None:
    """Raise UsageError unless a webmaster can write to the contact or open it."""
    is_reachable = _E_MAIL.fullmatch(contact) or _WEB_PAGE.fullmatch(contact)
    if not is_reachable or not contact.isprintable():  # it becomes part of a header
        raise UsageError(
            f"polite.contact must be an e-mail address or an http(s) URL, got {toml(contact)}; "
            "for example --contact you@university.example"
        )


HEADER = (
    "# Settings of this corpus. Settings that are left out have Thresher's defaults: thresher config DIR\n"
)


def dump(config: Config) -> str:
    """Return a new corpus.toml: the settings that differ from the defaults, and three that are always written."""
    lines = [HEADER]
    lines += [f"{name} = {toml(getattr(config, name))}" for name in ("language", "thresher", "schema")]
    defaults = {key: value for key, _, value in flat(Config())}
    sections: dict[str, list[str]] = {}
    for key, setting, value in flat(config):
        section, _, name = key.rpartition(".")
        if section and value != defaults[key]:
            sections.setdefault(section, []).append(f"{name} = {toml(readable(value, setting.unit))}")
    for section, settings in sections.items():
        lines += ["", f"[{section}]", *settings]
    for entry in config.process:
        lines += ["", "[[process]]"]
        lines += [f"{name} = {toml(value)}" for name, value in entry.items()]
    return "\n".join(lines) + "\n"
