"""Calls: work that an engine runs elsewhere, in processes of this machine or on another one.

A function is known by its place, `module:name`, and takes plain values; what it returns is plain, too. An engine
runs calls in any order and tells how each ended; that one failed, or took its process with it, is no fault of the
engine. Whoever hands out calls decides whether to try again.
"""

from __future__ import annotations

import errno
import importlib
import io
import os
import resource
import sys
import time
import traceback
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Protocol

from msgspec import Struct

LONGEST_LOG = 64 << 10  # letters of what a call wrote that are kept, the last ones
# What may be otherwise next time: no room, too much open, somebody else at work, a file system that is away.
PASSING = {
    *(errno.ENOSPC, errno.EDQUOT, errno.EMFILE, errno.ENFILE, errno.EAGAIN),
    *(errno.ESTALE, errno.ETIMEDOUT, errno.ENOTCONN, errno.EHOSTDOWN, errno.EROFS),
}


class Elsewhere(Struct):
    """Processor time spent for this process by others that are not its children: its readers."""

    cpu_seconds: float = 0.0


elsewhere = Elsewhere()


class Call(Struct, frozen=True):
    """A function and what it is called with."""

    function: str  # module:name
    arguments: dict[str, Any]
    deadline: float = 0.0  # seconds after which it is ended; 0: never


class Ended(Struct, frozen=True):
    """How a call ended: with a result, or with a fault."""

    number: int  # of the call among those handed over
    result: Any = None
    fault: str = ""  # what went wrong, in a line; empty: nothing
    log: str = ""  # what it wrote to its standard output and error, and the traceback of a fault
    seconds: float = 0.0
    cpu_seconds: float = 0.0
    is_passing: bool = False  # the fault was not the call's: a full disk, or somebody else at work


class Running(Protocol):
    """A call that was started."""

    def poll(self) -> Ended | None:
        """How it ended; None while it runs."""

    def is_crowded(self) -> bool:
        """Whether there would be more room elsewhere, if it were ended and started again."""

    def kill(self) -> None:
        """End it now, as far as it can be reached; nothing more is heard of it."""


class Engine(Protocol):
    """Where calls are run."""

    address: str  # under which what is started can reach this machine

    def run(self, calls: Sequence[Call]) -> Iterator[Ended]:
        """Run all calls; each is told of once, when it has ended."""

    def start(self, call: Call) -> Running:
        """Run a call that lasts, whatever else runs: as many as are started run at once. Deadlines do not count."""

    def close(self) -> None:
        """Let go of everything."""


def function_at(place: str) -> Callable[..., Any]:
    """A function by its place."""
    module, _, name = place.partition(":")
    found: Any = importlib.import_module(module)
    for part in name.split("."):
        found = getattr(found, part)
    assert callable(found)
    return found  # type: ignore[no-any-return]


def perform(number: int, call: Call, copy: Callable[[str], object] = lambda _: None) -> Ended:
    """Run a call here and now, whatever it does; what it writes is kept apart, and copied as it is written."""
    stand_back()
    start, cpu = time.monotonic(), _cpu_seconds()
    result, fault, is_passing = None, "", False
    with _captured(copy) as log:
        try:
            result = function_at(call.function)(**call.arguments)
        except Exception as error:  # the edge: whoever asked is told, and goes on with other calls
            fault = f"{type(error).__name__}: {error}".strip().splitlines()[0]
            is_passing = _is_passing(error)
            log.write(traceback.format_exc())
    seconds, cpu_seconds = time.monotonic() - start, _cpu_seconds() - cpu
    return Ended(number, result, fault, log.text, seconds, cpu_seconds, is_passing)


def _is_passing(error: BaseException | None) -> bool:
    """Whether a fault, or what led to it, is one of the machine's."""
    while error:
        if isinstance(error, OSError) and error.errno in PASSING:
            return True
        error = error.__cause__ or error.__context__
    return False


def stand_back() -> None:
    """Take no processor from others who are at work, for whoever waits for us can wait.

    Whoever takes another's place on a processor finds cold caches: eight readers on two processors, each for three
    milliseconds at a time, need a fifth more time for a page than two.
    """
    with suppress(OSError):  # not everywhere allowed
        os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))


class _Log(io.TextIOBase):
    """The end of what is written."""

    def __init__(self, copy: Callable[[str], object]) -> None:
        self._copy = copy
        self._parts: deque[str] = deque()
        self._length = 0

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        self._copy(text)
        self._parts.append(text[-LONGEST_LOG:])
        self._length += len(self._parts[-1])
        while self._length - len(self._parts[0]) >= LONGEST_LOG:
            self._length -= len(self._parts.popleft())
        return len(text)

    @property
    def text(self) -> str:
        return "".join(self._parts)[-LONGEST_LOG:]


@contextmanager
def _captured(copy: Callable[[str], object]) -> Iterator[_Log]:
    """What is printed, instead of printing it."""
    log, kept = _Log(copy), (sys.stdout, sys.stderr)
    sys.stdout = sys.stderr = log
    try:
        yield log
    finally:
        sys.stdout, sys.stderr = kept


def _cpu_seconds() -> float:
    own, children = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    return own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime + elsewhere.cpu_seconds


def processors() -> int:
    """How many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
