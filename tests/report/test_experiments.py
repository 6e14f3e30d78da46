"""The papers' experiments: counts agree with the crawl, and each has a command, a picture and a stored result."""

from __future__ import annotations

import json
import os
import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import thresher
from support.invariants import SETTINGS
from support.webs.toy_webs import all_seeds
from thresher.cli import app
from thresher.config import BudgetSettings, Config, PolicySettings
from thresher.crawler.api import crawl
from thresher.crawler.policy.yield_stats import DomainClosing, YieldTally
from thresher.errors import UsageError
from thresher.reader.html.links import UNKNOWN
from thresher.report.experiments import EXPERIMENTS, cyclic, domains, links, report, save, seeds, thresholds
from thresher.report.experiments.evidence import NO_PARENT, Evidence, gather
from thresher.report.experiments.figures import VisitSeries, fit, snapshots
from thresher.simulation.record import CrawlRecord
from thresher_lab.toyweb import ToyWeb, serve

WEB = ToyWeb(
    hosts=15,
    pages_per_host=(5, 15),
    page_bytes=(4_000, 6_000),
    slow_seconds=0.1,
    drip_seconds=0.2,
    crawl_delay=0.1,
)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    directory = tmp_path_factory.mktemp("crawled") / "corpus"
    with serve(WEB) as server:
        crawl(directory, "cs", all_seeds(WEB), settings=SETTINGS, connect_to=server.connect_to)
    yield directory


