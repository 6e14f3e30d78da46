"""Options and progress of the commands that visit pages without a crawl."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Annotated

from cyclopts import Parameter

from thresher.cli.app import say

Delay = Annotated[float | None, Parameter(help="Seconds between two requests to a host.")]
Connections = Annotated[int | None, Parameter(help="Connections open at once.")]
Contact = Annotated[
    str | None,
    Parameter(
        env_var="THRESHER_CONTACT", help="E-mail address or URL for webmasters; sent with every request."
    ),
]
ConnectTo = Annotated[
    str, Parameter(help="ADDR:PORT that every connection goes to, in plain HTTP, for tests and replays.")
]


def warn_about(connect_to: str) -> None:
    """Warn that all connections go to one address instead of the hosts of the URLs."""
    if connect_to:
        say(f"every connection goes to {connect_to}, in plain HTTP, private addresses included")


@contextmanager
def counting(total: int | None, noun: str) -> Iterator[Callable[[int], None]]:
    """Yield a function that reports how many are done: a bar on a terminal, else a plain line now and then.

    Parameters
    ----------
    total
        How many there will be; None if it is not known.
    noun
        The things that are counted, in the plural.
    """
    from rich.console import Console
    from rich.progress import Progress, TextColumn

    from thresher.cli.views.terminal import PLAIN_EVERY

    console = Console(stderr=True)
    if console.is_terminal:
        columns = (
            Progress.get_default_columns()
            if total is not None
            else (TextColumn("{task.completed:,} {task.description}"),)
        )
        with Progress(*columns, console=console, transient=True) as bar:
            task = bar.add_task(noun, total=total)
            yield lambda done: bar.update(task, completed=done)
        return
    last = time.monotonic()

    def report(done: int) -> None:
        nonlocal last
        if time.monotonic() - last >= PLAIN_EVERY:
            last = time.monotonic()
            of_all = "" if total is None else f"of {total:,} "
            print(f"{done:,} {of_all}{noun}", file=sys.stderr, flush=True)

    yield report
