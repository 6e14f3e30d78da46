"""Damaged files of every kind are named with their path."""

from __future__ import annotations

import re
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from thresher.errors import DataError
from thresher.store.checked_files import arrow_faults, json_file


@pytest.mark.parametrize("data", [b"", b"{", b'{"a": "\xff"}', b"[1]", b'{"a": ' + b"[" * 100_000])
def test_damaged_json_is_named(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(data)
    with pytest.raises(DataError, match=re.escape(str(path))):
        json_file(path, dict[str, object])


@pytest.mark.parametrize("data", [b"", b"garbage", b"PAR1" + bytes(100) + b"PAR1"])
def test_damaged_parquet_is_named(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "a.parquet"
    path.write_bytes(data)
    with pytest.raises(DataError, match=re.escape(str(path))), arrow_faults(path):
        pq.read_metadata(path)


def test_a_missing_file_stays_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError), arrow_faults(tmp_path / "a.parquet"):
        pq.read_metadata(tmp_path / "a.parquet")
