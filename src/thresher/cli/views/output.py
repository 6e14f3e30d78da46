"""Streams of output: results to stdout, in columns for people; progress, remarks and errors to stderr."""

from __future__ import annotations

import sys
from typing import Any, NoReturn

from rich.console import Console

PIPE_WIDTH = 1 << 14  # columns where no terminal limits a line: nothing is cut in a pipe


class ResultConsole(Console):
    """The console of results. It leaves a closed pipe (`thresher freq … | head`) to the command line."""

    def on_broken_pipe(self) -> NoReturn:
        """Raise the error again, which rich would turn into exit code 1."""
        self.quiet = True
        raise BrokenPipeError


def result_console() -> Console:
    """Return a console on stdout, as wide as the terminal, or wide enough for everything in a file or a pipe."""
    console = ResultConsole(file=sys.stdout)
    return console if console.is_terminal else ResultConsole(file=sys.stdout, width=PIPE_WIDTH)


def show(*views: Any) -> None:
    """Print results for people: tables and texts."""
    result_console().print(*views)
