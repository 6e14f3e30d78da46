"""The state: read-your-writes, and all or nothing."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Struct

from thresher.crawler.storage.kv_state import KeyValueState, StateTable


class Count(Struct, array_like=True):
    number: int = 0


def test_pending_changes_are_read_at_once_and_durable_only_after_a_commit(tmp_path: Path) -> None:
    state = KeyValueState(tmp_path)
    state.put(b"a", b"1")
    state.commit()
    state.put(b"a", b"2")
    state.put(b"b", b"3")
    assert (state.get(b"a"), state.get(b"b")) == (b"2", b"3")
    state.close()

    again = KeyValueState(tmp_path)
    assert (again.get(b"a"), again.get(b"b")) == (b"1", None)
    again.close()


@pytest.mark.slow
@settings(max_examples=25)
@given(
    changes=st.lists(
        st.tuples(
            st.sampled_from([b"pa", b"pb", b"pc", b"x"]),
            st.one_of(st.none(), st.binary(max_size=3)),
            st.booleans(),
        ),
        max_size=20,
    )
)
def test_the_state_behaves_like_a_dictionary(
    tmp_path_factory: pytest.TempPathFactory, changes: list[tuple[bytes, bytes | None, bool]]
) -> None:
    state = KeyValueState(tmp_path_factory.mktemp("state"))
    model: dict[bytes, bytes] = {}
    for key, value, commit in changes:
        if value is None:
            state.delete(key)
            model.pop(key, None)
        else:
            state.put(key, value)
            model[key] = value
        if commit:
            state.commit()
        assert {key: state.get(key) for key in model} == model
        assert dict(state.scan(b"p")) == {key: value for key, value in model.items() if key.startswith(b"p")}
    state.close()


def test_a_commit_that_fails_leaves_everything_pending(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = KeyValueState(tmp_path)
    state.put(b"a", b"1")
    working = state._db

    class FullDisk:
        def get(self, key: bytes) -> None:
            return None

        def write(self, *_: object) -> None:
            raise RuntimeError("IO error: No space left on device: while appending to file")

    monkeypatch.setattr(state, "_db", FullDisk())
    with pytest.raises(OSError, match="No space left") as caught:
        state.commit()
    assert caught.value.errno == errno.ENOSPC
    monkeypatch.setattr(state, "_db", working)
    assert state.get(b"a") == b"1"
    state.commit()
    state.close()
    again = KeyValueState(tmp_path)
    assert again.get(b"a") == b"1"
    again.close()


def test_a_scan_finds_every_key_of_its_prefix_and_no_other(tmp_path: Path) -> None:
    state = KeyValueState(tmp_path)
    for prefix in (b"o", b"p/", b"q"):
        for number in range(500):
            state.put(prefix + b"%04d" % number, b"x" * 50)
    state.commit()
    assert [key for key, _ in state.committed(b"p/", b"p0")] == [b"p/%04d" % number for number in range(500)]
    assert sorted(key for key, _ in state.scan(b"q")) == [b"q%04d" % number for number in range(500)]
    state.close()


def test_only_touched_records_of_a_table_are_written(tmp_path: Path) -> None:
    state = KeyValueState(tmp_path)
    table = StateTable(state, b"c/", Count)
    table.touch("changed").number = 7
    table["looked at"].number = 9
    table.flush()
    state.commit()
    assert {name: record.number for name, record in StateTable(state, b"c/", Count).items()} == {"changed": 7}
    state.close()


def test_a_table_that_outgrows_memory_forgets_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(StateTable, "MAX_IN_MEMORY", 10)
    state = KeyValueState(tmp_path)
    table = StateTable(state, b"c/", Count)
    for number in range(50):
        table.touch(str(number)).number = number
        if number % 7 == 0:
            table.flush()
            state.commit()
    assert [table[str(number)].number for number in range(50)] == list(range(50))
    state.close()


def test_a_state_is_read_while_a_crawl_writes_and_nothing_is_written_beside_it(tmp_path: Path) -> None:
    writer = KeyValueState(tmp_path / "state")
    for number in range(3):
        writer.put(b"a", bytes([number]))
        writer.commit()
        if number == 1:
            writer.compact()  # so that one value is in a data file and a later one in the log
        before = {path: path.stat().st_mtime_ns for path in (tmp_path / "state").iterdir()}
        reader = KeyValueState(tmp_path / "state", read_only=True)
        assert reader.get(b"a") == bytes([number])
        reader.close()
        assert {path: path.stat().st_mtime_ns for path in (tmp_path / "state").iterdir()} == before
    writer.close()


def test_reading_a_directory_without_a_state_names_it(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="no state of a crawl in this directory"):
        KeyValueState(tmp_path, read_only=True)
    assert not list(tmp_path.iterdir())
