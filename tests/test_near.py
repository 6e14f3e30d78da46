"""Near duplicates of paragraphs: what is dropped is what a plain loop would drop, however the work is done."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from thresher.batch.near.conclude import Lost, Report, conclude, dropped, report
from thresher.batch.near.files import Arrays, NearFault, is_made, number, writing
from thresher.batch.near.gather import Range, plan
from thresher.batch.near.paragraphs import drop
from thresher.batch.near.rounds import Piece, Resolved, resolve
from thresher.batch.near.scatter import scatter
from thresher.read.runs import LOOKED_AT, fates, hashed

Documents = Sequence[Sequence[str]]
TALES = [f"On day {day} we met {day + 2} hedgehogs under the old oak and fed them well." for day in range(9)]


def slow_drop(documents: Documents, share: float = 0.5) -> list[list[bool]]:
    """The definition: one paragraph after the other, and a set."""
    seen: set[int] = set()
    told = []
    for document in documents:
        found = hashed(document)
        hashes = iter(found.hashes.tolist())
        old = []
        for count in found.counts.tolist():
            runs = [next(hashes) for _ in range(count)]
            old.append(sum(run in seen for run in runs) > share * count)
            if not old[-1]:
                seen.update(runs)
        told.append([not stays for stays in fates(found.counts.tolist(), old)])
    return told


def scattered(folder: Path, shards: Sequence[Documents], memory: int = 1 << 20) -> list[Path]:
    paths = [folder / f"shard-{place}" for place in range(len(shards))]
    for path, shard in zip(paths, shards, strict=True):
        scatter(shard, path, memory=memory, source="test")
    return paths


def concluded(paths: Sequence[Path], folder: Path, found: Resolved) -> list[Path]:
    outputs = [folder / "concluded" / path.name for path in paths]
    for path, output, state, block in zip(paths, outputs, found.states, found.first_blocks, strict=True):
        conclude(path, output, state, found.advanced, first_block=block)
    return outputs


def repetitive(seed: int, documents: int, letters: str = "abc") -> list[list[str]]:
    """Documents that have much in common."""
    dice = random.Random(seed)
    return [
        [" ".join(dice.choices(letters, k=dice.randrange(30))) for _ in range(dice.randrange(6))]
        for _ in range(documents)
    ]


def chain(length: int) -> list[list[str]]:
    """Documents of which each has half of its words from the one before, and half of the next one's."""
    parts = [" ".join(f"w{part}x{word}" for word in range(20)) for part in range(length + 1)]
    return [[f"{one} {other}"] for one, other in pairwise(parts)]


# What is dropped

PARAGRAPHS = st.lists(st.sampled_from(["a", "b", "c", "字"]), max_size=25).map(" ".join)
DOCUMENTS = st.lists(st.lists(PARAGRAPHS, max_size=4), max_size=25)


@settings(max_examples=60)
@given(
    documents=DOCUMENTS,
    share=st.sampled_from([0.0, 0.3, 0.5, 0.9, 1.0]),
    memory=st.sampled_from([1 << 12, 20_000, 1 << 20]),
    shard_paragraphs=st.integers(1, 30),
)
def test_what_is_dropped_is_what_a_plain_loop_over_a_set_drops(
    documents: list[list[str]], share: float, memory: int, shard_paragraphs: int
) -> None:
    found = list(drop(documents, share=share, memory=memory, shard_paragraphs=shard_paragraphs))
    assert found == slow_drop(documents, share)


@pytest.mark.parametrize("letters", ["ab", "abc", "abcdefghijklmnop"])
def test_many_documents_in_many_partitions_and_rounds_are_decided_as_in_order(letters: str) -> None:
    documents = repetitive(3, 300, letters)
    assert list(drop(documents, memory=1 << 12, shard_paragraphs=50)) == slow_drop(documents)


def test_a_chain_in_which_every_decision_hangs_on_the_one_before_takes_few_rounds(tmp_path: Path) -> None:
    documents = chain(400)
    paths = scattered(tmp_path, [documents[:150], documents[150:]], memory=1 << 16)
    found = resolve(paths, tmp_path, share=0.4, memory=1 << 16)
    told = [gone for path in concluded(paths, tmp_path, found) for gone in dropped(path)]
    assert told == [[False], [True]] * 200
    assert found.rounds < 60


def test_exactly_half_is_not_more_than_half() -> None:
    words = [f"w{place}" for place in range(40)]
    first, half, more = words[:13], [*words[:10], *"xyzq"], [*words[:11], *"xyz"]
    assert [len(hashed([" ".join(text)]).hashes) for text in (first, half, more)] == [7, 8, 8]
    found = list(drop([[" ".join(first)], [" ".join(half)], [" ".join(more)]]))
    assert found == [[False], [False], [True]]


