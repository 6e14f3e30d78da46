"""Make the Badness models of the package from published frequency lists and stop lists.

    python -m thresher_lab.training.train_badness

Only the lists of wordfreq, jusText, stopwordsiso and pythainlp are used. wordfreq has the shares of words in
subtitles, news, forums and other web text. jusText has the words that make up half of each Wikipedia, by falling
frequency, so that Zipf's law gives their shares. Where both know a word, their disagreement measures the effect of
genre on it. `function_words.toml` adds the words that neither knows.
"""

from __future__ import annotations

import json
import re
import tomllib
import unicodedata
from collections import defaultdict
from collections.abc import Iterable
from functools import cache
from importlib.metadata import PackageNotFoundError, distribution
from itertools import islice
from math import log, sqrt
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from thresher.files.durable_files import replace
from thresher.reader.language.badness import (
    DATA,
    FREQUENT,
    GENRE,
    MIN_SPREAD,
    BadnessModel,
    FunctionWord,
    is_word,
)

NOTES = Path(__file__).with_name("function_words.toml")

# ── Reliability of the lists ──

COVERED = 0.5  # share of the text of a Wikipedia that the words of its list make up
RANKS = (0.5, 0.95)  # Zipf-Mandelbrot: share ~ 1 / (rank + first) ** second; fits wordfreq's shares best
FUNCTIONAL = 20  # most frequent words of a Wikipedia that are function words; others may be typical of it
DISAGREEMENT = 0.5  # spread for each factor of e between the two sources
ONE_SOURCE = 0.45  # spread of a function word that only a Wikipedia has
ESTIMATED = 0.55  # spread of a word with an estimated place in a list
MAX_SPREAD = 1.0  # words with a larger one are not used
MIN_SHARE = 2e-5  # rarer words are not used
QUOTED_RATIO = 4.0  # more frequent in English by this factor: a quoted title in a small Wikipedia
CHARACTER_SPREAD = 0.5  # of a character: not all of its uses are function words
# Factor on the shares by Zipf's law in Dravidian lists; measured on Tamil, which both sources have.
DRAVIDIAN_FACTOR = 0.6
LEXICON_WORDS = 5_000  # for the shares of characters; nearly all running text

# ── Size and weights of a model ──

CANDIDATES = 140  # words that may have a weight
WORDS = 50  # in a model, beside the FREQUENT ones
REFERENCE = 700  # words of a text, one or two pages, for which weights are optimised
MENU_SHARE = 0.2  # of the expected shares in a page of links
RELATIVES = 12  # nearest other languages that weights are optimised against
MAX_PART = 0.1  # of one word in the decision
MIN_WEIGHT = 0.01  # relative to the largest; words with less are left out
PENALTY = 150.0  # on other languages at a distance below 1
STEPS = 4_000  # of the descent, after which it has converged

WORDFREQ = {"no": "nb", "tl": "fil", "hr": "sh", "bs": "sh", "sr": "sh"}  # codes that differ there
STOP_LISTS = {"bs": "hr", "sr": "hr"}
DRAVIDIAN = frozenset({"kn", "ml", "te"})
ONE_LANGUAGE = (frozenset({"hr", "bs", "sr"}),)  # with the same function words
CYRILLIC = dict(zip("абвгдђежзијклмнопрстћуфхцчш", "abvgdđežzijklmnoprstćufhcčš", strict=True))
CYRILLIC |= {"љ": "lj", "њ": "nj", "џ": "dž"}
TRADITIONAL = str.maketrans(
    "这个们为对说来与会时国过还没后里么从并给将则让", "這個們為對說來與會時國過還沒後裡麼從並給將則讓"
)
PERSIAN = str.maketrans("یک", "يك")  # on older keyboards
CHUVASH = str.maketrans("ăĕçÿ", "ӑӗҫӳ")  # Latin substitutes for Cyrillic letters
TONES = "\u0300\u0301\u0303\u0309\u0323"
CHILLU = {"ൽ": "ല്‍", "ർ": "ര്‍", "ൻ": "ന്‍", "ൺ": "ണ്‍", "ൾ": "ള്‍"}  # Malayalam before Unicode 5.1


class Expected(NamedTuple):
    """A word's share of running text, and the spread of that share between texts, relative to it."""

    share: float
    spread: float


