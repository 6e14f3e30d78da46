"""Train the trees that distinguish text from boilerplate, from pages with annotated text.

    python -m thresher_lab.training.train_boilerplate GOLD [GOLD ...] [--taught SET] [--out FILE] [--all]

GOLD and SET are sets as described in `thresher_lab.training.gold`. The annotators of one set agree on the meaning
of text, and disagree with the annotators of another one. So each GOLD set has trees of its own, and further trees
learn which pages resemble which set. Pages that resemble none are read by trees trained on all `--taught` sets:
pages of many kinds without annotations, with the texts that several readers find in them.

Only sites in the training half are used, so that the other half can be used for measuring; `--all` uses both.
Taught sets are always used whole.

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

from thresher.errors import UsageError
from thresher.files.durable_files import replace
from thresher.reader.html.boilerplate import (
    DATA,
    REMARKS,
    BoilerplateForest,
    BoilerplateModel,
    measured,
    remarks,
)
from thresher.reader.html.kernels.layout import B_LENGTH
from thresher.reader.html.kernels.surroundings import MEASURES, OWN_MEASURES
from thresher.reader.html.scan_page import Markup, scan
from thresher_lab.training.gold import UNCLEAR, GoldPage, labels, load, split

MAX_ANCHORS = 20_000
LENGTH_SHARE = 0.75  # of the weight of a block that is proportional to its length; the rest is equal for all
RIDGE = 1.0  # regularisation of the first guess
ROUNDS = 12  # of Newton's method; it converges in fewer
EMPTIED_EVERY, EMPTIED_WEIGHT = 4, 0.02  # every n-th page is used again without its text, with this weight
GOLD_ODDS = 3.0  # by which a page must resemble a GOLD set more than other pages to be read by its trees
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
    """Train a model from the sets on the command line and write it."""
    parser = argparse.ArgumentParser(
        prog="python -m thresher_lab.training.train_boilerplate", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("gold", nargs="+", type=Path, help="sets of pages with annotated text")
    parser.add_argument(
        "--taught", action="append", default=[], type=Path, help="a set of pages without annotations"
    )
    parser.add_argument("--out", type=Path, default=DATA, help="file of the model: %(default)s")
    parser.add_argument("--all", action="store_true", help="use all sites instead of the training half")
    asked = parser.parse_args()
    try:
        annotated = [page for page in load(asked.gold) if asked.all or split(page) == "train"]
        taught = load(asked.taught)
        print(f"training from {len(annotated) + len(taught):,} pages", file=sys.stderr)
        model = train(annotated, taught)
    except UsageError as fault:
        sys.exit(f"train_boilerplate: {fault}")
    asked.out.parent.mkdir(parents=True, exist_ok=True)
    replace(asked.out, msgspec.msgpack.encode(model))
    print(f"{asked.out}: {asked.out.stat().st_size:,} bytes", file=sys.stderr)


def train(annotated: Iterable[GoldPage], taught: Iterable[GoldPage] = ()) -> BoilerplateModel:
    """Train a model from annotated pages, set by set, and from pages without annotations."""
    lessons: dict[str, list[_Lesson]] = {}
    for page in annotated:
        lessons.setdefault(page.set, []).append(_lesson(page))
    leanings = [0.0] * len(lessons)
    if others := [_lesson(page) for page in taught]:
        lessons[""] = others
        leanings.append(np.log(GOLD_ODDS))
    kinds = [[*each, *map(_emptied, each[::EMPTIED_EVERY])] for each in lessons.values()]
    guess = _first_guess([lesson for kind in kinds for lesson in kind])
    return BoilerplateModel(
        MEASURES,
        REMARKS,
        guess.tobytes(),
        _joined(_page_trees(list(lessons.values()), guess), PAGE_DEPTH),
        np.array(leanings).tobytes(),
        _joined([tree for kind in kinds for tree in _block_trees(kind, guess)], DEPTH),
    )


class _Lesson(NamedTuple):
    """A page to train from: the share of text of each block, and the weight of the page."""

    markup: Markup
    shares: Floats
    weight: float


def _lesson(page: GoldPage) -> _Lesson:
    """Return a page with the mean of its annotations; the first annotator has the weight of all others together.

    The weight of the page is the agreement of its annotators.
    """
    markup = scan(page.html.encode("utf-8", "replace"), MAX_ANCHORS)
    annotations = [labels(markup.texts, text) for text in (page.text, *page.others)]
    others = np.mean(annotations[1:] or annotations, axis=0)
    return _Lesson(markup, (annotations[0] + others) / 2, _agreement(annotations, _lengths(markup)))


def _agreement(annotations: Sequence[Floats], lengths: Floats) -> float:
    """Return the mean overlap of the texts of two annotators."""
    pairs = [(2 * lengths @ np.minimum(a, b), lengths @ (a + b)) for a, b in combinations(annotations, 2)]
    return fmean(common / total if total else 1.0 for common, total in pairs) if pairs else 1.0


def _emptied(lesson: _Lesson) -> _Lesson:
    """Return the page without its text: sets hold few pages without text, but the web holds many."""
    left = np.flatnonzero(lesson.shares <= UNCLEAR[0])
    whole = lesson.markup
    markup = Markup(whole.length, [whole.texts[n] for n in left], whole.blocks[left], whole.elements)
    return _Lesson(markup, lesson.shares[left], EMPTIED_WEIGHT * lesson.weight)


def _lengths(markup: Markup) -> Floats:
    return markup.blocks[:, B_LENGTH].astype(np.float64)


class _Rows(NamedTuple):
    """Rows of blocks that are clearly text or clearly boilerplate."""

    table: Floats
    is_text: Floats
    importance: Floats


def _rows(lessons: Sequence[_Lesson], guess: Floats) -> _Rows:
    shares = np.concatenate([np.empty(0), *(lesson.shares for lesson in lessons)])
    clear = (shares <= UNCLEAR[0]) | (shares >= UNCLEAR[1])
    if len(np.unique(shares[clear] > 0.5)) < 2:
        raise UsageError("the pages hold no text, or nothing but text; add pages, or use --all")
    table = np.concatenate([measured(lesson.markup, guess) for lesson in lessons])[clear]
    importance = np.concatenate([_importance(lesson.markup) * lesson.weight for lesson in lessons])[clear]
    return _Rows(table, (shares[clear] > 0.5).astype(np.float64), importance / importance.mean())


def _importance(markup: Markup) -> Floats:
    """Return the weights of the blocks of a page, which add up to 1."""
    lengths = _lengths(markup)
    equal = (1 - LENGTH_SHARE) / max(1, len(lengths))
    shares: Floats = LENGTH_SHARE * lengths / max(1.0, lengths.sum()) + equal
    return shares


def _first_guess(lessons: Sequence[_Lesson]) -> Floats:
    """Return the weights of a logistic model, fitted by Newton's method; the last one is the constant."""
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


