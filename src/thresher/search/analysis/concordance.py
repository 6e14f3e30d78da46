"""Concordances: a line for each hit with its context; lines can be sorted, sampled and filtered."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from thresher.search.analysis import subcorpora
from thresher.search.analysis.places import NO_VALUE, HitPlace, values_at
from thresher.search.analysis.scope import (
    DocumentScope,
    document_keys,
    document_numbers,
    main_attribute,
    structure_in,
)
from thresher.search.analysis.tables import AnalysisError, Concordance, one_of, reasons
from thresher.search.analysis.windows import Window, check_window, has_one, sides, spelled, texts
from thresher.search.encoding.bitpacking import Starts
from thresher.search.execution.segment_search import Hits, joined_hits, selected
from thresher.search.index.segment import DOCUMENT
from thresher.search.searcher import Index, RunningSearch

CONTEXT = 8  # tokens
PAGE = 20  # lines
SORT_WORDS = 3  # number of words by which lines are compared
HELD_LINES = 1 << 20  # lines that are kept in memory before the best of them are selected
SORTS = ("left", "node", "right")


class ConcordanceLines(NamedTuple):
    """Hits of several segments, in the order of the concordance."""

    segments: Starts
    firsts: Starts
    lasts: Starts

    def selected(self, wanted: Starts | slice) -> ConcordanceLines:
        """Return some of the lines."""
        return ConcordanceLines(self.segments[wanted], self.firsts[wanted], self.lasts[wanted])


def kwic(
    index: Index,
    search: RunningSearch,
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
) -> Concordance:
    """Return hits with their context: a number of tokens, or a structure, but never another document.

    Lines can be sorted by the words next to the hit (`left`, `right`) or in it (`node`), or be a random sample,
    which is the same for the same seed. `keep` and `drop` are tokens in CQL that must, or must not, be in the
    window around the hit. `distinct` keeps one hit for each structure of a name, such as doc. Without a size, all
    lines are returned.
    """
    for name, value in (("page", page), ("size", size)):
        if value is not None and value < 1:
            raise AnalysisError(f"{name} must be at least 1, got {value}")
    if sort:
        one_of(sort, SORTS, "order")
    check_window(index, window)
    chooser = LineChooser(subcorpora.scope(index, within), keep, drop, window, distinct)
    start, end = (page - 1) * (size or 0), None if size is None else page * size

    def in_order(lines: ConcordanceLines) -> ConcordanceLines:
        return lines.selected(_sorted(index, lines, sort, sort_words)[:end]) if sort else lines

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
            stopped.append(f"a sample of {sample:,} of {total:,} hits")
        lines, total = in_order(lines), min(sample, total)
    shown = lines if size is None else lines.selected(slice(start, start + size))
    if len(shown.firsts) < total:
        which = f"hits {start + 1:,} to {start + len(shown.firsts):,}"
        if not len(shown.firsts):
            stopped.append(f"no hits on page {page:,}, as there are {total:,}")
        elif sort or sample is not None or search.is_whole:
            stopped.append(f"{which} of {total:,}")
        else:
            stopped.append(f"{which}; there are more")
    return Concordance(rows_of(index, shown, start + 1, context, attributes, meta), reasons(*stopped))


def gathered(
    parts: Iterable[ConcordanceLines],
    narrow: Callable[[ConcordanceLines], ConcordanceLines],
    most: int | None,
) -> tuple[ConcordanceLines, int]:
    """Return the lines that `narrow` selects of all parts, at most `most`, and the number of all lines.

    Lines are narrowed whenever many of them are held, so that memory is bounded.
    """
    held: list[ConcordanceLines] = []
    count = total = 0
    for part in parts:
        held.append(part)
        total += len(part.firsts)
        count += len(part.firsts)
        if most is not None and count >= HELD_LINES + 2 * most:
            held = [narrow(joined(held))]
            count = len(held[0].firsts)
    return narrow(joined(held)), total


def joined(parts: Sequence[ConcordanceLines]) -> ConcordanceLines:
    """Concatenate lines."""
    none = np.zeros(0, np.int64)
    return ConcordanceLines(*map(np.concatenate, zip((none, none, none), *parts, strict=True)))


class LineChooser:
    """Selects the hits that become lines: by scope, by tokens near them, and one for each structure."""

    def __init__(self, scope: DocumentScope, keep: str, drop: str, window: Window, distinct: str) -> None:
        self._scope, self._window, self._distinct = scope, window, distinct
        index = scope.index
        if distinct:
            one_of(distinct, index.structures, "structure")
        searches = [
            (index.search(token), is_wanted) for token, is_wanted in ((keep, True), (drop, False)) if token
        ]
        self._near = [([hits.firsts for hits in search.hits()], is_wanted) for search, is_wanted in searches]
        self.stopped = [search.stopped for search, _ in searches]

    def stream(self, search: RunningSearch) -> Iterator[ConcordanceLines]:
        """Yield lines as their hits are found."""
        last_owner = [-1] * len(self._scope.masks)
        for number, hits in search.stream():
            kept = self._kept(number, hits)
            if (owners := self._owners(number, kept)) is not None and len(owners):
                # Hits come in order, so only the last structure seen so far can have another one.
                is_double = (owners == last_owner[number]) & (owners >= 0)
                kept, last_owner[number] = (
                    selected(kept, ~is_double),
                    max(int(owners.max()), last_owner[number]),
                )
            yield _lines_of(number, kept)

    def lines(self, search: RunningSearch, wanted: int) -> ConcordanceLines:
        """Return at least `wanted` lines, or all if there are fewer, from as few hits as possible."""
        asked = wanted
        while True:
            by_segment: list[list[Hits]] = [[] for _ in self._scope.masks]
            for part in search.first(asked):
                by_segment[part.segment].append(part.hits)
            kept = [self._kept(number, joined_hits(parts)) for number, parts in enumerate(by_segment)]
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
            hits = selected(hits, near == is_wanted)
        if (owners := self._owners(number, hits)) is not None:
            is_first = owners < 0  # a hit outside all structures is kept
            is_first[np.unique(owners, return_index=True)[1]] = True
            hits = selected(hits, is_first)
        return hits

    def _owners(self, number: int, hits: Hits) -> Starts | None:
        """Return the structures of hits that have one line each, or None if all hits become lines."""
        structure = structure_in(self._scope.index.segments[number], self._distinct)
        return structure.around(hits.firsts) if structure else None


def _lines_of(number: int, hits: Hits) -> ConcordanceLines:
    return ConcordanceLines(np.full(len(hits), number), hits.firsts, hits.lasts)


def _sampled(index: Index, lines: ConcordanceLines, count: int, seed: int) -> ConcordanceLines:
    """Return random lines in their order; the choice depends on the seed and the documents alone."""
    dice = np.empty(len(lines.firsts), np.uint64)
    for number, segment in enumerate(index.segments):
        in_segment = lines.segments == number
        firsts = lines.firsts[in_segment]
        owners = document_numbers(segment, firsts)
        places = (firsts - segment.structures[DOCUMENT].firsts[owners]).astype(np.uint64)
        dice[in_segment] = _mixed(_mixed(document_keys(segment)[owners] + np.uint64(seed)) + places)
    return lines.selected(np.sort(np.argsort(dice, kind="stable")[:count]))


def _mixed(numbers: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return pseudo-random numbers by the steps of SplitMix64."""
    numbers = numbers + np.uint64(0x9E3779B97F4A7C15)
    numbers = (numbers ^ numbers >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
    numbers = (numbers ^ numbers >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
    return numbers ^ numbers >> np.uint64(31)


# order


def _sorted(index: Index, lines: ConcordanceLines, sort: str, words: int) -> Starts:
    """Return the order of lines by the words of one side, nearest first, in any case; equal lines as they were."""
    numbers = np.full((words, len(lines.firsts)), NO_VALUE, np.int64)
    folded = [""]
    attribute = main_attribute(index)
    for number, segment in enumerate(index.segments):
        rows = np.flatnonzero(lines.segments == number)
        hits = Hits(lines.firsts[rows], lines.lasts[rows])
        for word in range(words):
            if sort == "node":
                found, values = index.value(attribute, segment, np.minimum(hits.firsts + word, hits.lasts))
                found = np.where(hits.firsts + word <= hits.lasts, found, NO_VALUE)
            else:
                place = HitPlace(
                    attribute, *(("match", -1 - word) if sort == "left" else ("matchend", 1 + word))
                )
                found, values = values_at(index, segment, hits, place)
            distinct, places = np.unique(found, return_inverse=True)
            numbers[word, rows] = np.where(found == NO_VALUE, NO_VALUE, places + len(folded))
            folded += [str(value).casefold() for value in spelled(distinct, values).to_pylist()]
    ranks = np.asarray(pc.rank(pa.array(folded), tiebreaker="dense"), np.int64)
    # A missing word sorts before all others.
    return np.lexsort(np.where(numbers == NO_VALUE, 0, ranks[numbers])[::-1])


# rows


def rows_of(
    index: Index,
    lines: ConcordanceLines,
    first: int,
    context: int | str,
    attributes: Sequence[str],
    meta: Sequence[str],
) -> pa.Table:
    """Return lines as a table with their texts, numbered from `first` on."""
    order = np.argsort(lines.segments, kind="stable")
    names = ["document", *meta, "left", "match", "right", *(f"match_{name}" for name in attributes)]
    parts: list[list[pa.Array[Any]]] = [
        _cells(
            index, number, lines.selected(order[lines.segments[order] == number]), context, attributes, meta
        )
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


def origins(index: Index, lines: Concordance) -> list[str]:
    """Return the host, or the identifier, and the document number of each line."""
    firsts = np.asarray(lines.rows["first"], np.int64)
    segments = np.searchsorted(np.array(index.bases[1:], np.int64), firsts, "right")
    before = np.cumsum([0, *(len(one.structures[DOCUMENT].firsts) for one in index.segments)])
    known = {f"{DOCUMENT}_{name}" for name in index.structures.get(DOCUMENT, ())}
    name = next((name for name in ("doc_host", "doc_id") if name in known), None)
    found = [""] * len(firsts)
    for number in np.unique(segments).tolist():
        rows = np.flatnonzero(segments == number)
        positions = firsts[rows] - index.bases[number]
        numbers = document_numbers(index.segments[number], positions) + before[number] + 1
        values = spelled(*index.value(name, index.segments[number], positions)).to_pylist() if name else []
        for place, row in enumerate(rows.tolist()):
            found[row] = f"{values[place] if values else ''} #{numbers[place]}".strip()
    return found


def _cells(
    index: Index,
    number: int,
    lines: ConcordanceLines,
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