def main() -> None:
    """Make the models of all languages and write them."""
    models = {language: make(language) for language in sorted(languages())}
    lines = [f"{json.dumps(code)}:{msgspec.json.encode(model).decode()}" for code, model in models.items()]
    replace(DATA, ("{\n" + ",\n".join(lines) + "\n}\n").encode())
    print(f"{DATA}: {len(models)} languages, {DATA.stat().st_size:,} bytes")


def languages() -> set[str]:
    """Return all languages with data for a model."""
    import wordfreq

    spoken = set(wordfreq.available_languages("small")) - set(WORDFREQ.values())
    return spoken.union(_notes()["wikipedias"], _notes()["estimated"], _unspaced())


def _unspaced() -> set[str]:
    """Return the languages without spaces between words, or with too few."""
    return {"th", *_notes()["characters"]}


def make(language: str) -> BadnessModel:
    """Make the model of a language."""
    by_character = language in _unspaced()
    if by_character:
        expected = _thai() if language == "th" else _characters(language)
        best = sorted(expected, key=lambda form: -expected[form].share)[:WORDS]
        weights = dict.fromkeys(best, 1.0)
    else:
        expected = _function_words(language)
        weights = _weigh(language, expected)
        best = sorted(expected, key=lambda word: -expected[word].share)
        best = [word for place, word in enumerate(best) if place < FREQUENT or word in weights]
    words = tuple(
        FunctionWord(
            _forms(word, language),
            float(f"{expected[word].share:.3g}"),
            round(expected[word].spread, 2),
            round(weights.get(word, 0.0), 3),
        )
        for word in best
    )
    return BadnessModel(language, words, by_character)


# ── Shares and spreads ──


def _function_words(language: str) -> dict[str, Expected]:
    """Return the function words of a language with their expected shares."""
    known = _lexicon(language)
    listed = frozenset(known) if language in _notes()["estimated"] else _listed(language)
    return {
        word: expected
        for word, expected in known.items()
        if expected.spread < MAX_SPREAD and (not listed or word in listed)
    }


@cache
def _lexicon(language: str) -> dict[str, Expected]:
    """Return all frequent words of a language with their expected shares."""
    if language in _notes()["estimated"]:
        note = _notes()["estimated"][language]
        return {
            word: Expected(share, ESTIMATED) for word, share in _by_rank(note["words"].split(), note["share"])
        }
    spoken, written = _spoken(language), _written(language)
    if spoken and written:
        known = {
            word: _agreed(spoken.get(word, MIN_SHARE / 2), written.get(word, MIN_SHARE / 2))
            for word in spoken | written
        }
    else:
        known = {word: Expected(share, ONE_SOURCE) for word, share in (spoken | written).items()}
    return {
        word: known[word]
        for word in known
        if known[word].share > MIN_SHARE and not _quoted(word, known, language)
    }


def _agreed(one: float, other: float) -> Expected:
    """Combine two shares of a word: their geometric mean, with a spread by their disagreement."""
    return Expected(sqrt(one * other), sqrt(MIN_SPREAD**2 + (DISAGREEMENT * log(one / other)) ** 2))


def _quoted(word: str, known: dict[str, Expected], language: str) -> bool:
    """Return whether a word is so frequent in English that it is probably quoted."""
    return language != "en" and _spoken("en").get(word, 0.0) > QUOTED_RATIO * known[word].share


@cache
def _spoken(language: str) -> dict[str, float]:
    """Return the shares of words in subtitles, news, forums and social media, from wordfreq."""
    import wordfreq

    name = WORDFREQ.get(language, language)
    if name not in wordfreq.available_languages("small"):
        return {}
    shares: dict[str, float] = wordfreq.get_frequency_dict(name, "small")
    return _added((_end_sigma(word), share) for word, share in shares.items() if is_word(word))


@cache
def _written(language: str) -> dict[str, float]:
    """Return the shares of words in the Wikipedia of a language, estimated from the list of jusText."""
    wikipedias = _notes()["wikipedias"]
    if language not in wikipedias:
        return {}
    ranked = _file("justext", f"stoplists/{wikipedias[language]}.txt").read_text(encoding="utf-8").split("\n")
    ranked = [
        text
        for rank, text in enumerate(filter(None, ranked))
        if rank >= FUNCTIONAL or _belongs(text, language)
    ]
    shares = _by_rank(ranked, COVERED * (DRAVIDIAN_FACTOR if language in DRAVIDIAN else 1))
    return _added((word, share) for text, share in shares for word in dict.fromkeys(_parts(text, language)))


