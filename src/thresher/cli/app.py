"""The app that commands join, the groups of its help, and the output that commands share."""

from __future__ import annotations

import math
import sys
import warnings
from pathlib import Path
from typing import Annotated, Any, NoReturn, TextIO

import msgspec
from cyclopts import App, Group, Parameter

from thresher._version import __version__
from thresher.config.toml_tables import MOST, check_number, toml
from thresher.errors import ThresherWarning, UsageError


def _shown_default(value: Any) -> str | None:
    """Return a default for the help, or None for one that says nothing: "", False and 0."""
    return str(value) if value else None


def _check_value(_: Any, value: Any) -> None:
    """Raise UsageError for values that no option takes: not UTF-8, not finite, or beyond 18 digits."""
    if isinstance(value, dict):
        value = [*value.values()]
    if isinstance(value, (list, tuple)):
        for each in value:
            _check_value(_, each)
    elif (
        isinstance(value, str) and not value.isascii() and any("\ud800" <= sign <= "\udfff" for sign in value)
    ):
        raise UsageError(f"{value!r} is not UTF-8; write it in UTF-8")
    elif isinstance(value, float) and not math.isfinite(value):
        raise UsageError(f"a number must be finite, got {value}")
    elif isinstance(value, int):
        check_number(value, toml(value))


def whole_number(text: str) -> int | None:
    """Return the number that an option is if it has digits only, else None; raise UsageError if it is too large."""
    if not (text.isascii() and text.isdigit()):
        return None
    if len(text) > len(str(MOST)):
        raise UsageError(f"{text[:20]}… is too large: a whole number may have at most 18 digits")
    return int(text)


app = App(
    name="thresher",
    version=__version__,
    help="Build a clean text corpus of one language from the web, with as little downloading as possible.\n\n"
    "A first look, without a network: thresher demo",
    default_parameter=Parameter(show_default=_shown_default, validator=_check_value),
    suppress_keyboard_interrupt=False,  # an interrupt has its own message and exit code
)

# Commands by group, in the order of the help.
GROUPS = {
    "Build": ("seeds", "crawl", "status", "config", "hosts", "explain", "import", "export", "forget"),
    "Search": (
        *("index", "search", "freq", "collocates", "distribution", "dispersion"),
        *("words", "ngrams", "keywords", "retrieve", "subcorpora"),
    ),
    "Process": ("process", "runs", "gc"),
    "Study": ("experiment", "simulate", "sample"),
    "Tools": ("demo", "read", "language", "toyweb"),
}

Directory = Annotated[Path, Parameter(help="Directory of the corpus.")]
AsJson = Annotated[bool, Parameter(name="--json", negative=(), help="JSON on stdout, for machines.")]
Many = Parameter(consume_multiple=True, negative=())


def check_output(_: Any, path: Path | None) -> None:
    """Raise UsageError before any work if an output is not a file, or is a file of a corpus itself."""
    from thresher.store import corpus_files

    if path is not None:
        corpus_files.check_output(path)


OutputName = Parameter(name=["--output", "-o"], validator=check_output)
PlotName = Parameter(name="--plot", validator=check_output)


def group_commands() -> None:
    """Put the commands into their groups of the help, once all have joined the app."""
    for place, (name, commands) in enumerate(GROUPS.items()):
        group = Group(name, sort_key=place)
        for command in commands:
            app[command].group = (group,)


def leave(message: str, code: int) -> NoReturn:
    """Print a message and end with an exit code."""
    say(message)
    sys.exit(code)


def say(message: str) -> None:
    """Print a remark for people to stderr, each line with the name of the program."""
    from thresher.cli.views.terminal import harmless

    for part in message.splitlines():
        print(f"thresher: {harmless(part)}", file=sys.stderr)


def say_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    """Print a warning of Thresher as a message; takes the place of `warnings.showwarning`."""
    if issubclass(category, FutureWarning | ThresherWarning):
        say(str(message))
    elif text := warnings.formatwarning(message, category, filename, lineno, line):
        print(text, file=file or sys.stderr, end="")


def print_json(value: Any) -> None:
    """Print a value as JSON on a line of stdout."""
    sys.stdout.buffer.write(msgspec.json.encode(value, enc_hook=str) + b"\n")
    sys.stdout.buffer.flush()


def show(*views: Any) -> None:
    """Print tables and texts for people to stdout; without a terminal, nothing is cut."""
    from thresher.cli.views import output

    output.show(*views)


def read_status(directory: Path) -> dict[str, Any]:
    """Return the status of a corpus."""
    import thresher

    return thresher.open(directory).stats()
