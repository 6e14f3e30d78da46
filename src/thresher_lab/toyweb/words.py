"""Texts of words drawn by their frequency in the language; language detectors accept them."""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Iterator
from functools import lru_cache
from importlib.util import find_spec
from itertools import islice
from typing import Any
from urllib.parse import quote

import numpy as np
from numpy.typing import NDArray

from thresher.errors import UsageError
from thresher_lab.toyweb.dice import draws

SENTENCE_WORDS = (8, 25)
PARAGRAPH_SENTENCES = (2, 6)
COMMA_SHARE = 1 / 12  # of words
TITLE_WORDS = (4, 6)
COMMON_WORDS = 300  # among them the function words; stuffed pages have none of them
_TABLE_BITS = 17  # 131,072 slots: a word used eight times in a million still has one
_MAX_WORDS = 20_000
_UNSPACED = {"ja", "zh"}
_COMMAS = {"ja": "、", "zh": "，", "ar": "،", "fa": "،", "ur": "،"}
_STOPS = {"ja": "。", "zh": "。", "hi": "।", "bn": "।", "ur": "۔"}
_JAPANESE = frozenset({"HIRAGANA", "KATAKANA", "KATAKANA-HIRAGANA", "CJK"})
_LATIN_1, _LATIN_2 = ("windows-1252", "iso-8859-1", "iso-8859-15"), ("windows-1250", "iso-8859-2")

# Encodings of each language before UTF-8, under their web names.
LEGACY_CHARSETS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("en", "de", "fr", "es", "it", "pt", "nl", "da", "sv", "nb", "fi", "is", "ca"), _LATIN_1),
    **dict.fromkeys(("cs", "pl", "sk", "hu", "sl", "sh"), _LATIN_2),
    "ru": ("windows-1251", "koi8-r"),
    "uk": ("windows-1251", "koi8-u"),
    "bg": ("windows-1251",),
    "mk": ("windows-1251",),
    "tr": ("windows-1254", "iso-8859-9"),
    "el": ("windows-1253", "iso-8859-7"),
    "ar": ("windows-1256", "iso-8859-6"),
    "he": ("windows-1255", "iso-8859-8"),
    "lt": ("windows-1257", "iso-8859-13"),
    "lv": ("windows-1257", "iso-8859-13"),
    "ja": ("shift_jis", "euc-jp"),
    "zh": ("gb2312",),
    "ko": ("euc-kr",),
}


