"""Training of a language from a sample: profile, function words, Badness model, and CLD2's answers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from thresher.errors import UsageError
from thresher.reader.language import badness
from thresher.reader.language.cld2 import best
from thresher.reader.language.codes import known_languages, normalise
from thresher.reader.language.custom_models import (
    NAME,
    PIECE,
    SUFFIX,
    CustomModel,
    home,
    labels_of,
    save,
    strength,
    trained_languages,
)
from thresher.reader.language.disambiguate import words_of
from thresher.reader.language.identify import languages
from thresher.reader.language.ngram_profile import is_letter, profile_of
from thresher.reader.normalize import clean
from thresher.records import LanguageShare

USED = 2_000_000  # characters of a sample; more teach nothing new about four letters in a row
LONGEST_CHARACTER = 4  # bytes in UTF-8
LEAST = 3_000  # letters, a few pages: with less the profile fits hardly anything
MAX_PIECES = 2_000
MAX_ODD = 0.001  # share of characters that text does not have: control characters, broken UTF-8
MIN_LETTERS = 0.4  # share of letters among the characters of running text
# Strength of CLD2's answer for a piece in a language that it knows, and the share of such pieces from which a
# sample is in a known language. In the Universal Declaration, 78 % (Spanish) to 100 % of the pieces are as strong
# in most known languages, and up to 19 % (Upper Sorbian) in languages that CLD2 does not know.
SURE_STRENGTH, MOSTLY_KNOWN = 400.0, 0.5
WORDS = 100  # function words and a few more


def train_language(name: str, sample: Path, *, replace: bool = False) -> CustomModel:
    """Train a language from a text file and save it by name; raise UsageError if it is unfit."""
    check_name(name, replace=replace)
    trained = train(name, read_sample(sample), where=str(sample))
    save(trained)
    return trained


def check_name(name: str, *, replace: bool = False) -> None:
    """Raise UsageError unless a trained language can have this name."""
    if not NAME.fullmatch(name):
        raise UsageError(
            f"{name[:80]!r} cannot be the name of a language; try its code in ISO 639-3, like hsb, "
            "or small letters and digits with hyphens between them"
        )
    known = normalise(name)
    if known == name and name in trained_languages():
        if not replace:
            raise UsageError(
                f"a language {name!r} was trained before; replace it with --replace, or try another name "
                f"(it is in {home() / name}{SUFFIX})"
            )
    elif known:
        taken = "is taken" if known == name else f"is another name for {known!r}"
        raise UsageError(
            f"{name!r} {taken}: {known_languages()[known]} is known already; "
            "try a code for private use, like qaa or qtz"
        )


def known_language(sample: str) -> LanguageShare | None:
    """Return the known language that a sample is in, with its share; None if most of it is in none.

    CLD2 takes any text for some language, but gives a text that it does not know a low score: the Universal
    Declaration in Upper Sorbian is taken for Polish, and a fifth of its pieces score as Polish does.
    """
    text = clean(sample[:USED])
    answers = list(map(best, _pieces(text)))
    sure = sum(strength(answer) >= SURE_STRENGTH for answer in answers) / max(1, len(answers))
    found = languages(text, trained=())
    return LanguageShare(found[0].code, len(text.encode()), sure) if found and sure >= MOSTLY_KNOWN else None


def read_sample(path: Path) -> str:
    """Return the text of a sample file; raise UsageError if it is missing or no UTF-8 text."""
    try:
        with path.open("rb") as file:
            data = file.read(USED * LONGEST_CHARACTER)
    except FileNotFoundError:
        raise UsageError(f"sample {str(path)!r} does not exist; give a text file in the language") from None
    except OSError as fault:
        raise UsageError(f"sample {str(path)!r} cannot be read: {fault.strerror}") from None
    text = data.decode("utf-8-sig", "replace")[:USED]
    odd = sum(map(text.count, "\0\x01\x02\x03\x04\x05\x06\x07\x08\ufffd"))
    if odd > MAX_ODD * len(text):
        raise UsageError(
            f"sample {str(path)!r} is not text in UTF-8; convert it first, for instance with iconv"
        )
    return text


def train(name: str, sample: str, *, where: str = "the sample") -> CustomModel:
    """Train a language from a text in it, best a few hundred kilobytes from many sources."""
    text = clean(sample[:USED])
    letters = sum(map(is_letter, text))
    if letters < LEAST:
        raise UsageError(
            f"{where} has {letters:,} letters, which is too few to know a language by; "
            f"give {LEAST:,} or more, best a few hundred thousand"
        )
    if letters < MIN_LETTERS * len(text):
        raise UsageError(f"{where} is mostly numbers and signs; give running text")
    labels, stray = labels_of(map(best, _pieces(text)))
    return CustomModel(name, profile_of(text), labels, stray, _frequent_words(text), _badness(text, name))


def _pieces(text: str) -> Iterator[str]:
    """Yield parts from all over a text, as long as short paragraphs."""
    line = " ".join(text.split())
    step = max(PIECE, len(line) // MAX_PIECES)
    return (line[start : start + PIECE] for start in range(0, len(line), step))


def _frequent_words(text: str) -> tuple[str, ...]:
    counted = Counter(filter(_is_word, words_of(text, len(text))))
    return tuple(word for word, _ in counted.most_common(WORDS))


def _is_word(word: str) -> bool:
    return bool(word) and all(map(is_letter, word))


def _badness(text: str, name: str) -> badness.BadnessModel | None:
    """Train a Badness model; return None if the sample is too small or too odd for one."""
    try:
        return badness.train(text, name)
    except UsageError:
        return None