def _belongs(text: str, language: str) -> bool:
    """Return whether a word is also frequent outside of encyclopaedias."""
    return bool(_spoken(language)) or not _listed(language).isdisjoint(_parts(text, language))


def _by_rank(words: list[str], together: float) -> list[tuple[str, float]]:
    """Return words, given by falling frequency, with shares by Zipf's law that add up to `together`."""
    shift, exponent = RANKS
    weights = [1 / (rank + shift) ** exponent for rank in range(1, len(words) + 1)]
    return [(word, together * weight / sum(weights)) for word, weight in zip(words, weights, strict=True)]


def _parts(text: str, language: str) -> list[str]:
    """Return the words in a string without spaces: "l'homme," has two."""
    cleaned = _end_sigma(unicodedata.normalize("NFC", text).lower())
    if language == "sr":
        cleaned = _latin(cleaned)
    return [part for part in re.split(r"[\s!-/:-@\[-`{-~’“”„«»—–…।۔،؛։]+", cleaned) if part and is_word(part)]


def _end_sigma(word: str) -> str:
    return word[:-1] + "ς" if word.endswith("σ") and len(word) > 1 else word


def _added(shares: Iterable[tuple[str, float]]) -> dict[str, float]:
    total: defaultdict[str, float] = defaultdict(float)
    for word, share in shares:
        total[word] += share
    return dict(total)


@cache
def _listed(language: str) -> frozenset[str]:
    """Return the words of stop lists, empty if there is no list."""
    lists = json.loads(_file("stopwordsiso", "stopwords-iso.json").read_text(encoding="utf-8"))
    stop_list = lists.get(STOP_LISTS.get(language, language), [])
    noted = _notes()["function_words"].get(language, "").split()
    return frozenset(part for text in [*stop_list, *noted] for part in _parts(text, language))


@cache
def _notes() -> dict[str, Any]:
    return tomllib.loads(NOTES.read_text(encoding="utf-8"))


def _file(package: str, path: str) -> Path:
    """Return a file of an installed package without importing the package."""
    try:
        return Path(str(distribution(package).locate_file(f"{package}/{path}")))
    except PackageNotFoundError:
        raise SystemExit(f"{package} is not installed; pip install {package}") from None


# ── Languages with counted characters ──


def _characters(language: str) -> dict[str, Expected]:
    """Return the characters of function words with their expected shares."""
    note = _notes()["characters"][language]
    spoken = _character_shares(_spoken(language))
    shares = {form: note["written"] * spoken[form] for form in note["words"]} | note.get("signs", {})
    return {form: Expected(share, CHARACTER_SPREAD) for form, share in shares.items()}


def _character_shares(words: dict[str, float]) -> dict[str, float]:
    """Return the share of each character in running text, from the shares of words."""
    frequent = list(islice(words.items(), LEXICON_WORDS))
    shares = _added((character, share) for word, share in frequent for character in word)
    total = sum(shares.values())
    return {character: share / total for character, share in shares.items()}


def _thai() -> dict[str, Expected]:
    """Return the function words of Thai with their shares of all characters, also inside longer words."""
    sources = []
    for name in ("tnc_freq.txt", "ttc_freq.txt"):  # a national corpus, and textbooks
        rows = [
            line.split("\t") for line in _file("pythainlp", f"corpus/{name}").read_text("utf-8").splitlines()
        ]
        counts = {word: int(count) for word, count in rows[:LEXICON_WORDS]}
        characters = sum(len(word) * count for word, count in counts.items())
        sources.append((counts, characters))
    return {
        word: _agreed(
            *(
                sum(count * text.count(word) for text, count in counts.items()) / size
                for counts, size in sources
            )
        )
        for word in sorted(_listed("th"))
        if len(word) > 1 and all(counts.get(word) for counts, _ in sources)
    }


# ── Weights ──


