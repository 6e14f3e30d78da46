"""A score in [0, 1] for every block of a page: 0 is text, 1 is boilerplate; and which blocks are its text.

A block is measured by itself, beside its neighbours and in the tree of its page (`scan.surroundings`), and many
small trees vote on it (`scan.forest`). All of it works on characters of any script and needs no word lists.

People do not agree on what the text of a page is: whether comments belong to it, headlines, lists. So there are
trees for each set of pages that somebody marked, and trees for pages like none of them. The page itself tells how
much each of these is heard. How to grow others: `python -m thresher.lab.train_boilerplate`.
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

from thresher.config import ConfigError
from thresher.read.html import Markup
from thresher.read.scan.forest import best_cut, correct, vote
from thresher.read.scan.surroundings import MEASURES, measure

DATA = Path(__file__).parent / "data" / "boilerplate.msgpack"
Mode = Literal["precision", "balanced", "recall"]

# How much more finding all text counts than finding nothing else, in the choice of a page's blocks.
BETA = {"precision": 0.5, "balanced": 1.0, "recall": 2.0}
# No page is cut outside of these.
CUTS = {"precision": (0.3, 0.5), "balanced": (0.5, 0.6), "recall": (0.7, 0.9)}
NAMES = ("viewport", "keywords", "content-type", "generator")  # of remarks in the head of a page …
PREFIXES = ("og:", "twitter:")  # … that tell when and how it was made
REMARKS = 9 + len(NAMES) + len(PREFIXES)

Floats = NDArray[np.float64]


class Forest(Struct, frozen=True, array_like=True):
    """Trees of one depth as columns of numbers, packed."""

    depth: int
    columns: bytes  # what each node asks of a row, …
    bounds: bytes  # … and whether it is above this
    values: bytes  # of leaves


class Model(Struct, frozen=True, array_like=True):
    """Weights of the first guess, trees that tell kinds of pages apart, and as many trees for each kind."""

    measures: int  # that a block is measured by, …
    remarks: int  # … and a page; other numbers are another version of the kernels
    weights: bytes
    page: Forest
    leanings: bytes  # towards each kind of page, before anything is known
    block: Forest


class Trees:
    """A model, ready for use."""

    def __init__(self, model: Model) -> None:
        # Kernels would look beyond what was measured.
        if (model.measures, model.remarks) != (MEASURES, REMARKS):
            raise ConfigError(
                f"a boilerplate model of {model.measures} and {model.remarks} measures, but there are {MEASURES} "
                f"and {REMARKS}; grow it anew: python -m thresher.lab.train_boilerplate GOLD…"
            )
        self.weights = np.frombuffer(model.weights, np.float64).copy()
        self.page = _unpacked(model.page)
        self.leanings = np.frombuffer(model.leanings, np.float64)
        self.block = _unpacked(model.block)


def _unpacked(forest: Forest) -> tuple[int, NDArray[np.uint8], Floats, Floats]:
    columns = np.frombuffer(forest.columns, np.uint8).copy()
    bounds, values = (
        np.frombuffer(part, np.float32).astype(np.float64) for part in (forest.bounds, forest.values)
    )
    return forest.depth, columns, bounds, values


@cache
def shipped() -> Trees:
    """The model that comes with the package."""
    return Trees(msgspec.msgpack.decode(DATA.read_bytes(), type=Model))


def measured(markup: Markup, weights: Floats) -> Floats:
    """All blocks of a page in the measures of the model."""
    out = np.empty((len(markup.texts), MEASURES))
    if markup.texts:
        text, title = (np.frombuffer(part, np.uint8) for part in (markup.utf8, markup.title.encode().lower()))
        measure(markup.blocks, markup.elements, text, title, weights, markup.length, out)
    return out


def remarks(markup: Markup) -> Floats:
    """What tells kinds of pages apart, beside their blocks: how large a page is, and what its head says."""
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


def score(markup: Markup, trees: Trees | None = None) -> Floats:
    """How much each block of a page looks like boilerplate."""
    model = trees or shipped()
    scores = np.empty(len(markup.texts))
    if markup.texts:
        found = measured(markup, model.weights)
        vote(found, remarks(markup), *model.page, model.leanings.copy(), *model.block, scores)
        correct(markup.blocks, scores)
    return scores


def cut(scores: Floats, markup: Markup, mode: Mode = "balanced") -> float:
    """The score below which blocks are the text of their page: where the text found is likely to be best.

    A page of certain text and certain boilerplate is cut in the middle; where much is in doubt, more is taken.
    `recall` takes more in any case, `precision` less.
    """
    low, high = CUTS[mode]
    return min(max(best_cut(markup.blocks, scores, BETA[mode]), low), high)
