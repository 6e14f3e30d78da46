"""What the tests of engines have done elsewhere."""

from __future__ import annotations

import os
import signal
import socket
import threading
import time
from pathlib import Path


def double(number: int) -> int:
    return 2 * number


def fail(message: str) -> None:
    print("before it failed")
    raise ValueError(message)


def speak(words: str) -> None:
    print(words)


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def leave() -> None:
    os._exit(3)


def hang() -> None:
    threading.Event().wait()


def number_of_process() -> int:
    return os.getpid()


def wait_for(path: str) -> str:
    while not Path(path).exists():
        time.sleep(0.01)
    return path


def tell_number_and_hang(path: str) -> None:
    Path(path).write_text(str(os.getpid()))
    hang()


def knock(address: str, port: int) -> None:
    with socket.create_connection((address, port)) as door:
        door.sendall(b"knock")
