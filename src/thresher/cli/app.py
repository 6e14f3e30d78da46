"""The command line's common ground: the app that commands join, and how they speak."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any, NoReturn

import msgspec
from cyclopts import App, Parameter

from thresher._version import __version__

DONE, FAULT, USAGE, BUDGET, INTERRUPTED = 0, 1, 2, 3, 130

app = App(
    name="thresher",
    version=__version__,
    help="Build a clean text corpus of one language from the web, with as little downloading as possible.\n\n"
    "A first look, without a network: thresher demo",
    suppress_keyboard_interrupt=False,  # it has its own word, and code
)

Directory = Annotated[Path, Parameter(help="Directory of the corpus.")]
AsJson = Annotated[bool, Parameter(name="--json", negative=(), help="JSON on stdout, for machines.")]
Many = Parameter(consume_multiple=True, negative=())


def leave(message: str, code: int) -> NoReturn:
    say(message)
    sys.exit(code)


def say(message: str) -> None:
    from thresher.terminal import harmless

    for part in message.splitlines():
        print(f"thresher: {harmless(part)}", file=sys.stderr)


def print_json(value: Any) -> None:
    sys.stdout.buffer.write(msgspec.json.encode(value, enc_hook=str) + b"\n")
    sys.stdout.buffer.flush()


def show(*views: Any) -> None:
    from rich.console import Console

    Console(stderr=True).print(*views)


def read_status(directory: Path) -> dict[str, Any]:
    import thresher

    return thresher.open(directory).stats()
