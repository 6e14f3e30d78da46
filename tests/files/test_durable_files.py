"""Append-only files: durable in whole portions, cut back to the committed length."""

import errno
import os
import re
import resource
import shutil
import signal
import tempfile
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from thresher.errors import DataError
from thresher.files import durable_files
from thresher.files.durable_files import (
    AppendFile,
    Replacement,
    adopt,
    numbered,
    publish_directory,
    replace,
    replacing,
)

NAMING = re.compile(r"part-(\d{5,})\.(log|tmp)")


class Disk:
    """A replacement of os.pwrite and os.fsync with room for so many bytes, and then a full disk."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.room: int | None = None
        self.sync_fails = False
        self._pwrite, self._fsync = os.pwrite, os.fsync
        monkeypatch.setattr(durable_files.os, "pwrite", self.pwrite)
        monkeypatch.setattr(durable_files.os, "fsync", self.fsync)

    def pwrite(self, descriptor: int, data: memoryview, offset: int) -> int:
        if self.room is None:
            return self._pwrite(descriptor, data, offset)
        if self.room == 0:
            raise OSError(errno.ENOSPC, "No space left on device")
        written = self._pwrite(descriptor, data[: self.room], offset)
        self.room -= written
        return written

    def fsync(self, descriptor: int) -> None:
        if self.sync_fails:
            raise OSError(errno.EIO, "Input/output error")
        self._fsync(descriptor)


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Disk:
    return Disk(monkeypatch)


def test_a_replaced_file_is_synced_before_it_gets_its_name_and_its_name_after(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    events: list[tuple[str, str]] = []
    fsync, rename = os.fsync, os.replace

    def traced_fsync(descriptor: int) -> None:
        fsync(descriptor)
        events.append(("sync", Path(f"/proc/self/fd/{descriptor}").readlink().name))

    def traced_replace(source: Path, target: Path) -> None:
        rename(source, target)
        events.append(("rename", Path(target).name))

    monkeypatch.setattr(os, "fsync", traced_fsync)
    monkeypatch.setattr(os, "replace", traced_replace)
    replace(tmp_path / "a", b"new")
    (temporary, _) = (name for kind, name in events if kind == "sync")
    assert re.fullmatch(r"a\.[0-9a-f]{16}\.tmp", temporary)
    assert events == [("sync", temporary), ("rename", "a"), ("sync", tmp_path.name)]


def test_a_replacement_overwrites_no_file_of_the_user_and_follows_no_link(tmp_path: Path):
    (tmp_path / "victim").write_bytes(b"precious")
    (tmp_path / "a.tmp").symlink_to(tmp_path / "victim")
    replace(tmp_path / "a", b"new")
    assert (tmp_path / "victim").read_bytes() == b"precious"
    assert (tmp_path / "a.tmp").is_symlink()


def test_two_replacements_of_a_file_do_not_mix(tmp_path: Path):
    first, second = Replacement(tmp_path / "a"), Replacement(tmp_path / "a")
    first.file.write(b"first")
    second.file.write(b"second")
    second.commit()
    first.commit()
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("a", b"first")]


def test_a_replacement_has_the_mode_that_the_umask_leaves(tmp_path: Path):
    before = os.umask(0o027)
    try:
        replace(tmp_path / "a", b"new")
    finally:
        os.umask(before)
    assert (tmp_path / "a").stat().st_mode & 0o777 == 0o640


def test_leftovers_of_killed_writers_of_a_file_are_deleted_and_nothing_else(tmp_path: Path):
    kept = ["a.0123456789abcdef.tmp.txt", "a.notes.tmp", "a.tmp", "b.0123456789abcdef.tmp"]
    for name in ["a.0123456789abcdef.tmp", *kept]:
        (tmp_path / name).write_bytes(b"half")
    replace(tmp_path / "a", b"new")
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(["a", *kept])


def test_a_process_that_ends_on_the_spot_deletes_its_unfinished_files(tmp_path: Path):
    replacement = Replacement(tmp_path / "a")
    durable_files.discard_unfinished()
    assert list(tmp_path.iterdir()) == []
    replacement.discard()


def test_a_full_disk_is_named_by_the_file(tmp_path: Path):
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limit[1]))
    try:
        with pytest.raises(OSError, match="File too large") as replaced:
            replace(tmp_path / "a", b"x" * 100_000)
        file = AppendFile(tmp_path / "b", 0)
        file.append(b"x" * 100_000)
        with pytest.raises(OSError, match="File too large") as appended:
            file.flush()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
        signal.signal(signal.SIGXFSZ, before)
    assert (replaced.value.filename, appended.value.filename) == (str(tmp_path / "a"), str(tmp_path / "b"))


def test_a_replacement_that_fails_leaves_the_file_as_it_was(tmp_path: Path, disk: Disk):
    (tmp_path / "a").write_bytes(b"old")
    with pytest.raises(ValueError, match="half"), replacing(tmp_path / "a") as out:
        out.write(b"half of the new")
        raise ValueError("half")
    disk.sync_fails = True
    with pytest.raises(OSError, match="Input/output"):
        replace(tmp_path / "a", b"new")
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("a", b"old")]


def test_output_to_a_pipe_is_written_to_the_pipe(tmp_path: Path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        replace(pipe, b"data")
        assert os.read(reader, 10) == b"data"
    finally:
        os.close(reader)
    assert pipe.is_fifo()


def test_data_stand_at_the_offset_that_append_returned(tmp_path: Path):
    file = AppendFile(tmp_path / "a", 0)
    assert [file.append(b"one"), file.append(b""), file.append(b"three")] == [0, 3, 3]
    file.flush()
    assert file.append(b"!") == 8
    file.flush()
    assert (tmp_path / "a").read_bytes() == b"onethree!"


def test_nothing_is_in_the_file_before_it_is_flushed(tmp_path: Path):
    file = AppendFile(tmp_path / "a", 0)
    file.append(b"pending")
    assert not (tmp_path / "a").exists()
    assert (file.length, file.end) == (0, 7)
    file.flush()
    assert (file.length, file.end) == (7, 7)


def test_a_closed_file_drops_data_that_were_not_flushed(tmp_path: Path):
    file = AppendFile(tmp_path / "a", 0)
    file.append(b"kept")
    file.flush()
    file.append(b"lost")
    file.close()
    assert (tmp_path / "a").read_bytes() == b"kept"
    assert file.end == 4


@pytest.mark.parametrize("extra", range(8))
def test_a_record_cut_off_in_the_middle_is_removed_on_opening(tmp_path: Path, extra: int):
    path = tmp_path / "a"
    path.write_bytes(b"committed" + b"unknown"[:extra])
    file = AppendFile(path, 9)
    assert path.read_bytes() == b"committed"
    file.append(b" more")
    file.flush()
    assert path.read_bytes() == b"committed more"


def test_a_file_that_lost_committed_bytes_is_refused_by_name(tmp_path: Path):
    (tmp_path / "a").write_bytes(b"1234")
    with pytest.raises(DataError, match=r"a has 4 bytes, but 5 had been committed"):
        AppendFile(tmp_path / "a", 5)


def test_a_symbolic_link_is_never_written_through(tmp_path: Path):
    (tmp_path / "elsewhere").write_bytes(b"precious")
    (tmp_path / "a").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError, match="symbolic link"):
        AppendFile(tmp_path / "a", 0)
    assert (tmp_path / "elsewhere").read_bytes() == b"precious"


@pytest.mark.parametrize("room", range(9))
def test_a_full_disk_leaves_the_file_as_it_was_and_the_data_pending(tmp_path: Path, disk: Disk, room: int):
    file = AppendFile(tmp_path / "a", 0)
    file.append(b"before")
    file.flush()
    file.append(b"12345")
    file.append(b"6789")
    disk.room = room
    with pytest.raises(OSError, match="No space left"):
        file.flush()
    assert (tmp_path / "a").read_bytes() == b"before"
    assert file.length == 6
    disk.room = None
    file.append(b"!")
    file.flush()
    assert (tmp_path / "a").read_bytes() == b"before123456789!"


def test_bytes_that_a_failed_sync_may_have_lost_are_written_again(tmp_path: Path, disk: Disk):
    file = AppendFile(tmp_path / "a", 0)
    file.append(b"data")
    disk.sync_fails = True
    with pytest.raises(OSError, match="Input/output"):
        file.flush()
    # The kernel may drop unsynced pages, so the next flush must not build on any of them.
    (tmp_path / "a").write_bytes(b"")
    disk.sync_fails = False
    file.flush()
    assert (tmp_path / "a").read_bytes() == b"data"


def test_the_size_limit_of_a_real_kernel_is_survived(tmp_path: Path):
    file = AppendFile(tmp_path / "a", 0)
    file.append(b"x" * 10_000)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4_096, hard))
    try:
        with pytest.raises(OSError, match="File too large"):
            file.flush()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert (tmp_path / "a").stat().st_size == 0
    file.flush()
    assert (tmp_path / "a").read_bytes() == b"x" * 10_000


def test_the_name_of_a_new_file_is_durable_after_its_first_flush(tmp_path: Path, monkeypatch):
    synced = []
    monkeypatch.setattr(durable_files, "sync_directory", synced.append)
    file = AppendFile(tmp_path / "a", 0)
    for portion in (b"first", b"second"):
        file.append(portion)
        file.flush()
    assert synced == [tmp_path]


def test_a_published_directory_has_its_name_and_all_names_in_it_are_durable(tmp_path: Path, monkeypatch):
    synced = []
    monkeypatch.setattr(durable_files, "sync_directory", synced.append)
    built = tmp_path / "e1.tmp"
    (built / "docs" / "cs").mkdir(parents=True)
    publish_directory(built, tmp_path / "e1")
    assert not built.exists()
    assert (tmp_path / "e1" / "docs" / "cs").is_dir()
    assert synced == [built / "docs" / "cs", built / "docs", built, tmp_path]


def test_a_directory_is_not_published_in_place_of_another(tmp_path: Path):
    (tmp_path / "new").mkdir()
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / "file").touch()
    with pytest.raises(OSError, match="not empty"):
        publish_directory(tmp_path / "new", tmp_path / "old")
    assert (tmp_path / "new").is_dir()
    assert (tmp_path / "old" / "file").exists()


def test_files_that_no_commit_knows_are_deleted_and_nothing_else(tmp_path: Path):
    for name in (
        "part-00001.log",
        "part-00002.log",
        "part-00002.tmp",
        "part-2.log",
        "notes.txt",
        "xpart-00003.log",
    ):
        (tmp_path / name).write_bytes(b"x")
    (tmp_path / "part-00004.log").symlink_to(tmp_path / "notes.txt")
    (tmp_path / "part-00005.log").mkdir()
    adopt(tmp_path, {"part-00001.log": 1}, NAMING)
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "notes.txt",
        "part-00001.log",
        "part-00004.log",
        "part-00005.log",
        "part-2.log",
        "xpart-00003.log",
    ]


def test_a_directory_that_is_not_there_is_made(tmp_path: Path):
    adopt(tmp_path / "corpus" / "docs", {}, NAMING)
    assert (tmp_path / "corpus" / "docs").is_dir()


def test_a_committed_file_that_is_missing_is_named(tmp_path: Path):
    with pytest.raises(DataError, match=r"part-00001\.log is missing, though 7 bytes"):
        adopt(tmp_path, {"part-00001.log": 7}, NAMING)


def test_files_come_in_the_order_of_their_numbers():
    committed = {"part-100000.log": 1, "part-99999.log": None, "part-00002.log": 2}
    assert numbered(committed, NAMING) == [(2, 2), (99_999, None), (100_000, 1)]


def test_a_committed_name_that_is_not_ours_is_refused():
    with pytest.raises(DataError, match=r"passwd was committed"):
        numbered({"../etc/passwd": 1}, NAMING)


class AppendFileLife(RuleBasedStateMachine):
    """After any sequence of operations the file holds the committed data, followed by flushed ones."""

    def __init__(self) -> None:
        super().__init__()
        self.directory = Path(tempfile.mkdtemp())
        self.path = self.directory / "a"
        self.file = AppendFile(self.path, 0)
        self.committed = self.durable = self.pending = b""
        self.monkeypatch = pytest.MonkeyPatch()
        self.disk = Disk(self.monkeypatch)

    @rule(data=st.binary(max_size=20))
    def append(self, data: bytes) -> None:
        assert self.file.append(data) == len(self.durable) + len(self.pending)
        self.pending += data

    @rule()
    def flush(self) -> None:
        self.file.flush()
        self.durable, self.pending = self.durable + self.pending, b""

    @rule()
    def flush_and_commit(self) -> None:
        self.flush()
        self.committed = self.durable

    @rule(room=st.integers(0, 30))
    def flush_onto_a_disk_that_fills_up(self, room: int) -> None:
        self.disk.room = room
        try:
            self.flush()
        except OSError as error:
            assert error.errno == errno.ENOSPC
        self.disk.room = None

    @rule(torn=st.binary(max_size=5))
    def crash(self, torn: bytes) -> None:
        self.file.close()
        if self.durable:
            with self.path.open("ab") as file:
                file.write(torn)
        if not self.committed:
            self.path.unlink(missing_ok=True)
        self.file = AppendFile(self.path, len(self.committed))
        self.durable, self.pending = self.committed, b""

    @invariant()
    def the_file_is_what_is_durable(self) -> None:
        assert self.file.length == len(self.durable)
        assert (self.path.read_bytes() if self.path.exists() else b"") == self.durable

    def teardown(self) -> None:
        self.file.close()
        self.monkeypatch.undo()
        shutil.rmtree(self.directory)


TestAppendFileLife = AppendFileLife.TestCase
TestAppendFileLife.settings = settings(max_examples=40, stateful_step_count=30)
