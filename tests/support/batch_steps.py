"""Functions that tests name as steps and annotators in recipes."""

from __future__ import annotations

import errno
import os
import signal
import threading
from datetime import date
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from thresher.reader.quality.fingerprint import text_hash

TEXT = "no function"


def shout(documents: pa.Table, *, sign: str = "!") -> pa.Table:
    """Return documents in capitals."""
    loud = pa.array([text.upper() + sign for text in documents["text"].to_pylist()], pa.large_string())
    return documents.set_column(documents.schema.get_field_index("text"), "text", loud)


def headed(documents: pa.Table, *, heading: str) -> pa.Table:
    """Return documents with a heading above each text, which is too short to change the hash of the text."""
    longer = pa.array([f"{heading}\n{text}" for text in documents["text"].to_pylist()], pa.large_string())
    return documents.set_column(documents.schema.get_field_index("text"), "text", longer)


def valued(documents: pa.Table, *, badness: float) -> pa.Table:
    """Return documents of this badness, except for the first, which has 0."""
    values = pa.array([0.0, *[badness] * (documents.num_rows - 1)])
    return documents.set_column(documents.schema.get_field_index("badness"), "badness", values)


def dated(documents: pa.Table, *, year: str) -> pa.Table:
    """Return documents that were all published in a year."""
    days = pa.array([date(int(year), 1, 1)] * documents.num_rows)
    return documents.set_column(documents.schema.get_field_index("published"), "published", days)


def doubled(documents: pa.Table) -> pa.Table:
    """Return all documents twice."""
    return pa.concat_tables([documents, documents])


def hashed(documents: pa.Table) -> pa.Table:
    """Return documents with the hashes of their texts, as a crawl computes them."""
    hashes = pa.array([text_hash(text.split("\n")).hex() for text in documents["text"].to_pylist()])
    return documents.set_column(documents.schema.get_field_index("text_hash"), "text_hash", hashes)


def cut(documents: pa.Table, *, length: int) -> pa.Table:
    """Return documents with their texts cut to a length."""
    place = documents.schema.get_field_index("text")
    return documents.set_column(place, "text", pc.utf8_slice_codeunits(documents["text"], 0, length))


def split(documents: pa.Table) -> pa.Table:
    """Return a document for each paragraph."""
    rows = [
        {**row, "text": paragraph} for row in documents.to_pylist() for paragraph in row["text"].split("\n")
    ]
    return pa.Table.from_pylist(rows, documents.schema)


def same(documents: pa.Table) -> pa.Table:
    """Return the documents unchanged."""
    return documents


def backwards(documents: pa.Table) -> pa.Table:
    """Return the documents in reverse order."""
    return documents.take(list(range(documents.num_rows))[::-1])


def poison(documents: pa.Table, *, word: str, repaired: str) -> pa.Table:
    """Fail if a word occurs, until a file exists."""
    if pc.any(pc.match_substring(documents["text"], word)).as_py() and not Path(repaired).exists():
        print("it is the word", word)
        raise ValueError(f"{word} cannot be processed")
    return documents


def deadly_once(documents: pa.Table, *, mark: str) -> pa.Table:
    """Kill the process at the first call."""
    try:
        os.close(os.open(mark, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return documents
    os.kill(os.getpid(), signal.SIGKILL)
    return documents


def deadly_to_its_node_once(documents: pa.Table, *, mark: str) -> pa.Table:
    """Kill the node that it runs on at the first call."""
    try:
        os.close(os.open(mark, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return documents
    os.kill(os.getppid(), signal.SIGKILL)
    os.kill(os.getpid(), signal.SIGKILL)
    return documents


def needs_room(documents: pa.Table, *, full: str) -> pa.Table:
    """Fail as on a full disk while a file exists."""
    if Path(full).exists():
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "somewhere")
    return documents


def endless(documents: pa.Table, *, numbers: str) -> pa.Table:
    """Write the number of the process into a folder, and never return."""
    Path(numbers, str(os.getpid())).touch()
    threading.Event().wait()
    return documents


def no_table(documents: pa.Table) -> str:
    return "nothing"


def unversioned(documents: pa.Table) -> pa.Table:
    return documents


def spelt(paragraph: str) -> list[list[tuple[str, str]]]:
    """Annotate words with their lower-case forms as lemmas."""
    return [[(word, word.lower()) for word in paragraph.split()]]


spelt.attributes = ("word", "lemma")

for function in (
    shout,
    headed,
    valued,
    dated,
    doubled,
    hashed,
    cut,
    split,
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
