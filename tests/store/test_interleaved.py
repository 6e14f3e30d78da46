"""Rows of several streams come in the order of their numbers."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from thresher.store.partition import interleaved

NUMBERED = st.sets(st.integers(0, 200)).map(sorted)


def stream(numbers: list[int], cuts: list[int]) -> Iterator[pa.RecordBatch]:
    """Yield the numbers in batches, some of them empty."""
    places = [0, *sorted(min(cut, len(numbers)) for cut in cuts), len(numbers)]
    for start, end in pairwise(places):
        some = numbers[start:end]
        yield pa.RecordBatch.from_pydict({"name": [f"n{n}" for n in some], "seq": pa.array(some, pa.int64())})


@given(NUMBERED, st.integers(1, 5), st.lists(st.integers(0, 60), max_size=6))
def test_all_rows_come_once_and_rising(numbers: list[int], count: int, cuts: list[int]) -> None:
    streams = [stream([n for n in numbers if n % count == shard], cuts) for shard in range(count)]
    batches = list(interleaved(streams, "seq"))
    assert all(batch.num_rows for batch in batches)
    rows = [row for batch in batches for row in batch.to_pylist()]
    assert rows == [{"name": f"n{n}", "seq": n} for n in numbers]


def test_a_stream_is_read_no_further_than_the_rows_that_are_due() -> None:
    taken: list[int] = []

    def slowly(first: int) -> Iterator[pa.RecordBatch]:
        for batch in stream(list(range(first, 1_000, 2)), list(range(10, 500, 10))):
            taken.append(first)
            yield batch

    found = interleaved([slowly(0), slowly(1)], "seq")
    assert next(found)["seq"].to_pylist() == list(range(19))
    assert sorted(taken) == [0, 0, 1], "of the stream that was used up, one more batch"
