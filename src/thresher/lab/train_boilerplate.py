"""Grow the trees that tell text from boilerplate, from pages whose text is known.

    python -m thresher.lab.train_boilerplate GOLD… [--out FILE] [--all] [--weight SET=0.5]

GOLD are sets as `thresher.lab.gold` describes them. Only the sites of the training half are learned from, so that
the other half can be used to measure; `--all` learns from both. A page of one set counts as much as one of another,
unless the set is given a weight: one whose text was found by a machine teaches kinds of pages that people have not
marked, but also that machine's mistakes.

Needs LightGBM: pip install 'thresher[train]'
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from thresher.config import ConfigError
from thresher.lab.gold import UNCLEAR, GoldPage, labels, load, split
from thresher.read.boilerplate import DATA, Model, measured
from thresher.read.html import Markup, scan
from thresher.read.scan.surroundings import MEASURES, OWN_MEASURES

MAX_ANCHORS = 20_000
RIDGE = 1.0  # how strongly the weights of the first guess are held to nothing
ROUNDS = 12  # of Newton's method; it settles in fewer
EMPTIED, EMPTIED_WEIGHT = 4, 0.1  # every so many pages are learned from once more, without their text
TREES = 100
SETTINGS = {
    "objective": "binary",
    "num_leaves": 24,
    "max_depth": 6,  # all blocks go down as many steps as the deepest leaf has
    "learning_rate": 0.12,
    "min_data_in_leaf": 60,
    "feature_fraction": 0.6,
    "bagging_fraction": 0.8,
    "bagging_freq": 1,
    "lambda_l2": 5.0,
    "max_bin": 63,
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
    parser.add_argument("--out", type=Path, default=DATA, help="where the model goes: %(default)s")
    parser.add_argument("--all", action="store_true", help="learn from all sites, not from half of them")
    parser.add_argument(
        "--weight", action="append", default=[], metavar="SET=NUMBER", help="of a page of a set"
    )
    asked = parser.parse_args()
    try:
        pages = [page for page in load(asked.gold) if asked.all or split(page) == "train"]
        weights = {name: float(number) for name, _, number in (item.partition("=") for item in asked.weight)}
    except (ConfigError, ValueError) as fault:
        sys.exit(f"train_boilerplate: {fault}")
    if not pages:
        sys.exit("train_boilerplate: no page to learn from; take a gold of more sites, or --all")
    print(f"learning from {len(pages):,} pages …", file=sys.stderr)
    model = train(pages, weights)
    asked.out.parent.mkdir(parents=True, exist_ok=True)
    asked.out.write_bytes(msgspec.msgpack.encode(model))
    print(f"{asked.out}: {asked.out.stat().st_size:,} bytes", file=sys.stderr)


def train(pages: Sequence[GoldPage], weights: Mapping[str, float] | None = None) -> Model:
    """A model of these pages; `weights` say how much a page of a set counts, 1 where they do not."""
    lessons: list[_Lesson] = []
    for number, page in enumerate(pages):
        markup = scan(page.html.encode("utf-8", "replace"), MAX_ANCHORS)
        lesson = _Lesson(markup, labels(markup.texts, page.text), (weights or {}).get(page.set, 1.0))
        lessons.append(lesson)
        if number % EMPTIED == 0:
            lessons.append(_emptied(lesson))
    shares = np.concatenate([lesson.shares for lesson in lessons])
    clear = (shares <= UNCLEAR[0]) | (shares >= UNCLEAR[1])
    is_text = (shares[clear] > 0.5).astype(np.float64)
    importance = np.concatenate([_importance(lesson.markup) * lesson.weight for lesson in lessons])[clear]
    importance /= importance.mean()
    alone = _table(lessons, np.zeros(OWN_MEASURES + 1))[clear, :OWN_MEASURES]
    guess = _first_guess(alone, is_text, importance)
    return _grown(_table(lessons, guess)[clear], is_text, importance, guess)


class _Lesson(NamedTuple):
    """A page to learn from: what share of each block is text, and how much the page counts."""

    markup: Markup
    shares: Floats
    weight: float


def _emptied(lesson: _Lesson) -> _Lesson:
    """The page without its text: nobody marks pages that hold none, but the web is full of them."""
    left = np.flatnonzero(lesson.shares <= UNCLEAR[0])
    whole = lesson.markup
    markup = Markup(whole.length, [whole.texts[n] for n in left], whole.blocks[left], whole.elements)
    return _Lesson(markup, lesson.shares[left], EMPTIED_WEIGHT * lesson.weight)


def _table(lessons: Sequence[_Lesson], guess: Floats) -> Floats:
    return np.concatenate([measured(lesson.markup, guess) for lesson in lessons])


def _importance(markup: Markup) -> Floats:
    """How much each block counts: half by its length, half for being there; all pages alike."""
    if not markup.texts:
        return np.empty(0)
    lengths = markup.blocks[:, 0].astype(np.float64)
    shares: Floats = 0.5 * lengths / lengths.sum() + 0.5 / len(lengths)
    return shares


def _first_guess(table: Floats, is_text: Floats, importance: Floats) -> Floats:
    """Weights of a logistic model, by Newton's method; the last one is the constant."""
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


def _grown(table: Floats, is_text: Floats, importance: Floats, guess: Floats) -> Model:
    try:
        import lightgbm
    except ImportError:
        sys.exit("train_boilerplate: LightGBM is not installed; pip install 'thresher[train]'")
    rows = lightgbm.Dataset(table, is_text, weight=importance)
    booster = lightgbm.train(SETTINGS, rows, TREES)
    forest = _Forest([], [], [], [])
    trees = [_planted(tree["tree_structure"], forest) for tree in booster.dump_model()["tree_info"]]
    roots, depths = zip(*trees, strict=True)
    return Model(
        MEASURES,
        guess.astype(np.float64).tobytes(),
        np.array(forest.columns, np.uint8).tobytes(),
        np.array(forest.bounds, np.float32).tobytes(),
        np.array(forest.children, np.int16).tobytes(),
        np.array(forest.values, np.float32).tobytes(),
        np.array(roots, np.int16).tobytes(),
        np.array(depths, np.uint8).tobytes(),
    )


class _Forest(NamedTuple):
    """All nodes of all trees, leaves too, as columns."""

    columns: list[int]
    bounds: list[float]
    children: list[tuple[int, int]]
    values: list[float]


def _planted(tree: dict[str, Any], forest: _Forest) -> tuple[int, int]:
    """Add a tree; the number of its root, and how deep it is."""
    number = len(forest.columns)
    forest.columns.append(tree.get("split_feature", 0))
    forest.bounds.append(tree.get("threshold", np.inf))
    forest.children.append((number, number))
    forest.values.append(tree.get("leaf_value", 0.0))
    if "left_child" not in tree:
        return number, 0
    (left, left_depth), (right, right_depth) = (
        _planted(tree[side], forest) for side in ("left_child", "right_child")
    )
    forest.children[number] = (left, right)
    return number, 1 + max(left_depth, right_depth)


if __name__ == "__main__":
    main()
