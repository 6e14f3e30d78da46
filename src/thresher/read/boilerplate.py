"""A score in [0, 1] for every block of a page: 0 is text, 1 is boilerplate.

Two small logistic models, one after the other. The first looks at a block alone: its length, links,
punctuation, and the elements around it. The second looks at where the first one found the text of the page:
in the same container, close by, in blocks of the same kind. Both work on characters of any script and need no
word lists.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from thresher.read.html import Markup
from thresher.read.scan import layout as at

# Weights fitted on pages in five languages from three collections (news, blogs, and pages of several types
# that hold running text); positive speaks for text. Two are set by hand, because the collections lack what
# they are for: `nav`, and the second model's share in links.
MEASURES = {
    "log words": 0.26,
    "share in links": -2.05,
    "commas per word": 0.14,
    "share of digits": -0.70,
    "share of capitals": -0.93,
    "share of other signs": -4.24,
    "ends a sentence": 0.86,
    "over 25 words": 0.50,
    "position on page": -2.19,
    "constant": -0.78,
}
PLACES = {
    at.NAV: -1.0,
    at.FOOTER: -0.60,
    at.HEADER: -0.29,
    at.ASIDE: -1.78,
    at.FORMS: -1.96,
    at.MAIN: 1.04,
    at.ARTICLE: 0.80,
    at.IN_HEADING: 0.27,
    at.QUOTE: 0.85,
    at.PARAGRAPH: 0.54,
    at.FIGURE: -0.42,
    at.SAYS_MENU: -0.69,
    at.SAYS_FOOT: -1.24,
    at.SAYS_SIDE: -0.62,
    at.SAYS_SHARE: -0.41,
    at.SAYS_NOTICE: -1.39,
    at.SAYS_TEXT: 0.64,
    at.NEAR_TEXT: 0.78,
}
SURROUNDINGS = {
    "own": 1.70,
    "is heading": 0.50,
    "is list item": 0.76,
    "ends a sentence": 0.24,
    "share of other signs": -4.09,
    "share in links": -1.0,
    "text in same container": 0.81,
    "text in container around": 0.95,
    "text in container around that": 0.72,
    "text close by": 2.55,
    "text of same kind": 0.87,
    "in main container": 1.36,
    "constant": -4.25,
}

MENU_LINKS, MENU_SCORE = 0.8, 0.95  # the share in links that makes a block in a <nav> a menu, and its score
TEASER_LINKS, TEASER_SCORE = 0.4, 0.7  # of a list item that is no full sentence: it leads to text
MAIN_SHARE = 0.6  # of all text on the page: what makes a container the main one
NEIGHBOURS = np.array([0.1, 0.2, 0.4, 0.8, 0.0, 0.8, 0.4, 0.2, 0.1])  # how much blocks close by count

SPACELESS = 14  # letters per space, from which on a script is taken to write without spaces
LETTERS_PER_WORD = 3.0  # in such scripts

Floats = NDArray[np.float64]
Table = NDArray[np.int64]

_MEASURE_WEIGHTS = np.array(list(MEASURES.values()))
_PLACE_WEIGHTS = np.array(list(PLACES.values()))
_PLACE_BITS = np.array(list(PLACES))
_SURROUNDING_WEIGHTS = np.array(list(SURROUNDINGS.values()))
_HEADING_ITEM = np.array([at.IN_HEADING, at.ITEM])


def score(markup: Markup) -> list[float]:
    """How much each block of a page looks like boilerplate."""
    if not markup.texts:
        return []
    own, words = own_measures(markup.blocks)
    bits = markup.blocks[:, at.B_CONTEXT]
    likely = own @ _MEASURE_WEIGHTS + ((bits[:, None] & _PLACE_BITS) != 0) @ _PLACE_WEIGHTS
    around = surroundings(markup, own, words, bits, likely)
    scores = 1.0 / (1.0 + np.exp(around @ _SURROUNDING_WEIGHTS))
    menu = ((bits & at.NAV) != 0) & (own[:, 1] > MENU_LINKS)
    scores[menu] = np.maximum(scores[menu], MENU_SCORE)  # however close to the text it stands
    teaser = ((bits & at.ITEM) != 0) & (own[:, 1] > TEASER_LINKS) & (own[:, 6] == 0.0)
    scores[teaser] = np.maximum(scores[teaser], TEASER_SCORE)
    listed: list[float] = scores.tolist()
    return listed


def own_measures(blocks: Table) -> tuple[Floats, Floats]:
    """What can be measured of every block by itself, in the order of MEASURES; and its number of words."""
    lengths = blocks[:, at.B_LENGTH]
    counts = blocks[:, at.B_COUNTS :]
    letters = counts[:, at.LETTER] + counts[:, at.CAPITAL]
    spaces = counts[:, at.SPACE] + 1
    words = np.where(letters > SPACELESS * spaces, letters / LETTERS_PER_WORD, spaces)
    last, before = blocks[:, at.B_LAST], blocks[:, at.B_BEFORE_LAST]
    columns = np.empty((len(lengths), len(MEASURES)))
    columns[:, 0] = np.log(words)
    columns[:, 1] = np.minimum(blocks[:, at.B_LINKED] / lengths, 1.0)
    columns[:, 2] = np.minimum(counts[:, at.COMMA] / words, 0.5)
    columns[:, 3:6] = counts[:, [at.DIGIT, at.CAPITAL, at.OTHER]] / lengths[:, None]
    columns[:, 6] = (last == at.STOP) | ((last == at.OTHER) & (before == at.STOP))  # perhaps before a bracket
    columns[:, 7] = words > 25
    columns[:, 8] = np.arange(len(lengths)) / len(lengths)
    columns[:, 9] = 1.0
    return columns, words


def surroundings(
    markup: Markup, own: Floats, words: Floats, bits: NDArray[np.int64], likely: Floats
) -> Floats:
    """Where every block stands in relation to the likely text of the page, in the order of SURROUNDINGS."""
    text = words / (1.0 + np.exp(-likely))
    total = text.sum()
    container, parent = markup.blocks[:, at.B_CONTAINER], markup.elements[:, at.E_PARENT]
    held = _held(text, container, parent.tolist())
    around = parent[container]
    main = int(np.flatnonzero(held >= MAIN_SHARE * total)[-1])
    after_main = np.flatnonzero(parent[main + 1 :] < main)
    end = main + 1 + int(after_main[0]) if len(after_main) else len(parent)
    kinds = np.unique(bits, return_inverse=True)[1]
    columns = np.empty((len(words), len(SURROUNDINGS)))
    columns[:, 0] = text / words
    columns[:, 1:3] = (bits[:, None] & _HEADING_ITEM) != 0
    columns[:, 3:6] = own[:, [6, 5, 1]]
    columns[:, 6] = held[container] / total
    columns[:, 7] = held[around] / total
    columns[:, 8] = held[parent[around]] / total
    columns[:, 9] = _near(text) / (_near(words) + 1.0)
    columns[:, 10] = (np.bincount(kinds, text) / np.bincount(kinds, words))[kinds]
    columns[:, 11] = (container >= main) & (container < end)
    columns[:, 12] = 1.0
    return columns


def _held(text: Floats, container: NDArray[np.int64], parents: list[int]) -> Floats:
    """The text inside every container and all containers in it."""
    held: list[float] = np.bincount(container, text, len(parents)).tolist()
    for inner in range(len(parents) - 1, 0, -1):  # an element is numbered before all inside it
        held[parents[inner]] += held[inner]
    return np.array(held)


def _near(values: Floats) -> Floats:
    """The sum of the values around each, by the weights of NEIGHBOURS."""
    reach = len(NEIGHBOURS) // 2
    return np.convolve(values, NEIGHBOURS)[reach : reach + len(values)]
