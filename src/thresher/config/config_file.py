"""Changes to an existing corpus.toml that keep the user's comments, order and notation."""

from __future__ import annotations

import re
from collections.abc import MutableMapping
from typing import Any

import tomlkit

from thresher.config import RENAMED, Config, parse
from thresher.config.toml_tables import flat, readable, toml
from thresher.errors import UsageError

_HEADER = re.compile(r"\s*\[\[?\s*([A-Za-z_-]+)")
_KEY = re.compile(r"(\s*)([A-Za-z_.-]+)(?=\s*=)")
ALWAYS_WRITTEN = ("language", "thresher", "schema")


def edited(text: str, config: Config) -> str:
    """Return the text of a corpus.toml with the settings of a config.

    A setting that keeps its value stays as it is written, and a setting that is left out and has its default stays
    out. Keys with an old name get their present one. Lines end as they did.
    """
    line_end = "\r\n" if "\r\n" in text else "\n"
    document = tomlkit.parse(_with_new_names(text.replace("\r\n", "\n")))
    written = parse(document.unwrap())
    before = {key: value for key, _, value in flat(written)}
    for key, setting, value in flat(config):
        is_missing = key in ALWAYS_WRITTEN and key not in document
        if value != before[key] or is_missing:
            _set(document, key, readable(value, setting.unit))
    changed = tomlkit.dumps(document)
    if parse(tomlkit.parse(changed).unwrap()) != config:
        raise UsageError(
            "corpus.toml cannot be changed without losing its comments; write the setting by hand"
        )
    return changed.replace("\n", line_end)


def _with_new_names(text: str) -> str:
    """Return the text with the present names of settings; lines keep their places."""
    section, lines = "", []
    for line in text.splitlines(keepends=True):
        if header := _HEADER.match(line):
            section = header[1] + "."
        elif key := _KEY.match(line):
            name = RENAMED.get(section + key[2], section + key[2]).removeprefix(section)
            lines.append(key[1] + name + line[key.end(2) :])
            continue
        lines.append(line)
    return "".join(lines)


def _set(document: tomlkit.TOMLDocument, key: str, value: Any) -> None:
    section, _, name = key.rpartition(".")
    settings: MutableMapping[str, Any] = document
    if section:
        if section not in document:
            document[section] = tomlkit.table()
        settings = document[section]
    if name == "process":
        steps = tomlkit.aot()
        for step in value:
            steps.append(tomlkit.item(step))
        settings[name] = steps
        return
    # Our notation of a value, since tomlkit's own escapes fewer characters.
    settings[name] = tomlkit.value(toml(value))
