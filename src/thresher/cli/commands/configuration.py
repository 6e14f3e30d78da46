"""The command that shows and changes the settings of a corpus."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
from cyclopts import Parameter

from thresher.cli.app import AsJson, app, print_json, say, show
from thresher.config import Config, load
from thresher.config.toml_tables import Setting, flat, tables
from thresher.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

FIXED = ("language", "thresher", "schema")  # when the corpus is made


@app.command
def config(
    directory: Annotated[Path | None, Parameter(help="Directory of the corpus.")] = None,
    key: str = "",
    value: Annotated[list[str] | None, Parameter(allow_leading_hyphen=True, negative=())] = None,
    /,
    *,
    reference: Annotated[bool, Parameter(negative=())] = False,
    json: AsJson = False,
) -> None:
    """Show or change the settings of a corpus.

    Example: thresher config czech

    Example: thresher config czech policy.patience 0.5

    Settings are kept in DIR/corpus.toml; comments and order there survive a change.

    Parameters
    ----------
    key
        A setting, as polite.delay, or a section, as polite; if left out, all settings are shown.
    value
        New value of the setting: a number, a size as 20GB, a duration as 2h, a text, or the items of a list.
    reference
        Print the description of all settings as Markdown; it needs no corpus.
    """
    from thresher.cli.views.configuration import settings_reference, settings_table

    if reference:
        sys.stdout.write(settings_reference())
        return
    if directory is None:
        raise UsageError("a directory is missing; try thresher config DIR")
    if value:
        _change(directory, key, value)
    settings = _chosen(load(directory), key)
    if json:
        print_json({name: _as_json(setting, found) for name, (setting, found) in settings.items()})
    else:
        show(settings_table(settings))


def _chosen(config: Config, key: str) -> dict[str, tuple[Setting, Any]]:
    """Return the setting with a key, the settings of a section, or all; raise UsageError if there is none."""
    found = {name: (setting, value) for name, setting, value in flat(config)}
    chosen = {name: each for name, each in found.items() if key in ("", name, name.partition(".")[0])}
    if not chosen:
        _refuse_unknown(key, list(found))
    return chosen


def _refuse_unknown(key: str, known: Sequence[str]) -> None:
    import difflib

    near = difflib.get_close_matches(key, known, n=1, cutoff=0.5)
    hint = f"did you mean {near[0]}?" if near else "all are listed by thresher config DIR"
    raise UsageError(f"{key!r} is not a setting; {hint}")


def _change(directory: Path, key: str, words: Sequence[str]) -> None:
    from thresher.crawler.prepare import change_settings
    from thresher.files.durable_files import is_locked

    settings = {name: setting for name, setting, _ in flat(load(directory))}
    if key not in settings:
        _refuse_unknown(key, list(settings))
    if key in FIXED:
        raise UsageError(f"{key} is fixed when a corpus is made; start a new one in another directory")
    if key == "process":
        raise UsageError(f"write the steps into {directory}/corpus.toml, each below a line [[process]]")
    section, _, name = key.partition(".")
    change_settings(directory, {section: {name: _value(settings[key], words)}})
    if is_locked(directory / "lock"):
        say("a command is at work on this corpus; the change applies when it is started again")


def _value(setting: Setting, words: Sequence[str]) -> Any:
    """Return words of the command line as a value; the check of the setting refuses a value that does not fit."""
    kind, text = setting.kind, " ".join(words)
    if isinstance(kind, msgspec.inspect.VarTupleType) and not text.startswith("["):
        return [
            _plain(word) if isinstance(kind.item_type, msgspec.inspect.IntType) else word for word in words
        ]
    is_text = isinstance(kind, msgspec.inspect.StrType | msgspec.inspect.LiteralType)
    return text if is_text or setting.unit else _plain(text)


def _plain(text: str) -> Any:
    """Return a number, a truth value, a list or a table in TOML; any other text as it is."""
    try:
        return tables(f"value = {text}", "the value")["value"]
    except UsageError:
        return text


def _as_json(setting: Setting, value: Any) -> dict[str, Any]:
    return {
        "value": value,
        "default": setting.default,
        "is_default": value == setting.default,
        "values": setting.values,
        "description": setting.description,
    }
