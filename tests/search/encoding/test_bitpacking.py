"""Columns and postings return the packed values, from any position."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from thresher.search.encoding.postings import pack_postings, positions
from thresher.search.encoding.token_column import counted, pack_column, pick, unpack

numbers = st.one_of(st.integers(0, 3), st.integers(0, 255), st.integers(0, 2**18), st.integers(0, 2**32 - 1))


@given(st.lists(numbers, max_size=300), st.data())
def test_a_column_is_read_from_any_position_to_any_other(ids: list[int], data: st.DataObject) -> None:
    column = pack_column(np.array(ids, np.uint32))
    start = data.draw(st.integers(0, len(ids)))
    end = data.draw(st.integers(start, len(ids)))
    assert unpack(column, start, end).tolist() == ids[start:end]
    wanted = data.draw(st.lists(st.integers(0, len(ids) - 1), max_size=20)) if ids else []
    assert pick(column, np.array(wanted, np.uint32)).tolist() == [ids[place] for place in wanted]


@given(st.lists(st.integers(0, 150) | st.integers(0, 2), max_size=300), st.data())
def test_postings_give_the_positions_of_each_number_in_any_range(ids: list[int], data: st.DataObject) -> None:
    postings = pack_postings(np.array(ids, np.uint32), counted(np.array(ids, np.uint32), 151))
    start = data.draw(st.integers(0, len(ids)))
    end = data.draw(st.integers(0, len(ids)))
    for kind in {*ids, 0, 150}:
        where = [place for place, one in enumerate(ids) if one == kind]
        assert positions(postings, kind).tolist() == where
        assert positions(postings, kind, start, end).tolist() == [
            place for place in where if start <= place < end
        ]


def test_large_corpora_take_little_room_and_come_back_whole() -> None:
    dice = np.random.default_rng(1)
    ids = np.minimum(dice.zipf(1.15, 400_000) - 1, 60_000).astype(np.uint32)
    column, postings = pack_column(ids), pack_postings(ids, counted(ids, 60_001))
    assert (unpack(column, 0, len(ids)) == ids).all()
    packed = sum(part.nbytes for part in column[:4])
    assert packed < 2 * len(ids)
    for kind in (0, 1, 17, 300, 60_000):
        where = np.flatnonzero(ids == kind)
        assert (positions(postings, kind) == where).all()
        assert (
            positions(postings, kind, 200_000, 300_000) == where[(where >= 200_000) & (where < 300_000)]
        ).all()
    assert postings.words.nbytes < 2 * len(ids)


@given(st.lists(st.integers(0, 40), max_size=200), st.integers(1, 50))
def test_postings_written_in_portions_are_the_same(ids: list[int], at_once: int) -> None:
    column = np.array(ids, np.uint32)
    counts = counted(column, 41)
    whole = pack_postings(column, counts, 3)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("thresher.search.encoding.postings.POSITIONS_AT_A_TIME", at_once)
        portions = pack_postings(column, counts, 3)
    assert whole.words.tobytes() == portions.words.tobytes()
    assert whole.starts.tolist() == portions.starts.tolist()