@pytest.fixture(scope="module")
def linkless(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    directory = tmp_path_factory.mktemp("linkless") / "corpus"
    given = {**SETTINGS, "store": {"links": False}, "budget": {"max_pages": 30}}
    with serve(WEB) as server:
        crawl(directory, "cs", all_seeds(WEB), settings=given, connect_to=server.connect_to)
    yield directory


@pytest.fixture(scope="module")
def evidence(corpus: Path) -> Evidence:
    return gather(corpus)


class Wood:
    """Builder of an invented crawl, page by page."""

    def __init__(self) -> None:
        self.rows: list[tuple[str, int, int, int, int, float]] = []
        self.links: list[tuple[int, int, float]] = []

    def page(
        self, url: str, *, text: int = 0, size: int = 1_000, parent: int = NO_PARENT, badness: float = 5.0
    ) -> int:
        depth = 0 if parent == NO_PARENT else self.rows[parent][4] + 1
        self.rows.append((url, size, text, parent, depth, badness))
        if parent != NO_PARENT:
            self.link(parent, len(self.rows) - 1)
        return len(self.rows) - 1

    def link(self, source: int, target: int, boilerplate: float = 0.1) -> None:
        self.links.append((source, target, boilerplate))

    def evidence(self) -> Evidence:
        urls = [row[0] for row in self.rows]
        by_source = sorted(self.links, key=lambda link: link[0])
        hosts = [url.split("/")[2] for url in urls]
        record = CrawlRecord(
            urls,
            hosts,
            np.array([row[1] for row in self.rows]),
            np.array([row[2] for row in self.rows]),
            np.arange(len(urls)),
            np.searchsorted([source for source, _, _ in by_source], np.arange(len(urls) + 1)),
            np.array([target for _, target, _ in by_source], np.int64),
            [""] * len(by_source),
            np.array([score for _, _, score in by_source]),
            np.zeros(len(by_source), np.bool_),
            {},
            np.array([row[5] for row in self.rows]),
            np.zeros(len(urls), np.bool_),
            [""] * len(urls),
            "cs",
            {},
            {},
            {url.partition("://")[2]: number for number, url in enumerate(urls)},
        )
        return Evidence(
            Path("made-up"),
            Config(),
            record,
            np.ones(len(urls), np.bool_),
            record.gains(np.arange(len(urls))),
            hosts,
            np.array([row[3] for row in self.rows]),
            np.array([row[4] for row in self.rows]),
        )


# seeds


def grown(count: int, pages: int) -> Evidence:
    """Return seeds of which every other one is good and leads to good pages through chains of pages."""
    wood = Wood()
    for number in range(count):
        text = 500 if number % 2 else 0
        parent = wood.page(f"http://s{number}.cz/", text=text, badness=2.0 if text else 30.0)
        for place in range(pages):
            parent = wood.page(f"http://s{number}.cz/{place}", text=text and 400, parent=parent)
    return wood.evidence()


def test_every_page_is_counted_for_the_seed_that_it_was_found_from() -> None:
    result = seeds.run(grown(20, 25))
    assert result.way == "found"
    assert [one.seeds for one in result.crawls] == [[f"http://s{number}.cz/"] for number in range(20)]
    assert {one.crawl.documents for one in result.crawls} == {25}
    assert [one.crawl.document_yield for one in result.crawls] == [0.0, 1.0] * 10
    assert result.crawls[1].crawl.byte_yield == pytest.approx(0.4)
    assert result.crawls[1].seed_byte_yield == pytest.approx(0.5)
    by_documents, _, by_badness = (relation.fit for relation in result.relations)
    assert by_documents and by_documents.slope == pytest.approx(1) and by_documents.r2 == pytest.approx(1)
    assert by_badness and by_badness.slope == pytest.approx(-1 / 28)


def test_a_seed_that_redirects_is_as_good_as_where_it_leads() -> None:
    wood = Wood()
    first = wood.page("http://a.cz/")
    landed = wood.page("http://www.a.cz/", text=700, parent=first)
    evidence = wood.evidence()
    evidence.documents[first] = False
    assert evidence.landing(first) == landed
    assert evidence.seeds == [first]


def test_with_few_seeds_crawls_are_simulated_reproducibly() -> None:
    small = grown(10, 60)
    result = seeds.run(small, group=2, max_bytes=30_000)
    assert result.way == "replayed"
    assert len(result.crawls) + result.too_small == 40
    assert all(len(one.seeds) == 2 and one.crawl.bytes <= 32_000 for one in result.crawls)
    assert result == seeds.run(small, group=2, max_bytes=30_000)
    assert result != seeds.run(small, group=2, max_bytes=30_000, seed=2)


def test_too_small_a_crawl_is_refused() -> None:
    with pytest.raises(UsageError, match="continue the crawl"):
        seeds.run(grown(2, 3))
    with pytest.raises(UsageError, match="fewer than --group 5"):
        seeds.run(grown(1, 1))
    with pytest.raises(UsageError, match="--group must be from 1"):
        seeds.run(grown(1, 1), group=0)


# cyclic selection


def forked(good: int, junk: int) -> Evidence:
    """Return a hub with links to good pages in its text, after links to junk in its menu."""
    wood = Wood()
    hub = wood.page("http://hub.cz/", text=100)
    for number in range(junk):
        wood.page(f"http://junk{number % 7}.cz/{number}", parent=NO_PARENT)
    for number in range(good):
        wood.page(f"http://good{number % 7}.cz/{number}", text=500)
    for number in range(1, junk + 1):
        wood.link(hub, number, boilerplate=0.9)
    for number in range(junk + 1, junk + good + 1):
        wood.link(hub, number, boilerplate=0.1)
    evidence = wood.evidence()
    evidence.depths[1:] = 1
    return evidence


def test_a_new_phase_begins_with_links_from_good_places_alone() -> None:
    result = cyclic.run(forked(100, 300), phases=3, max_bytes=60_000)
    assert result.phases[1].seeds == 100
    assert [phase.cyclic.document_yield for phase in result.phases[1:]] == [1.0]
    assert result.cyclic.document_yield > 1.9 * result.unbroken.document_yield
    assert result.cyclic.bytes == result.unbroken.bytes
    assert sum(phase.cyclic.documents for phase in result.phases) == result.cyclic.documents
    assert sum(one.documents for one in result.cyclic_snapshots) == result.cyclic.documents


def test_a_bound_that_admits_everything_begins_with_everything() -> None:
    result = cyclic.run(forked(10, 30), phases=2, max_bytes=20_000, boilerplate=2.0)
    assert result.phases[1].seeds + result.phases[0].cyclic.documents == 41


@pytest.mark.slow
def test_no_page_is_fetched_twice_and_phases_end_where_nothing_is_left(evidence: Evidence) -> None:
    result = cyclic.run(evidence, phases=4, max_bytes=10**9, boilerplate=2.0, badness=1e9)
    assert result.cyclic.documents <= int(evidence.documents.sum())
    assert result.cyclic.kept <= int((evidence.gained > 0).sum())
    assert len(result.phases) < result.wanted == 4
    bad = cyclic.run(evidence, badness=-1.0)
    assert len(bad.phases) == 1


@pytest.mark.parametrize("phases", [-1, 0, 1, 10**12])
def test_an_invalid_number_of_phases_is_refused(evidence: Evidence, phases: int) -> None:
    with pytest.raises(UsageError, match="for example 5"):
        cyclic.run(evidence, phases=phases)


# links


def counted_by_hand(corpus: Path, inside: bool, first_only: bool) -> Counter[tuple[bool, bool]]:
    """Return (boilerplate at most 0.5, kept) of every link, straight from the tables."""
    opened = thresher.open(corpus)
    outcomes = {row["url"].partition("://")[2]: row for row in opened.outcomes().to_pylist()}
    found: Counter[tuple[bool, bool]] = Counter()
    met: set[str] = set()
    for link in opened.links().to_pylist():
        source, target = (link[name].partition("://")[2] for name in ("source", "target"))
        if source == target or "nofollow" in link["rel"] or target not in outcomes or source not in outcomes:
            continue
        if outcomes[target]["outcome"] not in ("kept", "rejected") or (first_only and target in met):
            continue
        met.add(target)
        if link["boilerplate"] != UNKNOWN and (source.split("/")[0] == target.split("/")[0]) == inside:
            found[link["boilerplate"] <= 0.5, outcomes[target]["outcome"] == "kept"] += 1
    return found


def test_confusion_matrices_agree_with_the_tables(corpus: Path, evidence: Evidence) -> None:
    result = links.run(evidence)
    assert {variant.links > 0 for variant in result.variants} == {True}
    for variant in result.variants:
        counted = counted_by_hand(corpus, variant.scope == "own host", variant.counted == "first link")
        everything, rule = variant.rules[0], variant.rules[2]
        assert (rule.rule, rule.chosen) == ("boilerplate", "paper's")
        assert rule.true_positives == counted[True, True]
        assert rule.false_positives == counted[True, False]
        assert rule.false_negatives == counted[False, True]
        assert rule.true_negatives == counted[False, False]
        assert everything.true_positives == rule.true_positives + rule.false_negatives
        assert everything.false_negatives == everything.true_negatives == 0


def test_the_best_threshold_is_at_least_as_good_as_any_other(evidence: Evidence) -> None:
    for variant in links.run(evidence).variants:
        rules = {(rule.rule, rule.chosen): rule for rule in variant.rules}
        assert rules["boilerplate", "best"].f1 >= rules["boilerplate", "paper's"].f1
        assert rules["boilerplate", "best"].f1 >= rules["every link", ""].f1
        assert rules["both", "best"].f1 >= max(rules["both", "paper's"].f1, rules["Badness", "paper's"].f1)
        assert rules["weight", "best"].f1 >= rules["every link", ""].f1


def test_the_figures_of_the_paper_are_reproduced_from_its_counts() -> None:
    assert [round(rule.precision, 3) for rule in links.PAPER] == [0.225, 0.590]
    assert [round(rule.recall, 3) for rule in links.PAPER] == [0.530, 0.640]
    assert [round(rule.f1, 3) for rule in links.PAPER] == [0.316, 0.614]


# thresholds


@settings(max_examples=60)
@given(
    st.integers(0, 10**6),
    st.sampled_from([*thresholds.RULES, "0.3"]),
    st.integers(0, 12),
    st.integers(0, 8_000),
)
def test_a_rule_closes_domains_exactly_as_a_crawl_does(
    seed: int, rule: str, min_pages: int, min_bytes: int
) -> None:
    chance = Random(seed)
    wood = Wood()
    for number in range(120):
        rich = chance.choice([0, 0, 20, 400])
        wood.page(
            f"http://d{chance.randrange(6)}.cz/{number}", text=rich, size=chance.choice([0, 500, 2_000])
        )
    made_up = wood.evidence()
    closing = DomainClosing(
        PolicySettings(threshold=rule, min_pages=min_pages, min_bytes=min_bytes), BudgetSettings()
    )
    tallies: dict[str, YieldTally] = {}
    closed: set[str] = set()
    for host, size, text in zip(made_up.domains, made_up.record.bytes, made_up.gained, strict=True):
        if host not in closed and size:
            tally = tallies.setdefault(host, YieldTally())
            tally.count(int(size), int(text))
            if closing.reason(tally, tally):
                closed.add(host)
    result = thresholds.run(made_up, rules=[rule], min_pages=min_pages, min_bytes=min_bytes)
    row = next(one for one in result.rules if one.threshold == rule)
    assert row.closed == len(closed)
    assert row.bytes == sum(tally.bytes for tally in tallies.values())
    assert row.text_bytes == sum(tally.text_bytes for tally in tallies.values())


def test_the_papers_table_is_of_domains_above_each_yield() -> None:
    wood = Wood()
    for number, text in enumerate((0, 1, 20, 500)):  # yields of 0, 0.001, 0.02 and 0.5
        wood.page(f"http://d{number}.cz/", text=text)
    levels = {level.threshold: level for level in thresholds.run(wood.evidence()).levels}
    above = {None: 4, 0.0: 3, 0.0001: 3, 0.0128: 2, 0.0256: 1, 0.4096: 1}
    assert {threshold: levels[threshold].domains for threshold in above} == above
    assert (levels[0.0128].bytes, levels[0.0128].text_bytes) == (2_000, 520)
    assert levels[None].byte_yield == pytest.approx(521 / 4_000)


def test_without_a_rule_nothing_is_saved_or_lost(evidence: Evidence) -> None:
    none = thresholds.run(evidence).rules[0]
    assert (none.threshold, none.closed, none.saved, none.lost) == ("", 0, 0.0, 0.0)
    assert none.bytes == int(evidence.record.bytes.sum())


def test_a_stricter_rule_saves_no_less(evidence: Evidence) -> None:
    rows = thresholds.run(evidence, rules=["1000"], min_bytes=0, min_pages=0).rules
    assert [row.saved for row in rows] == sorted(row.saved for row in rows)
    assert rows[-1].closed == rows[-1].domains > 0
    assert rows[-1].saved > 0


@pytest.mark.parametrize("rule", ["import os", "1 / (n - 3)", "log10(n - 3)", "9" * 400])
def test_a_rule_without_a_value_is_refused(evidence: Evidence, rule: str) -> None:
    with pytest.raises(UsageError, match="threshold"):
        thresholds.run(evidence, rules=[rule])


# domains and figures


def test_domains_snapshots_and_iterations_add_up_to_the_crawl(corpus: Path, evidence: Evidence) -> None:
    result = domains.run(evidence)
    stats = thresher.open(corpus).stats()
    for parts in (result.domains, result.snapshots, [one.figures for one in result.iterations]):
        assert sum(part.bytes for part in parts) == stats["bytes"]["downloaded"]
        assert sum(part.text_bytes for part in parts) == stats["bytes"]["text"]
        assert sum(part.kept for part in parts) == stats["pages"]["kept"]
    assert result.domains[0].bytes == max(one.bytes for one in result.domains)
    assert result.iterations[0].figures.documents <= len(all_seeds(WEB))
    assert result.whole.kept == stats["pages"]["kept"]


def test_snapshots_have_the_requested_size(evidence: Evidence) -> None:
    total = int(evidence.record.bytes.sum())
    assert len(domains.run(evidence, every=total).snapshots) == 1
    assert len(domains.run(evidence, every=total // 4 + 1).snapshots) == 4
    with pytest.raises(UsageError, match="snapshots, more than"):
        domains.run(evidence, every=1)


def test_a_page_belongs_to_the_snapshot_in_which_it_began() -> None:
    visits = VisitSeries(
        np.array([30, 90, 10, 5]), np.array([True, True, False, True]), np.array([3, 0, 0, 5])
    )
    parts = snapshots(visits, 100)
    assert [part.bytes for part in parts] == [120, 15]
    assert [part.downloaded for part in parts] == [120, 135]
    assert [(part.kept, part.documents) for part in parts] == [(1, 2), (1, 1)]
    assert [part.document_yield for part in parts] == [0.5, 1.0]


def test_a_fit_has_the_share_of_explained_variance() -> None:
    line = fit([0, 1, 2, 3], [1, 3, 5, 7])
    assert line and (line.slope, line.intercept, line.r2) == pytest.approx((2, 1, 1))
    loose = fit([0, 1, 2, 3], [0, 2, 1, 3])
    assert loose and loose.r2 == pytest.approx(0.64) and loose.adjusted_r2 == pytest.approx(0.46)
    assert fit([1, 1, 1], [1, 2, 3]) is None
    assert fit([1, 2], [1, 2]) is None


def test_only_the_first_fetched_of_equal_texts_counts(corpus: Path, evidence: Evidence) -> None:
    rows = thresher.open(corpus).outcomes(["outcome", "text_bytes"]).to_pylist()
    assert evidence.gained.tolist() == [row["text_bytes"] if row["outcome"] == "kept" else 0 for row in rows]


# the commands


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_every_experiment_stores_its_figures_and_its_picture(
    corpus: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    def run(*options: str) -> Any:
        app(["experiment", name, str(corpus), *options], result_action="return_value")
        return capsys.readouterr()

    drawn = tmp_path / "picture.svg"
    printed = json.loads(run("--json", "--plot", str(drawn)).out)
    assert (printed["experiment"], printed["thresher"], printed["language"]) == (
        name,
        thresher.__version__,
        "cs",
    )
    stored = corpus / "runs" / f"experiment-{name}.json"
    assert json.loads(stored.read_bytes()) == printed
    svg = (corpus / "runs" / f"experiment-{name}.svg").read_bytes()
    assert drawn.read_bytes() == svg
    assert ElementTree.fromstring(svg).tag == "{http://www.w3.org/2000/svg}svg"
    assert b"nothing to show" not in svg
    first = stored.read_bytes()
    shown = run()
    assert stored.read_bytes() == first  # the same crawl, the same figures
    assert str(stored) in shown.err.replace("\n", "")
    assert len(shown.out.splitlines()) > 4
    assert sorted(path.name for path in (corpus / "runs").iterdir() if path.name.startswith(".")) == []


def test_a_result_that_cannot_be_stored_is_shown_all_the_same(
    corpus: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sealed = shutil.copytree(corpus, tmp_path / "sealed")
    shutil.rmtree(sealed / "runs", ignore_errors=True)
    (sealed / "runs").write_text("as if no directory could be made here")
    app(["experiment", "links", str(sealed)], result_action="return_value")
    shown = capsys.readouterr()
    assert len(shown.out.splitlines()) > 4
    assert "the result is not stored" in shown.err


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_every_experiment_has_help_with_an_example(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    app(["experiment", name, "--help"], result_action="return_value")
    assert f"Example: thresher experiment {name}" in capsys.readouterr().out


@pytest.mark.parametrize("name", ["links", "cyclic", "seeds"])
def test_a_crawl_without_links_is_refused_with_the_fix(linkless: Path, name: str) -> None:
    with pytest.raises(UsageError, match=r"links = true in \[store\]"):
        EXPERIMENTS[name].run(gather(linkless))


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_a_corpus_without_pages_is_refused_with_the_fix(tmp_path: Path, name: str) -> None:
    (tmp_path / "corpus.toml").write_text('language = "cs"\n')
    with pytest.raises(UsageError, match="crawl it first"):
        app(["experiment", name, str(tmp_path)], result_action="return_value")
    assert not (tmp_path / "runs").exists()


def test_a_crawl_without_a_fetched_seed_is_refused_with_the_fix(evidence: Evidence) -> None:
    with pytest.raises(UsageError, match="--seeds FILE"):
        cyclic.run(evidence._replace(depths=evidence.depths + 1))


def test_a_picture_in_a_missing_directory_is_refused_at_once(corpus: Path, tmp_path: Path) -> None:
    nowhere = tmp_path / "missing" / "picture.svg"
    with pytest.raises(UsageError, match="is not a directory; create it first"):
        app(["experiment", "domains", str(corpus), "--plot", str(nowhere)], result_action="return_value")


@pytest.mark.parametrize("name", ["thresholds", "domains"])
def test_experiments_without_links_need_only_tables(linkless: Path, name: str) -> None:
    picture = EXPERIMENTS[name].picture(EXPERIMENTS[name].run(gather(linkless)))
    assert ElementTree.fromstring(picture).tag.endswith("svg")


def test_results_are_synced_before_they_replace_older_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    events: list[str] = []
    synced, replaced = os.fsync, Path.replace

    def fsync(descriptor: int) -> None:
        events.append(Path(f"/proc/self/fd/{descriptor}").resolve().name)
        synced(descriptor)

    def replace(path: Path, target: Path) -> Path:
        events.append(f"replace {target.name}")
        assert path.name in events, f"{path.name} was renamed before it was synced"
        return replaced(path, target)

    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(Path, "replace", replace)
    files = save(tmp_path, report("domains", "cs", {}, {}), "<svg/>")
    assert [event for event in events if event.startswith("replace")] == [
        f"replace {files.json.name}",
        f"replace {files.svg.name}",
    ]
    assert files.svg.read_text() == "<svg/>"
