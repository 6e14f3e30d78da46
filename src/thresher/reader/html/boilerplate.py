"""Boilerplate scores in [0, 1] for the blocks of a page (0 is text), and the choice of its text.

A block is measured by itself, beside its neighbours and in the tree of its page (`kernels.surroundings`), and
many small trees vote on it (`kernels.forest`). All measures work on characters of any script and need no word
lists.

Annotators disagree on the extent of a page's text: some include comments, headlines or lists. So there are
trees for each annotated set of pages, and trees for pages like none of them. A classifier of pages decides
how much weight each set gets. To train other trees: `python -m thresher_lab.training.train_boilerplate`.
"""

from __future__ import annotations

from functools import cache
from math import log1p
from pathlib import Path
from typing import Literal

import msgspec
import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from thresher.errors import UsageError
from thresher.reader.html.kernels.forest import best_cut, correct, vote
from thresher.reader.html.kernels.surroundings import MEASURES, measure
from thresher.reader.html.scan_page import Markup

DATA = Path(__file__).parent.parent / "data" / "boilerplate.msgpack"
Mode = Literal["precision", "balanced", "recall"]

# Weight of recall in the F-measure by which the blocks of a page are chosen.
BETA = {"precision": 0.5, "balanced": 1.0, "recall": 2.0}
# Lowest and highest score at which a page may be cut.
CUTS = {"precision": (0.3, 0.5), "balanced": (0.5, 0.6), "recall": (0.7, 0.9)}
# Names, and prefixes of names, of remarks in the head of a page that show when and how it was made.
NAMES = ("viewport", "keywords", "content-type", "generator")
PREFIXES = ("og:", "twitter:")
REMARKS = 9 + len(NAMES) + len(PREFIXES)

Floats = NDArray[np.float64]


class BoilerplateForest(Struct, frozen=True, array_like=True):
    """Trees of one depth as packed columns of numbers."""

    depth: int
    columns: bytes  # column that each node compares
    bounds: bytes  # bound that each node compares it with
    values: bytes  # values of the leaves


class BoilerplateModel(Struct, frozen=True, array_like=True):
    """Weights of the first estimate, trees that classify pages, and as many trees for each kind of page."""

    measures: int  # number of measures of a block; another number belongs to another version of the kernels
    remarks: int  # number of measures of a page
    weights: bytes
    page: BoilerplateForest
    leanings: bytes  # prior odds of each kind of page
    block: BoilerplateForest


class BoilerplateTrees:
    """A boilerplate model in the form that kernels use."""

    def __init__(self, model: BoilerplateModel) -> None:
        # Kernels would look beyond what was measured.
        if (model.measures, model.remarks) != (MEASURES, REMARKS):
            raise UsageError(
                f"a boilerplate model of {model.measures} and {model.remarks} measures, but there are {MEASURES} "
                f"and {REMARKS}; train it again: python -m thresher_lab.training.train_boilerplate GOLD…"
            )
        self.weights = np.frombuffer(model.weights, np.float64).copy()
        self.page = _unpacked(model.page)
        self.leanings = np.frombuffer(model.leanings, np.float64)
        self.block = _unpacked(model.block)


def _unpacked(forest: BoilerplateForest) -> tuple[int, NDArray[np.uint8], Floats, Floats]:
    columns = np.frombuffer(forest.columns, np.uint8).copy()
    bounds, values = (
        np.frombuffer(part, np.float32).astype(np.float64) for part in (forest.bounds, forest.values)
    )
    return forest.depth, columns, bounds, values


@cache
def shipped() -> BoilerplateTrees:
    """Return the model that is part of the package."""
    return BoilerplateTrees(msgspec.msgpack.decode(DATA.read_bytes(), type=BoilerplateModel))


def measured(markup: Markup, weights: Floats) -> Floats:
    """Return the measures of all blocks of a page."""
    out = np.empty((len(markup.texts), MEASURES))
    if markup.texts:
        text, title = (np.frombuffer(part, np.uint8) for part in (markup.utf8, markup.title.encode().lower()))
        measure(markup.blocks, markup.elements, text, title, weights, markup.length, out)
    return out


def remarks(markup: Markup) -> Floats:
    """Return the measures that classify a page besides its blocks: its size and remarks in its head."""
    names = [name for name, _ in markup.metas]
    return np.array(
        [
            log1p(markup.length),
            log1p(len(markup.elements)),
            log1p(len(markup.texts)),
            log1p(len(markup.anchors.hrefs) + len(markup.head_links)),
            markup.bytes_per_character,
            len(markup.title),
            len(markup.bylines),
            len(markup.json_ld),
            len(names),
            *(name in names for name in NAMES),
            *(any(name.startswith(prefix) for name in names) for prefix in PREFIXES),
        ]
    )


def score(markup: Markup, trees: BoilerplateTrees | None = None) -> Floats:
    """Return the boilerplate score of each block of a page."""
    model = trees or shipped()
    scores = np.empty(len(markup.texts))
    if markup.texts:
        found = measured(markup, model.weights)
        vote(found, remarks(markup), *model.page, model.leanings.copy(), *model.block, scores)
        correct(markup.blocks, scores)
    return scores


def cut(scores: Floats, markup: Markup, mode: Mode = "balanced") -> float:
    """Return the score below which blocks belong to the text, chosen to maximise the expected F-measure.

    A page of certain text and certain boilerplate is cut in the middle; where much is uncertain, more is
    taken. Mode `recall` takes more in any case, `precision` less.
    """
    low, high = CUTS[mode]
    return min(max(best_cut(markup.blocks, scores, BETA[mode]), low), high)
