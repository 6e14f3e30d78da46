"""Disambiguation of closely related languages by marker words and spellings.

CLD2 works on groups of letters, which related languages share and short texts lack. Each occurrence of a word
or spelling that one language has and its neighbours do not (`data/markers.txt`) is one vote.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from math import inf
from typing import NamedTuple

from thresher.reader.language.markers import DETECTOR, Marker, MarkerGroup, markers
from thresher.reader.language.scripts import LONE, is_written_in, script_of

# Words of a text that vote, and the number if the first ones leave the result open.
HEARINGS = (30, 200)
# Votes by which one language must lead.
CLEAR = 4.0
# Characters of a word and the space behind it, on average, at most.
LONGEST_WORD = 8
# Words with cached votes; longer strings than LONG_WORD are no words and are not cached.
REMEMBERED = 20_000
LONG_WORD = 40

# Texts of a language have higher scores than this, except for few and short ones.
WEAK_SCORE = 450.0
WEAK = {"en": 800.0}
# CLD2's score below which a text of at least ENOUGH_WORDS words without the usual ones is hardly ever English.
NO_ENGLISH = 350.0
ENOUGH_WORDS = 8
# Smallest share of the most frequent words in running text.
FREQUENT = 0.15
BY_CHARACTER = frozenset({"zh", "zh-Hant"})  # written without spaces: each character is a word

Votes = tuple[float, ...]  # one number for each candidate, or () where all have the same
_PUNCTUATION = ".,;:!?()[]{}<>\"'«»„“”‚‘’…–—-/|*·•।॥،؛؟"


class Ballot(dict[str, Votes]):
    """Cache of the votes of each word among some candidates."""

    def __init__(self, group: MarkerGroup, known: Iterable[Marker]) -> None:
        self.candidates = group.languages
        places = {code: place for place, code in enumerate(self.candidates)}
        tables: dict[str, dict[str, list[float]]] = {"word": {}, "stem": {}, "end": {}, "part": {}}
        for marker in known:
            if mine := [places[code] for code in marker.languages if code in places]:
                votes = tables[marker.kind].setdefault(marker.text, [0.0] * len(places))
                for place in mine:
                    votes[place] = max(votes[place], marker.weight)
        worths = group.worths or (1.0,) * len(places)
        self._tables = {
            kind: {
                text: [vote * worth for vote, worth in zip(votes, worths, strict=True)]
                for text, votes in table.items()
                if len(set(votes)) > 1  # equal votes for all languages do not tell them apart
            }
            for kind, table in tables.items()
        }

    def __missing__(self, word: str) -> Votes:
        if len(word) > LONG_WORD:
            return ()
        if len(self) >= REMEMBERED:
            self.clear()
        votes = self._count(word)
        self[word] = result = () if len(set(votes)) == 1 else tuple(votes)
        return result

    def _count(self, word: str) -> list[float]:
        words, stems, ends, parts = self._tables.values()
        if word in words:
            return words[word]
        heard = [votes for part, votes in parts.items() if part in word]
        stem = next((word[:size] for size in range(len(word), 1, -1) if word[:size] in stems), None)
        end = next((word[-size:] for size in range(len(word) - 1, 0, -1) if word[-size:] in ends), None)
        if stem:
            heard.append(stems[stem])
        if end:
            heard.append(ends[end])
        return [sum(each) for each in zip(*heard, strict=True)] if heard else [0.0] * len(self.candidates)

    def totals(self, words: Iterable[str]) -> list[float]:
        """Return the number of votes of each candidate from these words."""
        heard = [votes for votes in map(self.__getitem__, words) if votes]
        return list(map(sum, zip(*heard, strict=True))) if heard else [0.0] * len(self.candidates)


class VoteResult(NamedTuple):
    """The outcome of a vote."""

    votes: dict[str, float]
    words: int  # that were heard

    @property
    def winner(self) -> str:
        """Language with the most votes; of equals, the first one in the file, which has more texts."""
        return max(self.votes, key=lambda code: self.votes[code])

    def is_frequent(self, code: str) -> bool:
        """Return True if a language has as many votes as running text in it gives."""
        return self.votes[code] >= max(DETECTOR, FREQUENT * self.words)


@cache
def ballot(group: MarkerGroup) -> Ballot:
    """Return the votes among these candidates. Only spellings distinguish look-alikes."""
    known = markers()
    return Ballot(group, known.words + known.spellings if group.worths else known.words)


def words_of(text: str, most: int) -> list[str]:
    """Return the first words of a text in lower case without punctuation; an apostrophe separates words."""
    start = text[: LONGEST_WORD * most].lower().replace("'", " ").replace("’", " ")
    return [word.strip(_PUNCTUATION) for word in start.split(None, most)[:most]]


def vote(text: str, group: MarkerGroup) -> VoteResult:
    """Count the votes of a text's first words for each candidate, and of more words if undecided."""
    box = ballot(group)
    by_character = BY_CHARACTER.issuperset(group.languages)
    words: Sequence[str] = ()
    totals: list[float] = []
    for most in HEARINGS:
        words = text[:most] if by_character else words_of(text, most)
        totals = box.totals(words)
        first, second = sorted(totals, reverse=True)[:2]
        if first - second >= CLEAR or len(text) <= LONGEST_WORD * most:
            break
    return VoteResult(dict(zip(box.candidates, totals, strict=True)), len(words))


def second_opinion(text: str, code: str, score: float = inf, likely: str = "") -> str:
    """Return the language of a text that CLD2 takes for `code`: that, another, or "" for none.

    `likely` is the main language of the page; it is believed if the text itself is undecided.
    """
    if score < WEAK.get(code, WEAK_SCORE):
        code = _judge_weak(text, code, score)
    group = look_alikes(text, code) if code else None
    if group is None:
        return code
    verdict = vote(text, group)
    first = likely if likely in group.languages else code
    lead = verdict.votes[verdict.winner] - verdict.votes[first]
    return verdict.winner if lead > 0 and lead >= group.detector else first


def guess(text: str) -> str:
    """Return the language of a text for which CLD2 has no answer, or ""."""
    script = script_of(text)
    group = markers().frequent.get(script)
    if group is None:
        return LONE.get(script, "")
    verdict = vote(text, group)
    return verdict.winner if verdict.is_frequent(verdict.winner) else ""


def _judge_weak(text: str, code: str, score: float) -> str:
    """Vote among all languages of the script if CLD2's answer has a low score."""
    group = markers().frequent.get(script_of(text))
    if group is None or code not in group.languages:
        return code
    verdict = vote(text, group)
    winner = verdict.winner
    if verdict.is_frequent(winner) and verdict.votes[winner] >= verdict.votes[code] + group.detector:
        return winner
    # English is what the detector says when it has no idea.
    hopeless = code == "en" and score < NO_ENGLISH and verdict.words >= ENOUGH_WORDS
    return "" if hopeless and not verdict.is_frequent("en") else code


def are_alike(code: str, other: str) -> bool:
    """Return True if one language is taken for the other."""
    return any(other in group.languages for group in markers().alike.get(code, ()))


def look_alikes(text: str, code: str) -> MarkerGroup | None:
    """Return the languages that a language is confused with, including itself, in the script of the text."""
    groups = markers().alike.get(code, ())
    if len(groups) < 2:
        return groups[0] if groups else None
    script = script_of(text)
    fitting = (group for group in groups if all(is_written_in(each, script) for each in group.languages))
    return next(fitting, None)
