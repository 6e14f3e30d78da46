"""Badness: how far a text's use of the most frequent function words is from that of the language.

Running text in a language has its function words in nearly the same share whatever it is about; lists, menus,
stuffed keywords and other languages have not. Each word that is rarer than expected adds its distance in
standard deviations; one that is more frequent adds nothing. Below the most frequent ones, the words that are
furthest off are forgiven: every genre has its habits.
"""

from __future__ import annotations

import unicodedata
from collections import Counter, defaultdict
from functools import lru_cache
from itertools import islice
from math import sqrt

from msgspec import Struct

WORDS = 24  # function words in a model
FIRM = 7  # the most frequent of them belong to every text, or it is in another language
HABITS = 9  # of the others may be missing for reasons of genre: news has no "I", laws have no "you"
SPREAD = 0.45  # standard deviation of a word's share between texts, relative to the share itself
CHARACTER_SPREAD = 0.75  # the same where characters stand in for words
SAMPLE = 12_000  # characters of a text that are looked at; shares change little after that
LEXICON = 5_000  # words from which the shares of characters are reckoned: nearly all running text

# Written without spaces, or with words that grow onto each other: their characters are counted instead.
BY_CHARACTER = frozenset({"zh", "ja", "ko"})
# Languages whose word list goes by another name.
_LISTS = {
    "no": "nb",
    "tl": "fil",
    "hr": "sh",
    "bs": "sh",
    "sr": "sh",
    "sr-ME": "sh",
    "zh-Hant": "zh",
}
_TRADITIONAL = str.maketrans("这个们为对说来与会时国过还没后里么", "這個們為對說來與會時國過還沒後裡麼")
_CYRILLIC = str.maketrans("abcčćdđefghijklmnoprsštuvzž", "абцчћдђефгхијклмнопрсштувзж")
_CYRILLIC_PAIRS = (("lj", "љ"), ("nj", "њ"), ("dž", "џ"))


class BadnessModel(Struct, frozen=True):
    """The function words of a language and their shares of all words (or characters)."""

    language: str
    shares: tuple[float, ...]  # of each word
    forms: dict[str, int]  # the ways in which each is written -> its place in `shares`
    by_character: bool = False

    @property
    def spread(self) -> float:
        return CHARACTER_SPREAD if self.by_character else SPREAD


@lru_cache(maxsize=16)
def model(language: str) -> BadnessModel | None:
    """The model of a language, or None if no word frequencies are at hand for it."""
    # Imported here: it takes a tenth of a second, and only readers with a target language need it.
    import wordfreq

    name = _LISTS.get(language, language)
    if name not in wordfreq.available_languages("small"):
        return None
    frequencies: dict[str, float] = wordfreq.get_frequency_dict(name, "small")
    by_character = name in BY_CHARACTER
    shares = _character_shares(frequencies) if by_character else frequencies
    frequent = sorted(frequencies, key=lambda word: -frequencies[word])
    words = list(islice((word for word in frequent if word in shares and _is_word(word)), WORDS))
    forms = {form: place for place, word in enumerate(words) for form in _forms(word, name)}
    return BadnessModel(language, tuple(shares[word] for word in words), forms, by_character)


def badness(text: str, model: BadnessModel) -> float:
    """How bad a text is as running text of the language: below 10 is good, above 20 is something else."""
    sample = text[:SAMPLE]
    counts = [0] * len(model.shares)
    if model.by_character:
        size = len("".join(sample.split()))
        for form, place in model.forms.items():
            counts[place] += sample.count(form)
    else:
        tokens = sample.lower().replace("'", " ").replace("’", " ").split()  # l'homme is two words
        size = len(tokens)
        for form, count in Counter(filter(model.forms.__contains__, tokens)).items():
            counts[model.forms[form]] += count
    if not size:
        return 0.0
    # By how many standard deviations each word is too rare: those of chance and those between texts.
    shortfalls = [
        max(0.0, (share - count / size) / sqrt(share * (1 - share) / size + (model.spread * share) ** 2))
        for share, count in zip(model.shares, counts, strict=True)
    ]
    return sum(shortfalls[:FIRM]) + sum(sorted(shortfalls[FIRM:])[: WORDS - FIRM - HABITS])


def _character_shares(frequencies: dict[str, float]) -> dict[str, float]:
    """The share of each letter in running text, from the frequencies of words."""
    shares: defaultdict[str, float] = defaultdict(float)
    for word, frequency in islice(frequencies.items(), LEXICON):
        for character in word:
            if character.isalpha() and not character.isascii():
                shares[character] += frequency
    total = sum(shares.values())
    return {character: share / total for character, share in shares.items()}


def _is_word(text: str) -> bool:
    """Whether all of a text is letters, and the signs that belong to letters in Indic and other scripts."""
    return all(unicodedata.category(character)[0] in "LM" for character in text)


def _forms(word: str, word_list: str) -> set[str]:
    """The ways in which a word is written in the scripts of its language."""
    if word_list == "zh":
        return {word, word.translate(_TRADITIONAL)}
    if word_list == "sh":
        cyrillic = word
        for latin, letter in _CYRILLIC_PAIRS:
            cyrillic = cyrillic.replace(latin, letter)
        return {word, cyrillic.translate(_CYRILLIC)}
    return {word}
