"""Annotate documents in several processes and return them in the order in which they came."""

from __future__ import annotations

import multiprocessing
import os
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from itertools import chain
from types import ModuleType
from typing import Any, TypeVar

from thresher.annotate.registry import LoadedAnnotator, annotator
from thresher.errors import EngineError, UsageError

T = TypeVar("T")
R = TypeVar("R")

# Letters of text that a process gets at a time: some tenths of a second of work, so that sending costs little.
PORTION = 200_000


class AnnotationPoolError(EngineError):
    """An annotation process died. The message says how to continue."""


def annotated(
    items: Iterable[T],
    work: Callable[[T, LoadedAnnotator], R],
    size: Callable[[T], int],
    *,
    language: str,
    annotator_name: str = "",
    folders: Sequence[str] = (),
    processes: int = 0,
) -> Iterator[R]:
    """Yield the result of `work` for every item, in order.

    Parameters
    ----------
    items
        Items to work on; only a few of them are in memory at a time.
    work
        Function of a module: other processes import it from there.
    size
        Function that returns the number of letters of an item; small items are sent together.
    language
        Language of all items.
    annotator_name
        Name as in `registry.annotator`. A missing annotator is an error only if there are items.
    folders
        Folders as in `registry.annotator`.
    processes
        Number of processes; 0 for all processors but one.
    """
    if processes < 0:
        raise UsageError(f"processes must be at least 0, got {processes}; 0 means all processors but one")
    portions = _portions(iter(items), size)
    first = next(portions, None)
    if first is None:
        return
    # Loaded here even if other processes do the work, so that a missing library is an error of this process.
    ready = annotator(language, annotator_name or None, folders=folders)
    processes = processes or max((os.cpu_count() or 2) - 1, 1)
    if processes == 1:
        for portion in chain([first], portions):
            yield from (work(item, ready) for item in portion)
        return
    yield from _in_processes(chain([first], portions), work, (language, annotator_name, folders), processes)


def _in_processes(
    portions: Iterable[list[T]],
    work: Callable[[T, LoadedAnnotator], R],
    choice: tuple[str, str, Sequence[str]],
    processes: int,
) -> Iterator[R]:
    pending: deque[Future[list[R]]] = deque()
    context = multiprocessing.get_context("forkserver")
    with ProcessPoolExecutor(processes, context, initializer=_prepare, initargs=(*choice, work)) as pool:
        try:
            for portion in portions:
                with _without_main_script():  # submitting starts processes
                    pending.append(pool.submit(_annotate, portion))
                if len(pending) > 2 * processes:
                    yield from pending.popleft().result()
            while pending:
                yield from pending.popleft().result()
        except BrokenProcessPool:
            raise AnnotationPoolError(
                "a process that annotates died, perhaps for lack of memory; run the same command again "
                "with fewer --processes"
            ) from None
        finally:
            for future in pending:
                future.cancel()


@contextmanager
def _without_main_script() -> Iterator[None]:
    """Keep processes that start meanwhile from importing the user's script.

    multiprocessing imports it in every process, where a script without `if __name__ == "__main__"` starts again.
    """
    script = sys.modules["__main__"]
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = script


# Annotator and function of a worker process, set when it starts.
_WORKER: tuple[LoadedAnnotator, Callable[[Any, LoadedAnnotator], Any]] | None = None


def _prepare(
    language: str, name: str, folders: Sequence[str], work: Callable[[Any, LoadedAnnotator], Any]
) -> None:
    global _WORKER  # noqa: PLW0603 - a process has one
    _WORKER = annotator(language, name or None, folders=folders), work


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