def test_what_was_dropped_does_not_count_as_seen() -> None:
    first, second = ([f"{name}{place}" for place in range(30)] for name in "ab")
    texts = [first, first[:29] + second[:10], [*second[:10], *"zyx"]]
    assert list(drop([[" ".join(text) for text in texts]])) == [[False, True, False]]


def test_a_paragraph_is_no_copy_of_itself_however_it_repeats() -> None:
    assert list(drop([["so on and so forth " * 50], ["so on and so forth " * 50]])) == [[False], [True]]


def test_short_paragraphs_go_with_the_next_that_is_not() -> None:
    found = list(drop([[TALES[0]], ["Old", TALES[0], "New", TALES[5], "The end"], ["Old"], []]))
    assert found == [[False], [True, True, False, False, False], [False], []]


@settings(max_examples=50)
@given(st.lists(st.lists(st.text(max_size=60), max_size=3), max_size=5))
def test_any_text_has_an_answer(documents: list[list[str]]) -> None:
    assert list(map(len, drop(documents))) == list(map(len, documents))


def test_a_paragraph_as_long_as_a_book_counts_with_its_beginning() -> None:
    book = " ".join(f"w{place}" for place in range(60_000))
    assert len(book) > LOOKED_AT
    assert list(drop([[book, "more " * 9, book + " and an end of its own"]])) == [[False, False, True]]


def test_documents_that_fail_leave_nothing_behind(tmp_path: Path) -> None:
    def torn() -> Iterator[list[str]]:
        yield TALES
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        list(drop(torn(), folder=tmp_path))
    list(drop([TALES], folder=tmp_path))
    assert not list(tmp_path.iterdir())


# How it is done


