"""Functions that tests of engines call in other processes."""

from __future__ import annotations

import asyncio
import errno
import os
import signal
import socket
import threading
import time
from pathlib import Path

from thresher.config import ReadSettings
from thresher.records import Reply
from thresher.workers.reader_pool import ReaderPool


def double(number: int) -> int:
    return 2 * number


def fail(message: str) -> None:
    print("before it failed")
    raise ValueError(message)


def speak(words: str) -> None:
    print(words)


def speak_and_die(words: str) -> None:
    print(words)
    os.kill(os.getpid(), signal.SIGKILL)


def crash() -> None:
    os.abort()


def chatter(times: int) -> None:
    for number in range(times):
        print(f"{number:09}")


def run_out_of_room() -> None:
    try:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    except OSError as fault:
        raise ValueError("the result cannot be written") from fault


def refuse_to_weigh(*_: object) -> None:
    raise ValueError("it cannot be weighed")


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def leave() -> None:
    os._exit(3)


def hang() -> None:
    threading.Event().wait()


def pid_of_process() -> int:
    return os.getpid()


def readers_parent() -> int:
    """Return the number of the process that the readers of a call are forked from."""

    async def ask() -> int:
        readers = ReaderPool(ReadSettings(processes=1), "cs")
        await readers.start()
        try:
            await readers.read(Reply("http://a.cz/", 200, b"HTTP/1.1 200 OK\r\n", b"<p>text", 0.0, 0.0, ""))
            (reader,) = readers.pids()
            return parent(reader)
        finally:
            await readers.close()

    def parent(process: int) -> int:
        return int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])

    return asyncio.run(ask())


def wait_for(path: str) -> str:
    while not Path(path).exists():
        time.sleep(0.01)
    return path


def write_pid_and_hang(path: str) -> None:
    Path(path).write_text(str(os.getpid()))
    hang()


def write_pid_and_wait(path: str, mark: str) -> str:
    Path(path).write_text(str(os.getpid()))
    return wait_for(mark)


def knock(address: str, port: int) -> None:
    with socket.create_connection((address, port)) as door:
        door.sendall(b"knock")


def pause_node_once(mark: str, number: int) -> int:
    """Pause the node that it runs on at the first call, as if it hung, and write the numbers of its processes."""
    try:
        place = os.open(mark, os.O_CREAT | os.O_EXCL | os.O_WRONLY)
    except FileExistsError:
        return number
    os.write(place, f"{os.getppid()} {os.getpid()}".encode())
    os.close(place)
    os.kill(os.getppid(), signal.SIGSTOP)
    os.kill(os.getpid(), signal.SIGSTOP)
    return number
