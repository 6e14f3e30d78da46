"""Sets of positions behave as sets do."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from thresher.search.encoding import bit_slices, bitset, postings, token_column
from thresher.search.encoding.bit_slices import pack_slices
from thresher.search.encoding.postings import pack_postings
from thresher.search.encoding.token_column import pack_column

positions = st.sets(st.integers(0, 299), max_size=40)


def as_bits(members: set[int], size: int = 300) -> np.ndarray:
    made = bitset.empty(size)
    bitset.set_bits(np.array(sorted(members), np.uint32), 0, size, made)
    return made


@given(positions, st.integers(0, 128))
def test_members_come_out_in_order(members: set[int], start: int) -> None:
    made = as_bits(members)
    assert bitset.members(made, start).tolist() == [start + one for one in sorted(members)]
    assert bitset.count(made) == len(members)


@given(positions, st.integers(0, 90), st.integers(0, 90), st.integers(1, 300))
def test_earlier_positions_have_a_member_some_steps_ahead(
    members: set[int], least: int, more: int, size: int
) -> None:
    found = bitset.earlier(as_bits(members), least, least + more, size)
    expected = [
        one for one in range(size) if any(one + steps in members for steps in range(least, least + more + 1))
    ]
    assert bitset.members(found).tolist() == expected


@given(
    st.lists(st.tuples(st.integers(0, 300), st.integers(0, 90))), st.integers(0, 150), st.integers(150, 300)
)
def test_ranges_are_filled(stretches: list[tuple[int, int]], start: int, end: int) -> None:
    made = bitset.empty(end - start)
    firsts = np.array([first for first, _ in stretches], np.uint32)
    nexts = np.array([first + length for first, length in stretches], np.uint32)
    bitset.fill(firsts, nexts, start, end, made)
    expected = {
        one for first, length in stretches for one in range(first, first + length) if start <= one < end
    }
    assert bitset.members(made, start).tolist() == sorted(expected)


@given(
    st.lists(st.integers(0, 5) | st.integers(0, 700), max_size=300),
    st.sets(st.integers(0, 700), max_size=200),
    st.integers(0, 4),
    st.integers(0, 300),
)
def test_every_way_to_find_types_finds_the_same(
    ids: list[int], types: set[int], first_block: int, reach: int
) -> None:
    start = min(first_block * 64, len(ids))
    start -= start % 64
    end = min(start + reach, len(ids))
    column = np.array(ids, np.uint32)
    wanted = np.zeros(701, np.uint8)
    wanted[list(types)] = 1
    expected = [one for one in range(start, end) if ids[one] in types]

    scanned = bitset.empty(end - start)
    token_column.mark(pack_column(column), wanted, start, end, scanned)
    assert bitset.members(scanned, start).tolist() == expected

    listed = bitset.empty(end - start)
    token_column.mark_short(pack_column(column), wanted[:256], start, end, listed)
    longs = np.array(sorted(one - 256 for one in types if one >= 256), np.uint32)
    postings.mark(pack_postings(column, token_column.counted(column, 701), 256), longs, start, end, listed)
    assert bitset.members(listed, start).tolist() == expected


@given(
    st.lists(st.integers(0, 19), max_size=300),
    st.sets(st.integers(0, 7)),
    st.integers(0, 4),
    st.integers(0, 300),
)
def test_bit_slices_find_the_values_of_types(
    ids: list[int], values: set[int], first_block: int, reach: int
) -> None:
    start = min(first_block, len(ids) // 64) * 64
    end = min(start + reach, len(ids))
    wanted = np.zeros(8, np.uint8)
    wanted[list(values)] = 1
    value_of = np.arange(20, dtype=np.uint32) * 3 % 8
    found = bitset.empty(max(end - start, 0))
    bit_slices.mark(pack_slices(np.array(ids, np.uint32), value_of, 3), wanted, start, max(end, start), found)
    expected = [one for one in range(start, end) if int(value_of[ids[one]]) in values]
    assert bitset.members(found, start).tolist() == expected


@given(
    st.lists(st.integers(0, 5) | st.integers(0, 700), min_size=1, max_size=300),
    st.sets(st.integers(0, 700), max_size=300),
    st.sets(st.integers(0, 299)),
    st.integers(0, 4),
    st.integers(0, 70),
)
def test_checked_candidates_have_a_wanted_type_at_a_distance(
    ids: list[int], types: set[int], candidates: set[int], first_block: int, distance: int
) -> None:
    start = first_block * 64
    wanted = np.zeros(701, np.uint8)
    wanted[list(types)] = 1
    kept = as_bits(candidates)
    token_column.keep(pack_column(np.array(ids, np.uint32)), wanted, start, distance, kept)
    expected = [
        one
        for one in sorted(candidates)
        if (place := start + one + distance) < len(ids) and ids[place] in types
    ]
    assert bitset.members(kept).tolist() == expected


@given(
    st.lists(st.integers(0, 5) | st.integers(0, 700), max_size=300),
    st.tuples(st.integers(0, 9), st.integers(0, 9)),
    st.booleans(),
    st.booleans(),
    st.integers(0, 4),
    st.integers(0, 300),
)
def test_equal_and_different_tokens_are_found_in_both_ways(
    ids: list[int],
    distances: tuple[int, int],
    has_two_tables: bool,
    is_same: bool,
    first_block: int,
    reach: int,
) -> None:
    start = min(first_block, len(ids) // 64) * 64
    end = min(start + reach, len(ids))
    first, second = distances
    one = np.arange(701, dtype=np.uint32) % 7
    other = np.arange(701, dtype=np.uint32) % 5 if has_two_tables else one
    alike = token_column.EqualTokens(one, first, other, second, is_same)
    column = pack_column(np.array(ids, np.uint32))
    expected = [
        place
        for place in range(start, end)
        if place + max(distances) < len(ids)
        and (one[ids[place + first]] == other[ids[place + second]]) == is_same
    ]

    marked = bitset.empty(end - start)
    token_column.mark_equal(column, alike, start, end, marked)
    assert bitset.members(marked, start).tolist() == expected

    kept = bitset.full(end - start)
    token_column.keep_equal(column, alike, start, kept)
    assert bitset.members(kept, start).tolist() == expected


def test_tokens_are_compared_across_the_borders_of_unpacked_ranges() -> None:
    size = 2 * token_column.UNPACKED_POSITIONS + 100
    ids = np.arange(size, dtype=np.uint32) % 3
    table = np.arange(3, dtype=np.uint32)
    found = bitset.empty(size)
    token_column.mark_equal(
        pack_column(ids), token_column.EqualTokens(table, 0, table, 3, True), 0, size, found
    )
    assert bitset.members(found).tolist() == list(range(size - 3))


@given(st.lists(positions, max_size=8), st.integers(0, 300))
def test_a_number_has_a_bit_for_each_set_of_a_position(sets: list[set[int]], size: int) -> None:
    found = bitset.numbers([as_bits(one) for one in sets], size)
    expected = [
        sum(1 << place for place, one in enumerate(sets) if position in one) for position in range(size)
    ]
    assert found.tolist() == expected
