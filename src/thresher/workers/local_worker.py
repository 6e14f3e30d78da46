"""A process of the local engine: it performs one call after the other.

It is started as a program of its own and not by `multiprocessing`, which imports the user's script again in every
process: a script without `if __name__ == "__main__"` would start itself over and over.
"""

from __future__ import annotations

import faulthandler
import json
import os
import socket
import sys
from collections.abc import Sequence
from functools import partial
from multiprocessing.connection import Connection

from thresher.workers import signals
from thresher.workers.fork_server import ForkServer, share
from thresher.workers.protocol import LONGEST_LOG, perform

# The search path comes first: functions are looked for where the process that hands out calls would find them.
_BOOT = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    "from thresher.workers.local_worker import main; main(sys.argv[2:])"
)


def command(pipe: int, requests: int, log: int, *, lasts: bool) -> list[str]:
    """Return the command line of a worker; the numbers are descriptors that it inherits."""
    path = json.dumps([os.path.abspath(folder) for folder in sys.path])  # noqa: PTH100 - "" is a folder, too
    return [sys.executable, "-c", _BOOT, path, *map(str, (pipe, requests, log, int(lasts)))]


def main(arguments: Sequence[str]) -> None:
    """Perform the calls that arrive until the pipe is closed; output goes to the log file."""
    signals.ignore()
    descriptor, requests, log, lasts = map(int, arguments)
    pipe = Connection(descriptor)
    if not lasts:  # A task may take hours, in vain if the engine is gone. A lasting call sees to its own end.
        signals.exit_when_closed(pipe.fileno())
    share(ForkServer(requests=socket.socket(fileno=requests)))
    # Opened again, so that output is appended after the file was truncated.
    output = os.open(f"/proc/self/fd/{log}", os.O_RDWR | os.O_APPEND)
    for stream in (1, 2):
        os.dup2(output, stream)
    faulthandler.enable()  # if a library crashes the process, the log says where
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    while True:
        try:
            number, call = pipe.recv()
        except (EOFError, OSError):
            return
        os.ftruncate(output, 0)
        pipe.send(perform(number, call, partial(_append, output)))


def _append(descriptor: int, text: str) -> None:
    """Append to the log file, of which only the end is needed."""
    if os.fstat(descriptor).st_size > 4 * LONGEST_LOG:
        os.ftruncate(descriptor, 0)
    os.write(descriptor, text.encode("utf-8", "replace"))
