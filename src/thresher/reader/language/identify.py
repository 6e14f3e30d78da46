"""Language identification: CLD2, disambiguation of its known errors, and trained languages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from itertools import islice

import numpy as np

from thresher.reader.html.kernels.words import oddest
from thresher.reader.language.cld2 import UNKNOWN, DetectedLanguage, Detection, ask, best
from thresher.reader.language.codes import known_languages, nearest, normalise
from thresher.reader.language.custom_models import CustomModel, trained_languages
from thresher.reader.language.disambiguate import are_alike, guess, second_opinion
from thresher.reader.language.scripts import may_be, scripts_of
from thresher.reader.normalize import clean
from thresher.records import LanguageShare

__all__ = ["known_languages", "languages", "nearest", "normalise", "paragraph_languages"]

# A longer text than these pieces together is sampled: number of pieces, and characters of each.
PIECES, LONG_PIECE = 16, 400
# A text of so many characters may be in one language throughout. That is checked by ten places of 128 characters
# and the most unusual place of 200 characters, which is faster than detecting the whole text.
MUCH = 2_500
PLACES, PLACE = 10, 128
ODD_PLACE = 200
# Bytes up to which the script of a text is checked against the answer of CLD2.
SHORT = 200
# Share of a text in no known language; less than this is names and numbers.
MUCH_UNKNOWN = 0.05
# Percentages that CLD2 gives for a text, and for a few words, in one language.
NEARLY_ALL = 99
MOSTLY = 90
# Percentage below which a language is not disambiguated, and a look-alike of the main language counts as that.
CRUMBS = 10
# Bytes of a language in a text that are disambiguated.
HEARD = 2_000

# Bytes from which a paragraph has a language of its own.
MIN_PARAGRAPH = 40
# Share of a paragraph in one language below which the paragraph is detected by itself.
SURE = 0.9

# A text is compared with trained languages in at most 12 pieces of 250 characters, if one of the 3 windows of 150
# characters that are compared first looks like the language; most texts are in no trained language.
PIECE, COMPARED = 250, 12
WINDOWS, WINDOW = 3, 150


def languages(text: str, trained: Collection[str] | None = None) -> tuple[LanguageShare, ...]:
    """Return up to three languages of a clean text with their shares, the largest first.

    `trained` names the trained languages that the text is compared with; None: all of them.
    """
    sample = _sample(text)
    rivals = _plausible(sample, _models(trained))
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


def paragraph_languages(paragraphs: Sequence[str], trained: Collection[str] | None = None) -> list[str]:
    """Return the language of each paragraph, or "" if it is too short or in no known language.

    `trained` names the trained languages that paragraphs are compared with; None: all of them.

    CLD2 sees all paragraphs at once, since it finds the borders between languages. Only paragraphs with an
    uncertain answer are detected again, one by one.
    """
    texts = list(paragraphs)
    answer = ask("\n".join(texts))
    if answer.cleaned:  # then each has to be cleaned, to know where it stands
        texts = list(map(clean, texts))
        answer = ask("\n".join(texts))
    sizes = [len(text.encode()) for text in texts]
    main = next(iter(_percents("\n".join(texts), answer)), "")
    claims = _claims(texts, _models(trained))
    return [
        (claim or _paragraph_language(text, code, main)) if size >= MIN_PARAGRAPH else ""
        for text, size, claim, code in zip(texts, sizes, claims, _majorities(sizes, answer), strict=True)
    ]


def _sample(text: str) -> str:
    """Return the text, or pieces from all parts of a long one."""
    if len(text) <= PIECES * LONG_PIECE:
        return text
    step = len(text) // PIECES
    return "\n".join(text[start : start + LONG_PIECE] for start in range(0, step * PIECES, step))


def _if_in_one(sample: str) -> dict[str, int]:
    """Return the percentage if a text is all in one language; an empty dict if it may not be.

    The time of CLD2 grows with the length of a text. Much of it is saved if some places of the text are in
    one language and the most unusual place is in the same.
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


def _percents(text: str, answer: Detection) -> dict[str, int]:
    """Return the percentage of each language, after disambiguation."""
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


def _reconsidered(text: str, answer: Detection, found: DetectedLanguage, main: str) -> str:
    """Return the language of the part that CLD2 takes for one, given the main language of the text."""
    if main and found.percent < CRUMBS:
        return main if are_alike(found.code, main) else found.code
    part = text if len(answer.found) == 1 else _part(answer, found.code)
    return second_opinion(part, found.code, found.score, main)


def _part(answer: Detection, language: str) -> str:
    """Return the beginning of the part of a text that CLD2 takes for a language."""
    parts: list[bytes] = []
    size = 0
    for start, end, code in answer.stretches():
        if code == language and size < HEARD:
            parts.append(answer.utf8[start:end])
            size += end - start
    return b"\n".join(parts)[:HEARD].decode("utf-8", "ignore")


def _models(trained: Collection[str] | None) -> list[CustomModel]:
    return [model for name, model in trained_languages().items() if trained is None or name in trained]


def _plausible(text: str, models: Sequence[CustomModel]) -> list[CustomModel]:
    """Return the trained languages that fit some place in a text."""
    if not models:
        return []
    step = max(WINDOW, (len(text) - WINDOW) // (WINDOWS - 1))
    windows = [text[start : start + WINDOW] for start in range(0, max(1, len(text) - WINDOW + 1), step)]
    return [each for each in models if max(each.profile.fits(windows)) >= each.floor]


def _with_trained(text: str, rivals: Sequence[CustomModel]) -> dict[str, int]:
    """Return the percentages if trained languages claim a part of a text; an empty dict if not."""
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
    """Return pieces of some hundred characters from all parts of a text, whole lines where they are short."""
    pieces: list[str] = []
    for line in text.split("\n"):
        if pieces and len(pieces[-1]) + len(line) < PIECE:
            pieces[-1] += "\n" + line
        else:
            pieces += [line[start : start + PIECE] for start in range(0, max(1, len(line)), PIECE)]
    return pieces[:: 1 + len(pieces) // COMPARED]


def _claims(texts: Sequence[str], rivals: Sequence[CustomModel]) -> list[str]:
    """Return for each text the name of the trained language that it is in, or ""."""
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


def _majorities(sizes: Sequence[int], answer: Detection) -> Iterator[str]:
    """Yield for each of the texts joined by one byte the language of nearly all of it, or UNKNOWN."""
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
