"""The languages of a text: CLD2's opinion, a second one where it is known to err, and trained languages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice

import numpy as np

from thresher.page import LanguageShare
from thresher.read.codes import known_languages, nearest, normalise
from thresher.read.detector import UNKNOWN, Answer, Found, ask, best
from thresher.read.jury import are_alike, guess, second_opinion
from thresher.read.scan.words import oddest
from thresher.read.scripts import may_be, scripts_of
from thresher.read.text import clean
from thresher.read.trained import Trained, trained_languages

__all__ = ["known_languages", "languages", "nearest", "normalise", "paragraph_languages"]

PIECES, LONG_PIECE = 16, 400  # a longer text is looked at in so many places of so many characters
MUCH = 2_500  # characters of which some places are asked about first …
PLACES, PLACE = 10, 128  # … so many, of so many characters, …
ODD_PLACE = 200  # … and so many that are least like the rest
SHORT = 200  # bytes up to which the script is held against the detector's answer
MUCH_UNKNOWN = 0.05  # of a text; less is names and numbers
NEARLY_ALL = 99  # percent: what the detector says of a text in one language
MOSTLY = 90  # percent: and what it says at least of a few words in it
CRUMBS = 10  # percent; so little is not worth a second opinion, and a look-alike of the main language is that
HEARD = 2_000  # bytes of what the detector takes for one language that get a second opinion

MIN_PARAGRAPH = 40  # bytes from which a paragraph has a language of its own
SURE = 0.9  # of a paragraph: with less in one language, the paragraph is asked about by itself

PIECE, COMPARED = 250, 12  # a text is compared to trained languages in pieces of so many characters, so many
WINDOWS, WINDOW = 3, 150  # places that are looked at first, and their characters: most texts are in none


def languages(text: str) -> tuple[LanguageShare, ...]:
    """Up to three languages of a clean text with their shares, the largest first."""
    sample = _sample(text)
    rivals = _plausible(sample)
    percents = (
        (rivals and _with_trained(sample, rivals))
        or (len(sample) >= MUCH and _if_in_one(sample))
        or _percents(sample, ask(sample))
    )
    size = len(text.encode("utf-8", "replace"))
    largest = sorted(percents.items(), key=lambda item: -item[1])[:3]
    return tuple(
        LanguageShare(code, size * percent // 100, percent / 100) for code, percent in largest if percent
    )


def paragraph_languages(paragraphs: Sequence[str]) -> list[str]:
    """The language of each paragraph, or "" where one is too short to tell or in no known language.

    The detector is asked once about all of them: it finds out where one language ends and another begins.
    Only paragraphs that it is not sure about are asked about again, one by one.
    """
    texts = list(paragraphs)
    answer = ask("\n".join(texts))
    if answer.cleaned:  # then each has to be cleaned, to know where it stands
        texts = list(map(clean, texts))
        answer = ask("\n".join(texts))
    sizes = [len(text.encode()) for text in texts]
    main = next(iter(_percents("\n".join(texts), answer)), "")
    claims = _claims(texts, list(trained_languages().values()))
    return [
        (claim or _paragraph_language(text, code, main)) if size >= MIN_PARAGRAPH else ""
        for text, size, claim, code in zip(texts, sizes, claims, _majorities(sizes, answer), strict=True)
    ]


def _sample(text: str) -> str:
    """The text, or pieces from all over a long one."""
    if len(text) <= PIECES * LONG_PIECE:
        return text
    step = len(text) // PIECES
    return "\n".join(text[start : start + LONG_PIECE] for start in range(0, step * PIECES, step))


def _if_in_one(sample: str) -> dict[str, int]:
    """The percentage where a text is all in one language; empty where it may not be.

    The detector takes its time by the length of a text. Much of that is saved where some places of the text
    are in one language and the place that is least like the rest is in the same.
    """
    start = oddest(np.frombuffer(sample.encode("utf-32-le", "replace"), dtype=np.uint32), ODD_PLACE)
    odd = ask(sample[start : start + ODD_PLACE]).found
    if len(odd) != 1 or odd[0].percent < MOSTLY:
        return {}
    step = len(sample) // PLACES
    places = range((step - PLACE) // 2, step * PLACES, step)
    answer = ask("\n".join(sample[place : place + PLACE] for place in places))
    is_clear = len(answer.found) == 1 and answer.found[0].percent >= NEARLY_ALL
    return _percents(sample, answer) if is_clear and answer.found[0].code == odd[0].code else {}


def _percents(text: str, answer: Answer) -> dict[str, int]:
    """The percentage of each language, after second opinions."""
    percents: dict[str, int] = {}
    scripts = scripts_of(text) if len(answer.utf8) <= SHORT else None
    for found in answer.found:
        if scripts and not may_be(found.code, scripts):
            continue
        if code := _reconsidered(text, answer, found, next(iter(percents), "")):
            percents[code] = percents.get(code, 0) + found.percent
    if not percents:
        code = guess(text)
        return {code: NEARLY_ALL} if code else {}
    unknown = sum(end - start for start, end, code in answer.stretches() if code == UNKNOWN)
    if unknown > MUCH_UNKNOWN * len(answer.utf8) and (code := guess(_part(answer, UNKNOWN))):
        left = max(0, NEARLY_ALL - sum(percents.values()))
        percents[code] = percents.get(code, 0) + min(left, 100 * unknown // len(answer.utf8))
    return percents


def _reconsidered(text: str, answer: Answer, found: Found, main: str) -> str:
    """The language of what the detector takes for one, given the main language of the text."""
    if main and found.percent < CRUMBS:
        return main if are_alike(found.code, main) else found.code
    part = text if len(answer.found) == 1 else _part(answer, found.code)
    return second_opinion(part, found.code, found.score, main)


def _part(answer: Answer, language: str) -> str:
    """What of a text the detector takes for a language, from its beginning on."""
    parts: list[bytes] = []
    size = 0
    for start, end, code in answer.stretches():
        if code == language and size < HEARD:
            parts.append(answer.utf8[start:end])
            size += end - start
    return b"\n".join(parts)[:HEARD].decode("utf-8", "ignore")


def _plausible(text: str) -> list[Trained]:
    """The trained languages that some place in a text looks like."""
    if not trained_languages():
        return []
    step = max(WINDOW, (len(text) - WINDOW) // (WINDOWS - 1))
    windows = [text[start : start + WINDOW] for start in range(0, max(1, len(text) - WINDOW + 1), step)]
    return [each for each in trained_languages().values() if max(each.profile.fits(windows)) >= each.floor]


def _with_trained(text: str, rivals: Sequence[Trained]) -> dict[str, int]:
    """The percentages where trained languages claim some of a text; empty where they claim nothing."""
    pieces = _pieces(text)
    claims = _claims(pieces, rivals)
    if not any(claims):
        return {}
    sizes: Counter[str] = Counter()
    for piece, claim in zip(pieces, claims, strict=True):
        sizes[claim] += len(piece)
    shares = {name: 100 * size // sizes.total() for name, size in sizes.items() if name}
    rest = "\n".join(piece for piece, claim in zip(pieces, claims, strict=True) if not claim)
    for code, percent in _percents(rest, ask(rest)).items() if rest else ():
        shares[code] = percent * sizes[""] // sizes.total()
    return shares


def _pieces(text: str) -> list[str]:
    """Pieces of some hundred characters from all over a text, whole lines where they are not longer."""
    pieces: list[str] = []
    for line in text.split("\n"):
        if pieces and len(pieces[-1]) + len(line) < PIECE:
            pieces[-1] += "\n" + line
        else:
            pieces += [line[start : start + PIECE] for start in range(0, max(1, len(line)), PIECE)]
    return pieces[:: 1 + len(pieces) // COMPARED]


def _claims(texts: Sequence[str], rivals: Sequence[Trained]) -> list[str]:
    """For each text, the name of the trained language that it is in, or ""."""
    claims = [""] * len(texts)
    if not rivals:
        return claims
    fits = [rival.profile.fits(texts) for rival in rivals]
    for place, (text, each) in enumerate(zip(texts, zip(*fits, strict=True), strict=True)):
        fitting = [(rival, fit) for rival, fit in zip(rivals, each, strict=True) if fit >= rival.floor]
        if fitting:
            found = best(text)
            margin, name = max((rival.margin(text, fit, found), rival.name) for rival, fit in fitting)
            claims[place] = name if margin >= 0 else ""
    return claims


def _paragraph_language(text: str, code: str, main: str) -> str:
    if code == UNKNOWN:
        return next(iter(_percents(text, ask(text))), "")
    return second_opinion(text, code, likely=main)


def _majorities(sizes: Sequence[int], answer: Answer) -> Iterator[str]:
    """For each of the texts that were joined by one byte, the language of nearly all of it, or UNKNOWN."""
    stretches = list(answer.stretches())
    first = place = 0
    for size in sizes:
        last = first + size
        while place < len(stretches) and stretches[place][1] <= first:
            place += 1
        shares: Counter[str] = Counter()
        for start, end, code in islice(stretches, place, None):
            if start >= last:
                break
            shares[code] += min(last, end) - max(first, start)
        code, most = shares.most_common(1)[0] if shares else (UNKNOWN, 0)
        yield code if most >= SURE * size else UNKNOWN
        first = last + 1
