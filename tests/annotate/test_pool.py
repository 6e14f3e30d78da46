"""Many items annotated at once, in order, by any number of processes; a killed process is an error with a fix."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from thresher.annotate import pool
from thresher.annotate.pool import AnnotationPoolError, annotated
from thresher.annotate.registry import AnnotatorError, LoadedAnnotator
from thresher.errors import UsageError


def count_words(text: str, ready: LoadedAnnotator) -> tuple[str, int]:
    return text, sum(map(len, ready(text)))


def die(text: str, ready: LoadedAnnotator) -> None:
    os._exit(1)


@pytest.mark.parametrize("processes", [1, 2])
def test_results_come_in_the_order_of_the_items(monkeypatch: pytest.MonkeyPatch, processes: int) -> None:
    monkeypatch.setattr(pool, "PORTION", 10)
    texts = [f"slovo {'a ' * (50 - n)}" for n in range(50)]
    found = list(
        annotated(texts, count_words, len, language="cs", annotator_name="plain", processes=processes)
    )
    assert found == [(text, 51 - n) for n, text in enumerate(texts)]


def test_a_process_that_dies_is_an_error_that_names_the_remedy() -> None:
    with pytest.raises(AnnotationPoolError, match="with fewer --processes"):
        list(annotated(["a"], die, len, language="cs", annotator_name="plain", processes=2))


def test_a_missing_annotator_is_an_error_only_if_there_are_items() -> None:
    assert list(annotated([], count_words, len, language="cs", annotator_name="none such")) == []
    with pytest.raises(AnnotatorError, match="unknown annotator 'none such'"):
        next(annotated(["a"], count_words, len, language="cs", annotator_name="none such"))


def test_fewer_processes_than_none_are_refused() -> None:
    with pytest.raises(UsageError, match="processes must be at least 0, got -3"):
        list(annotated([], lambda item, _: item, len, language="cs", processes=-3))


def test_few_items_are_in_memory_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "PORTION", 1)
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
