"""The learned policy: features of URLs, its memory, and its predictions."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from thresher.config import PolicyName, PolicySettings
from thresher.crawler.policy.learned import feature_layout as at
from thresher.crawler.policy.learned.features import FeatureExtractor
from thresher.crawler.policy.learned.learned_policy import EXPLORATION_SHARE, LearnedPolicy
from thresher.crawler.policy.learned.predictor import BY_HOST, MEASURES, PAGES
from thresher.crawler.policy.learned.tld_languages import home_tlds
from thresher.crawler.policy.learned.trees import PolicyForests, TreeStack, packed, unpacked
from thresher.crawler.policy.policy import LaneStanding
from thresher.crawler.policy.prioritisers import SourcePage
from thresher.crawler.storage.keys import FEATURES
from thresher.crawler.storage.kv_state import KeyValueState
from thresher.errors import UsageError
from thresher.records import Candidate, Link
from thresher.simulation.record import CrawlRecord
from thresher.simulation.simulate import SimulationTerms, area, ideal, simulate
from thresher.urls import canonical
from thresher_lab.toyweb import ToyWeb, seeds
from thresher_lab.toyweb.simulation_record import record_of

OURS, OTHER, HOME, ABROAD = (at.HINTS + signal for signal in range(at.URL_SIGNALS))


def signals_of(url: str, language: str = "cs") -> list[float]:
    return FeatureExtractor(language).of([url], [b""])[1][0].tolist()


def keys(url: str) -> list[int]:
    return FeatureExtractor("cs").of([url], [b""])[0][0].tolist()


@pytest.mark.parametrize(
    ("url", "signal"),
    [
        ("http://example.org/cs/clanek", OURS),
        ("http://cs.example.org/clanek", OURS),
        ("http://help-cs.example.org/clanek", OURS),
        ("http://example.org/clanek.cs.html", OURS),
        ("http://example.org/clanek?lang=cs", OURS),
        ("http://example.org/cs-CZ/clanek", OURS),
        ("http://example.org/cz/clanek", OURS),
        ("http://example.org/de/artikel", OTHER),
        ("http://example.org/pt_BR/artigo", OTHER),
        ("http://help-zh-cn.example.org/", OTHER),
        ("http://example.org/artikel.de.html", OTHER),
    ],
)
def test_a_url_names_its_language(url: str, signal: int) -> None:
    signals = signals_of(url)
    assert (signals[OURS], signals[OTHER]) == (signal == OURS, signal == OTHER)


@pytest.mark.parametrize(
    "url", ["http://example.org/", "http://example.org/clanek/csx/1", "http://example.org/c/s.html"]
)
def test_a_url_may_name_none(url: str) -> None:
    assert signals_of(url)[OURS : OTHER + 1] == [0.0, 0.0]


def test_top_level_domains_are_home_or_abroad_or_neutral() -> None:
    assert [signals_of(f"http://example.{tld}/")[HOME : ABROAD + 1] for tld in ("cz", "de", "org", "io")] == [
        [1.0, 0.0],
        [0.0, 1.0],
        [0.0, 0.0],
        [0.0, 0.0],
    ]
    assert "cz" in home_tlds("cs")
    assert home_tlds("tlh") == frozenset()


def test_similar_urls_share_keys() -> None:
    one, two = keys("http://a.cz/zpravy/2020/praha-1.html"), keys("http://a.cz/zpravy/2021/brno-22.html")
    for shared in (at.DOMAIN, at.HOST, at.FIRST_FOLDER, at.THIRD_FOLDER, at.PATTERN):
        assert one[shared] == two[shared] != 0
    assert one[at.LANE] == two[at.LANE]
    away = keys("http://www.a.cz/zpravy/2020/praha-1.html")
    assert away[at.DOMAIN] == one[at.DOMAIN]
    assert away[at.HOST] != one[at.HOST]
    assert keys("http://a.cz/tagy/x")[at.FIRST_FOLDER] != one[at.FIRST_FOLDER]
    for name in (at.DOMAIN, at.HOST, at.PATTERN):
        assert keys("http://a1.cz/")[name] != keys("http://a2.cz/")[name], (
            "numbers in names are no matter of form"
        )
    words = set(one[at.WORDS : at.GRAMS]) - {0}
    assert len(words & set(keys("http://b.de/zpravy/")[at.WORDS : at.GRAMS])) == 1


@given(st.lists(st.text(st.characters(codec="utf-8"), max_size=60), min_size=1, max_size=6))
def test_the_features_of_a_url_do_not_depend_on_the_urls_beside_it(parts: list[str]) -> None:
    urls = [url for part in parts if (url := canonical(f"http://{part}", "http://a.cz/"))]
    urls.append("http://[::1]:8080/a?b=%E3%81%82&&=c")
    extractor = FeatureExtractor("cs")
    together, signals = extractor.of(urls, [b""] * len(urls))
    for row, url in enumerate(urls):
        alone, alone_signals = extractor.of([url], [b""])
        assert (together[row] == alone[0]).all()
        assert (signals[row] == alone_signals[0]).all()


def test_the_language_of_a_link_is_taken_from_hreflang_or_else_from_its_anchor() -> None:
    features = FeatureExtractor("cs")
    assert features.language_signals("", "alternate hreflang=cs") == (True, False)
    assert features.language_signals("Příliš žluťoučký kůň úpěl ďábelské ódy", "alternate hreflang=de") == (
        False,
        True,
    )
    assert features.language_signals("Příliš žluťoučký kůň úpěl ďábelské ódy", "") == (True, False)
    assert features.language_signals("これは日本語の文章です", "") == (False, True)
    assert features.language_signals("x", "") == (False, False)


@pytest.fixture
def state(tmp_path: Path) -> KeyValueState:
    return KeyValueState(tmp_path)


def visit(
    policy: LearnedPolicy, url: str, text: int, *, received: int = 10_000, ours: bool | None = None
) -> None:
    policy.learn(Candidate(url, via="page"), received, text, text > 0 if ours is None else ours)


def standing(policy: LearnedPolicy, url: str) -> LaneStanding:
    front = policy.prepare_fronts([Candidate(url, via="page")])[0]
    try:
        return policy.standings([("", front)])[0]
    finally:
        policy.release(front)


def test_a_host_with_text_is_expected_to_yield_more_than_one_without(state: KeyValueState) -> None:
    policy = LearnedPolicy("cs", state)
    before = standing(policy, "http://good.org/9").expected
    for number in range(8):
        visit(policy, f"http://good.org/{number}", 6_000)
        visit(policy, f"http://bad.org/{number}", 0)
    assert (
        standing(policy, "http://good.org/9").expected
        > before
        > standing(policy, "http://bad.org/9").expected
    )


def test_folders_of_one_host_are_distinguished(state: KeyValueState) -> None:
    policy = LearnedPolicy("cs", state)
    for number in range(12):
        visit(policy, f"http://a.org/zpravy/{number}.html", 6_000)
        visit(policy, f"http://a.org/tagy/{number}.html", 0)
    good, bad = (standing(policy, f"http://a.org/{folder}/99.html").expected for folder in ("zpravy", "tagy"))
    assert good > 2 * bad


def test_new_hosts_are_predicted_from_first_pages_of_hosts_and_not_from_later_ones(
    state: KeyValueState,
) -> None:
    policy = LearnedPolicy("cs", state)
    for number in range(60):
        visit(policy, f"http://rich.org/{number}", 9_000)
    for number in range(60):
        visit(policy, f"http://new-{number}.net/", 0)
    assert (
        standing(policy, "http://rich.org/99").expected > 4 * standing(policy, "http://newer.net/").expected
    )


def test_pages_that_led_to_text_raise_the_weight_of_similar_pages(state: KeyValueState) -> None:
    policy = LearnedPolicy("cs", state)
    for number in range(3):
        for host in ("list", "dead"):
            visit(policy, f"http://{host}.org/list/{number}.html", 0, received=5_000)
        for article in range(5):
            found = Candidate(
                f"http://list.org/{number}-{article}", f"http://list.org/list/{number}.html", "page"
            )
            policy.learn(found, 8_000, 8_000, ours=True)
    leads, ends = (standing(policy, f"http://{host}.org/list/9.html") for host in ("list", "dead"))
    assert leads.weight - leads.expected > 4 * (ends.weight - ends.expected)


def test_a_page_that_leads_to_unknown_hosts_is_credited_at_once(state: KeyValueState) -> None:
    policy = LearnedPolicy("cs", state)
    links = [Link(f"http://new-{number}.cz/", "", 0.1, True) for number in range(20)]
    for page, found in (("http://many.org/1", links), ("http://none.org/1", [])):
        candidates = [Candidate(link.url, page, "page", 1) for link in found]
        policy.weigh_links(candidates, SourcePage(page, kept=False), found)
        visit(policy, page, 0)
    many, none = standing(policy, "http://many.org/2"), standing(policy, "http://none.org/2")
    assert many.weight - many.expected > none.weight - none.expected


def test_the_chance_of_a_link_follows_from_the_results_of_similar_links(state: KeyValueState) -> None:
    policy = LearnedPolicy("cs", state)
    for number in range(20):
        visit(policy, f"http://good.org/{number}", 6_000)
        visit(policy, f"http://bad.org/{number}", 0)
    links = [Link(f"http://{host}.org/99", "", 0.1, True) for host in ("good", "bad")]
    page = "http://good.org/1"
    candidates = [Candidate(link.url, page, "page", 1) for link in links]
    queued, chances = policy.weigh_links(candidates, SourcePage(page, kept=True, ours=True, rate=0.6), links)
    assert [one.url for one in queued] == [link.url for link in links]
    good, bad = chances
    assert good is not None
    assert bad is not None
    assert 1 > good > 0.5 > bad > 0


@pytest.fixture(scope="module")
def poor_web() -> CrawlRecord:
    """Return a web as poor as in the papers; with hosts of equal size, since few large ones would decide all."""
    return record_of(ToyWeb.papers(hosts=140, pages_per_host=(40, 40), languages=("cs", "en", "ru", "de")))


def test_most_of_the_text_takes_a_fraction_of_the_downloads(poor_web: CrawlRecord) -> None:
    web = ToyWeb.papers(hosts=140, pages_per_host=(40, 40), languages=("cs", "en", "ru", "de"))
    start = poor_web.find(seeds(web)["cs"])
    best = ideal(poor_web)
    terms = SimulationTerms(bytes=3 * int(best.downloaded[-1]))
    areas = {
        name: area(simulate(poor_web, PolicySettings(name=name), start, terms), best)
        for name in get_args(PolicyName)
    }
    assert max(areas, key=lambda name: areas[name]) == "learned"
    assert areas["learned"] > areas["spiderling"] + 0.2


def test_patience_keeps_a_polite_crawl_nearly_as_good(poor_web: CrawlRecord) -> None:
    web = ToyWeb.papers(hosts=140, pages_per_host=(40, 40), languages=("cs", "en", "ru", "de"))
    start = poor_web.find(seeds(web)["cs"])
    best = ideal(poor_web)
    terms = SimulationTerms(delay=1.0, connections=50, bytes=3 * int(best.downloaded[-1]))
    patient, hasty = (
        area(simulate(poor_web, PolicySettings(name="learned", patience=patience), start, terms), best)
        for patience in (0.8, 0.0)
    )
    assert patient > hasty + 0.1


def test_the_memory_survives_a_commit_and_not_a_crash(tmp_path: Path) -> None:
    state = KeyValueState(tmp_path)
    policy = LearnedPolicy("cs", state)
    for number in range(8):
        visit(policy, f"http://good.org/{number}", 6_000)
    learnt = standing(policy, "http://good.org/9")
    policy.flush()
    state.commit()
    for number in range(8):
        visit(policy, f"http://good.org/{number}", 0)
    assert standing(policy, "http://good.org/9") != learnt
    state.close()
    assert standing(LearnedPolicy("cs", KeyValueState(tmp_path)), "http://good.org/9") == pytest.approx(
        learnt, rel=1e-5
    )


def test_predictions_follow_a_web_that_changes(state: KeyValueState) -> None:
    policy = LearnedPolicy("cs", state)
    for number in range(200):
        visit(policy, f"http://a.org/{number}", 6_000)
    before = standing(policy, "http://a.org/9").expected
    for number in range(800):
        visit(policy, f"http://a.org/{number}", 0)
    assert standing(policy, "http://a.org/9").expected < before / 2


def test_predictions_for_a_folder_fall_soon_after_its_good_pages_are_exhausted(state: KeyValueState) -> None:
    policy = LearnedPolicy("cs", state)
    for number in range(100):
        visit(policy, f"http://a.org/{number}", 6_000)
    before = standing(policy, "http://a.org/999").expected
    for number in range(100, 130):
        visit(policy, f"http://a.org/{number}", 0)
    assert standing(policy, "http://a.org/999").expected < before / 3


def test_a_large_page_counts_like_one_of_usual_size(tmp_path: Path) -> None:
    expected = []
    for size in (8_000, 800_000):
        policy = LearnedPolicy("cs", KeyValueState(tmp_path / str(size)))
        visit(policy, "http://a.org/1", 0, received=size)
        expected.append(
            policy.outlook(*policy.features.of(["http://a.org/2"], [b""]), np.zeros(1, np.int64)).measures
        )
    by_host = expected[0][0, BY_HOST], expected[1][0, BY_HOST]
    assert by_host[0] == pytest.approx(by_host[1], rel=0.1)


def test_a_memory_slot_of_another_version_is_dropped(tmp_path: Path) -> None:
    state = KeyValueState(tmp_path)
    new = standing(LearnedPolicy("cs", state), "http://good.org/9")
    state.put(FEATURES + (7).to_bytes(4, "big"), b"four numbers were not enough")
    state.commit()
    state.close()
    assert standing(LearnedPolicy("cs", KeyValueState(tmp_path)), "http://good.org/9") == new


def test_a_share_of_the_download_is_spent_on_exploration(state: KeyValueState) -> None:
    policy = LearnedPolicy("cs", state)
    assert not policy.wants_exploration()
    visit(policy, "http://a.org/1", 6_000, received=100_000)
    assert policy.wants_exploration()
    new = Candidate("http://b.org/1", via="page")
    (front,) = policy.prepare_fronts([new])
    policy.on_taken(new, front, curious=True)
    policy.learn(new, int(100_000 * EXPLORATION_SHARE * 2), 0, ours=False)
    assert not policy.wants_exploration()
    assert standing(policy, "http://c.org/1").curiosity > 0 == standing(policy, "http://b.org/1").curiosity


def test_a_key_takes_over_the_slot_of_another_after_some_pages(state: KeyValueState) -> None:
    policy = LearnedPolicy("cs", state)
    visit(policy, "http://a.org/1", 6_000)
    memories = policy.feature_memory.memory, policy.feature_memory.words
    used = [np.flatnonzero(memory[:, -1]) for memory in memories]
    for memory, slots in zip(memories, used, strict=True):
        memory[slots, -1] += 1  # as if all that is remembered were of other keys
    for _ in range(3):
        visit(policy, "http://a.org/1", 6_000)
    for memory, slots in zip(memories, used, strict=True):
        assert (memory[slots, PAGES] >= 1).all()
        assert (np.flatnonzero(memory[:, -1]) == slots).all()


def test_trees_trained_with_other_measures_are_refused() -> None:
    trees = [
        TreeStack(1, np.zeros(1, np.uint8), np.zeros(1), np.array([value, 0.5])) for value in (0.25, 0.75)
    ]
    data = packed(PolicyForests(*trees))
    again = unpacked(data)
    assert [(one.depth, one.values.tolist()) for one in again] == [(1, [0.25, 0.5]), (1, [0.75, 0.5])]
    with pytest.raises(UsageError, match="train them again"):
        unpacked(data.replace(bytes([MEASURES]), bytes([MEASURES - 1]), 1))
