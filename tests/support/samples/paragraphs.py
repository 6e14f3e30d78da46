"""Pages of given paragraphs, and a slow model of their shingles."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from thresher.config import JudgeSettings
from thresher.crawler.storage.kv_state import KeyValueState
from thresher.crawler.storage.near_duplicates import NearDuplicateFilter
from thresher.reader.quality.fingerprint import text_hash
from thresher.reader.quality.shingles import page_shingles
from thresher.records import Block, ReadResult, Verdict

KEPT = Verdict(True, language="en", language_share=1.0)
ANY_LENGTH = JudgeSettings(near_duplicates=True, min_text_chars=0)
HEDGEHOGS = [f"On day {day} we met {day + 2} hedgehogs under the old oak and fed them." for day in range(9)]


def runs_of(*texts: str) -> list[list[int]]:
    """Return the hashes of the shingles of each text."""
    found = page_shingles(texts, [True] * len(texts))
    hashes = iter(np.frombuffer(found.hashes, np.uint64).tolist())
    return [[next(hashes) for _ in range(count)] for count in found.counts]


def page(*paragraphs: str) -> ReadResult:
    """Return a page of these paragraphs, with a menu in front."""
    texts = ["Home | About", *paragraphs]
    chosen = [False, *[True] * len(paragraphs)]
    return ReadResult(
        "http://a.example/",
        "html",
        blocks=tuple(
            Block(text, 0.1 if is_text else 0.9) for text, is_text in zip(texts, chosen, strict=True)
        ),
        text="\n".join(paragraphs),
        text_hash=text_hash(paragraphs),
        shingles=page_shingles(texts, chosen),
    )


@contextmanager
def opened(
    directory: Path, judging: JudgeSettings = ANY_LENGTH
) -> Iterator[tuple[NearDuplicateFilter, KeyValueState]]:
    """Open a filter on a state; changes without a commit are dropped at the end."""
    state = KeyValueState(directory / "state")
    try:
        yield NearDuplicateFilter(state, judging), state
    finally:
        state.close()


def left(near_duplicates: NearDuplicateFilter, *paragraphs: str) -> list[str]:
    """Return the paragraphs that are kept of a page; none if it is rejected."""
    sifted, verdict = near_duplicates.sift(page(*paragraphs), KEPT)
    return sifted.text.split("\n") if verdict.keep else []


UNITS = re.compile(r"(?P<word>[aé1]+)|(?P<sign>[字か\U00020000])|(?P<letter>[ไา])")
WEIGHTS = {"word": 4, "sign": 2, "letter": 1}


def slow_runs(text: str) -> list[tuple[str, ...]]:
    """Return the shingles of a text as tuples of words."""
    units = [(match[0], WEIGHTS[match.lastgroup or ""]) for match in UNITS.finditer(text.lower())]
    found = []
    for begin in range(len(units)):
        weight = 0
        for end, (_, own) in enumerate(units[begin:], begin + 1):
            weight += own
            if weight >= 28:
                found.append(tuple(word for word, _ in units[begin:end]))
                break
    return found
