"""Spam signals, and how well they distinguish generated text from text that people wrote.

python -m bench.signs [--gold DIR] [--part test]

DIR has daniel.tar.gz, wcxb.tar.gz and dragnet.tar.gz (pages with the text that people found in them) and,
where present, udhr.tar.gz (the Universal Declaration of Human Rights in hundreds of languages): the good texts.
The bad ones are made of them, each kind from the texts of one half of the sites:

chain, chain 2: words drawn by the one or two words before; small chain: the same from six texts alone
bag: words drawn as often as they are used; list: long words, each once; keywords: eight words over and over
stuffed: a good text with a phrase pushed in after every eighth to twentieth word
spun: one paragraph many times, some words exchanged; farm: links to other sites by a few words
doors: a page for every town, with links to all others

One line of JSON for each signal: how surely it recognises the kind that it is for (AUC), how many good texts and
how many of that kind reach 0.5. Then one for each kind by all signals together, and the time.
"""

from __future__ import annotations

import argparse
import random
import tarfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree import ElementTree

from bench.measure import GOLD, emit, say, table
from thresher.reader import read
from thresher.reader.quality.spam_signals import spam_signals
from thresher.records import Link, Reply, SpamSignals
from thresher_lab.training.gold import load, split

SETS = ("daniel", "wcxb", "dragnet")
SHORTEST = 300  # characters of a text
SUSPICIOUS = 0.5
EACH = 200  # texts of each bad kind
HOST_PAGES = 10
HEADERS = b"HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\n\r\n"
KINDS_OF = {  # the kinds of text that each signal is for
    "repetition": "spun",
    "stuffing": "stuffed",
    "flatness": "list",
    "incoherence": "chain",
    "link_farm": "farm",
    "doorway": "doors",
}
COLUMNS = ("name", "for", "auc", "recall", "false_alarms", "texts")


class Text(NamedTuple):
    """A page, as far as the signals depend on it."""

    paragraphs: Sequence[str]
    links: Sequence[Link]
    url: str
    site: str


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.signs", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--gold", type=Path, default=GOLD, help="where the texts are; or set THRESHER_GOLD")
    parser.add_argument("--part", choices=("train", "test"), default="test", help="half of the sites")
    asked = parser.parse_args()
    missing = [name for name in SETS if not (asked.gold / f"{name}.tar.gz").exists()]
    if missing:
        parser.error(f"no {missing[0]}.tar.gz in {asked.gold}; try --gold, or set THRESHER_GOLD")
    pools = _gold(asked.gold, asked.part)
    texts = [text for pool in pools.values() for text in pool]
    good = {name: _signs_of(pool) for name, pool in _by_set(pools).items()}
    good["udhr"] = _signs_of(list(_declarations(asked.gold / "udhr.tar.gz")))
    bad = {kind: _signs_of(made) for kind, made in _bad(pools, texts).items()}
    everything = [page for name in SETS for page in good[name]]
    rows = [_sign(name, everything, bad[kind], kind) for name, kind in KINDS_OF.items()]
    rows += [_kind(kind, everything, pages) for kind, pages in bad.items()]
    rows += [
        {"name": f"good: {name}", "texts": len(pages), "false_alarms": _share(pages)}
        for name, pages in good.items()
        if pages
    ]
    for row in (*rows, _clock(texts)):
        emit(row)
    table(rows, COLUMNS)


def _signs_of(texts: Sequence[Text]) -> list[SpamSignals]:
    return [spam_signals(text.paragraphs, text.links, text.url) for text in texts]


def _share(pages: Sequence[SpamSignals]) -> float:
    return sum(page.suspicion >= SUSPICIOUS for page in pages) / max(1, len(pages))


def _sign(name: str, good: Sequence[SpamSignals], bad: Sequence[SpamSignals], kind: str) -> dict[str, Any]:
    ours, theirs = ([getattr(page, name) for page in pages] for pages in (good, bad))
    return {
        "name": name,
        "for": kind,
        "auc": _auc(ours, theirs),
        "recall": sum(value >= SUSPICIOUS for value in theirs) / len(theirs),
        "false_alarms": sum(value >= SUSPICIOUS for value in ours) / len(ours),
        "texts": len(theirs),
    }


