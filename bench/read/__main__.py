"""The reader against other readers, on pages with text annotated by people.

python -m bench.read [--gold DIR] [--sets daniel,wcxb,dragnet] [--only quality,speed,links,markup,held-out]
                     [--worst 10] [--taught DIR]

DIR has the sets as folders or .tar.gz, in the layout that `thresher_lab.training.gold` describes. Except for the
last part, pages come from sites that the reader was not trained on.

quality: token F1 of the text, a mean over pages. Beside the readers, the best possible choice of blocks.
speed: pages of 30 to 80 KB per processor second. All readers get the same decoded text; imports are not counted;
all take turns for some rounds, and the best round of each counts.
links: boilerplate scores of blocks and of the links in them, against gold blocks: precision and recall of
boilerplate at 0.5, expected calibration error.
markup: links and visible words of all pages, against the tree of a real HTML parser.
held-out: each set read by a model that never saw it, trained on the others and on the set `--taught` (see
`bench.teach`). Needs LightGBM.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np

from bench.measure import GOLD, ROOT, emit, peers_python, run, say, table
from bench.peers.readers import READERS
from bench.read.lexbor_walk import MAX_ANCHORS, compare
from thresher.errors import UsageError
from thresher.reader import read
from thresher.reader.html import scan_page
from thresher.reader.html.boilerplate import BoilerplateTrees, cut, score
from thresher.records import Reply
from thresher_lab.training.gold import F1, UNCLEAR, GoldPage, labels, load, split, token_f1
from thresher_lab.training.train_boilerplate import train

PARTS = ("quality", "speed", "links", "markup", "held-out")
SETS = ("daniel", "wcxb", "dragnet")
ENGLISH = ("wcxb", "dragnet")  # sets with kinds of pages instead of languages
TIMED_BYTES = range(30_000, 80_001)
WARM_UP = 20  # pages read before the clock runs, of sites that are not in the contest
ROUNDS = 3  # in each of which every reader is timed; its best one counts
BINS = 10  # of scores, for the calibration error
HEADERS = b"HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\n"

Figures = dict[str, Any]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.read", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--gold", type=Path, default=GOLD, help="where the sets are; or set THRESHER_GOLD")
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--only", default=",".join(PARTS), help="some of the parts: %(default)s")
    parser.add_argument("--taught", type=Path, help="a further set to learn from where one is held out")
    parser.add_argument("--worst", type=int, default=0, help="pages to show on which markup differs most")
    asked = parser.parse_args()
    parts = asked.only.split(",")
    if unknown := set(parts).difference(PARTS):
        parser.error(f"--only {unknown.pop()}: choose from {', '.join(PARTS)}")
    try:
        pages = load(_path(asked.gold, name) for name in asked.sets.split(","))
    except UsageError as error:
        sys.exit(f"bench.read: {error}")
    test = [page for page in pages if split(page) == "test"]
    say(f"{len(pages):,} pages of {asked.sets}; {len(test):,} of sites not trained on")
    if not test:
        sys.exit("bench.read: all sites of this gold are in the half for training; take a gold of more sites")
    if "quality" in parts or "speed" in parts:
        warm_up = [page for page in pages if split(page) == "train"][:WARM_UP]
        _contest(warm_up, test, quality="quality" in parts, speed="speed" in parts)
    if "links" in parts:
        _links(test)
    if "markup" in parts:
        compare(pages, asked.worst)
    if "held-out" in parts:
        _held_out(pages, test, load([asked.taught]) if asked.taught else [])


def _path(folder: Path, name: str) -> Path:
    return folder / name if (folder / name).is_dir() else folder / f"{name}.tar.gz"


def _key(page: GoldPage) -> str:
    return f"{page.set}/{page.id}"


def _contest(warm_up: Sequence[GoldPage], test: Sequence[GoldPage], *, quality: bool, speed: bool) -> None:
    timed = [page for page in test if speed and len(page.html.encode()) in TIMED_BYTES]
    seconds = {name: min(times) for name, times in _times(warm_up, timed).items()} if timed else {}
    rows: list[Figures] = []
    with _file_of(warm_up, test if quality else []) as path:
        for name in READERS:
            row: Figures = {"name": name, "timed_pages": len(timed)}
            row |= {"pages_per_cpu_s": len(timed) / seconds[name]} if timed else {}
            if quality:
                say(f"{name}: {len(test):,} pages")
                found = _read_by(name, path)
                row |= {"version": found["version"]}
                row |= _quality(test, {key: page["text"] for key, page in found["pages"].items()})
            emit(row)
            rows.append(row)
    emit({"name": "ratios", **_lead(rows)})
    if quality:
        best = {_key(page): _gold_blocks(page) for page in test}
        rows.append({"name": "gold blocks", **_quality(test, best)})
        emit(rows[-1])
    _tables(rows)


def _times(warm_up: Sequence[GoldPage], timed: Sequence[GoldPage]) -> dict[str, list[float]]:
    """Return the processor seconds of every reader for all pages, in several rounds: machine speed varies."""
    times: dict[str, list[float]] = {name: [] for name in READERS}
    with _file_of(warm_up, timed) as path:
        for number in range(ROUNDS):
            for name in READERS:
                say(f"round {number + 1}, {name}: {len(timed):,} pages")
                times[name].append(sum(page["cpu_s"] for page in _read_by(name, path)["pages"].values()))
    return times


@contextmanager
def _file_of(warm_up: Sequence[GoldPage], pages: Sequence[GoldPage]) -> Iterator[str]:
    """Write a file of pages in the form that readers take."""
    with tempfile.NamedTemporaryFile("w", prefix="thresher-bench-", suffix=".jsonl") as file:
        file.writelines(_line(page, "") for page in warm_up)
        file.writelines(_line(page, _key(page)) for page in pages)
        file.flush()
        yield file.name


def _read_by(name: str, path: str) -> Figures:
    """Return the texts that one reader found in all pages, in a process of its own."""
    package, *_ = READERS[name]
    python = sys.executable if package == "thresher" else peers_python()
    found: Figures = json.loads(run([python, ROOT / "bench" / "peers" / "readers.py", name, path]).output)
    return found


def _line(page: GoldPage, key: str) -> str:
    language = "English" if page.set in ENGLISH else page.kind
    return json.dumps({"key": key, "language": language, "html": page.html}) + "\n"


def _quality(pages: Sequence[GoldPage], texts: Mapping[str, str]) -> Figures:
    """Return precision, recall and F1 of one reader in each set and kind of page, a mean over pages."""
    groups: defaultdict[str, list[F1]] = defaultdict(list)
    for page in pages:
        found = token_f1(texts[_key(page)], page.text)
        groups[page.set].append(found)
        if page.kind:
            groups[f"{page.set}/{page.kind}"].append(found)
    return {
        measure: {
            group: fmean(getattr(one, measure) for one in found) for group, found in sorted(groups.items())
        }
        for measure in F1._fields
    }


def _gold_blocks(page: GoldPage) -> str:
    """Return the blocks of a page that the gold marks as text: an upper bound for readers that score blocks."""
    texts = scan_page.scan(page.html.encode(), MAX_ANCHORS).texts
    shares = labels(texts, page.text)
    return "\n".join(text for text, share in zip(texts, shares, strict=True) if share >= 0.5)


def _tables(rows: Sequence[Figures]) -> None:
    flat = [{**row, **row.get("f1", {})} for row in rows]
    groups = list(rows[0].get("f1", {}))
    speed = ["pages_per_cpu_s"] if "pages_per_cpu_s" in rows[0] else []
    table(flat, ("name", *(group for group in groups if "/" not in group), *speed))
    for name in [group for group in groups if "/" not in group]:
        kinds = [group for group in groups if group.startswith(f"{name}/")]
        if kinds:
            table(flat, ("name", *kinds))


def _lead(rows: Sequence[Figures]) -> Figures:
    """Return the speed relative to each peer, and the lead over the best of them in every kind of page."""
    ours = rows[0]
    peers = [row for row in rows if not row["name"].startswith("thresher")]
    lead: Figures = {}
    if "f1" in ours:
        best = {group: max(peer["f1"][group] for peer in peers) for group in ours["f1"]}
        lead["f1_ahead_of_best"] = {group: found - best[group] for group, found in ours["f1"].items()}
    if ours["timed_pages"]:
        speed = ours["pages_per_cpu_s"]
        lead["pages_per_cpu_s"] = {peer["name"]: speed / peer["pages_per_cpu_s"] for peer in peers}
    return lead


@dataclass
class Judged:
    """Scores, and for each whether it is of boilerplate."""

    scores: list[float]
    is_boilerplate: list[bool]

    def add(self, score: float, is_boilerplate: bool) -> None:
        self.scores.append(score)
        self.is_boilerplate.append(is_boilerplate)

    def figures(self) -> Figures:
        scores, truth = np.array(self.scores), np.array(self.is_boilerplate)
        called = scores >= 0.5
        right = int((called & truth).sum())
        bins = np.minimum(scores * BINS, BINS - 1).astype(int)
        off = np.bincount(bins, scores - truth, BINS)
        return {
            "count": len(scores),
            "boilerplate": float(truth.mean()),
            "precision": right / max(1, int(called.sum())),
            "recall": right / max(1, int(truth.sum())),
            "calibration_error": float(np.abs(off).sum() / len(scores)),
        }


def _held_out(pages: Sequence[GoldPage], test: Sequence[GoldPage], taught: Sequence[GoldPage]) -> None:
    """Return the quality of each set read by a model trained on the others and on unmarked pages."""
    rows = []
    for name in dict.fromkeys(page.set for page in test):
        say(f"held out: {name}")
        trees = BoilerplateTrees(train([page for page in pages if page.set != name], taught))
        chosen = [page for page in test if page.set == name]
        rows.append(
            {"name": "held-out", **_quality(chosen, {_key(page): _text(page, trees) for page in chosen})}
        )
        emit(rows[-1])


def _text(page: GoldPage, trees: BoilerplateTrees) -> str:
    markup = scan_page.scan(page.html.encode("utf-8", "replace"), MAX_ANCHORS)
    scores = score(markup, trees)
    chosen = (scores < cut(scores, markup)).tolist()
    return "\n".join(text for text, is_text in zip(markup.texts, chosen, strict=True) if is_text)


def _links(pages: Sequence[GoldPage]) -> None:
    """Return scores of blocks that are clearly text or clearly not, and of the links in them."""
    groups: defaultdict[str, tuple[Judged, Judged]] = defaultdict(lambda: (Judged([], []), Judged([], [])))
    for page in pages:
        utf8 = page.html.encode()
        blocks = read(Reply("http://page.example/", 200, HEADERS, utf8, 0.0, 0.0, "")).blocks
        shares = labels([block.text for block in blocks], page.text)
        anchors = Counter(scan_page.scan(utf8, MAX_ANCHORS).anchors.blocks.tolist())
        for number, (block, share) in enumerate(zip(blocks, shares.tolist(), strict=True)):
            if UNCLEAR[0] <= share <= UNCLEAR[1]:
                continue
            for group in ("all", page.set):
                of_blocks, of_links = groups[group]
                of_blocks.add(block.boilerplate, share < UNCLEAR[0])
                for _ in range(anchors[number]):
                    of_links.add(block.boilerplate, share < UNCLEAR[0])
    rows = []
    for group, judged in groups.items():
        for what, found in zip(("blocks", "links"), judged, strict=True):
            if found.scores:
                rows.append({"name": "scores", "set": group, "of": what, **found.figures()})
                emit(rows[-1])
    if rows:
        table(rows, tuple(rows[0])[1:])


if __name__ == "__main__":
    main()
