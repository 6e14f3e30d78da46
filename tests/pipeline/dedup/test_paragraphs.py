"""Near duplicates of paragraphs: shards and rounds drop exactly the paragraphs that a plain loop drops."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from thresher.pipeline.artifacts import ArtifactOutput, Task
from thresher.pipeline.dedup.conclude import ParagraphLosses, conclude, dropped, losses
from thresher.pipeline.dedup.files import DedupFileError, DedupReader, number, writing
from thresher.pipeline.dedup.gather import Range, plan
from thresher.pipeline.dedup.paragraphs import drop
from thresher.pipeline.dedup.rounds import begin
from thresher.pipeline.dedup.scatter import scatter
from thresher.pipeline.steps.near import DecidedRound, decisions
from thresher.pipeline.steps.plans import Stages, run_here
from thresher.pipeline.steps.ranges import FILE, as_output
from thresher.reader.quality.shingles import MAX_SHINGLED_CHARS, fates, hash_shingles

Documents = Sequence[Sequence[str]]
Result = TypeVar("Result")
TALES = [f"On day {day} we met {day + 2} hedgehogs under the old oak and fed them well." for day in range(9)]


def slow_drop(documents: Documents, share: float = 0.5) -> list[list[bool]]:
    """Drop paragraphs by definition: one after the other, with a set of all shingles that are kept."""
    seen: set[int] = set()
    dropped = []
    for document in documents:
        found = hash_shingles(document)
        hashes = iter(found.hashes.tolist())
        old = []
        for count in found.counts.tolist():
            runs = [next(hashes) for _ in range(count)]
            old.append(sum(run in seen for run in runs) > share * count)
            if not old[-1]:
                seen.update(runs)
        dropped.append([not stays for stays in fates(found.counts.tolist(), old)])
    return dropped


def scattered(folder: Path, shards: Sequence[Documents], memory: int = 1 << 20) -> list[ArtifactOutput]:
    found = [as_output(folder / f"shard-{place}") for place in range(len(shards))]
    for one, shard in zip(found, shards, strict=True):
        scatter(shard, one.path / FILE, memory=memory)
    return found


def concluded(shards: Sequence[ArtifactOutput], folder: Path, found: DecidedRound) -> list[Path]:
    outputs = [folder / "concluded" / shard.path.name for shard in shards]
    advanced = [one.path / FILE for one in found.advanced]
    for shard, output, state, block in zip(shards, outputs, found.states, found.first_blocks, strict=True):
        conclude(shard.path / FILE, output, state.path / FILE, *advanced, first_block=block)
    return outputs


def watched(
    stages: Stages[Result], look: Callable[[list[Task], list[ArtifactOutput]], None]
) -> Stages[Result]:
    """Stages that call a function when their tasks are done."""
    try:
        tasks = next(stages)
        while True:
            made = yield tasks
            look(tasks, made)
            tasks = stages.send(made)
    except StopIteration as ended:
        found: Result = ended.value
        return found


def repetitive(seed: int, documents: int, letters: str = "abc") -> list[list[str]]:
    """Return documents that have much in common."""
    dice = random.Random(seed)
    return [
        [" ".join(dice.choices(letters, k=dice.randrange(30))) for _ in range(dice.randrange(6))]
        for _ in range(documents)
    ]


def chain(length: int) -> list[list[str]]:
    """Return documents that share half of their words with the one before, and half with the next."""
    parts = [" ".join(f"w{part}x{word}" for word in range(20)) for part in range(length + 1)]
    return [[f"{one} {other}"] for one, other in pairwise(parts)]


# Dropped paragraphs

PARAGRAPHS = st.lists(st.sampled_from(["a", "b", "c", "字"]), max_size=25).map(" ".join)
DOCUMENTS = st.lists(st.lists(PARAGRAPHS, max_size=4), max_size=25)


@pytest.mark.slow
@settings(max_examples=60)
@given(
    documents=DOCUMENTS,
    share=st.sampled_from([0.0, 0.3, 0.5, 0.9, 1.0]),
    memory=st.sampled_from([1 << 12, 20_000, 1 << 20]),
    shard_paragraphs=st.integers(1, 30),
)
def test_the_dropped_paragraphs_match_a_plain_loop_over_a_set(
    documents: list[list[str]], share: float, memory: int, shard_paragraphs: int
) -> None:
    found = list(drop(documents, share=share, memory=memory, shard_paragraphs=shard_paragraphs))
    assert found == slow_drop(documents, share)


@pytest.mark.slow
@pytest.mark.parametrize("letters", ["ab", "abc", "abcdefghijklmnop"])
def test_many_documents_in_many_partitions_and_rounds_are_decided_as_in_order(letters: str) -> None:
    documents = repetitive(3, 300, letters)
    assert list(drop(documents, memory=1 << 12, shard_paragraphs=50)) == slow_drop(documents)


def test_a_chain_in_which_every_decision_hangs_on_the_one_before_takes_few_rounds(tmp_path: Path) -> None:
    documents = chain(400)
    shards = scattered(tmp_path, [documents[:150], documents[150:]], memory=1 << 16)
    functions: list[str] = []
    stages = watched(decisions(shards, 0.4, 1 << 16), lambda tasks, _: functions.append(tasks[0].function))
    found = run_here(stages, tmp_path)
    flags = [gone for path in concluded(shards, tmp_path, found) for gone in dropped(path)]
    assert flags == [[False], [True]] * 200
    assert 1 < functions.count("thresher.pipeline.steps.near:decide") < 60


def test_exactly_half_is_not_more_than_half() -> None:
    words = [f"w{place}" for place in range(40)]
    first, half, more = words[:13], [*words[:10], *"xyzq"], [*words[:11], *"xyz"]
    assert [len(hash_shingles([" ".join(text)]).hashes) for text in (first, half, more)] == [7, 8, 8]
    found = list(drop([[" ".join(first)], [" ".join(half)], [" ".join(more)]]))
    assert found == [[False], [False], [True]]


def test_dropped_paragraphs_do_not_count_as_seen() -> None:
    first, second = ([f"{name}{place}" for place in range(30)] for name in "ab")
    texts = [first, first[:29] + second[:10], [*second[:10], *"zyx"]]
    assert list(drop([[" ".join(text) for text in texts]])) == [[False, True, False]]


def test_a_paragraph_that_repeats_itself_is_not_its_own_copy() -> None:
    assert list(drop([["so on and so forth " * 50], ["so on and so forth " * 50]])) == [[False], [True]]


def test_short_paragraphs_share_the_fate_of_the_next_longer_one() -> None:
    found = list(drop([[TALES[0]], ["Old", TALES[0], "New", TALES[5], "The end"], ["Old"], []]))
    assert found == [[False], [True, True, False, False, False], [False], []]


@settings(max_examples=50)
@given(st.lists(st.lists(st.text(max_size=60), max_size=3), max_size=5))
def test_any_text_is_accepted(documents: list[list[str]]) -> None:
    assert list(map(len, drop(documents))) == list(map(len, documents))


def test_a_paragraph_as_long_as_a_book_counts_with_its_beginning() -> None:
    book = " ".join(f"w{place}" for place in range(60_000))
    assert len(book) > MAX_SHINGLED_CHARS
    assert list(drop([[book, "more " * 9, book + " and an end of its own"]])) == [[False, False, True]]


def test_documents_that_fail_leave_nothing_behind(tmp_path: Path) -> None:
    def torn() -> Iterator[list[str]]:
        yield TALES
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        list(drop(torn(), folder=tmp_path))
    list(drop([TALES], folder=tmp_path))
    assert not list(tmp_path.iterdir())


# Execution


def test_the_files_of_every_stage_are_the_same_bytes_however_often_they_are_made(tmp_path: Path) -> None:
    documents = repetitive(5, 120)
    parts = [documents[:50], documents[50:60], [], documents[60:]]
    made: list[list[tuple[str, list[bytes]]]] = []
    for name in ("one", "two"):
        shards = scattered(tmp_path / name, parts, memory=1 << 13)
        stages: list[tuple[str, list[bytes]]] = []

        def look(tasks: list[Task], outputs: list[ArtifactOutput], stages: list[Any] = stages) -> None:
            stages.append((tasks[0].function, [(one.path / FILE).read_bytes() for one in outputs]))

        run_here(watched(decisions(shards, 0.5, 1 << 13), look), tmp_path / name)
        made.append(stages)
    assert made[0] == made[1]
    gathered = dict(made[0])["thresher.pipeline.steps.ranges:gather"]
    assert len(gathered) > 4


@settings(max_examples=30)
@given(seed=st.integers(0, 99), memory=st.integers(1 << 12, 1 << 17))
def test_ranges_of_hashes_leave_none_out_and_none_overlap(
    tmp_path_factory: pytest.TempPathFactory, seed: int, memory: int
) -> None:
    (shard,) = scattered(tmp_path_factory.mktemp("plan"), [repetitive(seed, 20, "abcdefgh")])
    ranges = plan([shard.path / FILE], memory)
    assert (ranges[0].low, ranges[-1].last) == (0, (1 << 64) - 1)
    assert all(one.last + 1 == other.low for one, other in pairwise(ranges))
    assert plan([], memory) == [Range(0, (1 << 64) - 1)]


def test_losses_of_a_shard_are_counted(tmp_path: Path) -> None:
    shards = [[[TALES[0], "Short"], [TALES[5]]], [[TALES[0]], [TALES[5], "New words " * 9], ["Too short"]]]
    runs = scattered(tmp_path, shards)
    found = run_here(decisions(runs, 0.5, 1 << 20), tmp_path)
    outputs = concluded(runs, tmp_path, found)
    assert [losses(path) for path in outputs] == [
        ParagraphLosses(documents=2, emptied=0, paragraphs=3, dropped=0, words=31, dropped_words=0),
        ParagraphLosses(documents=3, emptied=1, paragraphs=4, dropped=2, words=50, dropped_words=30),
    ]


def test_settings_out_of_range_are_refused_with_the_fix(tmp_path: Path) -> None:
    with pytest.raises(
        DedupFileError, match="memory must be at least 4096 bytes, got 12; try memory = 1073741824"
    ):
        list(drop([TALES], memory=12))
    with pytest.raises(DedupFileError, match=r"share must be between 0 and 1, got 1\.5; try share = 0\.5"):
        list(drop([TALES], share=1.5))
    (shard,) = scattered(tmp_path, [[TALES]])
    begin(shard.path / FILE, tmp_path / "state")
    with pytest.raises(DedupFileError, match=r"not all paragraphs of .* are decided"):
        conclude(shard.path / FILE, tmp_path / "out", tmp_path / "state")
    with pytest.raises(DedupFileError, match="has no number named undecided"):
        number(shard.path / FILE, "undecided")


def test_a_damaged_file_is_reported_or_has_no_worse_effect_than_other_text(tmp_path: Path) -> None:
    dice = random.Random(4)
    shards = scattered(tmp_path / "whole", [repetitive(1, 20), repetitive(2, 20)], memory=1 << 14)
    stages: list[int] = []
    run_here(watched(decisions(shards, 0.5, 1 << 14), lambda _, made: stages.append(len(made))), tmp_path)
    reported = 0
    for turn in range(100):
        home = tmp_path / str(turn)
        shards = scattered(home, [repetitive(1, 20), repetitive(2, 20)], memory=1 << 14)
        damage = _Damage(dice, dice.randrange(-1, len(stages)))
        damage.look([], shards)
        try:
            found = run_here(watched(decisions(shards, 0.5, 1 << 14), damage.look), home)
            concluded(shards, home, found)
        except DedupFileError as fault:
            reported += 1
            assert str(damage.path) in str(fault)
            assert "again" in str(fault)
    assert reported > 20


class _Damage:
    """A flipped bit in a file of a stage, or a cut; stage -1 stands for the inputs of the first stage."""

    def __init__(self, dice: random.Random, stage: int) -> None:
        self._dice, self._left = dice, stage + 1
        self.path = Path()

    def look(self, _: Sequence[Task], outputs: Sequence[ArtifactOutput]) -> None:
        if self._left == 0:
            self.path = self._dice.choice(outputs).path / FILE
            whole = self.path.read_bytes()
            place = self._dice.randrange(len(whole))
            flipped = bytes([whole[place] ^ (1 << self._dice.randrange(8))])
            self.path.write_bytes(
                self._dice.choice([whole[:place] + flipped + whole[place + 1 :], whole[:place]])
            )
        self._left -= 1


def test_a_file_exists_whole_or_not_at_all(tmp_path: Path) -> None:
    def fail(path: Path) -> None:
        with writing(path) as writer:
            writer.put_named("numbers", np.arange(9))
            raise OSError("no space left on device")

    with pytest.raises(OSError, match="no space"):
        fail(tmp_path / "file")
    assert not list(tmp_path.iterdir())
    with writing(tmp_path / "file") as writer:
        writer.put_named("numbers", np.arange(9).reshape(3, 3))
        place = writer.put(np.arange(5, dtype=np.uint8))
    with DedupReader(tmp_path / "file") as file:
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
            with pytest.raises(DedupFileError, match="delete it and run the step again"):
                wrong()
