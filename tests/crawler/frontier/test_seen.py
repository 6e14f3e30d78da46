"""The set of seen URLs is exact in spite of errors of its filter."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from thresher.crawler.frontier.seen import BloomFilter, SeenUrls
from thresher.crawler.storage.kv_state import KeyValueState
from thresher.urls import key


def keys(*numbers: int) -> list[bytes]:
    return [key(f"http://a.cz/{number}") for number in numbers]


def test_a_key_is_unseen_once_even_within_one_call(tmp_path: Path) -> None:
    state = KeyValueState(tmp_path)
    seen = SeenUrls(state)
    assert seen.unseen(keys(1, 2, 1)) == [0, 1]
    seen.add(keys(1, 2))
    assert seen.unseen(keys(2, 3, 1)) == [1]
    state.close()


def test_http_and_https_are_one_url() -> None:
    assert key("http://a.cz/x") == key("https://a.cz/x") != key("http://a.cz/y")


def test_seen_keys_are_seen_after_a_restart(tmp_path: Path) -> None:
    state = KeyValueState(tmp_path)
    SeenUrls(state).add(keys(*range(1000)))
    state.commit()
    state.close()
    state = KeyValueState(tmp_path)
    again = SeenUrls(state)
    assert again.count == 1000
    assert again.unseen(keys(*range(990, 1010))) == list(range(10, 20))
    state.close()


@settings(max_examples=20)
@given(st.lists(st.lists(st.integers(0, 60), max_size=20), max_size=20), st.integers(1, 10))
def test_the_seen_set_equals_a_plain_set_when_the_filter_always_errs(
    tmp_path_factory: pytest.TempPathFactory, pages: list[list[int]], recent: int
) -> None:
    state = KeyValueState(tmp_path_factory.mktemp("seen"))
    seen = SeenUrls(state)
    seen.RECENT = recent  # type: ignore[misc]
    seen._filter.may_hold = lambda keys: np.ones(len(keys), bool)  # type: ignore[method-assign]
    model: set[int] = set()
    for page in pages:
        fresh = [page[place] for place in seen.unseen(keys(*page))]
        assert fresh == list(dict.fromkeys(number for number in page if number not in model))
        seen.add(keys(*fresh))
        model.update(fresh)
        state.commit()
    assert seen.count == len(model)
    state.close()


def test_the_filter_grows_and_keeps_its_error() -> None:
    random = np.random.default_rng(1)
    bloom = BloomFilter(capacity=1000, error=1e-3)
    held = random.integers(0, 2**63, (50_000, 2), dtype=np.uint64)
    for start in range(0, len(held), 777):
        bloom.add(held[start : start + 777])
    strangers = random.integers(0, 2**63, (50_000, 2), dtype=np.uint64)
    assert bloom.may_hold(held).all()
    assert bloom.may_hold(strangers).mean() < 1e-3
    assert bloom.bytes / len(bloom) < 8
