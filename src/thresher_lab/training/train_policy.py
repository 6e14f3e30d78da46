"""Train the trees of the learned policy by simulated crawls.

    python -m thresher_lab.training.train_policy DIR [DIR ...]

Each DIR is a breadth-first crawl of everything in every language (`[judge] language = false, max_badness = 0`). For
each language, crawls are simulated from some of its pages, from the page with links to most hosts, and from both.
Trees are trained from the measures of each link when it was chosen, and its result. The policy with these trees
crawls again for another round, since the links that a policy chooses depend on its predictions, and it must learn
from its own mistakes.

The final trees are the mean of the trained ones and of a first guess, defined here, which is simpler but not fitted
to any web. Other trees predict the chance that a page is kept, from the measures of every link when it was found.
The extra `train` is required.
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

from thresher.config import PolicySettings
from thresher.crawler.policy.learned import feature_layout as at
from thresher.crawler.policy.learned import predictor as to
from thresher.crawler.policy.learned.learned_policy import LearnedPolicy, Prediction
from thresher.crawler.policy.learned.trees import DATA, PolicyForests, TreeStack, packed
from thresher.crawler.policy.policy import Front
from thresher.crawler.storage.kv_state import NullState
from thresher.files.durable_files import replace
from thresher.records import Candidate
from thresher.simulation.record import CrawlRecord, load_each
from thresher.simulation.simulate import HARVEST_LIMIT, Simulation, SimulationTerms, area, ideal
from thresher.store.corpus_files import open as open_corpus

DEPTH = 5
TREES = 60
ROUNDS = 2
SEEDS = 1, 3  # numbers of good pages to start from
LARGE_HOST_PAGES = 10  # of a host that counts for a hub
MIN_GOOD_PAGES = 60  # of a language to train from
MAX_YIELD = 3.0  # text per byte; higher results are cut
CRAWL_WEIGHT = 1_000.0  # of each crawl, independent of its length
MAX_LINKS = 20_000  # of a crawl, sampled to train chances
USUAL_PAGE_BYTES = 5_000.0  # of a page with weight 1
MAX_PAGE_WEIGHT = 6.0

# Measures with a monotone effect, so that trees do not fit noise.
BETTER = (
    *range(to.BY_DOMAIN, to.SIGNALS_START),
    *(to.SIGNALS_START + signal for signal in (at.KEPT, at.OURS, at.YIELD, at.ANCHOR_OURS)),
    *(to.SIGNALS_START + at.HINTS + signal for signal in (at.URL_OURS, at.AT_HOME)),
    *range(to.OURS_BY_DOMAIN, to.OURS_OVERALL),
    *range(to.BY_HOST_SETTING, to.MEASURES),
    *(to.FOLDER_RATIO, to.WORD_RATIO),
)
WORSE = (
    to.SIGNALS_START + at.ANCHOR_OTHER,
    *(to.SIGNALS_START + at.HINTS + signal for signal in (at.URL_OTHER, at.ABROAD)),
)

Floats = NDArray[np.float64]


class PolicyLesson(NamedTuple):
    """Training data: measures of links, their results, and their weights."""

    measures: NDArray[np.float32]
    results: Floats  # text per byte; or whether they are kept
    weights: Floats


class WatchedPolicy(LearnedPolicy):
    """A learned policy that records the measures of each URL when it was chosen and when it was found."""

    def __init__(self, language: str, trees: TreeStack) -> None:
        super().__init__(language, NullState(), PolicyForests(trees, _stump(0, 0.0, 0.0)))
        self.known: dict[str, NDArray[np.float32]] = {}
        self.found_urls: list[str] = []
        self.found_measures: list[NDArray[np.float32]] = []

    def _queued(
        self, candidates: Sequence[Candidate], hints: Sequence[bytes]
    ) -> tuple[list[Candidate], Prediction]:
        queued, outlook = super()._queued(candidates, hints)
        self.found_urls += [one.url for one in queued]
        self.found_measures.append(outlook.measures.astype(np.float32))
        return queued, outlook

    def on_taken(self, candidate: Candidate, front: Front, *, curious: bool) -> None:
        """Record the measures of a URL that is visited now."""
        super().on_taken(candidate, front, curious=curious)
        outlook = self.outlook(self._keys, self._signals, np.array([front]))
        self.known[candidate.url] = outlook.measures[0].astype(np.float32)


def first_guess() -> TreeStack:
    """Return the trees of the first guess: mostly the yield of the folder, more with signals of the language."""
    steps = [(to.BY_FOLDER, bound, 0.06) for bound in (0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0)]
    signals = [
        (to.SIGNALS_START + at.HINTS + at.URL_OURS, 0.5, 0.2),
        (to.SIGNALS_START + at.HINTS + at.URL_OTHER, 0.5, -0.02),
        (to.SIGNALS_START + at.HINTS + at.AT_HOME, 0.5, 0.05),
        (to.SIGNALS_START + at.ANCHOR_OURS, 0.5, 0.1),
        (to.SIGNALS_START + at.YIELD, 0.1, 0.05),
        (to.OURS_BY_FOLDER, 0.3, 0.05),
    ]
    return joined([_stump(*step) for step in (*steps, *signals)])


def _stump(column: int, bound: float, more: float) -> TreeStack:
    """Return a tree with one split."""
    inner, leaves = (1 << DEPTH) - 1, 1 << DEPTH
    columns, bounds = np.zeros(inner, np.uint8), np.full(inner, np.inf)
    columns[0], bounds[0] = column, bound
    values = np.zeros(leaves)
    values[leaves // 2 :] = more
    return TreeStack(DEPTH, columns, bounds, values)


def joined(parts: Sequence[TreeStack], share: float = 1.0) -> TreeStack:
    """Return trees that predict the sum of the predictions of all parts, times `share`."""
    columns, bounds, values = (np.concatenate([part[place] for part in parts]) for place in (1, 2, 3))
    return TreeStack(DEPTH, columns, bounds, share * values)


def trained(lessons: Sequence[PolicyLesson], objective: Literal["l2", "binary"]) -> TreeStack:
    """Train trees that predict the results of links from their measures."""
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


def _complete(root: dict[str, Any]) -> TreeStack:
    """Return a complete tree; splits that the tree does not have send everything to the left."""
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
    return TreeStack(DEPTH, columns, bounds, values)


class TrainingCrawl(NamedTuple):
    """The area of a simulated crawl, and its training data for yields and chances."""

    area: float
    rates: PolicyLesson
    chances: PolicyLesson


def crawled(record: CrawlRecord, seeds: Sequence[int], trees: TreeStack) -> TrainingCrawl:
    """Simulate a crawl with these trees and return its training data."""
    best = ideal(record)
    policy = WatchedPolicy(record.language, trees)
    terms = SimulationTerms(bytes=HARVEST_LIMIT * int(best.downloaded[-1]))
    harvest = Simulation(record, PolicySettings(name="learned", patience=0.0), terms, policy).run(seeds)
    gained = np.diff(harvest.text, prepend=0)
    known = [
        (policy.known[url], gained[place], record.bytes[number])
        for place, number in enumerate(harvest.visited.tolist())
        if not record.redirects[number] and (url := record.urls[number]) in policy.known
    ]
    cost = np.array([received for _, _, received in known]) + to.REQUEST_BYTES
    rates = np.minimum(np.array([text for _, text, _ in known]) / cost, MAX_YIELD)
    weights = np.minimum(cost / USUAL_PAGE_BYTES, MAX_PAGE_WEIGHT)
    lesson = PolicyLesson(
        np.stack([measures for measures, _, _ in known]), rates, CRAWL_WEIGHT * weights / weights.sum()
    )
    return TrainingCrawl(area(harvest, best), lesson, _chances(record, policy))


def _chances(record: CrawlRecord, policy: WatchedPolicy) -> PolicyLesson:
    """Return the training data for chances: of equal texts, only the one found first counts as kept."""
    numbers = np.array([record.number(url) for url in policy.found_urls])
    measures = np.concatenate(policy.found_measures)
    first = np.zeros(len(numbers), np.bool_)
    first[np.unique(record.originals[numbers], return_index=True)[1]] = True
    kept = first & (record.worth[numbers] > 0)
    (pages,) = np.nonzero(record.are_pages[numbers])
    if len(pages) > MAX_LINKS:
        pages = np.sort(np.random.default_rng(1).choice(pages, MAX_LINKS, replace=False))
    inside = measures[pages, to.SIGNALS_START + at.SAME_HOST] > 0
    share = inside.mean()
    # Links to other hosts have the same total weight as links inside hosts.
    weights = np.where(inside, 0.5 / max(share, 1e-9), 0.5 / max(1.0 - share, 1e-9))
    return PolicyLesson(measures[pages], kept[pages].astype(np.float64), CRAWL_WEIGHT * weights / len(pages))


def seed_sets(record: CrawlRecord, random: Random) -> Iterator[list[int]]:
    """Yield sets of seeds: the page with links to most hosts, some good pages, or both."""
    good = np.flatnonzero(record.worth > 0).tolist()
    pages = Counter(host for host, language in zip(record.hosts, record.languages, strict=True) if language)
    large = {host for host, count in pages.items() if count >= LARGE_HOST_PAGES}
    hub = max(
        range(len(record.urls)),
        key=lambda number: len(large & {record.hosts[link] for link in record.links(number)}),
    )
    yield [hub]
    for count in SEEDS:
        some = random.sample(good, min(count, len(good)))
        yield some
        yield [hub, *some]


def _languages(directory: Path) -> set[str]:
    """Return the languages with enough documents in a crawl."""
    counts = Counter(open_corpus(directory).documents(["language"])["language"].to_pylist())
    return {language for language, count in counts.items() if language and count >= MIN_GOOD_PAGES}


def main() -> None:
    """Train trees from the crawls on the command line and write them."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("directories", nargs="+", type=Path, metavar="DIR")
    parser.add_argument("--without", default="", help="languages to leave out, separated by commas")
    parser.add_argument("--output", type=Path, default=DATA)
    asked = parser.parse_args()
    records = [
        record
        for directory in asked.directories
        for record in load_each(directory, sorted(_languages(directory) - set(asked.without.split(","))))
        if (record.worth > 0).sum() >= MIN_GOOD_PAGES
    ]
    guess = trees = first_guess()
    results: list[TrainingCrawl] = []
    for number in range(1, ROUNDS + 1):
        random = Random(number)
        latest = [crawled(one, seeds, trees) for one in records for seeds in seed_sets(one, random)]
        results += latest
        mean = np.mean([result.area for result in latest])
        print(f"round {number}: {len(latest)} crawls, mean area {mean:.3f}", file=sys.stderr)
        trees = joined([guess, trained([result.rates for result in results], "l2")], 0.5)
    chances = trained([result.chances for result in results], "binary")
    replace(asked.output, packed(PolicyForests(trees, chances)))
    print(f"{asked.output} written", file=sys.stderr)


if __name__ == "__main__":
    main()
