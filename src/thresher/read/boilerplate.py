"""A score in [0, 1] for every block of a page: 0 is text, 1 is boilerplate; and which blocks are its text.

A block is measured by itself, beside its neighbours and in the tree of its page (`scan.surroundings`), and many
small trees vote on it. Both work on characters of any script and need no word lists. How the trees were grown, and
how to grow others: `python -m thresher.lab.train_boilerplate`.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Literal

import msgspec
import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from thresher.config import ConfigError
from thresher.read.html import Markup
from thresher.read.scan.layout import (
    B_BEFORE_LAST,
    B_CONTEXT,
    B_LAST,
    B_LENGTH,
    B_LINKED,
    ITEM,
    NAV,
    OTHER,
    STOP,
)
from thresher.read.scan.surroundings import MEASURES, decide, measure

DATA = Path(__file__).parent / "data" / "boilerplate.msgpack"
Mode = Literal["precision", "balanced", "recall"]

# How much more finding all text counts than finding nothing else, in the choice of a page's blocks.
BETA = {"precision": 0.5, "balanced": 1.0, "recall": 2.0}
CUTS = {
    "precision": (0.3, 0.5),
    "balanced": (0.5, 0.8),
    "recall": (0.7, 0.9),
}  # no page is cut outside of these
# Two rules that hold whatever the trees say, for the gold lacks what they are about: pages of menus and teasers.
MENU_LINKS, MENU_SCORE = 0.8, 0.95  # the share in links that makes a block in a <nav> a menu, and its score
TEASER_LINKS, TEASER_SCORE = 0.4, 0.9  # of a list item that is no full sentence: it leads to text
LISTED = 0.3  # of what looks like text, what makes a page a list of teasers
MIN_TITLE = 8  # characters of a block that may repeat the title of its page

Floats = NDArray[np.float64]


class Model(Struct, frozen=True, array_like=True):
    """Weights of the first guess, and trees as columns of numbers, packed."""

    measures: int  # that a block is measured by; another number is another version of the kernel
    weights: bytes
    columns: bytes  # what each node asks of a block, …
    bounds: bytes  # … and whether it is above this
    children: bytes  # two of each node; a leaf is its own child
    values: bytes  # of leaves
    roots: bytes  # of trees
    depths: bytes


class Trees:
    """A model, ready for use."""

    def __init__(self, model: Model) -> None:
        if model.measures != MEASURES:  # the kernel would look beyond what was measured
            raise ConfigError(
                f"a boilerplate model of {model.measures} measures, but blocks have {MEASURES}; "
                "grow it anew: python -m thresher.lab.train_boilerplate GOLD…"
            )
        self.weights = np.frombuffer(model.weights, np.float64).copy()
        self.columns = np.frombuffer(model.columns, np.uint8).astype(np.int64)
        self.bounds = np.frombuffer(model.bounds, np.float32).astype(np.float64)
        self.children = np.frombuffer(model.children, np.int16).astype(np.int64)
        self.values = np.frombuffer(model.values, np.float32).astype(np.float64)
        self.roots = np.frombuffer(model.roots, np.int16).astype(np.int64)
        self.depths = np.frombuffer(model.depths, np.uint8).astype(np.int64)


@cache
def shipped() -> Trees:
    """The model that comes with the package."""
    return Trees(msgspec.msgpack.decode(DATA.read_bytes(), type=Model))


def measured(markup: Markup, weights: Floats) -> Floats:
    """All blocks of a page in the measures of the model."""
    out = np.empty((len(markup.texts), MEASURES))
    if markup.texts:
        measure(markup.blocks, markup.elements, _titles(markup), weights, markup.length, out)
    return out


def score(markup: Markup, trees: Trees | None = None) -> Floats:
    """How much each block of a page looks like boilerplate."""
    model = trees or shipped()
    scores = np.empty(len(markup.texts))
    if markup.texts:
        found = measured(markup, model.weights)
        decide(
            found,
            model.columns,
            model.bounds,
            model.children,
            model.values,
            model.roots,
            model.depths,
            scores,
        )
        _apply_rules(markup.blocks, scores)
    return scores


def _apply_rules(blocks: NDArray[np.int64], scores: Floats) -> None:
    context, length, linked = blocks[:, B_CONTEXT], blocks[:, B_LENGTH], blocks[:, B_LINKED]
    last, before = blocks[:, B_LAST], blocks[:, B_BEFORE_LAST]
    is_sentence = (last == STOP) | ((last == OTHER) & (before == STOP))
    menu = (context & NAV != 0) & (linked > MENU_LINKS * length)
    teaser = (context & ITEM != 0) & (linked > TEASER_LINKS * length) & ~is_sentence
    scores[menu] = np.maximum(scores[menu], MENU_SCORE)
    likely = length * (1.0 - scores)
    if likely[teaser].sum() > LISTED * likely.sum():
        scores[teaser] = np.maximum(scores[teaser], TEASER_SCORE)


def cut(scores: Floats, markup: Markup, mode: Mode = "balanced") -> float:
    """The score below which blocks are the text of their page: where the text found is likely to be best.

    A page of certain text and certain boilerplate is cut in the middle; where much is in doubt, more is taken.
    `recall` takes more in any case, `precision` less.
    """
    low, high = CUTS[mode]
    if not len(scores):
        return high
    order = np.argsort(scores)
    lengths = markup.blocks[order, B_LENGTH].astype(np.float64)
    text = np.cumsum(lengths * (1.0 - scores[order]))
    beta = BETA[mode] ** 2
    expected = (1.0 + beta) * text / (np.cumsum(lengths) + beta * text[-1] + 1e-9)
    best = int(np.argmax(expected))
    return float(np.clip(scores[order[best]] + 1e-9, low, high))


def _titles(markup: Markup) -> Floats:
    """Which blocks repeat the title of the page, or a part of it."""
    title = markup.title.lower()
    return np.array(
        [
            1.0 if MIN_TITLE < len(text) <= len(title) and text.lower() in title else 0.0
            for text in markup.texts
        ]
    )