class ToyVocabulary:
    """The words of one language, and a table in which each fills slots by its frequency."""

    def __init__(self, language: str, frequencies: dict[str, float]) -> None:
        self.language = language
        self.space = "" if language in _UNSPACED else " "
        self.comma = _COMMAS.get(language, ",")
        self.stop = _STOPS.get(language, ".")
        self.words = list(frequencies)
        shares = np.array(list(frequencies.values()))
        shares /= shares.sum()
        slots = (np.arange(1 << _TABLE_BITS) + 0.5) / (1 << _TABLE_BITS)
        self.table = np.minimum(np.searchsorted(np.cumsum(shares), slots), len(self.words) - 1)
        self._slots: list[int] = self.table.tolist()  # Plain integers are faster one at a time.
        self.mean_length = float(shares @ [len(word) + len(self.space) for word in self.words])
        self._array: NDArray[Any] = np.array(self.words, dtype=object)

    def title(self, bits: int) -> tuple[str, str]:
        """Return a headline and the start of it as it would stand in a URL, from 128 random bits."""
        count = TITLE_WORDS[0] + bits % (TITLE_WORDS[1] - TITLE_WORDS[0] + 1)
        mask = (1 << _TABLE_BITS) - 1
        shifts = range(8, 8 + count * _TABLE_BITS, _TABLE_BITS)
        places = [self._slots[bits >> shift & mask] for shift in shifts]
        words = self.space.join([self.words[place] for place in places])
        return self.capitalised(words), "-".join([slug(self.words[place]) for place in places[:3]])

    def paragraphs(
        self, key: int, characters: int, *, stuffed: bool = False, edit: float = 0.0, editor: int = 0
    ) -> list[str]:
        """Return about as many characters of text as asked for, in sentences and paragraphs.

        `stuffed` leaves out the common words; `edit` is the share of words that differ from the text that the
        same key gives without it, and each `editor` changes others.
        """
        bits, places = self._drawn(key, characters, stuffed=stuffed, edit=edit, editor=editor)
        return self._punctuated(self._spelled(bits, places), bits)

    def openings(
        self,
        key: int,
        characters: int,
        most: int,
        *,
        stuffed: bool = False,
        edit: float = 0.0,
        editor: int = 0,
    ) -> list[str]:
        """Return the fourth to sixth word of each of the first paragraphs that `paragraphs` gives.

        In scripts without spaces, these are letters. This is quicker than writing the whole text.
        """
        bits, places = self._drawn(key, characters, stuffed=stuffed, edit=edit, editor=editor)
        fewest = SENTENCE_WORDS[0]  # No sentence is shorter.
        starts = [start for start, _, first in _sentences(len(bits), bits, most) if first]
        words = [self._spelled(bits[s : s + fewest], places[s : s + fewest]) for s in starts]
        return [self.space.join((said if self.space else "".join(said))[3:6]) for said in words]

    def phrase(self, key: int, count: int) -> str:
        """Return a few words in a row, no sentence."""
        return self.space.join(self._array[self._places(draws(key, count), stuffed=False)].tolist())

    def capitalised(self, text: str) -> str:
        """Return the text with its first letter as at the start of a sentence."""
        return capitalised(self.language, text)

    def _drawn(
        self, key: int, characters: int, *, stuffed: bool, edit: float, editor: int
    ) -> tuple[NDArray[np.uint64], NDArray[Any]]:
        """Return the random bits for each word of a text, and the places of the words in the vocabulary."""
        count = max(SENTENCE_WORDS[0], round(characters / self.mean_length))
        bits = draws(key, count)
        places = self._places(bits, stuffed=stuffed)
        if edit:
            change = draws(key ^ editor, count)
            changed = (change >> np.uint64(32)) < np.uint64(edit * 2**32)
            changed[count // 2] = True  # A short text differs in at least one word.
            places = np.where(changed, self._places(change, stuffed=stuffed), places)
        return bits, places

    def _spelled(self, bits: NDArray[np.uint64], places: NDArray[Any]) -> list[str]:
        """Return words, some of them followed by commas."""
        words: list[str] = self._array[places].tolist()
        for place in np.flatnonzero((bits >> np.uint64(40)) < np.uint64(COMMA_SHARE * 2**24)).tolist():
            words[place] += self.comma
        return words

    def _places(self, bits: NDArray[np.uint64], *, stuffed: bool) -> NDArray[Any]:
        if stuffed:
            return COMMON_WORDS + (bits % np.uint64(len(self.words) - COMMON_WORDS)).astype(np.intp)
        drawn: NDArray[Any] = self.table[bits & np.uint64((1 << _TABLE_BITS) - 1)]
        return drawn

    def _punctuated(self, words: list[str], bits: NDArray[np.uint64]) -> list[str]:
        paragraphs: list[list[str]] = []
        for start, end, first in _sentences(len(words), bits):
            sentence = self.space.join(words[start:end]).removesuffix(self.comma)
            if first:
                paragraphs.append([])
            paragraphs[-1].append(self.capitalised(sentence) + self.stop)
        return [(self.space and " ").join(sentences) for sentences in paragraphs]


def _sentences(
    count: int, bits: NDArray[np.uint64], paragraphs: int | None = None
) -> Iterator[tuple[int, int, bool]]:
    """Yield start and end of the sentences of a text of `count` words, and whether each begins a paragraph.

    The text ends after `paragraphs` paragraphs, if a number is given.
    """
    shortest, longest = SENTENCE_WORDS
    fewest, most = PARAGRAPH_SENTENCES
    lengths = (bits[: count // shortest + 1] >> np.uint64(20)).tolist()
    begun = left = 0
    start = turn = 0
    while start < count:
        first = left == 0
        if first:
            if begun == paragraphs:
                return
            left = fewest + lengths[turn % len(lengths)] // 64 % (most - fewest + 1) if begun else fewest
            begun += 1
        end = start + shortest + lengths[turn] % (longest - shortest + 1)
        if count - end < shortest:
            end = count
        yield start, end, first
        start, turn, left = end, turn + 1, left - 1


def require_wordfreq() -> None:
    """Raise a `UsageError` that names the extra if wordfreq is not installed."""
    if find_spec("wordfreq") is None:
        raise UsageError("the toy web needs the package wordfreq; try: pip install 'thresher[lab]'")


@lru_cache(maxsize=64)
def vocabulary(language: str) -> ToyVocabulary:
    """Return the vocabulary of a language that wordfreq knows. A missing wordfreq is a `UsageError`."""
    require_wordfreq()
    import wordfreq  # It takes 0.3 s to import, so only processes that write pages do it.

    frequencies = wordfreq.get_frequency_dict(language, "small")
    scripts = _scripts(frequencies)
    charsets = LEGACY_CHARSETS.get(language, ())
    letters = frozenset(x for x in set("".join(frequencies)) if _writable(x, scripts, charsets))
    words = (word for word in frequencies if letters.issuperset(word))
    return ToyVocabulary(language, {word: frequencies[word] for word in islice(words, _MAX_WORDS)})


def _scripts(frequencies: dict[str, float]) -> frozenset[str]:
    """Return the scripts of a language: its most used, and the kana that go with kanji."""
    mass: Counter[str] = Counter()
    for word in list(frequencies)[:2_000]:
        mass[_script(word[0])] += 1
    main = next(script for script, _ in mass.most_common() if script)
    return _JAPANESE if main in _JAPANESE else frozenset({main})


def _writable(letter: str, scripts: frozenset[str], charsets: tuple[str, ...]) -> bool:
    """Return whether a letter belongs to the scripts of the language and to all its encodings."""
    try:
        for charset in charsets:
            (letter + letter.upper()).encode(charset)
    except UnicodeEncodeError:
        return False
    return _script(letter) in scripts


def _script(letter: str) -> str:
    """Return LATIN, CYRILLIC, CJK …, or "" for characters that are not part of a word."""
    if unicodedata.category(letter)[0] not in "LM":
        return ""
    return unicodedata.name(letter, "").partition(" ")[0]


def capitalised(language: str, text: str) -> str:
    """Return a text with its first letter as at the start of a sentence of the language."""
    if language == "tr" and text.startswith("i"):
        return "İ" + text[1:]
    return text[:1].upper() + text[1:]


@lru_cache(maxsize=20_000)
def slug(word: str) -> str:
    """Return a word in small letters as it stands in a URL."""
    plain = unicodedata.normalize("NFKD", word).encode("ascii", "ignore").decode().lower()
    return plain if len(plain) == len(word) else quote(word)
