"""A line of progress on stderr for long work, with the time that it has been waiting."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console

from thresher.cli.app import say
from thresher.cli.views.terminal import PLAIN_EVERY, span

LIVE_EVERY = 1.0  # seconds between two updates of a line in a terminal
WAITED_S = 5.0  # from which on a line says for how long nothing has changed


class _Line:
    """The text that was reported last, and the time since."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._text = ""
        self._since = clock()

    def set(self, text: str) -> None:
        if text != self._text:
            self._text, self._since = text, self._clock()

    def __str__(self) -> str:
        waited = self._clock() - self._since
        return self._text + (f" for {span(waited)}" if self._text and waited >= WAITED_S else "")


@contextmanager
def progress_line(
    every: float = PLAIN_EVERY, clock: Callable[[], float] = time.monotonic
) -> Iterator[Callable[[str], None]]:
    """Yield a function that takes the current line of progress; "" stands for nothing to report.

    In a terminal the line is kept up to date until the block ends. Otherwise the current line is written every
    `every` seconds, also while nothing is reported, so that a log shows that the work still runs.

    A line should end with what is waited for: after some seconds without a new line, "for 12 s" is added to it.
    """
    line = _Line(clock)
    console = Console(stderr=True)
    ended = threading.Event()
    if console.is_terminal:
        with console.status("") as status, _repeated(lambda: status.update(str(line)), LIVE_EVERY, ended):
            yield line.set
    else:
        with _repeated(lambda: say(str(line)), every, ended):
            yield line.set


@contextmanager
def _repeated(work: Callable[[], None], every: float, ended: threading.Event) -> Iterator[None]:
    """Repeat some work in a thread until the block ends."""

    def repeat() -> None:
        while not ended.wait(every):
            work()

    thread = threading.Thread(target=repeat, name="progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
