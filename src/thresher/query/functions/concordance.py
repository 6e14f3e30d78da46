"""Concordances: hits in their context, a line each, sorted, sampled and filtered."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from thresher.query.found import Index, Search
from thresher.query.functions import subcorpora
from thresher.query.functions.places import NO_VALUE, Place, values_at
from thresher.query.functions.scope import (
    Scope,
    document_keys,
    document_numbers,
    main_attribute,
    structure_in,
)
from thresher.query.functions.tables import FunctionError, Table, one_of, reasons
from thresher.query.functions.windows import Window, has_one, sides, spelled, texts
from thresher.query.packing import Starts
from thresher.query.search import Hits, some_hits, those
from thresher.query.segment import DOCUMENT

CONTEXT = 8  # tokens
PAGE = 20  # lines
SORT_WORDS = 3  # that lines are compared by
MANY = 1 << 20  # lines that are held before they are narrowed
SORTS = ("left", "node", "right")


class Lines(NamedTuple):
    """Hits of all segments, in an order."""

    segments: Starts
    firsts: Starts
    lasts: Starts

    def those(self, wanted: Starts | slice) -> Lines:
        return Lines(self.segments[wanted], self.firsts[wanted], self.lasts[wanted])


def kwic(
    index: Index,
    search: Search,
    *,
    context: int | str = CONTEXT,
    attributes: Sequence[str] = (),
    meta: Sequence[str] = (),
    page: int = 1,
    size: int | None = PAGE,
    sort: str = "",
    sort_words: int = SORT_WORDS,
    sample: int | None = None,
    seed: int = 1,
    keep: str = "",
    drop: str = "",
    window: Window = (-5, 5),
    distinct: str = "",
    within: str | None = None,
) -> Table:
    """Hits with what stands left and right of them: so many tokens, or a structure; never from another document.

    Lines can be sorted by the words next to the hit (`left`, `right`) or in it (`node`), or be a random sample, the
    same for the same seed. `keep` and `drop` are tokens in CQL that must, or must not, be in the window round the
    hit. `distinct` leaves one hit for each structure of a kind, such as doc. Without a size, all lines are shown.
    """
    if page < 1 or (size is not None and size < 1):
        raise FunctionError(
            f"page = {page}, size = {size} cannot be; pages and their sizes are counted from 1"
        )
    if sort:
        one_of(sort, SORTS, "order")
    chooser = Chooser(subcorpora.scope(index, within), keep, drop, window, distinct)
    start, end = (page - 1) * (size or 0), None if size is None else page * size

    def in_order(lines: Lines) -> Lines:
        return lines.those(_sorted(index, lines, sort, sort_words)[:end]) if sort else lines

    if sample is not None:
        draw = partial(_sampled, index, count=sample, seed=seed)
        lines, total = gathered(chooser.stream(search), draw, sample)
    elif sort or end is None:
        lines, total = gathered(chooser.stream(search), in_order, end)
    else:
        lines = chooser.lines(search, end + 1)
        total = len(lines.firsts)
    stopped = [search.stopped, *chooser.stopped]
    if sample is not None:
        if sample < total:
            stopped.append(f"a sample of {sample} of {total} hits")
        lines, total = in_order(lines), min(sample, total)
    shown = lines if size is None else lines.those(slice(start, start + size))
    if len(shown.firsts) < total:
        which = (
            f"hits {start + 1} to {start + len(shown.firsts)}"
            if len(shown.firsts)
            else f"none on page {page}"
        )
        is_known = sort or sample is not None or search.is_whole
        stopped.append(f"{which} of {total}" if is_known else f"{which}; there are more")
    return Table(rows_of(index, shown, start + 1, context, attributes, meta), reasons(*stopped))


def gathered(parts: Iterable[Lines], narrow: Callable[[Lines], Lines], most: int | None) -> tuple[Lines, int]:
    """Lines, narrowed as soon as there are many more than those that can be left; and how many there were."""
    held: list[Lines] = []
    count = total = 0
    for part in parts:
        held.append(part)
        total += len(part.firsts)
        count += len(part.firsts)
        if most is not None and count >= MANY + 2 * most:
            held = [narrow(joined(held))]
            count = len(held[0].firsts)
    return narrow(joined(held)), total


def joined(parts: Sequence[Lines]) -> Lines:
    """Lines one after the other."""
    none = np.zeros(0, np.int64)
    return Lines(*map(np.concatenate, zip((none, none, none), *parts, strict=True)))


class Chooser:
    """Tells which hits become lines."""

    def __init__(self, scope: Scope, keep: str, drop: str, window: Window, distinct: str) -> None:
        self._scope, self._window, self._distinct = scope, window, distinct
        index = scope.index
        if distinct:
            one_of(distinct, index.structures, "structure")
        searches = [
            (index.search(token), is_wanted) for token, is_wanted in ((keep, True), (drop, False)) if token
        ]
        self._near = [([hits.firsts for hits in search.hits()], is_wanted) for search, is_wanted in searches]
        self.stopped = [search.stopped for search, _ in searches]

    def stream(self, search: Search) -> Iterator[Lines]:
        """All lines as their hits are found."""
        last_owner = [-1] * len(self._scope.masks)
        for number, hits in search.stream():
            kept = self._kept(number, hits)
            if (owners := self._owners(number, kept)) is not None and len(owners):
                # Hits come in order, so only the last structure of those before may have one more.
                is_double = (owners == last_owner[number]) & (owners >= 0)
                kept, last_owner[number] = those(kept, ~is_double), max(int(owners.max()), last_owner[number])
            yield _lines_of(number, kept)

    def lines(self, search: Search, wanted: int) -> Lines:
        """At least so many lines, if there are; no more hits are asked for than it takes."""
        asked = wanted
        while True:
            by_segment: list[list[Hits]] = [[] for _ in self._scope.masks]
            for part in search.first(asked):
                by_segment[part.segment].append(part.hits)
            kept = [self._kept(number, some_hits(parts)) for number, parts in enumerate(by_segment)]
            lines = joined([_lines_of(number, hits) for number, hits in enumerate(kept)])
            if len(lines.firsts) >= wanted or search.is_whole or search.stopped:
                return lines
            asked = 4 * sum(len(hits) for parts in by_segment for hits in parts)

    def _kept(self, number: int, hits: Hits) -> Hits:
        index, segment = self._scope.index, self._scope.index.segments[number]
        hits = self._scope.kept(number, hits)
        for places, is_wanted in self._near:
            left_starts, left_ends, right_starts, right_ends = sides(index, segment, hits, self._window)
            near = has_one(places[number], left_starts, left_ends)
            near |= has_one(places[number], right_starts, right_ends)
            hits = those(hits, near == is_wanted)
        if (owners := self._owners(number, hits)) is not None:
            is_first = owners < 0  # what lies in none is nobody's double
            is_first[np.unique(owners, return_index=True)[1]] = True
            hits = those(hits, is_first)
        return hits

    def _owners(self, number: int, hits: Hits) -> Starts | None:
        """The structures of hits that may have one line each; None if that does not matter."""
        structure = structure_in(self._scope.index.segments[number], self._distinct)
        return structure.around(hits.firsts) if structure else None


def _lines_of(number: int, hits: Hits) -> Lines:
    return Lines(np.full(len(hits), number), hits.firsts, hits.lasts)


def _sampled(index: Index, lines: Lines, count: int, seed: int) -> Lines:
    """So many lines at random, in their order; which ones, depends on the seed and the documents alone."""
    dice = np.empty(len(lines.firsts), np.uint64)
    for number, segment in enumerate(index.segments):
        mine = lines.segments == number
        firsts = lines.firsts[mine]
        owners = document_numbers(segment, firsts)
        places = (firsts - segment.structures[DOCUMENT].firsts[owners]).astype(np.uint64)
        dice[mine] = _mixed(_mixed(document_keys(segment)[owners] + np.uint64(seed)) + places)
    return lines.those(np.sort(np.argsort(dice, kind="stable")[:count]))


def _mixed(numbers: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Other numbers that look random: the steps of SplitMix64."""
    numbers = numbers + np.uint64(0x9E3779B97F4A7C15)
    numbers = (numbers ^ numbers >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
    numbers = (numbers ^ numbers >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
    return numbers ^ numbers >> np.uint64(31)


# order


def _sorted(index: Index, lines: Lines, sort: str, words: int) -> Starts:
    """The order of lines by the words of one side, the nearest first, whatever their case; equals as they were."""
    numbers = np.full((words, len(lines.firsts)), NO_VALUE, np.int64)
    folded = [""]
    attribute = main_attribute(index)
    for number, segment in enumerate(index.segments):
        mine = np.flatnonzero(lines.segments == number)
        hits = Hits(lines.firsts[mine], lines.lasts[mine])
        for word in range(words):
            if sort == "node":
                found, values = index.value(attribute, segment, np.minimum(hits.firsts + word, hits.lasts))
                found = np.where(hits.firsts + word <= hits.lasts, found, NO_VALUE)
            else:
                place = Place(
                    attribute, *(("match", -1 - word) if sort == "left" else ("matchend", 1 + word))
                )
                found, values = values_at(index, segment, hits, place)
            some, among = np.unique(found, return_inverse=True)
            numbers[word, mine] = np.where(found == NO_VALUE, NO_VALUE, among + len(folded))
            folded += [str(value).casefold() for value in spelled(some, values).to_pylist()]
    ranks = np.asarray(pc.rank(pa.array(folded), tiebreaker="dense"), np.int64)
    # A word that is not there comes before all others.
    return np.lexsort(np.where(numbers == NO_VALUE, 0, ranks[numbers])[::-1])


# lines as they are shown


def rows_of(
    index: Index, lines: Lines, first: int, context: int | str, attributes: Sequence[str], meta: Sequence[str]
) -> pa.Table:
    """Lines as they are shown, numbered from one on."""
    order = np.argsort(lines.segments, kind="stable")
    names = ["document", *meta, "left", "match", "right", *(f"match_{name}" for name in attributes)]
    parts: list[list[pa.Array[Any]]] = [
        _cells(index, number, lines.those(order[lines.segments[order] == number]), context, attributes, meta)
        for number in range(len(index.segments))
    ]
    kinds: list[Any] = [pa.uint64(), *[pa.string()] * (len(names) - 1)]
    empty = pa.schema(list(zip(names, kinds, strict=True))).empty_table()
    found = pa.concat_tables([empty, *(pa.table(cells, names=names) for cells in parts)])
    numbers = pa.array(np.arange(first, first + len(order), dtype=np.int64))
    bases = np.array(index.bases, np.int64)[lines.segments]
    shown = found.take(np.argsort(order)).add_column(0, "number", numbers)
    return shown.add_column(1, "first", pa.array(lines.firsts + bases)).add_column(
        2, "last", pa.array(lines.lasts + bases)
    )


def _cells(
    index: Index,
    number: int,
    lines: Lines,
    context: int | str,
    attributes: Sequence[str],
    meta: Sequence[str],
) -> list[pa.Array[Any]]:
    segment, firsts, nexts = index.segments[number], lines.firsts, lines.lasts + 1
    window = context if isinstance(context, str) else (-context, context)
    left_starts, _, _, right_ends = sides(index, segment, Hits(firsts, lines.lasts), window)
    word = main_attribute(index)
    return [
        pa.array(document_keys(segment)[document_numbers(segment, firsts)], pa.uint64()),
        *(spelled(*index.value(name, segment, firsts)) for name in meta),
        texts(index, segment, left_starts, firsts, word),
        texts(index, segment, firsts, nexts, word),
        texts(index, segment, nexts, right_ends, word),
        *(texts(index, segment, firsts, nexts, name) for name in attributes),
    ]