def _kind(kind: str, good: Sequence[SpamSignals], bad: Sequence[SpamSignals]) -> dict[str, Any]:
    ours, theirs = ([page.suspicion for page in pages] for pages in (good, bad))
    return {"name": f"all: {kind}", "auc": _auc(ours, theirs), "recall": _share(bad), "texts": len(bad)}


def _auc(good: Sequence[float], bad: Sequence[float]) -> float:
    """Return how often a bad text scores above a good one; ties count half."""
    order = sorted([(value, 0) for value in good] + [(value, 1) for value in bad])
    below = wins = at = 0.0
    while at < len(order):
        same = [is_bad for value, is_bad in order[int(at) :] if value == order[int(at)][0]]
        wins += sum(same) * (below + (len(same) - sum(same)) / 2)
        below += len(same) - sum(same)
        at += len(same)
    return wins / (len(good) * len(bad))


def _clock(texts: Sequence[Text]) -> dict[str, Any]:
    some = [text for text in texts if _is_usual(text)][:200]
    best = 1e9
    for _ in range(5):
        started = time.process_time()
        _signs_of(some)
        best = min(best, time.process_time() - started)
    return {
        "name": "clock",
        "pages": len(some),
        "links": sum(len(text.links) for text in some) / max(1, len(some)),
        "us": 1e6 * best / max(1, len(some)),
    }


def _is_usual(text: Text) -> bool:
    """Return whether a page has about 5,000 characters and 80 links."""
    return 4_000 <= sum(map(len, text.paragraphs)) <= 8_000 and 40 <= len(text.links) <= 120


# ── Good texts ──


def _gold(home: Path, part: str) -> dict[tuple[str, str], list[Text]]:
    """Return good texts by set and by language or type of page."""
    pools: defaultdict[tuple[str, str], list[Text]] = defaultdict(list)
    for page in load(home / f"{name}.tar.gz" for name in SETS):
        if split(page) != part or len(page.text) < SHORTEST:
            continue
        url = f"http://{page.host}/"
        found = read(Reply(url, 200, HEADERS, page.html.encode("utf-8", "replace"), 0, 0, ""))
        paragraphs = [line.strip() for line in page.text.split("\n") if line.strip()]
        key = page.set, page.kind if page.set == "daniel" else ""
        pools[key].append(Text(paragraphs, found.links, url, page.host))
    return pools


def _by_set(pools: dict[tuple[str, str], list[Text]]) -> dict[str, list[Text]]:
    return {name: [text for key, pool in pools.items() if key[0] == name for text in pool] for name in SETS}


def _declarations(archive: Path) -> Iterator[Text]:
    if not archive.exists():
        say(f"no {archive}: no Declarations")
        return
    with tarfile.open(archive) as opened:
        for member in opened:
            file = opened.extractfile(member) if member.name.endswith(".xml") else None
            if file:
                root = ElementTree.fromstring(file.read())
                found = [
                    "".join(part.itertext()).strip() for part in root.iter() if part.tag.endswith("para")
                ]
                if sum(map(len, found)) >= SHORTEST:
                    yield Text(found, (), "http://declaration.example/", member.name)


# ── Bad texts ──

Maker = Callable[[random.Random, list[Text], str], Text]


