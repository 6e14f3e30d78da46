"""The progress of an import, as it is reported while files are read."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct


class ImportProgress(Struct, frozen=True):
    """The progress of an import."""

    bytes: int = 0  # that were read from all files
    documents: int = 0  # that were taken from them
    file: str = ""  # that is being read
    pages_waiting: int = 0  # for a reader, or with one


Progress = Callable[[ImportProgress], None]
