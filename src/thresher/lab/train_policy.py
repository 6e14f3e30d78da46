"""Grow the trees of the policy that learns, by crawls on paper: python -m thresher.lab.train_policy DIR…

Each DIR is a crawl of all there was, in every language (`[judge] language = false, max_badness = 0`, policy bfs).
For each language it is crawled again on paper, from some of its pages, from the page that leads to most hosts, and
from both. What was known of each link when it was chosen, and what it gave, is what trees are
grown from. The policy with these trees crawls again, and so on: where a policy goes depends on what it believes,
and it has to see what becomes of its own mistakes.

Half the say is left to a first guess, written down here, which is cruder but has seen no web in particular. Other
trees tell the chance that a page is kept; those are grown from what was known of every link when it was found.
Takes the extra `train`.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from thresher.config import Policy
from thresher.crawl.guide import Front
from thresher.crawl.learned import forecast as to
from thresher.crawl.learned import layout as at
from thresher.crawl.learned.guide import Learned, Outlook
from thresher.crawl.learned.trees import DATA, Forests, Trees, packed
from thresher.crawl.state import Nowhere
from thresher.lab.record import Record, load_each
from thresher.lab.simulate import FURTHER, Simulation, Terms, area, ideal
from thresher.page import Candidate
from thresher.store.corpus import open as open_corpus

DEPTH = 5
TREES = 60
ROUNDS = 2
SEEDS = 1, 3  # good pages to start from
LARGE_HOST = 10  # pages
FEWEST_PAGES = 60  # good ones, of a language that is learnt from
MOST_YIELD = 3.0
CRAWL = 1_000.0  # what each crawl counts, however long it is
MANY_LINKS = 20_000  # of a crawl, that chances are learnt from
USUAL_PAGE, LARGEST_PAGE = (
    5_000.0,
    6.0,
)  # bytes of a page that counts once, and how often a large one may count

# Where more can only be better, or worse: trees must not learn accidents.
BETTER = (
    *range(to.BY_DOMAIN, to.TOLD),
    *(to.TOLD + note for note in (at.KEPT, at.OURS, at.YIELD, at.TOLD_OURS)),
    *(to.TOLD + at.HINTS + saying for saying in (at.SAYS_OURS, at.AT_HOME)),
    *range(to.OURS_BY_DOMAIN, to.OURS_OVERALL),
    *range(to.BY_HOST_SETTING, to.MEASURES),
    *(to.FOLDER_RATIO, to.WORD_RATIO),
)
WORSE = (
    to.TOLD + at.TOLD_OTHER,
    *(to.TOLD + at.HINTS + saying for saying in (at.SAYS_OTHER, at.ABROAD)),
)

Floats = NDArray[np.float64]


class Lesson(NamedTuple):
    """What was known of links, what came of them, and how much each counts."""

    measures: NDArray[np.float32]
    results: Floats  # text per byte; or whether they are kept
    weights: Floats


class Watched(Learned):
    """A guide that writes down what it knew of each URL that it chose, and of each that it found."""

    def __init__(self, language: str, trees: Trees) -> None:
        super().__init__(language, Nowhere(), Forests(trees, _stump(0, 0.0, 0.0)))
        self.known: dict[str, NDArray[np.float32]] = {}
        self.found_urls: list[str] = []
        self.found_measures: list[NDArray[np.float32]] = []

    def _queued(
        self, candidates: Sequence[Candidate], hints: Sequence[bytes]
    ) -> tuple[list[Candidate], Outlook]:
        queued, outlook = super()._queued(candidates, hints)
        self.found_urls += [one.url for one in queued]
        self.found_measures.append(outlook.measures.astype(np.float32))
        return queued, outlook

    def taken(self, candidate: Candidate, front: Front, *, curious: bool) -> None:
        super().taken(candidate, front, curious=curious)
        outlook = self.outlook(self._keys, self._notes, np.array([front]))
        self.known[candidate.url] = outlook.measures[0].astype(np.float32)


def first_guess() -> Trees:
    """What to expect before anything was learnt: mostly what the folder gave, more with signs of the language."""
    steps = [(to.BY_FOLDER, bound, 0.06) for bound in (0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0)]
    signs = [
        (to.TOLD + at.HINTS + at.SAYS_OURS, 0.5, 0.2),
        (to.TOLD + at.HINTS + at.SAYS_OTHER, 0.5, -0.02),
        (to.TOLD + at.HINTS + at.AT_HOME, 0.5, 0.05),
        (to.TOLD + at.TOLD_OURS, 0.5, 0.1),
        (to.TOLD + at.YIELD, 0.1, 0.05),
        (to.OURS_BY_FOLDER, 0.3, 0.05),
    ]
    return joined([_stump(*step) for step in (*steps, *signs)])


def _stump(column: int, bound: float, more: float) -> Trees:
    """A tree that asks one question."""
    inner, leaves = (1 << DEPTH) - 1, 1 << DEPTH
    columns, bounds = np.zeros(inner, np.uint8), np.full(inner, np.inf)
    columns[0], bounds[0] = column, bound
    values = np.zeros(leaves)
    values[leaves // 2 :] = more
    return Trees(DEPTH, columns, bounds, values)


def joined(parts: Sequence[Trees], share: float = 1.0) -> Trees:
    """Trees that say together what all these say, times their share."""
    columns, bounds, values = (np.concatenate([part[place] for part in parts]) for place in (1, 2, 3))
    return Trees(DEPTH, columns, bounds, share * values)


def grown(lessons: Sequence[Lesson], objective: Literal["l2", "binary"]) -> Trees:
    """Trees that tell from measures what came of links."""
    import lightgbm

    monotone = [(column in BETTER) - (column in WORSE) for column in range(to.MEASURES)]
    measures, results, weights = (np.concatenate([lesson[place] for lesson in lessons]) for place in range(3))
    settings = {
        "objective": objective,
        "max_depth": DEPTH,
        "num_leaves": 20,
        "learning_rate": 0.1,
        "feature_fraction": 0.6,
        "bagging_fraction": 0.8,
        "bagging_freq": 1,
        "min_data_in_leaf": 100,
        "lambda_l2": 5.0,
        "monotone_constraints": monotone,
        "verbose": -1,
        "num_threads": 1,
        "deterministic": True,
        "seed": 1,
    }
    model = lightgbm.train(settings, lightgbm.Dataset(measures, results, weight=weights), TREES)
    return joined([_complete(tree["tree_structure"]) for tree in model.dump_model()["tree_info"]])


def _complete(root: dict[str, Any]) -> Trees:
    """A tree with all its questions, where fewer were enough with some that nothing answers."""
    inner, leaves = (1 << DEPTH) - 1, 1 << DEPTH
    columns, bounds, values = np.zeros(inner, np.uint8), np.full(inner, np.inf), np.zeros(leaves)

    def put(node: dict[str, Any], place: int) -> None:
        if place >= inner:
            values[place - inner] = node["leaf_value"]
            return
        if "leaf_value" not in node:
            columns[place], bounds[place] = node["split_feature"], node["threshold"]
        put(node.get("left_child", node), 2 * place + 1)
        put(node.get("right_child", node), 2 * place + 2)

    put(root, 0)
    return Trees(DEPTH, columns, bounds, values)


class Crawled(NamedTuple):
    """A crawl on paper: its harvest's area, and what there is to learn of rates and chances."""

    area: float
    rates: Lesson
    chances: Lesson


