"""Yields per host and domain, and the rule that closes the poor ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from thresher.config import Budget, ConfigError, Policy
from thresher.crawl.state import State
from thresher.crawl.yields import AT_FIRST, Closing, Tally, Yields, compile_threshold


def tally(pages: int, downloaded: int, text: int) -> Tally:
    return Tally(pages, pages if text else 0, downloaded, text)


@pytest.mark.parametrize(("pages", "threshold"), [(10, 0.0), (100, 0.01), (1_000, 0.02), (10_000, 0.03)])
def test_the_default_threshold_is_that_of_the_paper(pages: int, threshold: float) -> None:
    assert compile_threshold(Policy().threshold)(pages) == pytest.approx(threshold)


def test_the_yield_is_kept_per_host_and_per_registered_domain(tmp_path: Path) -> None:
    state = State(tmp_path)
    yields = Yields(state)
    yields.learn("www.a.co.uk", 1000, 100)
    yields.learn("blog.a.co.uk", 3000, 0)
    assert yields.hosts["www.a.co.uk"].rate == 0.1
    assert yields.hosts["blog.a.co.uk"].rate == 0.0
    assert yields.domains["a.co.uk"].rate == 0.025
    assert (yields.domains["a.co.uk"].pages, yields.domains["a.co.uk"].kept) == (2, 1)
    state.close()


@pytest.mark.parametrize(
    ("pages", "downloaded", "text", "closed"),
    [
        (7, 10_000_000, 0, False),  # fewer than 8 pages
        (500, 511_000, 0, False),  # less than 512 kB
        (500, 512_000, 0, True),
        (9, 512_000, 0, False),  # below ten pages the threshold is negative
        (11, 512_000, 0, True),
        (1_000, 1_000_000, 19_000, True),
        (1_000, 1_000_000, 21_000, False),
    ],
)
def test_a_domain_is_closed_below_the_threshold_but_not_before_8_pages_and_512_kb(
    pages: int, downloaded: int, text: int, closed: bool
) -> None:
    closing = Closing(Policy(name="spiderling"), Budget())
    assert closing.reason(Tally(), tally(pages, downloaded, text)) == ("low yield" if closed else "")


def test_breadth_first_closes_no_domain_for_its_yield() -> None:
    assert Closing(Policy(name="bfs"), Budget()).reason(Tally(), tally(5_000, 10**9, 0)) == ""


def test_a_host_and_a_domain_are_closed_by_their_budgets() -> None:
    closing = Closing(
        Policy(name="bfs"), Budget(host_pages=10, host_bytes=0, domain_pages=100, domain_bytes=5_000)
    )
    assert closing.reason(tally(10, 1, 1), Tally()) == "host budget"
    assert closing.reason(tally(9, 1, 1), tally(9, 5_000, 1)) == "domain budget"
    assert closing.reason(tally(9, 10**9, 1), tally(99, 4_999, 1)) == ""


@pytest.mark.parametrize(
    "expression",
    [
        *(
            "n +",
            "__import__('os')",
            "n ** n",
            "x",
            "log10(",
            "'a'",
            "1/0",
            "f(n)",
            "1/(n-9)",
            "sqrt(999 - n)",
        ),
        *("n * 1" + 400 * "0", "-" * 100_000 + "n", "1/(n-10000)", "\0"),
    ],
)
def test_a_threshold_that_is_not_arithmetic_is_refused_with_its_text(expression: str) -> None:
    with pytest.raises(ConfigError, match=r"policy\.threshold"):
        compile_threshold(expression)


def test_a_threshold_that_cannot_be_computed_for_some_pages_closes_no_domain_with_as_many() -> None:
    closing = Closing(Policy(name="spiderling", threshold="1 / (n - 1234)"), Budget())
    assert closing.reason(Tally(), tally(1_233, 10**6, 0)) == ""
    assert closing.reason(Tally(), tally(1_234, 10**6, 0)) == ""
    assert closing.reason(Tally(), tally(1_235, 10**6, 0)) == "low yield"


def test_best_and_worst_hosts_are_those_known_well(tmp_path: Path) -> None:
    state = State(tmp_path)
    yields = Yields(state)
    for _ in range(6):
        yields.learn("rich.cz", 100, 50)
        yields.learn("poor.cz", 100, 0)
    yields.learn("new.cz", 100, 99)
    assert [name for name, _ in yields.best(1)] == ["rich.cz"]
    assert [name for name, _ in yields.worst(1)] == ["poor.cz"]
    state.close()


def test_a_host_promises_what_it_gave_and_one_hardly_known_what_its_like_gave(tmp_path: Path) -> None:
    yields = Yields(State(tmp_path))
    assert yields.promise("a.cz") == pytest.approx(AT_FIRST)
    for _ in range(100):
        yields.learn("www.rich.cz", 10_000, 5_000)
        yields.learn("www.poor.cz", 10_000, 0)
    rich, poor, new, sister = map(yields.promise, ("www.rich.cz", "www.poor.cz", "new.cz", "blog.rich.cz"))
    assert rich == pytest.approx(0.5, abs=0.01)
    assert poor == pytest.approx(0.0, abs=0.01)
    assert poor < new < sister < rich
    assert yields.expected(["http://www.rich.cz/x", "http://new.cz/"]) == [rich, new]
