"""Badness of texts that are good and of many that are not, language by language.

python -m bench.badness [--gold DIR] [--languages cs,sk]

DIR has udhr.tar.gz (the Universal Declaration of Human Rights) and, where present, daniel.tar.gz (news). For every
shipped language:

udhr, news: running text, 5,000 characters of it at most; the style of the Declaration is that of laws
vocabulary: every word of the Declaration once; keywords: the long ones of them (in scripts with spaces)
links: the anchors of the links of news pages, a page at a time
nearest: the shipped language whose Declaration comes nearest, and its Badness
us: microseconds for 5,000 characters

Good texts should stay below 10, everything else above 20; one line at the end gives the number that do.
"""

from __future__ import annotations

import argparse
import json
import re
import tarfile
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from html import unescape
from pathlib import Path
from statistics import median
from typing import Any
from xml.etree import ElementTree

from bench.measure import GOLD, emit, say, table
from thresher.reader.language.badness import DATA, BadnessModel, badness, model

GOOD, OTHER = 10, 20
SIZE = 5_000  # characters of a text
SHORTEST = {"udhr": 1_000, "news": 1_000, "links": 1_000}  # characters; there is little to say of less
KEYWORD = 6  # letters
TIMES = 200  # that one text is judged, for the clock
COLUMNS = (
    "language",
    "words",
    "udhr",
    "news",
    "news_p95",
    "vocabulary",
    "keywords",
    "links",
    "nearest",
    "at",
    "us",
)

CODES = {"nb": "no", "zlm": "ms", "als": "sq", "lah": "pnb", "cmn": "zh"}  # of the archive
NEWS = {"English": "en", "Chinese": "zh", "Polish": "pl", "Greek": "el", "Russian": "ru"}
# Declarations in another script or dialect than the model's, or under another language's name.
OTHER_WRITING = {
    "azj_cyrl",
    "bos_cyrl",
    "ell_polytonic",
    "jav_java",
    "mly_arab",
    "tuk_cyrl",
    "uzn_cyrl",
    "vie_han",
}
OTHER_WRITING |= {"auv", "prv"}
ONE_LANGUAGE = [{"hr", "bs", "sr"}]  # as far as function words go
_LINK = re.compile(r"<a\s[^>]*>(.*?)</a>", re.IGNORECASE | re.DOTALL)
_TAG = re.compile(r"<[^>]*>")

Texts = dict[str, list[str]]  # by language


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m bench.badness", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("--gold", type=Path, default=GOLD, help="where the texts are; or set THRESHER_GOLD")
    parser.add_argument("--languages", default="", help="shipped languages to measure, all if not given")
    asked = parser.parse_args()
    if not (asked.gold / "udhr.tar.gz").exists():
        parser.error(f"no udhr.tar.gz in {asked.gold}; try --gold, or set THRESHER_GOLD")
    shipped = sorted(json.loads(DATA.read_text(encoding="utf-8")))
    declarations = _declarations(asked.gold / "udhr.tar.gz")
    news, links = _news(asked.gold / "daniel.tar.gz")
    others = {language: texts for language, texts in declarations.items() if language in shipped}
    rows = []
    for language in asked.languages.split(",") if asked.languages else shipped:
        found = model(language)
        if found is None:
            parser.error(f"--languages {language}: no model; choose from {', '.join(shipped)}")
        rows.append(_figures(found, others, news.get(language, []), links.get(language, [])))
        emit(rows[-1])
    table(rows, COLUMNS)
    emit(_summary(rows))


