"""The local engine: calls run in processes of this machine; a process that dies or is late is replaced."""

from __future__ import annotations

import atexit
import contextlib
import logging
import multiprocessing
import os
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from multiprocessing.connection import wait
from weakref import WeakSet

from thresher.errors import UsageError
from thresher.workers import local_worker, signals
from thresher.workers.fork_server import ForkServer
from thresher.workers.protocol import LONGEST_LOG, Call, CallResult, processors

CLOSING_SECONDS = 5.0  # that a process gets to end before it is killed

_log = logging.getLogger(__name__)


class LocalEngine:
    """An engine of several processes, by default one for each processor; they are started when there is work."""

    address = "127.0.0.1"

    def __init__(self, count: int = 0) -> None:
        if count < 0:
            raise UsageError(f"--processes must be at least 0, got {count}; 0 means one for each processor")
        self._count = count or processors()
        self._idle: list[_Process] = []
        self._fork_server = ForkServer()
        self._all: WeakSet[_Process] = WeakSet()
        atexit.register(self._kill_all)

    def run(self, calls: Sequence[Call]) -> Iterator[CallResult]:
        """Run all calls and yield how each ended; calls that are not waited for are killed."""
        waiting = iter(enumerate(calls))
        busy: dict[int, _Process] = {}  # by descriptor
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
        """Wait for processes that have an answer, have died, or are past their deadline, and return them."""
        now = time.monotonic()
        left = min((process.until - now for process in busy), default=0.0)
        found = wait([process.pipe for process in busy], None if left == float("inf") else max(left, 0.0))
        late = time.monotonic()
        return [process for process in busy if process.pipe in found or process.until <= late]

    def start(self, call: Call) -> _LastingCall:
        """Run a call in a process of its own, besides all others."""
        return _LastingCall(self._new(lasts=True), call)

    def pids(self) -> list[int]:
        """Return the numbers of the processes that are running."""
        return [process.pid for process in self._all if process.is_running]

    def _new(self, *, lasts: bool = False) -> _Process:
        process = _Process(self._fork_server, lasts=lasts)
        self._all.add(process)
        return process

    def close(self) -> None:
        """End all processes."""
        for process in self._idle:
            process.close()
        self._idle.clear()
        self._kill_all()
        self._fork_server.close()
        atexit.unregister(self._kill_all)

    def _kill_all(self) -> None:
        for process in list(self._all):
            process.stop()


class _Process:
    """A process that performs one call after the other."""

    def __init__(self, fork_server: ForkServer, *, lasts: bool) -> None:
        self.pipe, theirs = multiprocessing.Pipe()
        self._log = os.memfd_create("log")  # its output; kept here, so that it outlives the process
        handed = (theirs.fileno(), fork_server.requests.fileno(), self._log)
        with theirs, signals.blocked_in_children():
            self._process = subprocess.Popen(
                local_worker.command(*handed, lasts=lasts), pass_fds=handed, stdin=subprocess.DEVNULL
            )
        self._number = -1
        self._began = 0.0
        self.until = float("inf")

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def is_running(self) -> bool:
        return self._process.poll() is None

    @property
    def descriptor(self) -> int:
        return self.pipe.fileno()

    @property
    def is_alive(self) -> bool:
        return self._number < 0

    def hand(self, number: int, call: Call) -> None:
        self._number, self._began = number, time.monotonic()
        self.until = self._began + call.deadline if call.deadline else float("inf")
        with contextlib.suppress(OSError):  # it died while it was idle, which shows when its answer is read
            self.pipe.send((number, call))

    def ended(self) -> CallResult:
        """Return the answer to the call, or the fault that there will be none."""
        number, seconds = self._number, time.monotonic() - self._began
        try:
            if self.pipe.poll():
                answer: CallResult = self.pipe.recv()
                self._number, self.until = -1, float("inf")
                return answer
            fault = f"it took longer than {self.until - self._began:.0f} s"
            self.stop()
        except (EOFError, OSError):
            fault = f"its process died: {_cause(self._process.wait())}"
        log = self._written()
        self._close_files()
        _log.warning("a call failed after %.1f s: %s", seconds, fault)
        return CallResult(number, fault=fault, log=log, seconds=seconds)

    def _written(self) -> str:
        """Return the end of its output."""
        start = max(os.fstat(self._log).st_size - LONGEST_LOG, 0)
        return os.pread(self._log, LONGEST_LOG, start).decode("utf-8", "replace")

    def kill(self) -> None:
        self.stop()
        self._close_files()

    def stop(self) -> None:
        self._process.kill()
        self._process.wait()

    def _close_files(self) -> None:
        self.pipe.close()
        os.close(self._log)

    def close(self) -> None:
        self._close_files()  # it reads the end of the pipe, and ends
        try:
            self._process.wait(CLOSING_SECONDS)
        except subprocess.TimeoutExpired:
            self.stop()


class _LastingCall:
    """A call with a process of its own."""

    def __init__(self, process: _Process, call: Call) -> None:
        self._process = process
        self._process.hand(0, call)

    def poll(self) -> CallResult | None:
        if not self._process.pipe.poll():
            return None
        ended = self._process.ended()
        if self._process.is_alive:
            self._process.close()
        return ended

    def is_crowded(self) -> bool:
        return False  # there is one machine only

    def kill(self) -> None:
        self._process.kill()


def _cause(code: int) -> str:
    """Return why a process ended, from its exit status."""
    if code >= 0:
        return f"it ended with {code}"
    name = signal.Signals(-code).name
    return f"{name}{', perhaps for lack of memory' if name == 'SIGKILL' else ''}"
