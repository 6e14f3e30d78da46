"""Settings for people: the table of a corpus, and the reference of all settings in Markdown."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rich.table import Table
from rich.text import Text

from thresher.cli.views.terminal import harmless
from thresher.config import RENAMED, Config
from thresher.config.settings import NO_PAGES
from thresher.config.toml_tables import Section, Setting, readable, settings_of, toml

LONGEST_VALUE = 60  # characters of a value in the table
INTRODUCTION = """\
# Configuration

<!-- Generated from src/thresher/config/settings.py: thresher config --reference > docs/configuration.md -->

The settings of a corpus are in `corpus.toml` in its directory. `thresher config DIR` shows them,
`thresher config DIR KEY VALUE` changes one, and most options of `thresher crawl` are written there too. Comments
and order of the file survive. A setting that is left out has its default.

Sizes are numbers of bytes or strings such as `"500kB"`, `"20GB"` (powers of 1,000) and `"8MiB"` (powers of 1,024).
Durations are numbers of seconds or strings such as `"15m"`, `"2h"`, `"1.5d"`.

```toml
language = "cs"

[budget]
max_bytes = "20GB"

[polite]
contact = "you@university.example"
delay = 5
```
"""


def settings_table(settings: Mapping[str, tuple[Setting, Any]]) -> Table:
    """Return settings with their values; a value that is the default is dim."""
    table = Table(box=None, padding=(0, 2), header_style="bold")
    for heading in ("setting", "value", "", "description"):
        table.add_column(heading, overflow="fold")
    for key, (setting, value) in settings.items():
        shown = harmless(toml(readable(value, setting.unit)), LONGEST_VALUE if len(settings) > 1 else 0)
        is_default = value == setting.default
        mark = Text("default", style="dim") if is_default else Text("")
        table.add_row(
            Text(key), Text(shown, style="dim" if is_default else ""), mark, Text(setting.description)
        )
    return table


def settings_reference() -> str:
    """Return the text of docs/configuration.md."""
    parts = [INTRODUCTION, *_section("", Config)]
    for name, setting in settings_of(Config).items():
        if setting.section:
            parts += _section(name, setting.section)
    parts.append("## Former names\n\nThese keys are read for one more release, with a warning.\n")
    rows = "".join(f"| `{old}` | `{new}` |\n" for old, new in RENAMED.items())
    parts.append(f"| former name | name |\n| --- | --- |\n{rows}")
    return "\n".join(parts)


def _section(name: str, section: type[Section]) -> Iterator[str]:
    heading = f"`[{name}]`" if name else "At the top of the file"
    yield f"## {heading}\n\n{(section.__doc__ or '').strip()}\n"
    rows = "".join(
        f"| `{each.name}` | {_default(each)} | {_cell(each.values)} | {_cell(each.description)} |\n"
        for each in settings_of(section).values()
        if not each.section
    )
    yield f"| setting | default | values | description |\n| --- | --- | --- | --- |\n{rows}"


def _default(setting: Setting) -> str:
    if setting.default == NO_PAGES:
        return f"{len(NO_PAGES)} extensions of images, sound, archives, documents and fonts"
    return f"`{_cell(toml(readable(setting.default, setting.unit)))}`"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
