"""The policy that learns: what URLs tell, what is remembered of them, and what comes of it."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from thresher.config import ConfigError, Policy, PolicyName
from thresher.crawl.guide import Standing
from thresher.crawl.learned import layout as at
from thresher.crawl.learned.clues import Clues
from thresher.crawl.learned.experience import SLOT
from thresher.crawl.learned.forecast import BY_HOST, MEASURES, PAGES
from thresher.crawl.learned.guide import TRIES, Learned
from thresher.crawl.learned.homes import homes
from thresher.crawl.learned.trees import Forests, Trees, packed, unpacked
from thresher.crawl.priority import Source
from thresher.crawl.state import State
from thresher.lab.record import Record
from thresher.lab.simulate import Terms, area, ideal, simulate
from thresher.lab.toyrecord import record_of
from thresher.lab.toyweb import ToyWeb, seeds
from thresher.page import Candidate, Link
from thresher.url import canonical

OURS, OTHER, HOME, ABROAD = (at.HINTS + saying for saying in range(at.SAYINGS))


def notes(url: str, language: str = "cs") -> list[float]:
    return Clues(language).of([url], [b""])[1][0].tolist()


def keys(url: str) -> list[int]:
    return Clues("cs").of([url], [b""])[0][0].tolist()


@pytest.mark.parametrize(
    ("url", "says"),
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
def test_a_url_names_its_language(url: str, says: int) -> None:
    told = notes(url)
    assert (told[OURS], told[OTHER]) == (says == OURS, says == OTHER)


@pytest.mark.parametrize(
    "url", ["http://example.org/", "http://example.org/clanek/csx/1", "http://example.org/c/s.html"]
)
def test_a_url_may_name_none(url: str) -> None:
    assert notes(url)[OURS : OTHER + 1] == [0.0, 0.0]


def test_top_level_domains_are_homes_or_abroad_or_nobodys() -> None:
    assert [notes(f"http://example.{tld}/")[HOME : ABROAD + 1] for tld in ("cz", "de", "org", "io")] == [
        [1.0, 0.0],
        [0.0, 1.0],
        [0.0, 0.0],
        [0.0, 0.0],
    ]
    assert "cz" in homes("cs")
    assert homes("tlh") == frozenset()


def test_urls_share_keys_with_those_they_are_like() -> None:
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
def test_any_url_can_be_taken_apart_and_those_beside_it_do_not_matter(parts: list[str]) -> None:
    urls = [url for part in parts if (url := canonical(f"http://{part}", "http://a.cz/"))]
    urls.append("http://[::1]:8080/a?b=%E3%81%82&&=c")
    taken = Clues("cs")
    together, told = taken.of(urls, [b""] * len(urls))
    for row, url in enumerate(urls):
        alone, said = taken.of([url], [b""])
        assert (together[row] == alone[0]).all()
        assert (told[row] == said[0]).all()


def test_what_a_link_says_of_its_language_is_taken_from_its_mark_or_else_its_words() -> None:
    clues = Clues("cs")
    assert clues.tells("", "alternate hreflang=cs") == (True, False)
    assert clues.tells("Příliš žluťoučký kůň úpěl ďábelské ódy", "alternate hreflang=de") == (False, True)
    assert clues.tells("Příliš žluťoučký kůň úpěl ďábelské ódy", "") == (True, False)
    assert clues.tells("これは日本語の文章です", "") == (False, True)
    assert clues.tells("x", "") == (False, False)


@pytest.fixture
def state(tmp_path: Path) -> State:
    return State(tmp_path)


def visit(guide: Learned, url: str, text: int, *, received: int = 10_000, ours: bool | None = None) -> None:
    guide.learn(Candidate(url, via="page"), received, text, text > 0 if ours is None else ours)


def standing(guide: Learned, url: str) -> Standing:
    front = guide.fronts([Candidate(url, via="page")])[0]
    try:
        return guide.standings([("", front)])[0]
    finally:
        guide.forget(front)


def test_a_host_that_gave_text_promises_more_than_one_that_gave_none(state: State) -> None:
    guide = Learned("cs", state)
    before = standing(guide, "http://good.org/9").expected
    for number in range(8):
        visit(guide, f"http://good.org/{number}", 6_000)
        visit(guide, f"http://bad.org/{number}", 0)
    assert (
        standing(guide, "http://good.org/9").expected > before > standing(guide, "http://bad.org/9").expected
    )


def test_folders_of_one_host_are_told_apart(state: State) -> None:
    guide = Learned("cs", state)
    for number in range(12):
        visit(guide, f"http://a.org/zpravy/{number}.html", 6_000)
        visit(guide, f"http://a.org/tagy/{number}.html", 0)
    good, bad = (standing(guide, f"http://a.org/{folder}/99.html").expected for folder in ("zpravy", "tagy"))
    assert good > 2 * bad


def test_what_new_hosts_gave_is_expected_of_others_like_them_and_not_what_old_ones_go_on_giving(
    state: State,
) -> None:
    guide = Learned("cs", state)
    for number in range(60):
        visit(guide, f"http://rich.org/{number}", 9_000)
    for number in range(60):
        visit(guide, f"http://new-{number}.net/", 0)
    assert standing(guide, "http://rich.org/99").expected > 4 * standing(guide, "http://newer.net/").expected


def test_pages_that_led_to_text_make_others_like_them_worth_a_visit(state: State) -> None:
    guide = Learned("cs", state)
    for number in range(3):
        for host in ("list", "dead"):
            visit(guide, f"http://{host}.org/list/{number}.html", 0, received=5_000)
        for article in range(5):
            found = Candidate(
                f"http://list.org/{number}-{article}", f"http://list.org/list/{number}.html", "page"
            )
            guide.learn(found, 8_000, 8_000, ours=True)
    leads, ends = (standing(guide, f"http://{host}.org/list/9.html") for host in ("list", "dead"))
    assert leads.weight - leads.expected > 4 * (ends.weight - ends.expected)


def test_a_page_that_leads_to_hosts_nobody_knew_counts_at_once(state: State) -> None:
    guide = Learned("cs", state)
    links = [Link(f"http://new-{number}.cz/", "", 0.1, True) for number in range(20)]
    for page, found in (("http://many.org/1", links), ("http://none.org/1", [])):
        candidates = [Candidate(link.url, page, "page", 1) for link in found]
        guide.found(candidates, Source(page, kept=False), found)
        visit(guide, page, 0)
    many, none = standing(guide, "http://many.org/2"), standing(guide, "http://none.org/2")
    assert many.weight - many.expected > none.weight - none.expected


def test_a_link_has_its_chance_from_what_became_of_others_like_it(state: State) -> None:
    guide = Learned("cs", state)
    for number in range(20):
        visit(guide, f"http://good.org/{number}", 6_000)
        visit(guide, f"http://bad.org/{number}", 0)
    links = [Link(f"http://{host}.org/99", "", 0.1, True) for host in ("good", "bad")]
    page = "http://good.org/1"
    candidates = [Candidate(link.url, page, "page", 1) for link in links]
    queued, chances = guide.found(candidates, Source(page, kept=True, ours=True, rate=0.6), links)
    assert [one.url for one in queued] == [link.url for link in links]
    good, bad = chances
    assert good is not None
    assert bad is not None
    assert 1 > good > 0.5 > bad > 0


@pytest.fixture(scope="module")
def poor_web() -> Record:
    """A web as poor as those of the papers, of hosts of one size: a few large ones would decide everything."""
    return record_of(ToyWeb.papers(hosts=140, pages_per_host=(40, 40), languages=("cs", "en", "ru", "de")))


def test_most_of_the_text_takes_a_fraction_of_the_downloads(poor_web: Record) -> None:
    web = ToyWeb.papers(hosts=140, pages_per_host=(40, 40), languages=("cs", "en", "ru", "de"))
    start = poor_web.find(seeds(web)["cs"])
    best = ideal(poor_web)
    terms = Terms(bytes=3 * int(best.downloaded[-1]))
    areas = {
        name: area(simulate(poor_web, Policy(name=name), start, terms), best) for name in get_args(PolicyName)
    }
    assert max(areas, key=lambda name: areas[name]) == "learned"
    assert areas["learned"] > areas["spiderling"] + 0.2


def test_patience_keeps_a_polite_crawl_nearly_as_good(poor_web: Record) -> None:
    web = ToyWeb.papers(hosts=140, pages_per_host=(40, 40), languages=("cs", "en", "ru", "de"))
    start = poor_web.find(seeds(web)["cs"])
    best = ideal(poor_web)
    terms = Terms(delay=1.0, connections=50, bytes=3 * int(best.downloaded[-1]))
    patient, hasty = (
        area(simulate(poor_web, Policy(name="learned", patience=patience), start, terms), best)
        for patience in (0.8, 0.0)
    )
    assert patient > hasty + 0.1


def test_what_was_learnt_is_there_after_a_commit_and_gone_after_a_crash(tmp_path: Path) -> None:
    state = State(tmp_path)
    guide = Learned("cs", state)
    for number in range(8):
        visit(guide, f"http://good.org/{number}", 6_000)
    learnt = standing(guide, "http://good.org/9")
    guide.flush()
    state.commit()
    for number in range(8):
        visit(guide, f"http://good.org/{number}", 0)
    assert standing(guide, "http://good.org/9") != learnt
    state.close()
    assert standing(Learned("cs", State(tmp_path)), "http://good.org/9") == pytest.approx(learnt, rel=1e-5)


def test_a_web_that_changes_is_learnt_anew(state: State) -> None:
    guide = Learned("cs", state)
    for number in range(200):
        visit(guide, f"http://a.org/{number}", 6_000)
    before = standing(guide, "http://a.org/9").expected
    for number in range(800):
        visit(guide, f"http://a.org/{number}", 0)
    assert standing(guide, "http://a.org/9").expected < before / 2


def test_a_place_whose_good_pages_were_found_first_is_soon_believed_in_no_more(state: State) -> None:
    guide = Learned("cs", state)
    for number in range(100):
        visit(guide, f"http://a.org/{number}", 6_000)
    before = standing(guide, "http://a.org/999").expected
    for number in range(100, 130):
        visit(guide, f"http://a.org/{number}", 0)
    assert standing(guide, "http://a.org/999").expected < before / 3


def test_a_large_page_is_no_more_evidence_than_one_of_usual_size(tmp_path: Path) -> None:
    expected = []
    for size in (8_000, 800_000):
        guide = Learned("cs", State(tmp_path / str(size)))
        visit(guide, "http://a.org/1", 0, received=size)
        expected.append(
            guide.outlook(*guide.clues.of(["http://a.org/2"], [b""]), np.zeros(1, np.int64)).measures
        )
    by_host = expected[0][0, BY_HOST], expected[1][0, BY_HOST]
    assert by_host[0] == pytest.approx(by_host[1], rel=0.1)


def test_a_memory_of_another_version_is_learnt_anew(tmp_path: Path) -> None:
    state = State(tmp_path)
    new = standing(Learned("cs", state), "http://good.org/9")
    state.put(SLOT + (7).to_bytes(4, "big"), b"four numbers were not enough")
    state.commit()
    state.close()
    assert standing(Learned("cs", State(tmp_path)), "http://good.org/9") == new


def test_a_share_of_the_download_goes_into_trying_what_is_new(state: State) -> None:
    guide = Learned("cs", state)
    assert not guide.curious()
    visit(guide, "http://a.org/1", 6_000, received=100_000)
    assert guide.curious()
    new = Candidate("http://b.org/1", via="page")
    (front,) = guide.fronts([new])
    guide.taken(new, front, curious=True)
    guide.learn(new, int(100_000 * TRIES * 2), 0, ours=False)
    assert not guide.curious()
    assert standing(guide, "http://c.org/1").curiosity > 0 == standing(guide, "http://b.org/1").curiosity


def test_the_memory_of_a_key_wears_off_where_another_needs_its_place(state: State) -> None:
    guide = Learned("cs", state)
    visit(guide, "http://a.org/1", 6_000)
    memories = guide.experience.memory, guide.experience.words
    used = [np.flatnonzero(memory[:, -1]) for memory in memories]
    for memory, slots in zip(memories, used, strict=True):
        memory[slots, -1] += 1  # as if all that is remembered were of other keys
    for _ in range(3):
        visit(guide, "http://a.org/1", 6_000)
    for memory, slots in zip(memories, used, strict=True):
        assert (memory[slots, PAGES] >= 1).all()
        assert (np.flatnonzero(memory[:, -1]) == slots).all()


def test_trees_grown_with_other_measures_are_refused() -> None:
    trees = [Trees(1, np.zeros(1, np.uint8), np.zeros(1), np.array([value, 0.5])) for value in (0.25, 0.75)]
    data = packed(Forests(*trees))
    again = unpacked(data)
    assert [(one.depth, one.values.tolist()) for one in again] == [(1, [0.25, 0.5]), (1, [0.75, 0.5])]
    with pytest.raises(ConfigError, match="grow them anew"):
        unpacked(data.replace(bytes([MEASURES]), bytes([MEASURES - 1]), 1))
