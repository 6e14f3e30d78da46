"""A language from a sample of it: profile, function words, Badness model, and what the detector takes it for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from thresher.config import ConfigError
from thresher.read import badness
from thresher.read.codes import known_languages, normalise
from thresher.read.detector import best
from thresher.read.jury import words_of
from thresher.read.profile import is_letter, profile_of
from thresher.read.text import clean
from thresher.read.trained import NAME, PIECE, SUFFIX, Trained, home, labels_of, save, trained_languages

USED = 2_000_000  # characters of a sample; more teach nothing new about four letters in a row
LONGEST_CHARACTER = 4  # bytes in UTF-8
LEAST = 3_000  # letters, a few pages: with less the profile fits hardly anything
MAX_PIECES = 2_000
MAX_ODD = 0.001  # share of characters that text does not have: control characters, broken UTF-8
MIN_LETTERS = 0.4  # share of letters among the characters of running text
WORDS = 100  # function words and a few more


def train_language(name: str, sample: Path, *, replace: bool = False) -> Trained:
    """Train a language from a file with text in it and keep it under a name; ConfigError says what is wrong."""
    check_name(name, replace=replace)
    trained = train(name, read_sample(sample), where=str(sample))
    save(trained)
    return trained


def check_name(name: str, *, replace: bool = False) -> None:
    """ConfigError unless a trained language can have this name."""
    if not NAME.fullmatch(name):
        raise ConfigError(
            f"{name[:80]!r} cannot be the name of a language; try its code in ISO 639-3, like hsb, "
            "or small letters and digits with hyphens between them"
        )
    known = normalise(name)
    if known == name and name in trained_languages():
        if not replace:
            raise ConfigError(
                f"a language {name!r} was trained before; replace it with --replace, or try another name "
                f"(it is in {home() / name}{SUFFIX})"
            )
    elif known:
        taken = "is taken" if known == name else f"is another name for {known!r}"
        raise ConfigError(
            f"{name!r} {taken}: {known_languages()[known]} is known already; "
            "try a code that nobody has, like qaa or qtz"
        )


def read_sample(path: Path) -> str:
    """The text of a sample file; ConfigError if it is missing or no UTF-8 text."""
    try:
        with path.open("rb") as file:
            data = file.read(USED * LONGEST_CHARACTER)
    except FileNotFoundError:
        raise ConfigError(f"sample {str(path)!r} does not exist; give a text file in the language") from None
    except OSError as fault:
        raise ConfigError(f"sample {str(path)!r} cannot be read: {fault.strerror}") from None
    text = data.decode("utf-8-sig", "replace")[:USED]
    odd = sum(map(text.count, "\0\x01\x02\x03\x04\x05\x06\x07\x08\ufffd"))
    if odd > MAX_ODD * len(text):
        raise ConfigError(
            f"sample {str(path)!r} is not text in UTF-8; convert it first, for instance with iconv"
        )
    return text


def train(name: str, sample: str, *, where: str = "the sample") -> Trained:
    """A language from a text in it, best a few hundred kilobytes from many sources."""
    text = clean(sample[:USED])
    letters = sum(map(is_letter, text))
    if letters < LEAST:
        raise ConfigError(
            f"{where} has {letters:,} letters, which is too few to know a language by; "
            f"give {LEAST:,} or more, best a few hundred thousand"
        )
    if letters < MIN_LETTERS * len(text):
        raise ConfigError(f"{where} is mostly numbers and signs; give running text")
    labels, stray = labels_of(map(best, _pieces(text)))
    return Trained(name, profile_of(text), labels, stray, _frequent_words(text), _badness(text, name))


def _pieces(text: str) -> Iterator[str]:
    """Parts of a text from all over it, as long as short paragraphs."""
    line = " ".join(text.split())
    step = max(PIECE, len(line) // MAX_PIECES)
    return (line[start : start + PIECE] for start in range(0, len(line), step))


def _frequent_words(text: str) -> tuple[str, ...]:
    counted = Counter(filter(_is_word, words_of(text, len(text))))
    return tuple(word for word, _ in counted.most_common(WORDS))


def _is_word(word: str) -> bool:
    return bool(word) and all(map(is_letter, word))


def _badness(text: str, name: str) -> badness.BadnessModel | None:
    """None where the sample is too small or too odd for one: the language can be told all the same."""
    try:
        return badness.train(text, name)
    except ConfigError:
        return None
