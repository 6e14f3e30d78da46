"""The backlog: the best URLs are chosen, and none is lost or visited twice in spite of crashes."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from msgspec.structs import replace

from thresher.config import Config, CycleSettings, PolicySettings, PoliteSettings
from thresher.crawler.frontier.backlog import BestUrls
from thresher.crawler.frontier.manager import FrontierManager
from thresher.crawler.manners.politeness import Politeness
from thresher.crawler.policy.yield_stats import YieldStats
from thresher.crawler.stop_reasons import Ending
from thresher.crawler.storage import kv_state
from thresher.crawler.storage.crawl_writer import CrawlStats
from thresher.crawler.storage.kv_state import KeyValueState
from thresher.records import Candidate, Link, ReadResult
from thresher.urls import domain, host


def opened(state: KeyValueState, terms: CycleSettings) -> FrontierManager:
    config = Config(
        language="cs",
        polite=PoliteSettings(delay=0.0),
        cycles=terms,
        policy=PolicySettings(name="spiderling"),
    )
    polite = Politeness(state, config.polite, lambda: 0.0)
    return FrontierManager(state, config, YieldStats(state), polite, is_resumed=False)


def test_good_links_of_a_phase_are_used_by_the_next_phase_only(tmp_path: Path) -> None:
    state = KeyValueState(tmp_path)
    terms = CycleSettings(pages=1, selection=True)
    queues = opened(state, terms)
    figures = CrawlStats()

    def commit() -> None:
        queues.flush()
        state.commit()
        queues.frontier.committed()

    def visit() -> None:
        taken = queues.frontier.take()
        assert taken
        queues.frontier.finish(taken)
        figures.fetched += 1

    queues.add([Candidate(f"http://{name}.cz/") for name in "abcd"])
    assert queues.next_cycle(None, figures, commit) is None
    links = [Link(f"http://{name}.cz/", "", 0.1, True) for name in "abc"]
    queues.cycles.note_good_links(ReadResult("http://a.cz/", "html", badness=3.0, links=tuple(links)))
    visit()
    assert queues.next_cycle(None, figures, commit) is None
    assert (len(queues.frontier), queues.backlog.counts.given_up) == (2, 1)
    visit()
    ending = queues.next_cycle(None, figures, commit)
    assert ending == Ending("done", "No good URL is left to begin from; 2 were given up.")
    state.close()


# cycles with crashes at any moment


class Crash(BaseException):
    """The process is killed."""


class Mortal(KeyValueState):
    """A state that crashes instead of a commit, after some commits."""

    lives = -1

    def commit(self) -> None:
        if self.lives == 0:
            raise Crash
        self.lives -= 1
        super().commit()


class CycleMachine(RuleBasedStateMachine):
    """Against a model: which URLs wait, which may be visited now, and which are given up; killed at any commit."""

    HOSTS = ("a.cz", "www.a.cz", "b.cz", "c.cz")

    @initialize(
        selection=st.booleans(),
        size=st.integers(1, 4),
        of_domain=st.integers(0, 3),
        portion=st.integers(1, 4),
    )
    def begin(self, selection: bool, size: int, of_domain: int, portion: int) -> None:
        self.directory = tempfile.TemporaryDirectory()
        self.portion, kv_state.PORTION = kv_state.PORTION, portion
        self.terms = CycleSettings(pages=size, domain_pages=of_domain, selection=selection, seeds=size)
        self.figures = CrawlStats()
        self.weights: dict[str, float] = {}  # of every URL ever found: no two are alike
        self.waiting: set[str] = set()
        self.now: set[str] = set()  # may be visited in this cycle
        self.good: set[str] = set()  # harvested in good places
        self.done: set[str] = set()
        self.number = 0
        self.open()
        self.put([Candidate(f"http://{name}/{n}", weight=n + 1.0) for n, name in enumerate(self.HOSTS * 2)])
        self.make_durable()

    def open(self) -> None:
        self.state = Mortal(Path(self.directory.name))
        self.queues = opened(self.state, self.terms)
        self.queues.resume(self.figures, self.commit)
        self.taken: list[Candidate] = []

    def save(self) -> None:
        sets = (self.waiting, self.now, self.good, self.done)
        self.saved = [set(each) for each in sets], replace(self.figures), dict(self.weights)

    def commit(self) -> None:
        self.queues.flush()
        self.state.commit()
        self.queues.frontier.committed()

    def crash(self) -> None:
        self.state.close()
        self.open()

    def revert(self) -> None:
        (self.waiting, self.now, self.good, self.done), figures, self.weights = self.saved
        self.figures = replace(figures)
        self.save()

    def teardown(self) -> None:
        if hasattr(self, "state"):
            kv_state.PORTION = self.portion
            self.state.close()
            self.directory.cleanup()

    def put(self, found: list[Candidate]) -> None:
        self.queues.add(found)
        self.weights |= {one.url: one.weight for one in found}
        (self.now if self.terms.selection else self.waiting).update(one.url for one in found)

    @rule(name=st.sampled_from(HOSTS), weights=st.sets(st.floats(0.1, 9.0), min_size=1, max_size=5))
    def find(self, name: str, weights: set[float]) -> None:
        unseen = sorted(weights - set(self.weights.values()))
        known = len(self.weights)
        self.put([Candidate(f"http://{name}/{known + n}", weight=one) for n, one in enumerate(unseen)])

    @rule(data=st.data())
    def harvest(self, data: st.DataObject) -> None:
        urls = data.draw(st.lists(st.sampled_from(sorted(self.weights)), unique=True))
        half = len(urls) // 2
        links = [Link(url, "", 0.1, True) for url in urls[:half]]
        links += [Link(url, "", 0.9, True) for url in urls[half:]]
        self.queues.cycles.note_good_links(
            ReadResult("http://x.cz/", "html", badness=3.0, links=tuple(links))
        )
        self.good.update(urls[:half])

    @rule()
    def take(self) -> None:
        taken = self.queues.frontier.take()
        busy = {host(one.url) for one in self.taken}
        if taken is None:
            assert {host(url) for url in self.now} <= busy
        else:
            assert taken.url in self.now - {one.url for one in self.taken}
            self.taken.append(taken)

    @rule()
    def visit(self) -> None:
        before = len(self.taken)
        self.take()
        if len(self.taken) > before:
            self.end_visit("finish")

    @precondition(lambda self: self.taken)
    @rule(ending=st.sampled_from(["finish", "put back", "try again"]))
    def end_visit(self, ending: str) -> None:
        taken = self.taken.pop()
        frontier = self.queues.frontier
        if ending == "finish":
            frontier.finish(taken)
            self.figures.fetched += 1
            self.now.remove(taken.url)
            self.done.add(taken.url)
        elif ending == "put back":
            frontier.put_back(taken)
        else:
            frontier.requeue(taken, replace(taken, tries=taken.tries + 1))
        frontier.free(host(taken.url), 0.0)

    @rule()
    def make_durable(self) -> None:
        self.commit()
        self.save()

    @rule(is_time=st.sampled_from([False, False, False, True]))
    def be_killed(self, is_time: bool) -> None:
        if is_time:
            self.crash()
            self.revert()

    def chosen(self, urls: set[str]) -> set[str]:
        """Return the best URLs, with a limit for each domain."""
        chosen: list[str] = []
        for url in sorted(urls, key=lambda url: -self.weights[url]):
            same = sum(domain(host(one)) == domain(host(url)) for one in chosen)
            if not self.terms.domain_pages or same < self.terms.domain_pages:
                chosen.append(url)
        return set(chosen[: self.terms.pages])

    @precondition(lambda self: not self.taken)
    @rule(kill_in=st.sampled_from([-1, -1, 0, 1, 2, 3, 4, 5]))
    def turn(self, kill_in: int) -> None:
        cycles = self.queues.cycles
        if self.terms.selection and cycles.under_way and not cycles.is_full(self.figures.fetched):
            return
        goes_on = self.terms.selection and not cycles.under_way and self.now
        pool = self.waiting | (self.now & self.good if self.terms.selection else self.now)
        self.state.lives = kill_in
        try:
            ending = self.queues.next_cycle(Ending("waiting"), self.figures, self.commit)
        except Crash:
            self.crash()
            if kill_in == 0:  # nothing of it has happened
                self.revert()
                return
            assert not self.queues.cycles.under_way
            assert len(self.queues.frontier) == (len(self.now) if goes_on else 0)
            self.waiting, self.now = (pool - self.now, self.now) if goes_on else (pool, set())
        else:
            self.state.lives = -1
            new = (self.chosen(self.waiting) | self.now) if goes_on else self.chosen(pool)
            assert (ending is None) == bool(new)
            self.waiting = set() if self.terms.selection else pool - new
            self.now = new
            self.number += bool(new)
            self.good = set()
        self.save()

    @invariant()
    def nothing_is_lost(self) -> None:
        if hasattr(self, "queues"):
            queues = self.queues
            waiting = len(queues.frontier) + len(queues.backlog) + queues.backlog.counts.given_up
            assert waiting + len(self.done) == len(self.weights)
            assert len(queues.frontier) == len(self.now)

    @invariant()
    def cycles_are_counted(self) -> None:
        if hasattr(self, "queues"):
            numbers = [row["cycle"] for row in self.queues.cycles.table(self.figures)]
            assert numbers == list(range(1, self.number + 1))


TestCycleMachine = CycleMachine.TestCase
TestCycleMachine.settings = settings(
    max_examples=int(os.environ.get("THRESHER_EXAMPLES", "15")), stateful_step_count=30
)


@given(
    entries=st.lists(st.tuples(st.integers(0, 9), st.sampled_from("abc")), max_size=60),
    count=st.integers(1, 8),
    of_domain=st.integers(0, 4),
)
def test_the_best_entries_equal_a_full_sort_and_few_are_in_memory(
    entries: list[tuple[int, str]], count: int, of_domain: int
) -> None:
    best = BestUrls(count, of_domain)
    for place, (weight, name) in enumerate(entries):
        best.add(weight, (b"", Candidate(f"http://{name}.cz/{place}")))
        assert best.held <= 2 * count
    chosen: list[str] = []
    for place, (_, name) in sorted(enumerate(entries), key=lambda item: -item[1][0]):
        if not of_domain or sum(url.startswith(f"http://{name}.") for url in chosen) < of_domain:
            chosen.append(f"http://{name}.cz/{place}")
    assert [candidate.url for _, candidate in best.all()] == chosen[:count]
