"""Grow the trees that tell text from boilerplate, from pages whose text is known.

    python -m thresher.lab.train_boilerplate GOLD… [--taught SET…] [--out FILE] [--all]

GOLD and SET are sets as `thresher.lab.gold` describes them. Those who marked one set agree on what text is, and are
at odds with those who marked another; so each GOLD grows trees of its own, and further ones learn which pages are
like those of which set. Pages like none of them are read by what was learned from all `--taught` sets: many kinds
of pages that nobody marked, with the texts that several readers find in them.

Only the sites of the training half are learned from, so that the other half can be used to measure; `--all` learns
from both. Taught sets are always learned from whole.

Needs LightGBM: pip install 'thresher[train]'
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Sequence
from itertools import combinations
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from thresher.config import ConfigError
from thresher.lab.gold import UNCLEAR, GoldPage, labels, load, split
from thresher.read.boilerplate import DATA, REMARKS, Forest, Model, measured, remarks
from thresher.read.html import Markup, scan
from thresher.read.scan.layout import B_LENGTH
from thresher.read.scan.surroundings import MEASURES, OWN_MEASURES

MAX_ANCHORS = 20_000
BY_LENGTH = 0.75  # how much of what a block counts is by its length; the rest is for being there
RIDGE = 1.0  # how strongly the weights of the first guess are held to nothing
ROUNDS = 12  # of Newton's method; it settles in fewer
EMPTIED, EMPTIED_WEIGHT = 4, 0.02  # every so many pages are learned from once more, without their text
DOUBT = 3.0  # how much more pages have to look like those of a GOLD than like any others to be read as one
TREES, DEPTH, LEAVES = 60, 5, 16
PAGE_TREES, PAGE_DEPTH, PAGE_LEAVES = 120, 3, 8  # for each kind of page
SETTINGS = {
    "learning_rate": 0.12,
    "feature_fraction": 0.6,
    "bagging_fraction": 0.8,
    "bagging_freq": 1,
    "lambda_l2": 5.0,
    "seed": 1,
    "deterministic": True,
    "force_row_wise": True,
    "verbose": -1,
}

Floats = NDArray[np.float64]


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m thresher.lab.train_boilerplate", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("gold", nargs="+", type=Path, help="sets of pages with their text")
    parser.add_argument(
        "--taught", action="append", default=[], type=Path, help="a set of pages that nobody marked"
    )
    parser.add_argument("--out", type=Path, default=DATA, help="where the model goes: %(default)s")
    parser.add_argument("--all", action="store_true", help="learn from all sites, not from half of them")
    asked = parser.parse_args()
    try:
        marked = [page for page in load(asked.gold) if asked.all or split(page) == "train"]
        taught = load(asked.taught)
        print(f"learning from {len(marked) + len(taught):,} pages …", file=sys.stderr)
        model = train(marked, taught)
    except ConfigError as fault:
        sys.exit(f"train_boilerplate: {fault}")
    asked.out.parent.mkdir(parents=True, exist_ok=True)
    asked.out.write_bytes(msgspec.msgpack.encode(model))
    print(f"{asked.out}: {asked.out.stat().st_size:,} bytes", file=sys.stderr)


def train(marked: Iterable[GoldPage], taught: Iterable[GoldPage] = ()) -> Model:
    """A model of pages that people marked, set by set, and of others."""
    lessons: dict[str, list[_Lesson]] = {}
    for page in marked:
        lessons.setdefault(page.set, []).append(_lesson(page))
    leanings = [0.0] * len(lessons)
    if others := [_lesson(page) for page in taught]:
        lessons[""] = others
        leanings.append(np.log(DOUBT))
    kinds = [[*each, *map(_emptied, each[::EMPTIED])] for each in lessons.values()]
    guess = _first_guess([lesson for kind in kinds for lesson in kind])
    return Model(
        MEASURES,
        REMARKS,
        guess.tobytes(),
        _joined(_page_trees(list(lessons.values()), guess), PAGE_DEPTH),
        np.array(leanings).tobytes(),
        _joined([tree for kind in kinds for tree in _block_trees(kind, guess)], DEPTH),
    )


class _Lesson(NamedTuple):
    """A page to learn from: what share of each block is text, and how much the page counts."""

    markup: Markup
    shares: Floats
    weight: float


def _lesson(page: GoldPage) -> _Lesson:
    """A page by all that is said of its text. The first to speak counts as much as all others together.

    Pages on which they agree count more.
    """
    markup = scan(page.html.encode("utf-8", "replace"), MAX_ANCHORS)
    said = [labels(markup.texts, text) for text in (page.text, *page.others)]
    others = np.mean(said[1:] or said, axis=0)
    return _Lesson(markup, (said[0] + others) / 2, _agreement(said, _lengths(markup)))


def _agreement(said: Sequence[Floats], lengths: Floats) -> float:
    """How much of their texts any two have in common, a mean."""
    pairs = [(2 * lengths @ np.minimum(a, b), lengths @ (a + b)) for a, b in combinations(said, 2)]
    return fmean(common / total if total else 1.0 for common, total in pairs) if pairs else 1.0


def _emptied(lesson: _Lesson) -> _Lesson:
    """The page without its text: nobody marks pages that hold none, but the web is full of them."""
    left = np.flatnonzero(lesson.shares <= UNCLEAR[0])
    whole = lesson.markup
    markup = Markup(whole.length, [whole.texts[n] for n in left], whole.blocks[left], whole.elements)
    return _Lesson(markup, lesson.shares[left], EMPTIED_WEIGHT * lesson.weight)


def _lengths(markup: Markup) -> Floats:
    return markup.blocks[:, B_LENGTH].astype(np.float64)


class _Rows(NamedTuple):
    """Blocks that are clearly text or clearly not."""

    table: Floats
    is_text: Floats
    importance: Floats


def _rows(lessons: Sequence[_Lesson], guess: Floats) -> _Rows:
    shares = np.concatenate([np.empty(0), *(lesson.shares for lesson in lessons)])
    clear = (shares <= UNCLEAR[0]) | (shares >= UNCLEAR[1])
    if len(np.unique(shares[clear] > 0.5)) < 2:
        raise ConfigError("too little to learn from: no text, or nothing but text; take more pages, or --all")
    table = np.concatenate([measured(lesson.markup, guess) for lesson in lessons])[clear]
    importance = np.concatenate([_importance(lesson.markup) * lesson.weight for lesson in lessons])[clear]
    return _Rows(table, (shares[clear] > 0.5).astype(np.float64), importance / importance.mean())


def _importance(markup: Markup) -> Floats:
    """How much each block counts; all pages alike."""
    lengths = _lengths(markup)
    shares: Floats = BY_LENGTH * lengths / max(1.0, lengths.sum()) + (1 - BY_LENGTH) / max(1, len(lengths))
    return shares


def _first_guess(lessons: Sequence[_Lesson]) -> Floats:
    """Weights of a logistic model, by Newton's method; the last one is the constant."""
    table, is_text, importance = _rows(lessons, np.zeros(OWN_MEASURES + 1))
    table = table[:, :OWN_MEASURES]
    mean, spread = table.mean(axis=0), table.std(axis=0)
    spread[spread < 1e-5] = 1.0
    columns = np.column_stack([(table - mean) / spread, np.ones(len(table))])
    found = np.zeros(columns.shape[1])
    for _ in range(ROUNDS):
        likely = 1.0 / (1.0 + np.exp(-columns @ found))
        slope = columns.T @ (importance * (is_text - likely)) - RIDGE * found
        curve = (columns * (importance * likely * (1.0 - likely))[:, None]).T @ columns
        found += np.linalg.solve(curve + RIDGE * np.eye(len(found)), slope)
    scaled = found[:-1] / spread
    return np.append(scaled, found[-1] - (mean * scaled).sum())


