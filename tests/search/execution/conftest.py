"""Fixtures of tests that match patterns in small segments."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("segments")


@pytest.fixture(autouse=True)
def short_ranges(monkeypatch: pytest.MonkeyPatch) -> None:
    """Search even small corpora in several ranges, the first of which knows few types."""
    monkeypatch.setattr("thresher.search.execution.segment_search.RANGE_SIZES", (64, 128))
    monkeypatch.setattr("thresher.search.execution.type_conditions.QUICK_VALUES", 0)
