"""A take-over inherits the committed files, and the replaced process changes nothing if it wakes."""

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
from thresher.crawler.shards import takeover
from thresher.crawler.shards.heartbeat import Superseded
from thresher.crawler.shards.takeover import EpochSnapshots, issue, take_over
from thresher.crawler.storage.crawl_writer import CrawlWriter, LinkScores
from thresher.errors import DataError
from thresher.judge import Judgement
from thresher.records import Candidate, ReadResult, Reply, Verdict
from thresher.store.corpus_files import CorpusFiles
from thresher.store.shard_layout import Shard, home

pytestmark = pytest.mark.slow

CONFIG = parse(
    {"language": "cs", "shards": {"count": 2}, "store": {"segment_bytes": 2_000, "warc_bytes": 2_000}}
)
SHARD = Shard(0, 2)


class RecordingShard:
    """A shard that writes pages down, and nothing else."""

    def __init__(self, directory: Path, folder: Path) -> None:
        self.directory = directory
        self.folder = folder
        self.writer = CrawlWriter(folder, CONFIG, lambda: 1e9, SHARD)

    def write(self, name: str) -> None:
        url = f"http://a.cz/{name}"
        page = ReadResult(
            url,
            "html",
            text=f"Text {name}",
            text_hash=name.encode().ljust(16),
            raw_hash=name.encode().rjust(16),
        )
        reply = Reply(url, 200, b"HTTP/1.1 200 OK\r\n", name.encode() * 50, 1e9, 0.0, "")
        self.writer.record_page(
            Candidate(url), reply, Judgement(Verdict(True, "", "cs", 1.0, 9), page), 9, LinkScores((), ())
        )

    def commit(self) -> None:
        self.writer.commit({})

    def close(self) -> None:
        self.writer.close()


def names(directory: Path, config: Config = CONFIG) -> list[str]:
    """Return the pages that readers find, all of them with their raw records."""
    corpus = CorpusFiles(directory, config)
    found = list(corpus)
    for document in found:
        assert corpus.raw(document).body == document.url.rpartition("/")[2].encode() * 50
    assert sorted(document.url for document in found) == sorted(corpus.outcomes()["url"].to_pylist())
    return [document.url.rpartition("/")[2] for document in found]


def begun(directory: Path, epoch: int = 1) -> RecordingShard:
    return RecordingShard(directory, take_over(home(directory, 0), epoch))


def test_epochs_are_numbered_once(tmp_path: Path) -> None:
    assert [issue(tmp_path) for _ in range(3)] == [1, 2, 3]
    (tmp_path / "e000007").mkdir()
    assert issue(tmp_path) == 8


def test_a_new_epoch_has_the_committed_files_and_no_more(tmp_path: Path) -> None:
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


def test_a_replaced_process_that_wakes_changes_nothing(tmp_path: Path) -> None:
    first = begun(tmp_path)
    first.write("a")
    first.commit()
    first.write("not committed")
    second = begun(tmp_path, 2)
    second.write("b")
    second.commit()
    with pytest.raises((OSError, DataError)):
        for number in range(60):  # until it needs a new file in a directory that is gone
            first.write(f"woken{number}")
            first.commit()
    assert names(tmp_path) == ["a", "b"]
    second.write("c")
    second.commit()
    assert names(tmp_path) == ["a", "b", "c"]
    second.close()
    first.close()


def test_an_older_epoch_cannot_take_over(tmp_path: Path) -> None:
    begun(tmp_path, 3).close()
    with pytest.raises(Superseded, match="taken over by e000003"):
        take_over(home(tmp_path, 0), 2)


STEPS = (*range(9), *range(9, 100, 7))  # at first the state is copied, where each file counts


def at_step(step: int, act: Callable[[], object], monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Let something happen before the file of that number is copied or linked; return whether it did."""
    left, happened = count(step, -1), []

    def watched(real: Callable[..., Any]) -> Callable[..., Any]:
        def done(*arguments: Any, **more: Any) -> Any:
            if next(left) == 0:
                happened.append(step)
                act()
            return real(*arguments, **more)

        return done

    for module, name in [(os, "link"), (shutil, "copyfile"), (takeover, "append")]:
        monkeypatch.setattr(module, name, watched(getattr(module, name)))
    return happened


def test_a_process_presumed_dead_may_publish_at_any_moment_of_a_take_over(tmp_path: Path) -> None:
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


def test_an_epoch_without_a_state_does_not_hinder_the_next(tmp_path: Path) -> None:
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
def test_pages_committed_before_a_take_over_exist_once_whichever_process_wakes(
    moves: list[str],
) -> None:
    with TemporaryDirectory() as place:
        directory = Path(place)
        number = count()
        at_work = begun(directory)
        zombies: list[RecordingShard] = []
        committed: list[str] = []
        pending: list[str] = []
        for epoch, move in enumerate([*moves, "take over"], 2):
            match move:
                case "write":
                    pending.append(f"p{next(number)}")
                    at_work.write(pending[-1])
                case "commit" | "seal":
                    if move == "seal":
                        at_work.writer.seal()
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
                        except (OSError, DataError):
                            zombie.close()
                            zombies.remove(zombie)
            assert names(directory) == committed
        for shard in (*zombies, at_work):
            shard.close()


class Killed(BaseException):
    """The process ends here."""


def dying(after: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Allow a number of changes of the disk, and kill the process at the next one."""
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
        (takeover, "append"),
        (takeover, "replace"),
        (os, "fsync"),
    ]:
        monkeypatch.setattr(module, name, or_die(getattr(module, name)))
    for name in ("rename", "mkdir"):
        monkeypatch.setattr(Path, name, or_die(getattr(Path, name)))


