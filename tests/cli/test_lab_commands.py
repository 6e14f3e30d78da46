"""Commands that need `thresher_lab`: the toy web, and simulations on it."""

from __future__ import annotations

import sys

import pytest

from thresher.cli import app
from thresher.errors import UsageError


@pytest.mark.parametrize(
    "arguments",
    [
        ["toyweb", "--port=-1"],
        ["toyweb", "--port", "99999"],
        ["toyweb", "--set.calendar", "nan"],
        ["simulate", "--toyweb", "3", "--connections", "0"],
        ["simulate", "--toyweb", "3", "--delay=-1"],
        ["simulate", "--toyweb", "3", "--delay", "inf"],
    ],
)
def test_a_value_that_cannot_work_is_refused(arguments: list[str]) -> None:
    with pytest.raises(UsageError, match="must be"):
        app(arguments)


@pytest.mark.parametrize(
    "arguments",
    [["toyweb", "--hosts", "3"], ["simulate", "--toyweb", "3"]],
    ids=["toyweb", "simulate"],
)
def test_a_toy_web_without_wordfreq_names_the_extra(
    arguments: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from thresher_lab.toyweb.words import vocabulary

    vocabulary.cache_clear()
    monkeypatch.setitem(sys.modules, "wordfreq", None)
    with pytest.raises(UsageError, match=r"pip install 'thresher\[lab\]'"):
        app(arguments)
