"""Texts of the deduplication benchmarks, and the memory of a process that reads them."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import msgspec


def changed(text: str, words: list[str], dice: random.Random, share: float) -> str:
    """Return the text with about that share of its words replaced."""
    return " ".join(dice.choice(words) if dice.random() < share else word for word in text.split(" "))


def documents(path: Path) -> Iterator[list[str]]:
    """Yield the documents of a JSON lines file, each a list of paragraphs."""
    decode = msgspec.json.Decoder(list[str]).decode
    with path.open("rb") as lines:
        for line in lines:
            yield decode(line)


def resident(mark: str) -> int:
    """Return the resident bytes of this process: now (VmRSS) or at most so far (VmHWM)."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(1024 * int(line.split()[1]) for line in lines if line.startswith(mark))
