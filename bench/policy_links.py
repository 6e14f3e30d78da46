"""Can the policy that learns tell where a link leads, at the moment when it is found?"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence

import numpy as np
from msgspec.structs import asdict

from bench.policy_runs import Figures
from bench.policy_webs import Case, host_numbers
from thresher.config import Policy
from thresher.crawl.guide import Found
from thresher.crawl.learned.guide import Learned
from thresher.crawl.priority import Source
from thresher.crawl.state import Nowhere
from thresher.lab.experiments.links import rules
from thresher.lab.record import Record
from thresher.lab.simulate import FURTHER, Simulation, Terms, ideal
from thresher.page import Candidate, Link
from thresher.read.links import UNKNOWN


class Noting(Learned):
    """The guide that learns; it notes of every new link what it expects of it, and in what context it stood."""

    def __init__(self, record: Record) -> None:
        super().__init__(record.language, Nowhere())
        self._record = record
        self.sources, self.targets = array("q"), array("q")
        self.boilerplate, self.badness = array("d"), array("d")
        self.expected, self.chances = array("d"), array("d")

    def found(self, candidates: Sequence[Candidate], source: Source, links: Sequence[Link]) -> Found:
        queued, chances = found = super().found(candidates, source, links)
        self.sources.extend([self._record.number(source.url)] * len(queued))
        self.targets.extend(self._record.number(one.url) for one in queued)
        self.boilerplate.extend(link.boilerplate for link in links)
        self.badness.extend([np.nan if source.badness is None else source.badness] * len(queued))
        self.expected.extend(self.weights(queued))
        self.chances.extend(one or 0.0 for one in chances)
        return found


def predictions(case: Case) -> Iterator[Figures]:
    """How well each rule tells the links to pages that are kept: to other hosts, and inside hosts.

    Only links to pages count that stand in a block of their page; of equal texts, the one whose link was found
    first is kept.
    """
    record = case.record
    noted = Noting(record)
    limit = FURTHER * int(ideal(record).downloaded[-1])
    Simulation(record, Policy(name="learned"), Terms(bytes=limit), noted).run(case.seeds)
    sources, targets = np.array(noted.sources), np.array(noted.targets)
    boilerplate, badness = np.array(noted.boilerplate), np.array(noted.badness)
    first = np.zeros(len(targets), np.bool_)
    first[np.unique(record.twins[targets], return_index=True)[1]] = True
    kept = first & (record.worth[targets] > 0)
    counted = record.are_pages[targets] & (boilerplate != UNKNOWN)
    hosts = host_numbers(record)
    own = hosts[sources] == hosts[targets]
    for scope, which in (("other hosts", counted & ~own), ("own host", counted & own)):
        told = np.array(noted.expected)[which], np.array(noted.chances)[which]
        for rule in rules(boilerplate[which], badness[which], *told, kept[which]):
            yield {"name": "links", **case.names, "scope": scope, "links": int(which.sum()), **asdict(rule)}
