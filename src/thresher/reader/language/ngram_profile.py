"""Letter n-gram profile of a language: a small model of a sample, and the fit of a text to it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from math import inf, log
from typing import NamedTuple
from unicodedata import category

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

ORDER = 4  # letters; more would only be learnt from samples larger than people have
MAX_GRAMS = 30_000  # the most frequent; they make a file of less than two hundred kilobytes
STEP = 0.05  # nats between two values that are stored as bytes
LEAST = 24  # letters and spaces; shorter texts fit nothing
NEW_LETTER = 0.001  # probability of a letter that is not in the sample
REMEMBERED = 20_000  # characters whose numbers are kept at hand
SPACE, STRANGE = 32, 255  # numbers of all that is no letter, and of letters outside the alphabet
PADDING = b" " * (ORDER - 1)  # before each text, so that they know nothing of each other
SLOTS = 1 << 18  # of the look-up table: few enough for the cache, many enough for few collisions
_SPREAD = np.uint32(2_654_435_769)  # Knuth's multiplier: neighbours end up far apart
_SHIFT = np.uint32(32 - 18)

Keys = NDArray[np.uint32]
Numbers = NDArray[np.uint8]
Steps = NDArray[np.uint16]


class NgramProfile(Struct, frozen=True, dict=True):
    """Groups of up to four letters of a language, with their probabilities after the letters before."""

    alphabet: str  # letters, the most frequent first
    keys: bytes  # of each group: its letters' numbers as four bytes, the last letter lowest
    scores: bytes  # -log of the probability of its last letter after the others, in steps, at least one
    backoffs: bytes  # -log of what is left for letters that never followed it, in steps
    entropy: float  # nats of a letter of the sample where nothing is known but how frequent letters are
    size: int  # letters of the sample

    def __post_init__(self) -> None:
        if not len(self.keys) == 4 * len(self.scores) == 4 * len(self.backoffs):
            raise ValueError("as many scores and back-offs as groups are expected")
        if len(self.alphabet) >= STRANGE - SPACE:
            raise ValueError("the alphabet is too long")

    @cached_property
    def numbers(self) -> _Numbers:
        """Numbers of the letters of the alphabet."""
        return _Numbers(self.alphabet)

    @cached_property
    def table(self) -> _Table:
        """Groups in the form in which texts are scored."""
        return _Table.of(self)

    def fits(self, texts: Sequence[str]) -> list[float]:
        """Return for each text the mean log probability of its letters, given the letters before."""
        lines = list(map(self.numbers.of, texts))
        values = self.table.scores_of(np.frombuffer(PADDING.join((b"", *lines)), np.uint8))
        fits = []
        start = len(PADDING)
        for line in lines:
            end = start + len(line)
            fits.append(-STEP * float(values[start:end].mean()) if len(line) >= LEAST else -inf)
            start = end + len(PADDING)
        return fits


class _Numbers(dict[int, str]):
    """The number of each character as a character of Latin-1, for `str.translate`."""

    def __init__(self, alphabet: str) -> None:
        self._known = {letter: chr(number) for number, letter in enumerate(alphabet, SPACE + 1)}

    def __missing__(self, point: int) -> str:
        if len(self) >= REMEMBERED:
            self.clear()
        letter = chr(point)
        number = self._known.get(letter.lower()[0], chr(STRANGE))
        self[point] = number = number if is_letter(letter) else chr(SPACE)
        return number

    def of(self, text: str) -> bytes:
        """Return the numbers of a text, with one space for everything between letters, and one at the end."""
        return b" ".join(text.translate(self).encode("latin-1").split()) + b" "


class _Table(NamedTuple):
    """The groups by a hash of their letters; of two with equal hashes, the more frequent one is kept."""

    keys: Keys
    values: Steps  # score in the lower byte, back-off in the upper one

    @classmethod
    def of(cls, profile: NgramProfile) -> _Table:
        keys = np.frombuffer(profile.keys, "<u4").astype(np.uint32)
        scores, backoffs = np.frombuffer(profile.scores, np.uint8), np.frombuffer(profile.backoffs, np.uint8)
        table = cls(np.zeros(SLOTS, np.uint32), np.zeros(SLOTS, np.uint16))
        # Groups are stored by falling frequency; of groups with equal slots, the one written last stays.
        slots = _slots(keys)[::-1]
        table.keys[slots] = keys[::-1]
        table.values[slots] = (scores + (backoffs.astype(np.uint16) << 8))[::-1]
        return table

    def scores_of(self, numbers: Numbers) -> Steps:
        """Return -log of the probability of each number, given the numbers before it, in steps."""
        scores = np.full(len(numbers), round(-log(NEW_LETTER) / STEP), np.uint16)
        left = np.zeros(len(numbers), np.uint16)  # -log of what the group before leaves for strangers
        for keys in _groups(numbers):
            slots = _slots(keys)
            values = self.values[slots] * (self.keys[slots] == keys)  # 0 where a group is not known
            scores = np.where(values, values & 255, scores + left)
            left[1:] = values[:-1] >> 8
        return scores


def _slots(keys: Keys) -> Keys:
    return (keys * _SPREAD) >> _SHIFT


def _to_steps(values: NDArray[np.float64], least: int) -> bytes:
    return np.clip(np.rint(-values / STEP), least, 255).astype(np.uint8).tobytes()


def _groups(numbers: Numbers) -> list[Keys]:
    """Return the keys of the groups of one, two, … letters that end at each place, after padding."""
    padded = np.concatenate((np.full(ORDER - 1, SPACE, np.uint8), numbers)).astype(np.uint32)
    keys = [padded[ORDER - 1 :]]
    for before in range(1, ORDER):
        start = ORDER - 1 - before
        keys.append(keys[-1] | padded[start : start + len(numbers)] << np.uint32(8 * before))
    return keys


def is_letter(character: str) -> bool:
    """Return True for letters, and for marks that belong to letters, as in Indic scripts."""
    return character.isalpha() or category(character)[0] == "M"


def profile_of(sample: str) -> NgramProfile:
    """Return the profile of a sample of one language."""
    letters = [letter.lower()[0] for letter in sample if is_letter(letter)]
    kinds, counts = np.unique(np.array(letters or [" "], dtype="U1"), return_counts=True)
    alphabet = "".join(kinds[np.argsort(-counts, kind="stable")][: STRANGE - SPACE - 1])
    numbers = np.frombuffer(_Numbers(alphabet).of(sample), np.uint8)
    levels = [np.unique(keys, return_counts=True) for keys in _groups(numbers)]
    scores, backoffs = _witten_bell(levels)
    keys = np.concatenate([keys for keys, _ in levels])
    frequency = np.concatenate([counts for _, counts in levels])
    kept = np.argsort(-frequency, kind="stable")[:MAX_GRAMS]
    return NgramProfile(
        alphabet,
        keys[kept].astype("<u4").tobytes(),
        _to_steps(scores[kept], 1),
        _to_steps(backoffs[kept], 0),
        _entropy(levels[0][1]),
        len(letters),
    )


def _witten_bell(
    levels: Sequence[tuple[Keys, NDArray[np.intp]]],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the log probability of each group's last letter, and the back-off log weight of each group.

    After a group with n occurrences and t different followers, a new follower has probability t / (n + t)
    (Witten and Bell 1991), distributed as by the groups that are one letter shorter.
    """
    scores: list[NDArray[np.float64]] = []
    backoffs: list[NDArray[np.float64]] = []
    shorter = np.array([NEW_LETTER])
    shorter_keys = np.zeros(1, np.uint32)
    for order, (keys, counts) in enumerate(levels):
        before = keys >> np.uint32(8)
        groups, where, followers = np.unique(before, return_inverse=True, return_counts=True)
        total = np.bincount(where, weights=counts)
        tail = keys & np.uint32((1 << 8 * order) - 1)  # the group without its first letter
        lower = shorter[np.searchsorted(shorter_keys, tail)] if order else shorter[0]
        here = (counts + followers[where] * lower) / (total + followers)[where]
        scores.append(np.log(here))
        if order:
            left = np.zeros(len(shorter_keys))
            left[np.searchsorted(shorter_keys, groups)] = np.log(followers / (total + followers))
            backoffs.append(left)
        shorter, shorter_keys = here, keys
    backoffs.append(np.zeros(len(shorter_keys)))
    return np.concatenate(scores), np.concatenate(backoffs)


def _entropy(counts: NDArray[np.intp]) -> float:
    shares = counts / counts.sum()
    return float(-(shares * np.log(shares)).sum())