def test_a_process_killed_during_a_take_over_changes_nothing(tmp_path: Path) -> None:
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


def work(directory: Path, scratch: Path, epoch: int) -> tuple[RecordingShard, EpochSnapshots]:
    folder = take_over(home(directory, 0), epoch, scratch)
    return RecordingShard(directory, folder), EpochSnapshots(folder, home(directory, 0), epoch)


def test_the_last_complete_snapshot_counts(tmp_path: Path) -> None:
    directory, scratch = tmp_path / "corpus", tmp_path / "scratch"
    shard, snapshots = work(directory, scratch, 1)
    expected: list[str] = []
    for number in range(40):
        shard.write(f"p{number}")
        shard.commit()
        if number % 7 == 3:
            copy = snapshots.take(shard.writer.kv)
            shard.write("meanwhile")
            shard.writer.seal()  # segments may be sealed and deleted while they are copied
            shard.commit()
            copy()
            expected = [*(f"p{n}" for n in range(number + 1)), *["meanwhile"] * (number // 7)]
            assert sorted(names(directory)) == sorted(expected)
    shard.close()
    shutil.rmtree(scratch)  # the machine is gone
    again, snapshots = work(directory, scratch, 2)
    again.write("after")
    again.commit()
    assert sorted(names(directory)) == sorted(expected), "until it is copied"
    snapshots.take(again.writer.kv)()
    assert sorted(names(directory)) == sorted([*expected, "after"])
    again.close()


def test_a_snapshot_that_ends_during_a_take_over_does_not_harm_it(tmp_path: Path) -> None:
    steps = 0
    for step in STEPS:
        directory = tmp_path / str(step)
        shard, snapshots = work(directory, directory / "one", 1)
        for number in range(12):
            shard.write(f"p{number}")
            shard.commit()
        snapshots.take(shard.writer.kv)()
        shard.write("late")
        shard.commit()
        late = snapshots.take(shard.writer.kv)
        with pytest.MonkeyPatch.context() as patch:
            happened = at_step(step, late, patch)
            new, copies = work(directory, directory / "other", 2)
        copies.take(new.writer.kv)()
        expected = [f"p{number}" for number in range(12)] + ["late"] * len(happened)
        assert names(directory) in (expected, expected[:12]), f"step {step}"
        for each in (new, shard):
            each.close()
        steps += len(happened)
        if not happened:
            break
    assert 8 < steps < len(STEPS)


def test_a_replaced_process_takes_no_more_snapshots(tmp_path: Path) -> None:
    directory = tmp_path / "corpus"
    old, late = work(directory, tmp_path / "one", 1)
    old.write("a")
    old.commit()
    late.take(old.writer.kv)()
    new, snapshots = work(directory, tmp_path / "other", 2)
    new.write("b")
    new.commit()
    snapshots.take(new.writer.kv)()
    old.write("woken")
    old.commit()
    with pytest.raises(Superseded, match="taken over by e000002"):
        late.take(old.writer.kv)()
    assert names(directory) == ["a", "b"]
    old.close()
    new.close()


def test_a_process_killed_during_a_snapshot_leaves_the_last_or_the_new_one(tmp_path: Path) -> None:
    directory, scratch = tmp_path / "corpus", tmp_path / "scratch"
    shard, snapshots = work(directory, scratch, 1)
    for number in range(12):
        shard.write(f"p{number}")
        shard.commit()
    snapshots.take(shard.writer.kv)()
    before = [f"p{number}" for number in range(12)]
    died = 0
    for after in range(0, 75, 3):
        shard.write(f"q{after}")
        shard.commit()
        copy = snapshots.take(shard.writer.kv)
        now = [
            document.url.rpartition("/")[2]
            for document in CorpusFiles(shard.folder, parse({"language": "cs"}))
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
    shard.close()