def _block_trees(lessons: Sequence[_Lesson], guess: Floats) -> list[Forest]:
    """Trees that tell text from boilerplate."""
    rows = _rows(lessons, guess)
    settings = {
        "objective": "binary",
        "num_leaves": LEAVES,
        "max_depth": DEPTH,
        "min_data_in_leaf": 60,
        "max_bin": 63,
    }
    return _grown(rows.table, rows.is_text, rows.importance, settings, TREES, DEPTH)


def _page_trees(kinds: Sequence[Sequence[_Lesson]], guess: Floats) -> list[Forest]:
    """Trees that tell kinds of pages apart, kind by kind; where there is only one, there is nothing to tell."""
    pages = [
        (number, lesson.markup) for number, kind in enumerate(kinds) for lesson in kind if lesson.markup.texts
    ]
    if len(kinds) == 1:
        return []
    table = [
        np.append(measured(page, guess)[:, :OWN_MEASURES].mean(axis=0), remarks(page)) for _, page in pages
    ]
    settings = {
        "objective": "multiclass",
        "num_class": len(kinds),
        "num_leaves": PAGE_LEAVES,
        "max_depth": PAGE_DEPTH,
        "min_data_in_leaf": 20,
        "feature_fraction": 0.4,
    }
    numbers = np.array([number for number, _ in pages], np.float64)
    grown = _grown(np.array(table), numbers, np.ones(len(pages)), settings, PAGE_TREES, PAGE_DEPTH)
    return [tree for kind in range(len(kinds)) for tree in grown[kind :: len(kinds)]]


def _grown(
    table: Floats, truth: Floats, importance: Floats, settings: dict[str, Any], rounds: int, depth: int
) -> list[Forest]:
    try:
        import lightgbm
    except ImportError:
        sys.exit("train_boilerplate: LightGBM is not installed; pip install 'thresher[train]'")
    rows = lightgbm.Dataset(table, truth, weight=importance)
    booster = lightgbm.train(SETTINGS | settings, rows, rounds)
    trees = [_complete(tree["tree_structure"], depth) for tree in booster.dump_model()["tree_info"]]
    silent = _complete({"leaf_value": 0.0}, depth)  # where nothing was left to learn, fewer trees are grown
    return trees + [silent] * (rounds * settings.get("num_class", 1) - len(trees))


def _complete(tree: dict[str, Any], depth: int) -> Forest:
    """A tree with all its leaves at one depth."""
    columns, bounds = np.zeros((1 << depth) - 1, np.uint8), np.full((1 << depth) - 1, np.inf, np.float32)
    values = np.zeros(1 << depth, np.float32)
    waiting = [(0, 0, tree)]
    for node, level, part in waiting:  # grows while it is gone through
        if level == depth:
            values[node - len(columns)] = part["leaf_value"]
        elif "leaf_value" in part:  # nothing is above infinity
            waiting.append((2 * node + 1, level + 1, part))
        else:
            columns[node], bounds[node] = part["split_feature"], part["threshold"]
            waiting += [
                (2 * node + 1 + side, level + 1, part[child])
                for side, child in enumerate(("left_child", "right_child"))
            ]
    return Forest(depth, columns.tobytes(), bounds.tobytes(), values.tobytes())


def _joined(trees: Sequence[Forest], depth: int) -> Forest:
    """Trees as one forest."""
    return Forest(
        depth,
        b"".join(tree.columns for tree in trees),
        b"".join(tree.bounds for tree in trees),
        b"".join(tree.values for tree in trees),
    )


if __name__ == "__main__":
    main()
