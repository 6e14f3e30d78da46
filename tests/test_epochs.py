"""A shard that takes over has what its forerunner had committed, and that one, if it wakes, changes nothing."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from thresher.config import Config, parse
from thresher.crawl.ledger import Ledger
from thresher.crawl.shards import epochs
from thresher.crawl.shards.epochs import Snapshots, issue, take_over
from thresher.crawl.shards.lease import Superseded
from thresher.page import Candidate, Page, Reply, Verdict
from thresher.store.corpus import Corpus
from thresher.store.files import StoreError
from thresher.store.shards import Shard, home

CONFIG = parse(
    {"language": "cs", "shards": {"count": 2}, "store": {"segment_bytes": 2_000, "warc_bytes": 2_000}}
)
SHARD = Shard(0, 2)


class Books:
    """A shard that writes pages down, and nothing else."""

    def __init__(self, directory: Path, folder: Path) -> None:
        self.directory = directory
        self.folder = folder
        self.ledger = Ledger(folder, CONFIG, lambda: 1e9, SHARD)

    def write(self, name: str) -> None:
        url = f"http://a.cz/{name}"
        page = Page(
            url,
            "html",
            text=f"Text {name}",
            text_hash=name.encode().ljust(16),
            raw_hash=name.encode().rjust(16),
        )
        reply = Reply(url, 200, b"HTTP/1.1 200 OK\r\n", name.encode() * 50, 1e9, 0.0, "")
        self.ledger.record_page(Candidate(url), reply, page, Verdict(True, "", "cs", 1.0, 9), 9, (), ())

    def commit(self) -> None:
        self.ledger.commit({})

    def close(self) -> None:
        self.ledger.close()


def names(directory: Path, config: Config = CONFIG) -> list[str]:
    """The pages that readers find, all of them with their raw records."""
    corpus = Corpus(directory, config)
    found = list(corpus)
    for document in found:
        assert corpus.raw(document).body == document.url.rpartition("/")[2].encode() * 50
    assert sorted(document.url for document in found) == sorted(corpus.outcomes()["url"].to_pylist())
    return [document.url.rpartition("/")[2] for document in found]


def begun(directory: Path, epoch: int = 1) -> Books:
    return Books(directory, take_over(home(directory, 0), epoch))


def test_epochs_are_numbered_once(tmp_path: Path) -> None:
    assert [issue(tmp_path) for _ in range(3)] == [1, 2, 3]
    (tmp_path / "e000007").mkdir()
    assert issue(tmp_path) == 8


def test_who_takes_over_has_what_was_committed_and_no_more(tmp_path: Path) -> None:
    first = begun(tmp_path)
    for number in range(30):  # several files of each kind, some of them sealed
        first.write(f"p{number}")
        if number % 3 == 0:
            first.commit()
    second = begun(tmp_path, 2)
    assert names(tmp_path) == [f"p{number}" for number in range(28)]
    second.write("next")
    second.commit()
    assert names(tmp_path) == [*(f"p{number}" for number in range(28)), "next"]
    second.close()
    first.close()


def test_one_that_was_replaced_and_wakes_changes_nothing(tmp_path: Path) -> None:
    first = begun(tmp_path)
    first.write("a")
    first.commit()
    first.write("not committed")
    second = begun(tmp_path, 2)
    second.write("b")
    second.commit()
    with pytest.raises((OSError, StoreError)):
        for number in range(60):  # until it needs a new file, whose folder is gone
            first.write(f"woken{number}")
            first.commit()
    assert names(tmp_path) == ["a", "b"]
    second.write("c")
    second.commit()
    assert names(tmp_path) == ["a", "b", "c"]
    second.close()
    first.close()


def test_one_that_comes_too_late_to_take_over_does_not(tmp_path: Path) -> None:
    begun(tmp_path, 3).close()
    with pytest.raises(Superseded, match="taken over by e000003"):
        take_over(home(tmp_path, 0), 2)


STEPS = (*range(9), *range(9, 100, 7))  # at first the state is copied, where each file counts


def at_step(step: int, act: Callable[[], object], monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Something happens before a file is copied or linked, the one of that number; the answer tells if it did."""
    left, happened = count(step, -1), []

    def watched(real: Callable[..., Any]) -> Callable[..., Any]:
        def done(*arguments: Any, **more: Any) -> Any:
            if next(left) == 0:
                happened.append(step)
                act()
            return real(*arguments, **more)

        return done

    for module, name in [(os, "link"), (shutil, "copyfile"), (epochs, "append")]:
        monkeypatch.setattr(module, name, watched(getattr(module, name)))
    return happened