def _bad(pools: dict[tuple[str, str], list[Text]], texts: Sequence[Text]) -> dict[str, list[Text]]:
    """Return texts of each kind, from all pools that have some texts, on pages with the links of good ones."""
    made: dict[str, list[Text]] = {}
    for kind, make in MAKERS.items():
        dice = random.Random(kind)
        large = [pool for pool in pools.values() if len(pool) >= 20]
        made[kind] = []
        for number in range(EACH):  # pages of one host come from one pool
            pool = large[number // HOST_PAGES % len(large)]
            space = " " if _spaced(pool[0]) else ""
            text = make(dice, pool, space)
            made[kind].append(text if text.links else text._replace(links=dice.choice(texts).links))
    return made


def _spaced(text: Text) -> bool:
    line = " ".join(text.paragraphs)[:2_000]
    return line.count(" ") > len(line) / 25


def _units(text: Text, space: str) -> list[str]:
    """Return the words of a text, or its characters if it has no spaces."""
    return " ".join(text.paragraphs).split() if space else list("".join(text.paragraphs))


def _page(units: Sequence[str], space: str) -> Text:
    paragraphs = [space.join(units[start : start + 80]) for start in range(0, len(units), 80)]
    return Text(paragraphs, (), "http://nobody.example/", "")


def _chain(dice: random.Random, pool: list[Text], space: str, order: int = 1, sources: int = 40) -> Text:
    order += not space
    follows: defaultdict[tuple[str, ...], list[str]] = defaultdict(list)
    for text in dice.sample(pool, min(sources, len(pool))):
        units = _units(text, space)
        for start in range(len(units) - order):
            follows[tuple(units[start : start + order])].append(units[start + order])
    made = list(dice.choice(list(follows)))
    length = dice.choice((150, 300, 600, 900))
    while len(made) < length:
        made += [dice.choice(follows.get(tuple(made[-order:])) or list(dice.choice(list(follows))))]
    return _page(made, space)


def _chain_2(dice: random.Random, pool: list[Text], space: str) -> Text:
    return _chain(dice, pool, space, order=2)


def _small_chain(dice: random.Random, pool: list[Text], space: str) -> Text:
    return _chain(dice, pool, space, sources=6)


def _drawn(dice: random.Random, pool: list[Text], space: str, count: int) -> list[str]:
    return [dice.choice(_units(dice.choice(pool), space)) for _ in range(count)]


def _long(dice: random.Random, pool: list[Text], space: str, count: int) -> list[str]:
    """Return different words of some length, or pairs of characters."""
    found: dict[str, None] = {}
    for text in dice.sample(pool, len(pool)):
        units = _units(text, space)
        found |= dict.fromkeys(
            (unit for unit in units if len(unit) >= 5) if space else map("".join, pairwise(units))
        )
    return dice.sample(list(found), min(count, len(found)))


def _bag(dice: random.Random, pool: list[Text], space: str) -> Text:
    return _page(_drawn(dice, pool, space, dice.choice((150, 300, 600))), space)


def _list(dice: random.Random, pool: list[Text], space: str) -> Text:
    return _page(_long(dice, pool, space, dice.choice((100, 200, 500))), space or "、")


def _keywords(dice: random.Random, pool: list[Text], space: str) -> Text:
    words = _long(dice, pool, space, 8)
    return _page([dice.choice(words) for _ in range(dice.choice((100, 250)))], space or "、")


def _stuffed(dice: random.Random, pool: list[Text], space: str) -> Text:
    phrase, every = space.join(_long(dice, pool, space, 2)), dice.choice((8, 12, 20))
    units = _units(dice.choice(pool), space)[:700]
    return _page([unit + space + phrase if n % every == 0 else unit for n, unit in enumerate(units)], space)


def _spun(dice: random.Random, pool: list[Text], space: str) -> Text:
    frame = _units(dice.choice(pool), space)[:50]
    made = []
    for _ in range(dice.randint(6, 20)):
        turn = list(frame)
        for word in _drawn(dice, pool, space, 4):
            turn[dice.randrange(len(turn))] = word
        made += turn
    return _page(made, space)


def _farm(dice: random.Random, pool: list[Text], space: str) -> Text:
    words = _long(dice, pool, " " if space else "", 12)
    links = [
        Link(f"http://site{number}.example/", " ".join(dice.sample(words, dice.randint(2, 3))), 0.3, False)
        for number in range(dice.randint(50, 200))
    ]
    units = _units(dice.choice(pool), space)[: dice.choice((10, 60, 120))]
    return _page(units, space)._replace(links=links)


def _doors(dice: random.Random, pool: list[Text], space: str) -> Text:
    """Return pages of one host for all texts of a pool, which differ in the name of a town."""
    trade, *towns = _long(random.Random(len(pool)), pool, space, 61)
    town = dice.choice(towns)
    units = _units(pool[0], space)[:400]
    made = [f"{trade}{space}{town}" if number % 10 == 0 else unit for number, unit in enumerate(units)]
    links = [
        Link(f"http://nobody.example/{n}", f"{trade} {name}", 0.3, False) for n, name in enumerate(towns)
    ]
    return _page(made, space)._replace(links=links)


MAKERS: dict[str, Maker] = {
    "chain": _chain,
    "chain 2": _chain_2,
    "small chain": _small_chain,
    "bag": _bag,
    "list": _list,
    "keywords": _keywords,
    "stuffed": _stuffed,
    "spun": _spun,
    "farm": _farm,
    "doors": _doors,
}


if __name__ == "__main__":
    main()
