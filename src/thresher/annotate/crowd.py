"""Many documents annotated at once, by several processes, in the order in which they came."""

from __future__ import annotations

import multiprocessing
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from itertools import chain
from typing import Any, TypeVar

from thresher.annotate.annotators import Ready, annotator

T = TypeVar("T")
R = TypeVar("R")

PORTION = 200_000  # letters of text that are annotated in one go


class CrowdFault(Exception):
    """A process that annotates died; the message tells the cure."""


def annotated(
    items: Iterable[T],
    work: Callable[[T, Ready], R],
    size: Callable[[T], int],
    *,
    language: str,
    annotator_name: str = "",
    processes: int = 0,
) -> Iterator[R]:
    """What becomes of every item, in order; `work` is a function of a module, since processes look it up there.

    `size` tells the letters of an item: many small ones are sent together. Without a number of processes, all
    processors but one are used. What is missing for a language is told at once, and only if there is an item.
    """
    portions = _portions(iter(items), size)
    first = next(portions, None)
    if first is None:
        return
    ready = annotator(language, annotator_name or None)  # what is missing is told here, not by a process
    processes = processes or max((os.cpu_count() or 2) - 1, 1)
    if processes == 1:
        for portion in chain([first], portions):
            yield from (work(item, ready) for item in portion)
        return
    yield from _in_processes(chain([first], portions), work, language, annotator_name, processes)


def _in_processes(
    portions: Iterable[list[T]], work: Callable[[T, Ready], R], language: str, name: str, processes: int
) -> Iterator[R]:
    pending: deque[Future[list[R]]] = deque()
    context = multiprocessing.get_context("forkserver")
    with ProcessPoolExecutor(
        processes, context, initializer=_prepare, initargs=(language, name, work)
    ) as pool:
        try:
            for portion in portions:
                pending.append(pool.submit(_annotate, portion))
                if len(pending) > 2 * processes:
                    yield from pending.popleft().result()
            while pending:
                yield from pending.popleft().result()
        except BrokenProcessPool:
            raise CrowdFault(
                "a process that annotates died, perhaps for want of memory; go on with the same command, "
                "with fewer --processes"
            ) from None
        finally:
            for future in pending:
                future.cancel()


_WORKER: tuple[Ready, Callable[[Any, Ready], Any]] | None = None  # of a process that annotates


def _prepare(language: str, name: str, work: Callable[[Any, Ready], Any]) -> None:
    global _WORKER  # noqa: PLW0603 - a process has one
    _WORKER = annotator(language, name or None), work


def _annotate(portion: list[Any]) -> list[Any]:
    assert _WORKER
    ready, work = _WORKER
    return [work(item, ready) for item in portion]


def _portions(items: Iterator[T], size: Callable[[T], int]) -> Iterator[list[T]]:
    portion: list[T] = []
    letters = 0
    for item in items:
        portion.append(item)
        letters += size(item)
        if letters >= PORTION:
            yield portion
            portion, letters = [], 0
    if portion:
        yield portion
