"""Yields per host and domain, and the rule that closes the poor ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from thresher.config import BudgetSettings, PolicySettings
from thresher.crawler.policy.yield_stats import (
    PRIOR_YIELD,
    DomainClosing,
    YieldStats,
    YieldTally,
    compile_threshold,
)
from thresher.crawler.storage.kv_state import KeyValueState
from thresher.errors import UsageError


def tally(pages: int, downloaded: int, text: int) -> YieldTally:
    return YieldTally(pages, pages if text else 0, downloaded, text)


@pytest.mark.parametrize(("pages", "threshold"), [(10, 0.0), (100, 0.01), (1_000, 0.02), (10_000, 0.03)])
def test_the_default_threshold_is_that_of_the_paper(pages: int, threshold: float) -> None:
    assert compile_threshold(PolicySettings().threshold)(pages) == pytest.approx(threshold)


def test_the_yield_is_kept_per_host_and_per_registered_domain(tmp_path: Path) -> None:
    state = KeyValueState(tmp_path)
    yields = YieldStats(state)
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
    closing = DomainClosing(PolicySettings(name="spiderling"), BudgetSettings())
    assert closing.reason(YieldTally(), tally(pages, downloaded, text)) == ("low yield" if closed else "")


def test_breadth_first_closes_no_domain_for_its_yield() -> None:
    assert (
        DomainClosing(PolicySettings(name="bfs"), BudgetSettings()).reason(
            YieldTally(), tally(5_000, 10**9, 0)
        )
        == ""
    )


def test_a_host_and_a_domain_are_closed_by_their_budgets() -> None:
    closing = DomainClosing(
        PolicySettings(name="bfs"),
        BudgetSettings(host_pages=10, host_bytes=0, domain_pages=100, domain_bytes=5_000),
    )
    assert closing.reason(tally(10, 1, 1), YieldTally()) == "host budget"
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
    with pytest.raises(UsageError, match=r"policy\.threshold"):
        compile_threshold(expression)


def test_a_threshold_without_a_value_for_a_number_of_pages_closes_no_domain() -> None:
    closing = DomainClosing(PolicySettings(name="spiderling", threshold="1 / (n - 1234)"), BudgetSettings())
    assert closing.reason(YieldTally(), tally(1_233, 10**6, 0)) == ""
    assert closing.reason(YieldTally(), tally(1_234, 10**6, 0)) == ""
    assert closing.reason(YieldTally(), tally(1_235, 10**6, 0)) == "low yield"


def test_only_hosts_with_enough_pages_are_among_the_best_and_the_worst(tmp_path: Path) -> None:
    state = KeyValueState(tmp_path)
    yields = YieldStats(state)
    for _ in range(6):
        yields.learn("rich.cz", 100, 50)
        yields.learn("poor.cz", 100, 0)
    yields.learn("new.cz", 100, 99)
    best, worst = yields.best_and_worst(1)
    assert [name for name, _ in best] == ["rich.cz"]
    assert [name for name, _ in worst] == ["poor.cz"]
    state.close()


def test_no_host_is_among_the_best_and_the_worst(tmp_path: Path) -> None:
    state = KeyValueState(tmp_path)
    yields = YieldStats(state)
    for rank, name in enumerate(("poor.cz", "fair.cz", "rich.cz")):
        for _ in range(6):
            yields.learn(name, 100, 10 * rank)
    names = [[name for name, _ in hosts] for hosts in yields.best_and_worst(2)]
    assert names == [["rich.cz", "fair.cz"], ["poor.cz"]]
    assert [[name for name, _ in hosts] for hosts in yields.best_and_worst(5)][1] == []
    state.close()


def test_the_expected_yield_of_a_host_is_shrunk_towards_its_domain_and_all_hosts(tmp_path: Path) -> None:
    yields = YieldStats(KeyValueState(tmp_path))
    assert yields.promise("a.cz") == pytest.approx(PRIOR_YIELD)
    for _ in range(100):
        yields.learn("www.rich.cz", 10_000, 5_000)
        yields.learn("www.poor.cz", 10_000, 0)
    rich, poor, new, sister = map(yields.promise, ("www.rich.cz", "www.poor.cz", "new.cz", "blog.rich.cz"))
    assert rich == pytest.approx(0.5, abs=0.01)
    assert poor == pytest.approx(0.0, abs=0.01)
    assert poor < new < sister < rich
    assert yields.expected(["http://www.rich.cz/x", "http://new.cz/"]) == [rich, new]
