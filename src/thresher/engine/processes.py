"""Calls run in processes of this machine; one that dies, or takes too long, is replaced, its call has failed."""

from __future__ import annotations

import atexit
import contextlib
import faulthandler
import multiprocessing
import os
import signal
import socket
import time
from collections.abc import Iterator, Sequence
from functools import partial
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from weakref import WeakSet

from thresher.config import ConfigError
from thresher.engine import signals
from thresher.engine.calls import LONGEST_LOG, Call, Ended, perform, processors
from thresher.engine.nursery import Nursery, lend

PATIENCE = 5.0  # seconds that a process gets to end before it is killed

# Not forked: a fork of a process with threads may hang, and would take our locks and files with it.
_CONTEXT = multiprocessing.get_context("spawn")


class Processes:
    """An engine of as many processes as there are processors; they are started when there is work."""

    address = "127.0.0.1"

    def __init__(self, count: int = 0) -> None:
        """`count`: how many at once; 0: one for each processor."""
        if count < 0:
            raise ConfigError(f"{count} processes cannot do anything; try --processes 1")
        self._count = count or processors()
        self._idle: list[_Process] = []
        self._nursery = Nursery()
        self._all: WeakSet[BaseProcess] = WeakSet()
        # Python would ask those that are left to terminate, which they do not hear, and wait for them.
        atexit.register(self._end_all)

    def run(self, calls: Sequence[Call]) -> Iterator[Ended]:
        waiting = iter(enumerate(calls))
        busy: dict[int, _Process] = {}  # by what they are waited for by
        try:
            while True:
                while len(busy) < self._count and (handed := next(waiting, None)):
                    process = self._idle.pop() if self._idle else self._new()
                    process.hand(*handed)
                    busy[process.descriptor] = process
                if not busy:
                    return
                for process in self._ready(list(busy.values())):
                    del busy[process.descriptor]
                    ended = process.ended()
                    if process.is_alive:
                        self._idle.append(process)
                    yield ended
        finally:
            for process in busy.values():
                process.kill()

    def _ready(self, busy: list[_Process]) -> list[_Process]:
        """Those that have an answer, have died, or have had their time."""
        now = time.monotonic()
        left = min((process.until - now for process in busy), default=0.0)
        found = wait([process.pipe for process in busy], None if left == float("inf") else max(left, 0.0))
        late = time.monotonic()
        return [process for process in busy if process.pipe in found or process.until <= late]

    def start(self, call: Call) -> _Started:
        return _Started(self._new(lasts=True), call)

    def _new(self, *, lasts: bool = False) -> _Process:
        return _Process(self._nursery, self._all, lasts=lasts)

    def close(self) -> None:
        for process in self._idle:
            process.close()
        self._idle.clear()
        self._end_all()
        self._nursery.close()
        atexit.unregister(self._end_all)

    def _end_all(self) -> None:
        for process in list(self._all):
            if process.pid:
                process.kill()
                process.join()


class _Process:
    """A process that performs one call after the other."""

    def __init__(self, nursery: Nursery, family: WeakSet[BaseProcess], *, lasts: bool) -> None:
        """`family`: those that are killed with the engine, this one among them; `lasts`: for calls that last."""
        self.pipe, theirs = _CONTEXT.Pipe()
        self._log = os.memfd_create("log")  # what it writes; here it outlives the process
        arguments = (theirs, nursery.door, f"/proc/{os.getpid()}/fd/{self._log}", lasts)
        self._process: BaseProcess = _CONTEXT.Process(target=_serve, args=arguments, daemon=True)
        family.add(self._process)
        resource_tracker.ensure_running()  # Python would start it first, and let the signals through then
        with signals.kept_from_children():
            self._process.start()
        theirs.close()
        self._number = -1
        self._began = 0.0
        self.until = float("inf")

    @property
    def descriptor(self) -> int:
        return self.pipe.fileno()

    @property
    def is_alive(self) -> bool:
        return self._number < 0

    def hand(self, number: int, call: Call) -> None:
        self._number, self._began = number, time.monotonic()
        self.until = self._began + call.deadline if call.deadline else float("inf")
        with contextlib.suppress(
            OSError
        ):  # it died while it was idle: that is seen when it is asked for an answer
            self.pipe.send((number, call))

    def ended(self) -> Ended:
        """What became of the call: its answer, or that there will be none."""
        number, seconds = self._number, time.monotonic() - self._began
        try:
            if self.pipe.poll():
                answer: Ended = self.pipe.recv()
                self._number, self.until = -1, float("inf")
                return answer
            fault = f"it took longer than {self.until - self._began:.0f} s"
            self._stop()
        except (EOFError, OSError):
            self._process.join()
            fault = f"its process died: {_cause(self._process.exitcode or 0)}"
        log = self._written()
        self._let_go()
        return Ended(number, fault=fault, log=log, seconds=seconds)

    def _written(self) -> str:
        """The end of what it wrote."""
        start = max(os.fstat(self._log).st_size - LONGEST_LOG, 0)
        return os.pread(self._log, LONGEST_LOG, start).decode("utf-8", "replace")

    def kill(self) -> None:
        self._stop()
        self._let_go()

    def _stop(self) -> None:
        self._process.kill()
        self._process.join()

    def _let_go(self) -> None:
        self.pipe.close()
        os.close(self._log)

    def close(self) -> None:
        self._let_go()  # it reads the end, and ends
        self._process.join(PATIENCE)
        if self._process.exitcode is None:
            self._stop()


class _Started:
    """A call with a process of its own."""

    def __init__(self, process: _Process, call: Call) -> None:
        self._process = process
        self._process.hand(0, call)

    def poll(self) -> Ended | None:
        if not self._process.pipe.poll():
            return None
        ended = self._process.ended()
        if self._process.is_alive:
            self._process.close()
        return ended

    def is_crowded(self) -> bool:
        return False  # there is but one machine

    def kill(self) -> None:
        self._process.kill()


def _serve(pipe: Connection, door: socket.socket, log: str, lasts: bool) -> None:
    """Perform calls until the other side closes the pipe; all that is written goes to a file of its."""
    signals.ignore()
    if not lasts:  # a piece may take hours, and nobody waits for it; a call that lasts sees to its end itself
        signals.end_with(pipe.fileno())
    lend(Nursery(door=door))
    descriptor = os.open(log, os.O_RDWR | os.O_APPEND)
    for stream in (1, 2):
        os.dup2(descriptor, stream)
    faulthandler.enable()  # should a library kill us, it is told where
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    while True:
        try:
            number, call = pipe.recv()
        except (EOFError, OSError):
            return
        os.ftruncate(descriptor, 0)
        pipe.send(perform(number, call, partial(_append, descriptor)))


def _append(descriptor: int, text: str) -> None:
    """Write to a file, of which no more than the end is wanted."""
    if os.fstat(descriptor).st_size > 4 * LONGEST_LOG:
        os.ftruncate(descriptor, 0)
    os.write(descriptor, text.encode("utf-8", "replace"))


def _cause(code: int) -> str:
    if code >= 0:
        return f"it ended with {code}"
    name = signal.Signals(-code).name
    return f"{name}{', perhaps for want of memory' if name == 'SIGKILL' else ''}"
