"""The statistics of shards add up to the statistics of the crawl, in any order and grouping."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from thresher.config import BudgetSettings
from thresher.store.status_totals import SHOWN_HOSTS, merged

COUNTS = st.integers(0, 10**6)
SHARES = st.integers(0, 64).map(lambda n: n / 64)
REASONS = st.dictionaries(st.sampled_from(["too short", "language", "badness"]), COUNTS)
NAMES = ("", "front pages", "folders")  # of stages


def _share(part: int, whole: int) -> float:
    return part / whole if whole else 0.0


@st.composite
def pages(draw: st.DrawFn) -> dict[str, Any]:
    names = ("fetched", "kept", "ours", "failed", "redirect", "disallowed", "quarantined")
    return {**{name: draw(COUNTS) for name in names}, "rejected": draw(REASONS)}


@st.composite
def hosts(draw: st.DrawFn) -> dict[str, Any]:
    rows = st.fixed_dictionaries(
        {"host": st.text(max_size=3), "yield": SHARES, "pages": COUNTS, "kept": COUNTS}
    )
    shown = draw(st.lists(rows, max_size=8))
    best = sorted(shown, key=lambda host: -host["yield"])[:SHOWN_HOSTS]
    worst = sorted(shown, key=lambda host: host["yield"])[:SHOWN_HOSTS]
    opened, closed = draw(COUNTS), draw(COUNTS)
    return {"seen": opened + closed, "open": opened, "closed": closed, "best": best, "worst": worst}


@st.composite
def cycle(draw: st.DrawFn, number: int) -> dict[str, Any]:
    sums = {name: draw(COUNTS) for name in ("fetched", "kept", "ours", "downloaded", "text_bytes")}
    rates = {
        "accuracy": _share(sums["ours"], sums["fetched"]),
        "yield": _share(sums["text_bytes"], sums["downloaded"]),
    }
    return {"cycle": number, **sums, **rates}


@st.composite
def statuses(draw: st.DrawFn) -> dict[str, Any]:
    found, bytes_ = draw(pages()), {name: draw(COUNTS) for name in ("robots", "text")}
    bytes_["downloaded"] = draw(st.integers(1, 10**6))
    stage = draw(st.integers(0, 2))
    return {
        "language": "cs",
        "policy": "bfs",
        "pages": found,
        "bytes": bytes_,
        "yield": {
            "bytes": _share(bytes_["text"], bytes_["downloaded"]),
            "documents": _share(found["kept"], found["fetched"]),
        },
        "hosts": draw(hosts()),
        **{name: draw(COUNTS) for name in ("queue", "queue_closed", "given_up", "seen_urls", "connections")},
        "waiting_for": draw(SHARES),
        "budget": {"pages": 100, "bytes": 0, "seconds": 0.0},
        "widening": {
            "stage": stage,
            "name": NAMES[stage],
            "found": draw(COUNTS),
            "kept": draw(COUNTS),
            "lately": draw(SHARES),
            "floor": 0.001,
        },
        "cycles": [draw(cycle(number)) for number in range(1, 1 + draw(st.integers(0, 3)))],
        "time": {"wall_s": float(draw(COUNTS)), "cpu_s": float(draw(COUNTS))},
    }


def of_all(several: Sequence[dict[str, Any] | None]) -> dict[str, Any]:
    return merged(several, BudgetSettings(max_pages=100))


def alike(one: dict[str, Any], other: dict[str, Any]) -> bool:
    """Compare statuses, except for the last digit of a mean and the number of shards."""
    lately = one["widening"]["lately"], other["widening"]["lately"]
    figures = [
        {**status, "widening": {**status["widening"], "lately": 0}, "shards": []} for status in (one, other)
    ]
    return figures[0] == figures[1] and lately[0] == pytest.approx(lately[1])


@given(statuses())
def test_the_statistics_of_a_single_shard_equal_the_crawl(status: dict[str, Any]) -> None:
    crawl = of_all([{**status, "files": {"docs/docs-00001.parquet": None}, "state": "state-1"}])
    assert alike(crawl, status)
    row = {"shard": 0, "fetched": status["pages"]["fetched"], "kept": status["pages"]["kept"]}
    assert crawl["shards"] == [{**row, "queue": status["queue"], "hosts": status["hosts"]["seen"]}]
    assert crawl.keys() == {*status, "shards"}


@given(st.lists(statuses(), min_size=2, max_size=4), st.data())
def test_the_statistics_of_groups_add_up_to_the_total(
    several: list[dict[str, Any]], data: st.DataObject
) -> None:
    cut = data.draw(st.integers(1, len(several) - 1))
    assert alike(of_all([of_all(several[:cut]), of_all(several[cut:])]), of_all(several))


@given(st.lists(statuses(), min_size=1, max_size=4))
def test_counts_are_sums_and_rates_are_computed_from_sums(several: list[dict[str, Any]]) -> None:
    crawl = of_all(several)
    for section, name in (("pages", "fetched"), ("bytes", "text"), ("hosts", "closed"), ("time", "cpu_s")):
        assert crawl[section][name] == sum(status[section][name] for status in several)
    for reason, count in crawl["pages"]["rejected"].items():
        assert count == sum(status["pages"]["rejected"].get(reason, 0) for status in several)
    assert crawl["queue"] == sum(row["queue"] for row in crawl["shards"])
    assert crawl["yield"]["bytes"] == crawl["bytes"]["text"] / crawl["bytes"]["downloaded"]
    assert crawl["time"]["wall_s"] == max(status["time"]["wall_s"] for status in several)
    rates = [host["yield"] for status in several for host in status["hosts"]["best"]]
    assert [host["yield"] for host in crawl["hosts"]["best"]] == sorted(rates, reverse=True)[:SHOWN_HOSTS]
    stages = [status["widening"]["stage"] for status in several]
    assert (crawl["widening"]["stage"], crawl["widening"]["name"]) == (min(stages), NAMES[min(stages)])
    assert sum(row["fetched"] for row in crawl["cycles"]) == sum(
        row["fetched"] for status in several for row in status["cycles"]
    )


@given(statuses(), statuses())
def test_a_shard_without_a_status_keeps_its_number(first: dict[str, Any], last: dict[str, Any]) -> None:
    crawl = of_all([None, first, None, last])
    assert [row["shard"] for row in crawl["shards"]] == [1, 3]
    assert alike(crawl, of_all([first, last]))


@given(statuses())
def test_only_the_last_cycles_are_shown_if_shards_differ(status: dict[str, Any]) -> None:
    row = {
        "fetched": 4,
        "kept": 1,
        "ours": 2,
        "downloaded": 8,
        "text_bytes": 2,
        "accuracy": 0.5,
        "yield": 0.25,
    }
    late, early = ({**status, "cycles": [{"cycle": n, **row} for n in (m, m + 1)]} for m in (8, 7))
    found = of_all([late, early])["cycles"]
    assert [(one["cycle"], one["fetched"], one["yield"]) for one in found] == [(8, 8, 0.25), (9, 4, 0.25)]