def test_another_who_was_thought_dead_may_take_over_at_any_moment_of_ours(tmp_path: Path) -> None:
    steps = 0
    for step in STEPS:
        directory = tmp_path / str(step)
        first = begun(directory)
        for number in range(12):
            first.write(f"p{number}")
            first.commit()
        first.close()
        with pytest.MonkeyPatch.context() as patch:
            happened = at_step(step, lambda: take_over(home(directory, 0), 2), patch)  # noqa: B023 - called here
            begun(directory, 3).close()
        assert names(directory) == [f"p{number}" for number in range(12)], f"step {step}"
        steps += len(happened)
        if not happened:
            break
    assert 8 < steps < len(STEPS)


def test_one_who_died_before_it_had_a_state_leaves_nothing_and_is_no_hindrance(tmp_path: Path) -> None:
    take_over(home(tmp_path, 0), 1)
    half = take_over(home(tmp_path, 0), 2)
    (half / "state").mkdir()
    (half / "state" / "MANIFEST-000001").touch()
    third = begun(tmp_path, 3)
    third.write("a")
    third.commit()
    third.close()
    assert names(tmp_path) == ["a"]


def test_disks_without_links_take_copies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.EXDEV, "no links here")

    monkeypatch.setattr(os, "link", refuse)
    first = begun(tmp_path)
    for number in range(20):
        first.write(f"p{number}")
        first.commit()
    first.close()
    begun(tmp_path, 2).close()
    assert names(tmp_path) == [f"p{number}" for number in range(20)]


MOVES = st.lists(
    st.sampled_from(["write", "commit", "seal", "take over", "zombie writes", "zombie commits"]), max_size=40
)


@settings(max_examples=15)
@given(MOVES)
def test_whoever_wakes_when_what_was_committed_before_the_last_take_over_is_there_once(
    moves: list[str],
) -> None:
    with TemporaryDirectory() as place:
        directory = Path(place)
        number = count()
        at_work = begun(directory)
        zombies: list[Books] = []
        committed: list[str] = []
        pending: list[str] = []
        for epoch, move in enumerate([*moves, "take over"], 2):
            match move:
                case "write":
                    pending.append(f"p{next(number)}")
                    at_work.write(pending[-1])
                case "commit" | "seal":
                    if move == "seal":
                        at_work.ledger.seal()
                    at_work.commit()
                    committed, pending = committed + pending, []
                case "take over":
                    zombies.append(at_work)
                    at_work, pending = begun(directory, epoch), []
                case "zombie writes":
                    for zombie in zombies:
                        zombie.write(f"z{next(number)}")
                case "zombie commits":
                    for zombie in zombies:
                        try:
                            zombie.commit()
                        except (OSError, StoreError):
                            zombie.close()
                            zombies.remove(zombie)
            assert names(directory) == committed
        for books in (*zombies, at_work):
            books.close()


class Killed(BaseException):
    """The process ends here."""


