"""Badness: distance between the function words of a text and the function words of a language.

Running text in a language has its function words in nearly the same shares, independent of its topic; lists,
menus, stuffed keywords and other languages do not. The shortfall of each word (1: absent, 0: as frequent as
expected) is weighted by the certainty of its expected share: few words of text are weak evidence, and so is a
word whose share varies between genres. The mean shortfall is computed twice, over the most frequent words (is
this running text?) and over the words that related languages lack (is it this language?); the worse of the
two, in standard deviations of good texts and squared, is the Badness.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cached_property, lru_cache
from itertools import islice
from math import sqrt
from pathlib import Path
from statistics import fmean, pvariance
from typing import Annotated, NamedTuple
from unicodedata import category, normalize

import msgspec
import numpy as np
from msgspec import Meta, Struct
from numpy.typing import NDArray

from thresher.errors import UsageError

FREQUENT = 20  # words, from the most frequent one down, that all running text has
GENRE = 0.15  # standard deviation of the mean shortfall between good texts of all kinds
CREDIT = 1.0  # a word twice as frequent as expected makes up for a missing one; stuffing more of it does not
SCALE = 2.0  # 10 stands at 2.2 standard deviations, where good texts end, and 20 at 3.2

SAMPLE = 5_000  # characters of a text that are looked at; shares change little after that
CHARACTERS_SAMPLE = 2_000  # the same where characters stand in for words: there are more of them
PIECES = 4  # of a longer text: its beginning may be a list, its end a string of comments
PROBE = 30  # characters from inside a text that stand nowhere else in it, unless it repeats itself
FOREIGN = 4  # ASCII characters that weigh as much as one of a script without spaces: names, numbers, links
LONGEST_MEAN = 16  # characters to a word at most; scripts without spaces would seem to have few words

DATA = Path(__file__).parent.parent / "data" / "badness.json"
ALIASES = {"nb": "no", "fil": "tl", "sh": "hr", "cnr": "sr", "zh-Hant": "zh"}

# Characters that end a word: ASCII except letters and digits, no-break spaces, punctuation of other scripts.
_MARKS = "\u00a0\u202f’“„«—‐।۔،։፡་"
_STOPS = (".", "!", "?", "。", "।", "۔")
_ENDS = bytes(sign for sign in range(128) if not chr(sign).isalnum())
_TO_SPACES = bytes.maketrans(_ENDS, b" " * len(_ENDS))
_ENDS_WORDS = np.isin(np.arange(256), list(_ENDS)).astype(np.uint8)


class FunctionWord(Struct, frozen=True, array_like=True):
    """A function word (or characters) and statistics of its share of running text."""

    forms: tuple[str, ...]  # the ways in which it is written, in small letters
    share: Annotated[float, Meta(gt=0, lt=1)]  # of all words (or characters)
    spread: Annotated[float, Meta(gt=0)]  # standard deviation of the share between texts, relative to it
    weight: Annotated[float, Meta(ge=0)] = 1.0  # how much it says about which language this is


class BadnessModel(Struct, frozen=True, dict=True):
    """The function words of a language, the most frequent first."""

    language: str
    words: tuple[FunctionWord, ...]
    by_character: bool = False  # no spaces between words, or endings grown onto them: characters are counted

    @cached_property
    def gauge(self) -> BadnessScorer:
        """The model in the form in which texts are scored."""
        return _gauge(self)


class BadnessScorer(NamedTuple):
    """A model as look-up table and arrays, with a column for each word."""

    keys: NDArray[np.int64]  # every spelling of every word, as a table of open addresses
    columns: NDArray[np.int64]  # column of each spelling
    scarcity: NDArray[np.float64]  # one word in so many is this one
    chance: NDArray[np.float64]  # variance of its shortfall by chance, times words of text
    habit: NDArray[np.float64]  # variance of its shortfall between texts
    roles: NDArray[np.float64]  # rows: how well it tells running text, and this language; squares of the two


@lru_cache(maxsize=16)
def model(language: str) -> BadnessModel | None:
    """Return the shipped model of a language, or None."""
    shipped = msgspec.json.decode(DATA.read_bytes(), type=dict[str, msgspec.Raw])
    found = shipped.get(ALIASES.get(language, language))
    return None if found is None else msgspec.json.decode(found, type=BadnessModel)


def badness(text: str, model: BadnessModel) -> float:
    """Return the Badness of a text for a language: up to 10 is good, above 20 is something else."""
    gauge = model.gauge
    counts, size = _count_characters(text, model) if model.by_character else _count_words(text, gauge)
    if not size or not model.words:
        return 0.0
    shortfalls = np.maximum(1 - counts * gauge.scarcity / size, -CREDIT)
    certainty = 1 / (gauge.habit + gauge.chance / size)
    text_sum, language_sum = (gauge.roles[:2] @ (certainty * shortfalls)).tolist()
    text_weight, language_weight, text_squares, language_squares = (gauge.roles @ certainty).tolist()
    return max(
        _distance(text_sum, text_weight, text_squares),
        _distance(language_sum, language_weight, language_squares),
    )


def _distance(weighted: float, weight: float, squares: float) -> float:
    """Return the Badness of a mean shortfall: its square, in variances of that of good texts."""
    mean = max(0.0, weighted / weight)
    return SCALE * mean**2 / (squares / weight**2 + GENRE**2)


def _count_words(text: str, gauge: BadnessScorer) -> tuple[NDArray[np.float64], float]:
    """Count each function word in a sample of a text; return the counts and the words of the sample."""
    from thresher.reader.html.kernels.words import (
        count_known,  # loaded by readers alone: kernels take most of a second
    )

    sample = _sample(text, SAMPLE)
    counts = np.zeros(len(gauge.scarcity))
    utf8 = np.frombuffer(_without_marks(sample).encode("utf-8", "replace"), np.uint8)
    words = count_known(utf8, _ENDS_WORDS, gauge.keys, gauge.columns, counts)
    return counts, max(words, len(sample) / LONGEST_MEAN) if words else 0.0


def _count_characters(text: str, model: BadnessModel) -> tuple[NDArray[np.float64], float]:
    """Count each function word in a sample of a text; return the counts and the characters of it."""
    sample = "".join(_sample(text, CHARACTERS_SAMPLE).split())
    counts = [sum(map(sample.count, word.forms)) for word in model.words]
    return np.array(counts, dtype=np.float64), _extent(sample)


def _extent(text: str) -> float:
    """Return the number of characters of a script without spaces in a text; others count less."""
    own = len(text) - len(text.encode("ascii", "ignore"))
    return max(own, len(text) / FOREIGN)


def _sample(text: str, size: int) -> str:
    """Return a text, or pieces from all parts of a long one, without repeated sentences."""
    if len(text) > size:
        piece = size // PIECES
        step = (len(text) - piece) // (PIECES - 1)
        text = "\n".join(text[start : start + piece] for start in range(0, PIECES * step, step))
    inside = 3 * len(text) // 8
    return text if text.count(text[inside : inside + PROBE]) == 1 else _without_repeated_sentences(text)


def _without_repeated_sentences(text: str) -> str:
    """Return each sentence once; repeated items of a list or menu stay."""
    parts = text.replace(". ", ".\n").replace("。", "。\n").split("\n")
    sentences = dict.fromkeys(part for part in parts if part.endswith(_STOPS))
    return "\n".join([*sentences, *(part for part in parts if not part.endswith(_STOPS))])


def _split(text: str) -> list[bytes]:
    """Return the words of a text as they are written."""
    return _without_marks(text).encode("utf-8", "replace").translate(_TO_SPACES).split()


def _without_marks(text: str) -> str:
    """Replace the marks that end a word and are not ASCII by spaces."""
    if not text.isascii():
        for mark in _MARKS:
            text = text.replace(mark, " ")
    return text


def _gauge(model: BadnessModel) -> BadnessScorer:
    from thresher.reader.html.kernels.tables import addressed

    shares = np.array([word.share for word in model.words])
    weights = np.array([word.weight for word in model.words])
    roles = np.stack([np.arange(len(weights)) < FREQUENT, np.maximum(weights, 1e-9)])
    places = {
        spelling: place
        for place, word in reversed(
            list(enumerate(model.words))
        )  # a shared form belongs to the more frequent word
        for form in word.forms
        for spelling in _spellings(form)
    }
    keys, columns = addressed(places, places.values())
    return BadnessScorer(
        keys=keys,
        columns=columns,
        scarcity=1 / shares,
        chance=(1 - shares) / shares,
        habit=np.array([word.spread**2 for word in model.words]),
        roles=np.concatenate([roles, roles**2]),
    )


def _spellings(form: str) -> set[str]:
    """Return the spellings of a word: lower case, capitalised, upper case (Turkish İ), composed or not."""
    dotted = form.replace("i", "İ")
    starts = {form[:1].upper() + form[1:], dotted[:1].upper() + form[1:]}
    composed = {form, form.upper(), dotted.upper()} | starts
    return composed | {normalize("NFD", spelling) for spelling in composed}


# ── Training ──

MAX_SAMPLE = 4_000_000  # characters; more of one language does not change its most frequent words
PIECE = 2_500  # characters in which a share is measured again and again: about a short article
FEWEST_PIECES = 8
WIDESPREAD = 1 / 3  # of the pieces have a word that is no topic of one of them
WORDS = 40  # in a trained model
FEWEST_WORDS = 8  # that a sample has all over it, or it is no running text
MIN_SPREAD = 0.35  # a sample has fewer genres than the language
IDEOGRAPHS = 400  # letters from which on each is a word or a syllable; alphabets are smaller
GRAM = 3  # letters that stand in for a word where an alphabet is written without spaces
LOOK = 100  # pieces that show how a language is written

# Thai, Lao, Burmese, Khmer, kana and Han.
_UNSPACED = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3041-\u30ff\u3400-\u9fff]")


def train(sample: str, language: str) -> BadnessModel:
    """Train a model from a sample of the language, best a few hundred kilobytes from many texts."""
    pieces = _pieces(sample[:MAX_SAMPLE])
    if len(pieces) < FEWEST_PIECES:
        raise UsageError(
            f"sample of {language!r}: {len(pieces) * PIECE:,} characters of text are too few; "
            f"try {FEWEST_PIECES * PIECE:,} or more, best a few hundred thousand"
        )
    gram = _gram("".join(pieces[:LOOK]))
    tallies = [Counter(_grams(piece, gram) if gram else _words(piece)) for piece in pieces]
    sizes = [_extent("".join(piece.split())) if gram else len(_split(piece)) for piece in pieces]
    words = [_measure(unit, [tally[unit] for tally in tallies], sizes) for unit in _widespread(tallies)]
    if len(words) < FEWEST_WORDS:
        raise UsageError(
            f"sample of {language!r}: only {len(words)} words are all over it; try running text, not a list"
        )
    surest = sorted(words, key=lambda word: word.spread / word.share)[:WORDS]
    return BadnessModel(language, tuple(sorted(surest, key=lambda word: -word.share)), bool(gram))


def _pieces(sample: str) -> list[str]:
    pieces = (sample[start : start + PIECE] for start in range(0, len(sample) - PIECE + 1, PIECE))
    return [piece for piece in pieces if _split(piece)]


def _gram(sample: str) -> int:
    """Return the number of characters that stand for a word, or 0 where spaces separate words."""
    spaced = len(sample) <= LONGEST_MEAN * len(_split(sample))
    if spaced and len(_UNSPACED.findall(sample)) < len(sample) / 2:
        return 0
    return 1 if len(set(filter(str.isalpha, sample))) > IDEOGRAPHS else GRAM


def _words(text: str) -> Iterator[str]:
    for word in _split(text.lower()):
        decoded = word.decode()
        if is_word(decoded):
            yield decoded


def _grams(text: str, length: int) -> Iterator[str]:
    if length == 1:  # signs, too: sentences have commas and full stops, lists have not
        yield from (character for character in text if not character.isascii() and not character.isspace())
    else:
        grams = (text[start : start + length] for start in range(len(text) - length + 1))
        yield from filter(is_word, grams)


def is_word(text: str) -> bool:
    """Return True if a text consists of letters and of marks that belong to letters, as in Indic scripts."""
    return all(category(character)[0] in "LM" for character in text)


def _widespread(tallies: list[Counter[str]]) -> list[str]:
    """Return the words that occur in many pieces, the most frequent first."""
    pieces = Counter(unit for tally in tallies for unit in tally)
    total: Counter[str] = Counter()
    for tally in tallies:
        total.update(tally)
    found = (unit for unit, _ in total.most_common() if pieces[unit] > WIDESPREAD * len(tallies))
    return list(islice(found, 2 * WORDS))


def _measure(unit: str, counts: list[int], sizes: Sequence[float]) -> FunctionWord:
    """Return a word with its share, and its spread between pieces beyond that of chance."""
    share = sum(counts) / sum(sizes)
    found = pvariance([count / size for count, size in zip(counts, sizes, strict=True)], share)
    chance = share * (1 - share) * fmean(1 / size for size in sizes)
    return FunctionWord((unit,), share, max(MIN_SPREAD, sqrt(max(0.0, found - chance)) / share))