def _figures(
    expected: BadnessModel, others: Texts, news: Sequence[str], links: Sequence[str]
) -> dict[str, Any]:
    """Return all figures of one language."""
    own = others.get(expected.language, [])
    words = [] if expected.by_character else [sorted(set(text.split())) for text in own]
    same = next((group for group in ONE_LANGUAGE if expected.language in group), {expected.language})
    away = [
        (badness(text, expected), other)
        for other, texts in others.items()
        if other not in same
        for text in texts
    ]
    near, nearest = min(away)
    good = sorted(badness(text, expected) for text in news)
    return {
        "language": expected.language,
        "words": len(expected.words),
        "udhr": _median(expected, own),
        "news": median(good) if good else None,
        "news_p95": good[len(good) * 95 // 100] if good else None,
        "news_texts": len(good),
        "vocabulary": _median(expected, [" ".join(each) for each in words]),
        "keywords": _median(
            expected, [" ".join(word for word in each if len(word) >= KEYWORD) for each in words]
        ),
        "links": _median(expected, links),
        "nearest": nearest,
        "at": near,
        "above_20": sum(value > OTHER for value, _ in away) / len(away),
        "us": _microseconds(expected, (own or list(news) or [" ".join(expected.words[0].forms)])[0]),
    }


def _median(expected: BadnessModel, texts: Sequence[str]) -> float | None:
    return median(badness(text, expected) for text in texts) if texts else None


def _microseconds(expected: BadnessModel, text: str) -> float:
    text = (text * SIZE)[:SIZE]
    started = time.process_time()
    for _ in range(TIMES):
        badness(text, expected)
    return 1e6 * (time.process_time() - started) / TIMES


def _summary(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return how many languages meet each demand, and for how many it could be measured."""

    def holding(column: str, holds: range) -> str:
        seen = [row[column] for row in rows if row[column] is not None]
        return f"{sum(holds.start <= value < holds.stop for value in seen)}/{len(seen)}"

    good, other = range(GOOD), range(OTHER, 1_000)
    return {
        "name": "summary",
        **{f"{column}_below_10": holding(column, good) for column in ("udhr", "news", "news_p95")},
        **{
            f"{column}_above_20": holding(column, other)
            for column in ("vocabulary", "keywords", "links", "at")
        },
        "us": median(row["us"] for row in rows),
    }


def _declarations(archive: Path) -> Texts:
    texts: defaultdict[str, list[str]] = defaultdict(list)
    for path, raw in _files(archive):
        key = path.stem.removeprefix("udhr_")
        if path.suffix != ".xml" or key.isdigit() or key in OTHER_WRITING:
            continue
        root = ElementTree.fromstring(raw)
        tag = root.get("{http://www.w3.org/XML/1998/namespace}lang", "").partition("-")[0]
        text = "\n".join(
            "".join(part.itertext()).strip() for part in root.iter() if part.tag.endswith("para")
        )
        if len(text) >= SHORTEST["udhr"]:
            texts[CODES.get(tag, tag)].append(text[:SIZE])
    return texts


def _news(archive: Path) -> tuple[Texts, Texts]:
    """Return the texts of news pages, and the anchors of their links."""
    if not archive.exists():
        say(f"no {archive}: no news")
        return {}, {}
    files = dict(_files(archive))
    rows = next(raw for path, raw in files.items() if path.name == "pages.jsonl")
    language = {page["id"]: NEWS.get(page["language"], "") for page in map(json.loads, rows.splitlines())}
    texts: dict[str, Texts] = {"gold": defaultdict(list), "html": defaultdict(list)}
    for path, raw in files.items():
        kind, code = path.parent.name, language.get(path.name, "")
        if kind not in texts or not code:
            continue
        page = raw.decode("utf-8", "replace")
        shown = page if kind == "gold" else "\n".join(_LINK.findall(page))
        text = unescape(_TAG.sub(" ", shown)).strip()
        if len(text) >= SHORTEST["news" if kind == "gold" else "links"]:
            texts[kind][code].append(text[:SIZE])
    return texts["gold"], texts["html"]


def _files(archive: Path) -> Iterator[tuple[Path, bytes]]:
    with tarfile.open(archive) as opened:
        for member in opened:
            if member.isfile() and (file := opened.extractfile(member)):
                yield Path(member.name), file.read()


if __name__ == "__main__":
    main()
