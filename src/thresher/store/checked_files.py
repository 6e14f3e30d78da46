"""Files that may be damaged: JSON and Arrow, whose faults become DataErrors with the path."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import TypeVar

import msgspec
import pyarrow as pa

from thresher.errors import DataError

T = TypeVar("T")


def decoded_json(data: bytes | str, kind: type[T], name: object) -> T:
    """Return data in JSON as a type; raise DataError with the name if they are damaged, not UTF-8, or too deep."""
    try:
        return msgspec.json.decode(data, type=kind)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as fault:
        raise DataError(f"{name} cannot be read ({fault}); restore it") from None


def json_file(path: Path, kind: type[T]) -> T:
    """Return a JSON file as a type; raise DataError if it is damaged, and OSError if it cannot be opened."""
    return decoded_json(path.read_bytes(), kind, path)


@contextlib.contextmanager
def arrow_faults(path: Path) -> Iterator[None]:
    """Raise the errors of Arrow about a file as DataErrors; an OSError of the system passes."""
    try:
        yield
    except (pa.ArrowException, OSError) as fault:
        if isinstance(fault, OSError) and fault.errno is not None:
            raise
        # Arrow reports a file that is cut off as an OSError without a number.
        raise DataError(f"{path} is damaged: {fault}; restore it") from fault
