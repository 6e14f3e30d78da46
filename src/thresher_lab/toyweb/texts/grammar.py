"""Texts from templates: sensible sentences about everyday things, for webs that people look at.

A grammar is a text file. `NAME:` begins a list of alternatives; they stand behind it or on indented lines, with
" | " between them. `{NAME}` in an alternative stands for any alternative of that list. `== TOPIC` begins a topic,
in which its own lists come before the lists of the same name above the first topic. Each topic has the lists
`titles` and `sentences`; the list `sentences` above the first topic holds sentences that fit every topic.

Agreement needs no rules: an alternative is a whole phrase in the form that its templates need. A text keeps to
one topic and uses all templates of the topic before one comes again, so that texts differ from each other.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from importlib.resources import files
from itertools import count

from msgspec import Struct

from thresher_lab.toyweb.dice import draws
from thresher_lab.toyweb.web import READABLE_LANGUAGES
from thresher_lab.toyweb.words import PARAGRAPH_SENTENCES, capitalised, slug

TITLE_SLUG_WORDS = 3
KEYWORD_LENGTH = 6  # Function words are shorter in all languages of the grammars.
GENERAL_SHARE = 4  # One sentence in so many, on average, is none of the topic's own.
SENTENCE_WORDS = 12  # Mean of the grammars, for the share of sentences that an edit changes.
SHORTEST_SENTENCE = 15  # characters
_MASK = (1 << 64) - 1
_REFERENCE = re.compile(r"\{(\w+)\}")


class SymbolChoice(Struct, eq=False):
    """Alternatives for one symbol; each is a sequence of literal texts and further choices."""

    name: str
    alternatives: list[tuple[str | SymbolChoice, ...]] = []


class Topic(Struct, frozen=True):
    """The headlines and the sentences of one topic."""

    name: str
    titles: SymbolChoice
    sentences: SymbolChoice


class Choices:
    """A sequence of choices that depends on its key alone, without repetitions where there are alternatives."""

    def __init__(self, key: int) -> None:
        self._state = key & _MASK
        self._used: dict[int, set[int]] = {}

    def below(self, size: int) -> int:
        """Return a number from 0 to `size` - 1 (a linear congruential generator, the high bits)."""
        self._state = (self._state * 0x5851F42D4C957F2D + 0x14057B7EF767814F) & _MASK
        return (self._state >> 33) % size

    def order(self, size: int) -> list[int]:
        """Return the numbers from 0 to `size` - 1 in some order (Fisher-Yates)."""
        found = list(range(size))
        for last in range(size - 1, 0, -1):
            other = self.below(last + 1)
            found[last], found[other] = found[other], found[last]
        return found

    def expand(self, parts: Sequence[str | SymbolChoice]) -> str:
        """Return the text of an alternative with a choice made for each of its symbols."""
        return "".join([part if isinstance(part, str) else self._one(part) for part in parts])

    def _one(self, choice: SymbolChoice) -> str:
        size = len(choice.alternatives)
        used = self._used.setdefault(id(choice), set())
        if len(used) == size:
            used.clear()
        number = self.below(size)
        while number in used:
            number = (number + 1) % size
        used.add(number)
        return self.expand(choice.alternatives[number])


class SentenceGrammar:
    """Sentences of one language. It has the methods of `ToyVocabulary` and can stand in for it."""

    space = " "

    def __init__(self, language: str, source: str) -> None:
        self.language = language
        self.topics, self._general = _parsed(source)
        words = {word for topic in self.topics for word in _words(topic.sentences)}
        self._keywords = sorted(word for word in words if len(word) >= KEYWORD_LENGTH)

    def title(self, bits: int) -> tuple[str, str]:
        """Return the headline of the text that has these bits as its key, and the start of it for a URL."""
        choices = Choices(~bits)
        titles = self._topic(bits).titles.alternatives
        title = capitalised(self.language, choices.expand(titles[choices.below(len(titles))]))
        words = re.findall(r"\w+", title)[:TITLE_SLUG_WORDS]
        return title, "-".join([slug(word.replace("İ", "i").lower()) for word in words])

    def paragraphs(
        self, key: int, characters: int, *, stuffed: bool = False, edit: float = 0.0, editor: int = 0
    ) -> list[str]:
        """Return at least as many characters of text as asked for, in paragraphs of a few sentences.

        `stuffed` gives keywords instead of sentences. `edit` is the share of words that differ from the text of
        the same key without it, in whole sentences; each `editor` changes others.
        """
        sentences = self._keyword_lists(key) if stuffed else self._sentences(key, characters, edit, editor)
        fewest, most = PARAGRAPH_SENTENCES
        choices = Choices(key ^ 1)
        paragraphs: list[str] = []
        written = 0
        while written < characters:
            wanted = fewest + choices.below(most - fewest + 1)
            paragraphs.append(" ".join([next(sentences) for _ in range(wanted)]))
            written += len(paragraphs[-1]) + 1
        return paragraphs

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
        """Return the fourth to sixth word of each of the first paragraphs that `paragraphs` gives."""
        written = self.paragraphs(key, characters, stuffed=stuffed, edit=edit, editor=editor)
        return [" ".join(paragraph.split(" ", 7)[3:6]) for paragraph in written[:most]]

    def phrase(self, key: int, count: int) -> str:
        """Return the name of a topic if one word is wanted, otherwise the first words of a sentence."""
        topic = self._topic(key)
        if count == 1:
            return topic.name
        choices = Choices(key)
        sentences = topic.sentences.alternatives
        return " ".join(choices.expand(sentences[choices.below(len(sentences))]).split(" ")[:count])

    def capitalised(self, text: str) -> str:
        """Return the text with its first letter as at the start of a sentence."""
        return capitalised(self.language, text)

    def _topic(self, key: int) -> Topic:
        return self.topics[key % len(self.topics)]

    def _sentences(self, key: int, characters: int, edit: float, editor: int) -> Iterator[str]:
        """Yield the sentences of a text: all templates in turn, in an order that depends on the key."""
        own, general = self._topic(key).sentences.alternatives, self._general.alternatives
        choices = Choices(key)
        own_order, general_order = choices.order(len(own)), choices.order(len(general))
        most = characters // SHORTEST_SENTENCE + PARAGRAPH_SENTENCES[1]
        keys: list[int] = draws(key, most).tolist()
        edits: list[int] = draws(key ^ editor, most).tolist() if edit else []
        changed = min(1.0, edit * SENTENCE_WORDS) * (1 << 64)
        owns = generals = 0
        for number, bits in enumerate(keys):
            if (bits >> 40) % GENERAL_SHARE == 0:
                template = general[general_order[generals % len(general)]]
                generals += 1
            else:
                template = own[own_order[owns % len(own)]]
                owns += 1
            # The second sentence always changes: a short text differs in something, too.
            is_edited = bool(edits) and (number == 1 or edits[number] < changed)
            yield self.capitalised(Choices(edits[number] ^ bits if is_edited else bits).expand(template))

    def _keyword_lists(self, key: int) -> Iterator[str]:
        """Yield lists of words as stuffed pages have them: no function words, no sentences."""
        choices = Choices(key)
        for _ in count():
            words = [self._keywords[choices.below(len(self._keywords))] for _ in range(SENTENCE_WORDS)]
            yield self.capitalised(" ".join(words)) + "."


@lru_cache(maxsize=len(READABLE_LANGUAGES))
def grammar(language: str) -> SentenceGrammar:
    """Return the grammar of one of `READABLE_LANGUAGES`."""
    source = files(__package__).joinpath(f"{language}.txt").read_text("utf-8")
    return SentenceGrammar(language, source)


def _parsed(source: str) -> tuple[list[Topic], SymbolChoice]:
    """Return the topics of a grammar file and the sentences that fit every topic."""
    scopes: list[tuple[str, dict[str, list[str]]]] = [("", {})]
    lines: list[str] = []
    for line in source.splitlines():
        if line.startswith("=="):
            scopes.append((line.strip("= "), {}))
        elif line and not line.startswith(("#", " ")):
            name, _, rest = line.partition(":")
            lines = scopes[-1][1].setdefault(name, [])
            lines += [rest] if rest else []
        elif line.startswith(" "):
            lines.append(line)
    common = _linked(scopes[0][1], {})
    topics = []
    for name, lists in scopes[1:]:
        own = _linked(lists, common)
        topics.append(Topic(name, own["titles"], own["sentences"]))
    return topics, common["sentences"]


def _linked(lists: dict[str, list[str]], outer: dict[str, SymbolChoice]) -> dict[str, SymbolChoice]:
    """Return the choices of one scope, with references to its own lists and to the lists of the outer scope."""
    known = outer | {name: SymbolChoice(name) for name in lists}
    for name, lines in lists.items():
        for text in (part.strip() for line in lines for part in line.split(" | ")):
            pieces = _REFERENCE.split(text)
            known[name].alternatives.append(
                tuple([known[piece] if place % 2 else piece for place, piece in enumerate(pieces) if piece])
            )
    return known


def _words(choice: SymbolChoice) -> Iterator[str]:
    """Yield the words of the alternatives of a choice and of the choices that they refer to."""
    waiting, seen = [choice], set[int]()
    while waiting:
        current = waiting.pop()
        if id(current) not in seen:
            seen.add(id(current))
            for part in (part for alternative in current.alternatives for part in alternative):
                if isinstance(part, str):
                    yield from re.findall(r"\w+", part.lower())
                else:
                    waiting.append(part)