def tree(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def backwards(do: Callable[[Piece], None], pieces: Iterable[Piece]) -> list[None]:
    return [do(piece) for piece in reversed(list(pieces))]


def test_who_does_the_pieces_and_in_what_order_makes_no_difference_to_any_byte(tmp_path: Path) -> None:
    documents = repetitive(5, 120)
    paths = scattered(tmp_path, [documents[:50], documents[50:60], [], documents[60:]], memory=1 << 13)
    resolve(paths, tmp_path / "one", memory=1 << 13)
    resolve(paths, tmp_path / "two", memory=1 << 13, map=backwards)
    with ThreadPoolExecutor(4) as pool:
        resolve(paths, tmp_path / "three", memory=1 << 13, map=pool.map)
    assert tree(tmp_path / "one") == tree(tmp_path / "two") == tree(tmp_path / "three")
    assert sum(name.startswith("parts") for name in tree(tmp_path / "one")) > 4


def test_a_run_that_is_killed_anywhere_goes_on_to_the_same_bytes_and_does_nothing_twice(
    tmp_path: Path,
) -> None:
    documents = repetitive(7, 60)
    paths = scattered(tmp_path, [documents[:30], documents[30:]], memory=1 << 14)
    resolve(paths, tmp_path / "whole", memory=1 << 14)
    whole = tree(tmp_path / "whole")
    home = tmp_path / "killed"
    done: list[Any] = []

    def until_killed(do: Callable[[Piece], None], pieces: Iterable[Piece]) -> Iterator[None]:
        for piece in pieces:
            before = tree(home)
            do(piece)
            if tree(home) != before:
                done.append(piece)
                raise KeyboardInterrupt
            yield

    while True:
        try:
            resolve(paths, home, memory=1 << 14, map=until_killed)
            break
        except KeyboardInterrupt:
            pass
    assert tree(home) == whole
    assert len(done) == len(whole)


def test_another_share_decides_anew_and_gathers_nothing_anew(tmp_path: Path) -> None:
    documents = repetitive(9, 80, "abcd")
    paths = scattered(tmp_path, [documents])
    before: dict[Path, int] = {}
    for share in (0.5, 0.1, 0.9):
        found = resolve(paths, tmp_path, share=share)
        told = [gone for path in concluded(paths, tmp_path, found) for gone in dropped(path)]
        assert told == slow_drop(documents, share)
        parts = {path: path.stat().st_mtime_ns for path in (tmp_path / "parts").iterdir()}
        assert parts == (before or parts)
        before = parts


def test_a_shard_is_not_read_again_if_nothing_changed(tmp_path: Path) -> None:
    def unread() -> Iterator[list[str]]:
        raise AssertionError
        yield []

    scatter([TALES], tmp_path / "shard", source="digest 1")
    scatter(unread(), tmp_path / "shard", source="digest 1")
    with pytest.raises(AssertionError):
        scatter(unread(), tmp_path / "shard", source="digest 2")
    assert is_made(tmp_path / "shard", f"scatter {1 << 30} digest 1")
    assert list(tmp_path.iterdir()) == [tmp_path / "shard"]


@settings(max_examples=30)
@given(seed=st.integers(0, 99), memory=st.integers(1 << 12, 1 << 17))
def test_ranges_of_hashes_leave_none_out_and_none_overlap(
    tmp_path_factory: pytest.TempPathFactory, seed: int, memory: int
) -> None:
    paths = scattered(tmp_path_factory.mktemp("plan"), [repetitive(seed, 20, "abcdefgh")])
    ranges = plan(paths, memory)
    assert (ranges[0].low, ranges[-1].last) == (0, (1 << 64) - 1)
    assert all(one.last + 1 == other.low for one, other in pairwise(ranges))
    assert plan([], memory) == [Range(0, (1 << 64) - 1)]


# What is told


def test_a_report_tells_what_goes_in_all_and_of_which_host(tmp_path: Path) -> None:
    shards = [[[TALES[0], "Short"], [TALES[5]]], [[TALES[0]], [TALES[5], "New words " * 9], ["Too short"]]]
    paths = scattered(tmp_path, shards)
    found = resolve(paths, tmp_path)
    outputs = concluded(paths, tmp_path, found)
    total = Lost(documents=5, emptied=1, paragraphs=7, dropped=2, words=81, dropped_words=30)
    assert report(outputs) == Report(total)
    conclude(paths[1], outputs[1], found.states[1], found.advanced, first_block=1, hosts=["a", "b", "b"])
    lost_by_a = Lost(1, 1, 1, 1, 15, 15)
    lost_by_b = Lost(2, 0, 3, 1, 35, 15)
    assert report(outputs).hosts == {"a": lost_by_a, "b": lost_by_b}
    assert report([outputs[1]] * 2).hosts["b"] == lost_by_b + lost_by_b
    with pytest.raises(NearFault, match="3 documents and 1 hosts; give all or none"):
        conclude(paths[1], outputs[1], found.states[1], found.advanced, first_block=1, hosts=["a"])


def test_settings_that_cannot_be_are_refused_with_the_cure(tmp_path: Path) -> None:
    with pytest.raises(NearFault, match="memory = 12 bytes is too little; try memory = 1073741824"):
        list(drop([TALES], memory=12))
    with pytest.raises(NearFault, match=r"share = 1\.5 is not between 0 and 1; try share = 0\.5"):
        list(drop([TALES], share=1.5))
    paths = scattered(tmp_path, [[TALES]])
    found = resolve(paths, tmp_path)
    with pytest.raises(NearFault, match=r"not all paragraphs of .* are decided"):
        conclude(paths[0], tmp_path / "out", tmp_path / "round-0000" / found.states[0].name)
    with pytest.raises(NearFault, match="tells no number of undecided"):
        number(paths[0], "undecided")


def test_a_damaged_file_is_told_or_does_no_more_harm_than_other_text(tmp_path: Path) -> None:
    dice = random.Random(4)
    paths = scattered(tmp_path, [repetitive(1, 20), repetitive(2, 20)], memory=1 << 14)
    home = tmp_path / "run"
    told = 0
    for _ in range(150):
        resolve(paths, home, memory=1 << 14)
        stages = [*paths, *(path for stage in sorted(home.iterdir()) for path in sorted(stage.iterdir()))]
        path = dice.choice([*paths, *stages])
        whole = path.read_bytes()
        place = dice.randrange(len(whole))
        flipped = whole[:place] + bytes([whole[place] ^ (1 << dice.randrange(8))]) + whole[place + 1 :]
        path.write_bytes(dice.choice([flipped, whole[:place]]))
        for later in stages[stages.index(path) + 1 :]:
            if later not in paths:
                later.unlink()
        try:
            concluded(paths, tmp_path, resolve(paths, home, memory=1 << 14))
        except NearFault as fault:
            told += 1
            assert str(path) in str(fault)
            assert "again" in str(fault)
        path.write_bytes(whole)
    assert told > 20


def test_a_file_is_there_whole_or_not_at_all(tmp_path: Path) -> None:
    def fail(path: Path) -> None:
        with writing(path, "a step") as writer:
            writer.name("numbers", np.arange(9))
            raise OSError("no space left on device")

    with pytest.raises(OSError, match="no space"):
        fail(tmp_path / "file")
    assert not list(tmp_path.iterdir())
    with writing(tmp_path / "file", "a step") as writer:
        writer.name("numbers", np.arange(9).reshape(3, 3))
        place = writer.put(np.arange(5, dtype=np.uint8))
    with Arrays(tmp_path / "file") as file:
        assert file.array("numbers", np.int64).tolist() == list(range(9))
        assert file.array("numbers", np.int64, 2, 3).tolist() == [2, 3, 4]
        assert file.part(place, np.uint8, 5, below=5).tolist() == [0, 1, 2, 3, 4]
        for wrong in (
            partial(file.array, "others", np.int64),
            partial(file.array, "numbers", np.int32),
            partial(file.array, "numbers", np.int64, 8, 3),
            partial(file.part, place, np.uint8, 5, below=4),
            partial(file.part, place, np.uint8, 1 << 50),
        ):
            with pytest.raises(NearFault, match="delete it and run the step again"):
                wrong()
