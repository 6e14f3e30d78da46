"""Many items annotated at once: in order, by any number of processes, with a cure when one of them dies."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from thresher.annotate import crowd
from thresher.annotate.annotators import AnnotatorError, Ready
from thresher.annotate.crowd import CrowdFault, annotated


def count_words(text: str, ready: Ready) -> tuple[str, int]:
    return text, sum(map(len, ready(text)))


def die(text: str, ready: Ready) -> None:
    os._exit(1)


@pytest.mark.parametrize("processes", [1, 2])
def test_what_comes_first_goes_first(monkeypatch: pytest.MonkeyPatch, processes: int) -> None:
    monkeypatch.setattr(crowd, "PORTION", 10)
    texts = [f"slovo {'a ' * (50 - n)}" for n in range(50)]
    found = list(
        annotated(texts, count_words, len, language="cs", annotator_name="plain", processes=processes)
    )
    assert found == [(text, 51 - n) for n, text in enumerate(texts)]


def test_a_process_that_dies_is_told_with_a_cure() -> None:
    with pytest.raises(CrowdFault, match="with fewer --processes"):
        list(annotated(["a"], die, len, language="cs", annotator_name="plain", processes=2))


def test_what_is_missing_is_told_once_there_is_something_to_do() -> None:
    assert list(annotated([], count_words, len, language="cs", annotator_name="none such")) == []
    with pytest.raises(AnnotatorError, match="no annotator 'none such'"):
        next(annotated(["a"], count_words, len, language="cs", annotator_name="none such"))


def test_few_items_are_in_memory_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(crowd, "PORTION", 1)
    taken = 0

    def texts() -> Iterator[str]:
        nonlocal taken
        for _ in range(100):
            taken += 1
            yield "a"

    found = annotated(texts(), count_words, len, language="cs", annotator_name="plain", processes=2)
    next(found)
    assert taken < 10
    found.close()  # type: ignore[attr-defined]