def _block_trees(lessons: Sequence[_Lesson], guess: Floats) -> list[BoilerplateForest]:
    """Train trees that distinguish text from boilerplate."""
    rows = _rows(lessons, guess)
    settings = {
        "objective": "binary",
        "num_leaves": LEAVES,
        "max_depth": DEPTH,
        "min_data_in_leaf": 60,
        "max_bin": 63,
    }
    return _trained(rows.table, rows.is_text, rows.importance, settings, TREES, DEPTH)


def _page_trees(kinds: Sequence[Sequence[_Lesson]], guess: Floats) -> list[BoilerplateForest]:
    """Train trees that classify pages by set, set by set; none if there is only one set."""
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
    trees = _trained(np.array(table), numbers, np.ones(len(pages)), settings, PAGE_TREES, PAGE_DEPTH)
    return [tree for kind in range(len(kinds)) for tree in trees[kind :: len(kinds)]]


def _trained(
    table: Floats, truth: Floats, importance: Floats, settings: dict[str, Any], rounds: int, depth: int
) -> list[BoilerplateForest]:
    try:
        import lightgbm
    except ImportError:
        sys.exit("train_boilerplate: LightGBM is not installed; pip install 'thresher[train]'")
    rows = lightgbm.Dataset(table, truth, weight=importance)
    booster = lightgbm.train(SETTINGS | settings, rows, rounds)
    trees = [_complete(tree["tree_structure"], depth) for tree in booster.dump_model()["tree_info"]]
    neutral = _complete({"leaf_value": 0.0}, depth)  # LightGBM stops early if no split improves the fit
    return trees + [neutral] * (rounds * settings.get("num_class", 1) - len(trees))


def _complete(tree: dict[str, Any], depth: int) -> BoilerplateForest:
    """Return a tree with all leaves at one depth."""
    columns, bounds = np.zeros((1 << depth) - 1, np.uint8), np.full((1 << depth) - 1, np.inf, np.float32)
    values = np.zeros(1 << depth, np.float32)
    waiting = [(0, 0, tree)]
    for node, level, part in waiting:  # the list grows in the loop
        if level == depth:
            values[node - len(columns)] = part["leaf_value"]
        elif "leaf_value" in part:  # the bound stays infinite, so all go left
            waiting.append((2 * node + 1, level + 1, part))
        else:
            columns[node], bounds[node] = part["split_feature"], part["threshold"]
            waiting += [
                (2 * node + 1 + side, level + 1, part[child])
                for side, child in enumerate(("left_child", "right_child"))
            ]
    return BoilerplateForest(depth, columns.tobytes(), bounds.tobytes(), values.tobytes())


def _joined(trees: Sequence[BoilerplateForest], depth: int) -> BoilerplateForest:
    """Return trees as one forest."""
    return BoilerplateForest(
        depth,
        b"".join(tree.columns for tree in trees),
        b"".join(tree.bounds for tree in trees),
        b"".join(tree.values for tree in trees),
    )


if __name__ == "__main__":
    main()