def crawled(record: Record, seeds: Sequence[int], trees: Trees) -> Crawled:
    """Crawl on paper."""
    best = ideal(record)
    guide = Watched(record.language, trees)
    terms = Terms(bytes=FURTHER * int(best.downloaded[-1]))
    harvest = Simulation(record, Policy(name="learned", patience=0.0), terms, guide).run(seeds)
    gained = np.diff(harvest.text, prepend=0)
    known = [
        (guide.known[url], gained[place], record.bytes[number])
        for place, number in enumerate(harvest.visited.tolist())
        if not record.redirects[number] and (url := record.urls[number]) in guide.known
    ]
    cost = np.array([received for _, _, received in known]) + to.REQUEST
    rates = np.minimum(np.array([text for _, text, _ in known]) / cost, MOST_YIELD)
    weights = np.minimum(cost / USUAL_PAGE, LARGEST_PAGE)
    lesson = Lesson(np.stack([measures for measures, _, _ in known]), rates, CRAWL * weights / weights.sum())
    return Crawled(area(harvest, best), lesson, _chances(record, guide))


def _chances(record: Record, guide: Watched) -> Lesson:
    """Which links to pages were to be kept: of equal texts, the one that was found first."""
    numbers = np.array([record.number(url) for url in guide.found_urls])
    measures = np.concatenate(guide.found_measures)
    first = np.zeros(len(numbers), np.bool_)
    first[np.unique(record.twins[numbers], return_index=True)[1]] = True
    kept = first & (record.worth[numbers] > 0)
    (pages,) = np.nonzero(record.are_pages[numbers])
    if len(pages) > MANY_LINKS:
        pages = np.sort(np.random.default_rng(1).choice(pages, MANY_LINKS, replace=False))
    inside = measures[pages, to.TOLD + at.SAME_HOST] > 0
    share = inside.mean()
    weights = np.where(
        inside, 0.5 / max(share, 1e-9), 0.5 / max(1.0 - share, 1e-9)
    )  # other hosts as much as own
    return Lesson(measures[pages], kept[pages].astype(np.float64), CRAWL * weights / len(pages))


