"""Calls: work that an engine runs in other processes, on this machine or on another one.

A function is named by `module:name`, takes plain values and returns plain values. An engine runs calls in any order
and reports how each ended. A call that fails, or takes its process with it, is not a fault of the engine, which
never tries again: the caller decides that.
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

LONGEST_LOG = 64 << 10  # characters of a call's output that are kept, the last ones
# Errors of the machine, which may pass: no space, too many open files, a lock held by another process, a file
# system that is away.
TRANSIENT = {
    *(errno.ENOSPC, errno.EDQUOT, errno.EMFILE, errno.ENFILE, errno.EAGAIN),
    *(errno.ESTALE, errno.ETIMEDOUT, errno.ENOTCONN, errno.EHOSTDOWN, errno.EROFS),
}


class ReaderTime(Struct):
    """Processor time of the readers of this process, which are children of the fork server and not its own."""

    cpu_seconds: float = 0.0


reader_time = ReaderTime()


class Call(Struct, frozen=True):
    """A function and its arguments."""

    function: str  # module:name
    arguments: dict[str, Any]
    deadline: float = 0.0  # seconds after which it is killed; 0: never


class CallResult(Struct, frozen=True):
    """The end of a call: its result, or a fault."""

    number: int  # of the call, in the order in which calls were handed over
    result: Any = None
    fault: str = ""  # the fault in one line; empty if there was none
    log: str = ""  # its standard output and error, and the traceback of a fault
    seconds: float = 0.0
    cpu_seconds: float = 0.0
    is_transient: bool = False  # the machine is at fault, not the call: a full disk, a lock that is held


class RunningCall(Protocol):
    """A call with a process of its own."""

    def poll(self) -> CallResult | None:
        """Return how the call ended, or None while it runs."""

    def is_crowded(self) -> bool:
        """Return whether there would be more room on another node, if the call were ended and started again."""

    def kill(self) -> None:
        """End the call now, as far as its process can be reached; it will not report an end."""


class Engine(Protocol):
    """A place where calls run."""

    address: str  # under which started calls can reach this machine

    def run(self, calls: Sequence[Call]) -> Iterator[CallResult]:
        """Run all calls, and yield one result for each when it has ended."""

    def start(self, call: Call) -> RunningCall:
        """Start a lasting call. All started calls run at the same time; their deadlines are ignored."""

    def close(self) -> None:
        """End all processes and release all resources."""


def function_at(place: str) -> Callable[..., Any]:
    """Import the function named by `module:name`."""
    module, _, name = place.partition(":")
    found: Any = importlib.import_module(module)
    for part in name.split("."):
        found = getattr(found, part)
    assert callable(found)
    return found  # type: ignore[no-any-return]


def perform(number: int, call: Call, copy: Callable[[str], object] = lambda _: None) -> CallResult:
    """Run a call in this process; its output is captured, and passed to `copy` as it is written."""
    use_batch_scheduling()
    start, cpu = time.monotonic(), _cpu_seconds()
    result, fault, is_transient = None, "", False
    with _captured(copy) as log:
        try:
            result = function_at(call.function)(**call.arguments)
        except Exception as error:  # the edge: the caller gets the fault, and other calls continue
            fault = f"{type(error).__name__}: {error}".strip().splitlines()[0]
            is_transient = _is_transient(error)
            log.write(traceback.format_exc())
    seconds, cpu_seconds = time.monotonic() - start, _cpu_seconds() - cpu
    return CallResult(number, result, fault, log.text, seconds, cpu_seconds, is_transient)


def _is_transient(error: BaseException | None) -> bool:
    """Return whether an error or one of its causes is a fault of the machine."""
    while error:
        if isinstance(error, OSError) and error.errno in TRANSIENT:
            return True
        error = error.__cause__ or error.__context__
    return False


def use_batch_scheduling() -> None:
    """Let this process not preempt others: throughput matters here, and not latency.

    A process that preempts another finds cold caches. Eight readers on two processors, each for three milliseconds
    at a time, need a fifth more time for a page than two readers.
    """
    with suppress(OSError):  # not allowed everywhere
        os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))


class _Log(io.TextIOBase):
    """A text stream that keeps the end of its text."""

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
    """Capture standard output and error, as far as Python writes them."""
    log, kept = _Log(copy), (sys.stdout, sys.stderr)
    sys.stdout = sys.stderr = log
    try:
        yield log
    finally:
        sys.stdout, sys.stderr = kept


def _cpu_seconds() -> float:
    own, children = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    return own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime + reader_time.cpu_seconds


def processors() -> int:
    """Return the number of processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
