"""Steps of a user's own, as the tests have them."""

from __future__ import annotations

import errno
import os
import signal
import threading
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc


def shout(documents: pa.Table, *, sign: str = "!") -> pa.Table:
    """Text in capitals."""
    loud = pa.array([text.upper() + sign for text in documents["text"].to_pylist()], pa.large_string())
    return documents.set_column(documents.schema.get_field_index("text"), "text", loud)


def same(documents: pa.Table) -> pa.Table:
    """All as it was."""
    return documents


def backwards(documents: pa.Table) -> pa.Table:
    """The last document first."""
    return documents.take(list(range(documents.num_rows))[::-1])


def poison(documents: pa.Table, *, word: str, cured: str) -> pa.Table:
    """Fails where a word is, until a file is there."""
    if pc.any(pc.match_substring(documents["text"], word)).as_py() and not Path(cured).exists():
        print("it is the word", word)
        raise ValueError(f"{word} cannot be processed")
    return documents


def deadly_once(documents: pa.Table, *, mark: str) -> pa.Table:
    """Takes the process with it, the first time."""
    try:
        os.close(os.open(mark, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return documents
    os.kill(os.getpid(), signal.SIGKILL)
    return documents


def deadly_to_its_node_once(documents: pa.Table, *, mark: str) -> pa.Table:
    """Takes the node with it that it runs on, the first time."""
    try:
        os.close(os.open(mark, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return documents
    os.kill(os.getppid(), signal.SIGKILL)
    os.kill(os.getpid(), signal.SIGKILL)
    return documents


def needs_room(documents: pa.Table, *, full: str) -> pa.Table:
    """Fails as on a full disk, while a file is there."""
    if Path(full).exists():
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "somewhere")
    return documents


def endless(documents: pa.Table, *, numbers: str) -> pa.Table:
    """Leaves the number of its process in a folder, and goes on for ever."""
    Path(numbers, str(os.getpid())).touch()
    threading.Event().wait()
    return documents


def no_table(documents: pa.Table) -> str:
    return "nothing"


def unversioned(documents: pa.Table) -> pa.Table:
    return documents


for function in (
    shout,
    same,
    backwards,
    poison,
    deadly_once,
    deadly_to_its_node_once,
    needs_room,
    endless,
    no_table,
):
    function.version = 1
