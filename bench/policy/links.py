"""Prediction of the targets of links by the learned policy, at the moment when a link is found."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence

import numpy as np
from msgspec.structs import asdict

from bench.policy.runs import Figures
from bench.policy.webs import Case, host_numbers
from thresher.config import PolicySettings
from thresher.crawler.policy.learned.learned_policy import LearnedPolicy
from thresher.crawler.policy.policy import WeighedLinks
from thresher.crawler.policy.prioritisers import SourcePage
from thresher.crawler.storage.kv_state import NullState
from thresher.reader.html.links import UNKNOWN
from thresher.records import Candidate, Link
from thresher.report.experiments.links import rules
from thresher.simulation.record import CrawlRecord
from thresher.simulation.simulate import HARVEST_LIMIT, Simulation, SimulationTerms, ideal


class Noting(LearnedPolicy):
    """Learned policy that records its prediction and the context of every new link."""

    def __init__(self, record: CrawlRecord) -> None:
        super().__init__(record.language, NullState())
        self._record = record
        self.sources, self.targets = array("q"), array("q")
        self.boilerplate, self.badness = array("d"), array("d")
        self.expected, self.chances = array("d"), array("d")

    def weigh_links(
        self, candidates: Sequence[Candidate], source: SourcePage, links: Sequence[Link]
    ) -> WeighedLinks:
        queued, chances = found = super().weigh_links(candidates, source, links)
        self.sources.extend([self._record.number(source.url)] * len(queued))
        self.targets.extend(self._record.number(one.url) for one in queued)
        self.boilerplate.extend(link.boilerplate for link in links)
        self.badness.extend([np.nan if source.badness is None else source.badness] * len(queued))
        self.expected.extend(self.expected_yields(queued))
        self.chances.extend(one or 0.0 for one in chances)
        return found


def predictions(case: Case) -> Iterator[Figures]:
    """Return how well each rule predicts links to kept pages: to other hosts, and inside hosts.

    Only links to pages count that stand in a block of their page; of equal texts, the one whose link was found
    first is kept.
    """
    record = case.record
    noted = Noting(record)
    limit = HARVEST_LIMIT * int(ideal(record).downloaded[-1])
    Simulation(record, PolicySettings(name="learned"), SimulationTerms(bytes=limit), noted).run(case.seeds)
    sources, targets = np.array(noted.sources), np.array(noted.targets)
    boilerplate, badness = np.array(noted.boilerplate), np.array(noted.badness)
    first = np.zeros(len(targets), np.bool_)
    first[np.unique(record.originals[targets], return_index=True)[1]] = True
    kept = first & (record.worth[targets] > 0)
    counted = record.are_pages[targets] & (boilerplate != UNKNOWN)
    hosts = host_numbers(record)
    own = hosts[sources] == hosts[targets]
    for scope, which in (("other hosts", counted & ~own), ("own host", counted & own)):
        predicted = np.array(noted.expected)[which], np.array(noted.chances)[which]
        for rule in rules(boilerplate[which], badness[which], *predicted, kept[which]):
            yield {"name": "links", **case.names, "scope": scope, "links": int(which.sum()), **asdict(rule)}