def beginnings(record: Record, dice: Random) -> Iterator[list[int]]:
    """Where to start: the page that leads to most hosts, some good pages, or both."""
    good = np.flatnonzero(record.worth > 0).tolist()
    pages = Counter(host for host, language in zip(record.hosts, record.languages, strict=True) if language)
    large = {host for host, count in pages.items() if count >= LARGE_HOST}
    hub = max(
        range(len(record.urls)),
        key=lambda number: len(large & {record.hosts[link] for link in record.links(number)}),
    )
    yield [hub]
    for count in SEEDS:
        some = dice.sample(good, min(count, len(good)))
        yield some
        yield [hub, *some]


def _languages(directory: Path) -> set[str]:
    """Languages that a crawl has enough documents in."""
    counts = Counter(open_corpus(directory).docs(["language"])["language"].to_pylist())
    return {language for language, count in counts.items() if language and count >= FEWEST_PAGES}


def main() -> None:
    """Grow trees from the crawls named, and write them."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("directories", nargs="+", type=Path, metavar="DIR")
    parser.add_argument("--without", default="", help="languages that are left out, with commas between them")
    parser.add_argument("--output", type=Path, default=DATA)
    asked = parser.parse_args()
    records = [
        record
        for directory in asked.directories
        for record in load_each(directory, sorted(_languages(directory) - set(asked.without.split(","))))
        if (record.worth > 0).sum() >= FEWEST_PAGES
    ]
    guess = trees = first_guess()
    results: list[Crawled] = []
    for number in range(1, ROUNDS + 1):
        dice = Random(number)
        latest = [crawled(one, seeds, trees) for one in records for seeds in beginnings(one, dice)]
        results += latest
        mean = np.mean([result.area for result in latest])
        print(f"round {number}: {len(latest)} crawls, mean area {mean:.3f}", file=sys.stderr)
        trees = joined([guess, grown([result.rates for result in results], "l2")], 0.5)
    chances = grown([result.chances for result in results], "binary")
    asked.output.write_bytes(packed(Forests(trees, chances)))
    print(f"{asked.output} written", file=sys.stderr)


if __name__ == "__main__":
    main()