def dying(after: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The disk is changed so often, and then no more: whoever tries dies."""
    left = count(after, -1)

    def or_die(act: Callable[..., Any]) -> Callable[..., Any]:
        def acted(*arguments: Any, **more: Any) -> Any:
            if next(left) <= 0:
                raise Killed
            return act(*arguments, **more)

        return acted

    for module, name in [
        (os, "link"),
        (shutil, "copyfile"),
        (epochs, "append"),
        (epochs, "publish"),
        (os, "fsync"),
    ]:
        monkeypatch.setattr(module, name, or_die(getattr(module, name)))
    for name in ("rename", "mkdir"):
        monkeypatch.setattr(Path, name, or_die(getattr(Path, name)))


def test_one_that_dies_while_it_takes_over_leaves_everything_as_it_was(tmp_path: Path) -> None:
    first = begun(tmp_path)
    for number in range(12):
        first.write(f"p{number}")
        first.commit()
    first.close()
    died = 0
    for after in range(0, 90, 3):
        with pytest.MonkeyPatch.context() as patch:
            dying(after, patch)
            try:
                take_over(home(tmp_path, 0), 2 + after)
            except Killed:
                died += 1
        assert names(tmp_path) == [f"p{number}" for number in range(12)]
    assert 5 < died < 25, "some lived to see the end"


# copies from a disk of one's own


def work(directory: Path, scratch: Path, epoch: int) -> tuple[Books, Snapshots]:
    folder = take_over(home(directory, 0), epoch, scratch)
    return Books(directory, folder), Snapshots(folder, home(directory, 0), epoch)


def test_what_counts_is_the_last_copy(tmp_path: Path) -> None:
    directory, scratch = tmp_path / "corpus", tmp_path / "scratch"
    books, snapshots = work(directory, scratch, 1)
    expected: list[str] = []
    for number in range(40):
        books.write(f"p{number}")
        books.commit()
        if number % 7 == 3:
            copy = snapshots.take(books.ledger.state)
            books.write("meanwhile")
            books.ledger.seal()  # what is being copied may be sealed and deleted meanwhile
            books.commit()
            copy()
            expected = [*(f"p{n}" for n in range(number + 1)), *["meanwhile"] * (number // 7)]
            assert sorted(names(directory)) == sorted(expected)
    books.close()
    shutil.rmtree(scratch)  # the machine is gone
    again, snapshots = work(directory, scratch, 2)
    again.write("after")
    again.commit()
    assert sorted(names(directory)) == sorted(expected), "until it is copied"
    snapshots.take(again.ledger.state)()
    assert sorted(names(directory)) == sorted([*expected, "after"])
    again.close()


def test_one_that_finishes_a_copy_while_another_takes_over_takes_nothing_from_it(tmp_path: Path) -> None:
    steps = 0
    for step in STEPS:
        directory = tmp_path / str(step)
        books, snapshots = work(directory, directory / "one", 1)
        for number in range(12):
            books.write(f"p{number}")
            books.commit()
        snapshots.take(books.ledger.state)()
        books.write("late")
        books.commit()
        late = snapshots.take(books.ledger.state)
        with pytest.MonkeyPatch.context() as patch:
            happened = at_step(step, late, patch)
            new, copies = work(directory, directory / "other", 2)
        copies.take(new.ledger.state)()
        expected = [f"p{number}" for number in range(12)] + ["late"] * len(happened)
        assert names(directory) in (expected, expected[:12]), f"step {step}"
        for each in (new, books):
            each.close()
        steps += len(happened)
        if not happened:
            break
    assert 8 < steps < len(STEPS)


def test_one_that_was_replaced_copies_nothing_any_more(tmp_path: Path) -> None:
    directory = tmp_path / "corpus"
    old, late = work(directory, tmp_path / "one", 1)
    old.write("a")
    old.commit()
    late.take(old.ledger.state)()
    new, snapshots = work(directory, tmp_path / "other", 2)
    new.write("b")
    new.commit()
    snapshots.take(new.ledger.state)()
    old.write("woken")
    old.commit()
    with pytest.raises(Superseded, match="taken over by e000002"):
        late.take(old.ledger.state)()
    assert names(directory) == ["a", "b"]
    old.close()
    new.close()


def test_one_that_dies_while_it_copies_leaves_the_last_copy_or_the_new_one(tmp_path: Path) -> None:
    directory, scratch = tmp_path / "corpus", tmp_path / "scratch"
    books, snapshots = work(directory, scratch, 1)
    for number in range(12):
        books.write(f"p{number}")
        books.commit()
    snapshots.take(books.ledger.state)()
    before = [f"p{number}" for number in range(12)]
    died = 0
    for after in range(0, 75, 3):
        books.write(f"q{after}")
        books.commit()
        copy = snapshots.take(books.ledger.state)
        now = [
            document.url.rpartition("/")[2] for document in Corpus(books.folder, parse({"language": "cs"}))
        ]
        with pytest.MonkeyPatch.context() as patch:
            dying(after, patch)
            try:
                copy()
            except Killed:
                died += 1
        found = names(directory)
        assert found in (before, now)
        before = found
    assert 5 < died < 25, "some lived to see the end"
    books.close()