def _weigh(language: str, expected: dict[str, Expected]) -> dict[str, float]:
    """Return the weights of words by how well they distinguish the language from its relatives."""
    words = sorted(expected, key=lambda word: -expected[word].share / expected[word].spread)[:CANDIDATES]
    shares = np.array([expected[word].share for word in words])
    variances = np.array([expected[word].spread ** 2 for word in words]) + (1 - shares) / (REFERENCE * shares)
    missing = _missing_elsewhere(language, words, shares, variances)
    heavy = np.argsort(-_decisive(variances, missing))[:WORDS]
    decisive = _decisive(variances[heavy], missing[:, heavy])
    weights = decisive * variances[heavy]
    weights /= weights.max()
    return {
        words[at]: float(weight) for at, weight in zip(heavy, weights, strict=True) if weight > MIN_WEIGHT
    }


def _missing_elsewhere(
    language: str, words: list[str], shares: NDArray[np.float64], variances: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the shortfall of each word in a menu and in the nearest other languages, one row for each."""
    same = next((group for group in ONE_LANGUAGE if language in group), frozenset({language}))
    others = sorted(languages() - same - _unspaced())
    found = np.array([[_share(word, language, other) for word in words] for other in others])
    shortfalls = np.maximum(1 - found / shares, -1)
    nearest = np.argsort(shortfalls @ (1 / variances), kind="stable")[:RELATIVES]
    return np.vstack([np.full(len(words), 1 - MENU_SHARE), shortfalls[nearest]])


def _share(word: str, language: str, other: str) -> float:
    """Return the share of a word in another language, in any of its spellings."""
    forms = {*_forms(word, language), _latin(word) if other == "sr" else word}
    return sum(_lexicon(other)[form].share for form in forms if form in _lexicon(other))


def _decisive(variances: NDArray[np.float64], missing: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the part of each word in the decision, by a quadratic programme that is solved by descent.

    It minimises the variance of good texts in the language, with all other texts at a distance of at least 1.
    """
    steepest = 2 * (
        variances.max() + GENRE**2 * len(variances) + PENALTY * float(np.linalg.norm(missing, 2)) ** 2
    )
    parts = ahead = np.full(len(variances), 1 / len(variances))
    momentum = 1.0
    for _ in range(STEPS):
        lacking = np.maximum(0, 1 - missing @ ahead)
        slope = 2 * (variances * ahead + GENRE**2 * ahead.sum() - PENALTY * missing.T @ lacking)
        following = np.clip(ahead - slope / steepest, 0, MAX_PART)
        growing = (1 + sqrt(1 + 4 * momentum**2)) / 2
        ahead = following + (momentum - 1) / growing * (following - parts)
        parts, momentum = following, growing
    return parts


# ── Spelling ──


def _forms(word: str, language: str) -> tuple[str, ...]:
    """Return the spellings of a word in its language."""
    forms = [word]
    if language == "zh":
        forms.append(word.translate(TRADITIONAL))
    elif language == "sr":
        forms.append(_cyrillic(word))
    elif language == "ro":
        forms.append(word.replace("ș", "ş").replace("ț", "ţ"))  # cedillas, from older fonts
    elif language in ("fa", "ur", "ps", "pnb"):
        forms.append(word.translate(PERSIAN))
    elif language == "vi":
        forms.append(_tones_apart(word))
    elif language == "cv":
        forms.append(word.translate(CHUVASH))
    elif language == "ml":
        forms.append("".join(CHILLU.get(letter, letter) for letter in word))
    return tuple(dict.fromkeys(forms))


def _tones_apart(word: str) -> str:
    """Return a Vietnamese word as on older Windows: tones are combining characters, other accents are not."""
    apart = (unicodedata.normalize("NFD", letter) for letter in word)
    return "".join(
        unicodedata.normalize("NFC", "".join(sign for sign in signs if sign not in TONES))
        + "".join(sign for sign in signs if sign in TONES)
        for signs in apart
    )


def _latin(text: str) -> str:
    """Return Serbian text in Latin script."""
    return "".join(CYRILLIC.get(letter, letter) for letter in text)


def _cyrillic(word: str) -> str:
    for cyrillic, latin in sorted(CYRILLIC.items(), key=lambda pair: -len(pair[1])):
        word = word.replace(latin, cyrillic)
    return word


if __name__ == "__main__":
    main()
