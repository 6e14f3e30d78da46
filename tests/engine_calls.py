"""What the tests of engines have done elsewhere."""

from __future__ import annotations

import os
import signal
import threading


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
