"""Languages that users train from a sample, because no shipped model knows them well.

Each is one file in a directory of the user, so that every process finds it by its name: $THRESHER_LANGUAGES,
or thresher/languages in $XDG_DATA_HOME, or in ~/.local/share.

A trained language takes precedence over CLD2's answer if its profile fits a text, unless CLD2 scores the text
higher than it scored the sample: Upper Sorbian, taken for Polish, gets a quarter of the score of Polish. So
CLD2's answers for the sample are part of the model.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from functools import cache
from math import log, log2, sqrt
from pathlib import Path
from statistics import fmean, pstdev
from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from thresher.errors import UsageError
from thresher.files.durable_files import replace
from thresher.reader.language.badness import BadnessModel, model
from thresher.reader.language.cld2 import DetectedLanguage
from thresher.reader.language.disambiguate import words_of
from thresher.reader.language.markers import frequent_words
from thresher.reader.language.ngram_profile import NgramProfile

VERSION = 1  # of the files; others are refused
SUFFIX = ".language"
NAME = re.compile(r"[a-z]{2,8}(-[a-z0-9]{1,8}){0,3}")  # as codes of languages look in pages and addresses

# A text fits if its letters are about as likely after the letters before them as the letters of the sample are by
# themselves. The smaller the sample, the less likely its texts look: the slack in nats falls from SLACK at SMALL
# letters to 0 at LARGE letters.
SLACK = 0.4
SMALL = 40_000
LARGE = 400_000
# Nats of fit that outweigh one bit of evidence from CLD2.
EVIDENCE = 0.2

# Pieces of the sample with the same answer of CLD2 from which that answer is expected.
COMMON = 5
# Scores of answers that are plain wrong, where the sample shows too few of them, and how many they count for.
WRONG_SCORE, WRONG_SPREAD, WRONG_PIECES = 300.0, 120.0, 3
LEAST_SPREAD, LEAST_RELATIVE_SPREAD = 60.0, 0.18  # a sample is more uniform than the web
HEARD = 60  # words of a text
WORD = 0.5  # bits of evidence in a frequent word of another language
PIECE = 150  # characters of a piece of the sample: about a short paragraph
LONG_TEXT = 0.6  # of the spread between pieces is left between long texts; between short ones it is wider


class Label(Struct, frozen=True, array_like=True):
    """An answer of CLD2 for pieces of the sample."""

    share: Annotated[float, Meta(gt=0)]  # of the pieces
    score: float  # mean
    spread: Annotated[float, Meta(gt=0)]  # standard deviation of the score


class CustomModel(Struct, frozen=True):
    """Model of a trained language."""

    name: str
    profile: NgramProfile
    labels: dict[str, Label]  # by the detector's code
    stray: Label  # for all other codes
    words: tuple[str, ...]  # the most frequent first
    badness: BadnessModel | None = None  # None: the sample was too small for one
    version: int = VERSION

    def margin(self, text: str, fit: float, found: DetectedLanguage) -> float:
        """Return the evidence for this language, given its fit and CLD2's answer; below 0 it is rejected."""
        label = self.labels.get(found.code, self.stray)
        likeliest = max(each.share for each in (self.stray, *self.labels.values()))
        spread = label.spread * max(LONG_TEXT, sqrt(PIECE / len(text)))
        known_better = max(0.0, (strength(found) - label.score) / spread)
        against = log2(likeliest / label.share) + known_better**2 / 2 + self._words_against(text, found.code)
        return (fit - self.floor) / EVIDENCE - against

    def _words_against(self, text: str, code: str) -> float:
        """Return the evidence of a text's words for CLD2's answer against this language."""
        mine, others = frozenset(self.words), frequent_words(code)
        words = words_of(text, HEARD)
        for_others = sum(word in others for word in words if word not in mine)
        for_me = sum(word in mine for word in words if word not in others)
        return WORD * max(0, for_others - for_me)

    @property
    def floor(self) -> float:
        """Fit below which a text is never in this language."""
        smallness = log(LARGE / max(self.profile.size, 1)) / log(LARGE / SMALL)
        return -self.profile.entropy - SLACK * min(1.0, max(0.0, smallness))


def strength(found: DetectedLanguage) -> float:
    """Return CLD2's score over a whole text."""
    return found.score * found.percent / 100


def labels_of(answers: Iterable[DetectedLanguage]) -> tuple[dict[str, Label], Label]:
    """Return CLD2's common answers for the pieces of a sample, and one label for all others."""
    scores: dict[str, list[float]] = {}
    for answer in answers:
        scores.setdefault(answer.code, []).append(strength(answer))
    pieces = sum(map(len, scores.values()))
    expected = {code: given for code, given in scores.items() if len(given) >= COMMON}
    strays = [score for code, given in scores.items() if code not in expected for score in given]
    mean = (WRONG_PIECES * WRONG_SCORE + sum(strays)) / (WRONG_PIECES + len(strays))
    squares = WRONG_PIECES * ((WRONG_SCORE - mean) ** 2 + WRONG_SPREAD**2)
    squares += sum((score - mean) ** 2 for score in strays)
    spread = (squares / (WRONG_PIECES + len(strays))) ** 0.5
    stray = Label((len(strays) + 1) / (pieces + 2), mean, spread)
    return {code: _label(given, pieces) for code, given in expected.items()}, stray


def _label(scores: list[float], pieces: int) -> Label:
    mean = fmean(scores)
    spread = max(pstdev(scores), LEAST_SPREAD, LEAST_RELATIVE_SPREAD * mean)
    return Label(len(scores) / pieces, mean, spread)


def home() -> Path:
    """Return the directory of trained languages."""
    if chosen := os.environ.get("THRESHER_LANGUAGES"):
        return Path(chosen)
    data = os.environ.get("XDG_DATA_HOME") or Path(os.environ.get("HOME", "/"), ".local", "share")
    return Path(data, "thresher", "languages")


@cache
def trained_languages() -> dict[str, CustomModel]:
    """Return all trained languages by name, as of the first call in this process."""
    try:
        files = sorted(home().glob(f"*{SUFFIX}"))
    except OSError:
        return {}
    return {path.stem: load(path) for path in files}


def clear_cache() -> None:
    """Clear the cache of trained languages after some were trained or deleted."""
    trained_languages.cache_clear()


def load(path: Path) -> CustomModel:
    """Load a trained language; raise UsageError if the file holds none that this version reads."""
    fix = f"train it again, or delete {path}"
    try:
        trained = msgspec.msgpack.decode(path.read_bytes(), type=CustomModel)
    except OSError as fault:
        raise UsageError(f"{path} cannot be read: {fault.strerror}") from None
    except msgspec.MsgspecError:
        raise UsageError(f"{path} is not a trained language; {fix}") from None
    if trained.version != VERSION or trained.name != path.stem:
        raise UsageError(
            f"{path} holds {trained.name!r} in version {trained.version}, "
            f"but {path.stem!r} in version {VERSION} is expected; {fix}"
        )
    return trained


def save(trained: CustomModel) -> Path:
    """Write a trained language atomically and return its file."""
    directory = home()
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / (trained.name + SUFFIX)
    replace(path, msgspec.msgpack.encode(trained))
    clear_cache()
    return path


def forget(name: str) -> None:
    """Delete a trained language; raise UsageError if there is none of that name."""
    files = {path.stem: path for path in home().glob(f"*{SUFFIX}")}  # one that cannot be read can be deleted
    if name not in files:
        raise UsageError(
            f"no language {name[:80]!r} was trained; there are: {', '.join(sorted(files)) or 'none'}"
        )
    files[name].unlink(missing_ok=True)
    clear_cache()


def badness_model(language: str) -> BadnessModel | None:
    """Return the Badness model of a language, trained or shipped, or None."""
    trained = trained_languages().get(language)
    return (trained and trained.badness) or model(language)
