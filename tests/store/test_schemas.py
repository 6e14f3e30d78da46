"""Columns of documents: one schema for readers, however old the segment that holds them is."""

from __future__ import annotations

from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from thresher.config import SCHEMA, load
from thresher.errors import UsageError
from thresher.records import Metadata, ReadResult, Reply, Verdict
from thresher.store import corpus_files, imported_files
from thresher.store.atomic_parquet import AtomicParquet
from thresher.store.schemas import DOCS, OUTCOMES, aligned, document_row
from thresher.store.table_segments import TableSegments

REPLY = Reply("http://a.cz/", 200, b"", b"", 1_790_000_000.0, 0.0, "192.0.2.7")
FETCHED = datetime.fromtimestamp(REPLY.fetched, UTC)
DATES = ("published", "modified")
TEXTS = ("author", "site_name", "language_declared", "license")
SCHEMA_1 = pa.schema([pa.field(field.name, pa.string()) if field.name in DATES else field for field in DOCS])
KNOWN = Metadata(
    author="K. Č.", published="2026-03-01T09:30:00+01:00", modified="2026-03-02", site_name="A",
    language_declared="cs",
)  # fmt: skip
LICENSE = "https://creativecommons.org/licenses/by/4.0/"


def row(number: int, **about: Any) -> tuple[Any, ...]:
    page = ReadResult(f"http://a.cz/{number}", "html", text="Text.", **about)
    reply = REPLY if number else Reply("http://a.cz/", 200, b"", b"", 0.0, 0.0, "")
    return document_row(reply, page, Verdict(True, language="cs"), seq=number, depth=0, raw=None)


def rows() -> list[tuple[Any, ...]]:
    """Return a document with all metadata, and one without any and without a time of download."""
    return [row(1, metadata=KNOWN, license=LICENSE), row(0)]


def as_schema_1(values: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return a row as the version before wrote it: no nulls, dates as text, 1970 for an unknown time."""
    known = dict(zip(DOCS.names, values, strict=True))
    for name in (*TEXTS, *DATES):
        known[name] = "" if known[name] is None else str(known[name])
    known["fetched"] = known["fetched"] or 0.0
    if known["published"]:
        known["published"] = KNOWN.published
    return tuple(known.values())


def segment(directory: Path, schema: pa.Schema, some: list[tuple[Any, ...]], *, sealed: bool) -> None:
    folder = directory / "docs"
    committed = {path.name: None for path in folder.glob("*.parquet")}
    table = TableSegments(folder, schema, committed, 1 << 40)
    for values in some:
        table.append(*values)
    if sealed:
        table.seal()
        table.retire()
    else:
        table.flush()
    table.close()


def corpus(directory: Path, schema: int) -> Path:
    (directory / "corpus.toml").write_text(f'# mine\nlanguage = "cs"\nschema = {schema}  # so far\n')
    return directory


EXPECTED = [
    {
        "url": "http://a.cz/1", "author": "K. Č.", "site_name": "A", "language_declared": "cs", "license": LICENSE,
        "published": date(2026, 3, 1), "modified": date(2026, 3, 2), "fetched": FETCHED,
    },
    {
        "url": "http://a.cz/0", "author": None, "site_name": None, "language_declared": None, "license": None,
        "published": None, "modified": None, "fetched": None,
    },
]  # fmt: skip


@pytest.mark.parametrize("sealed", [True, False])
@pytest.mark.parametrize("kinds", ["old", "new", "both"])
def test_unknown_values_are_null_and_dates_are_dates_in_segments_of_either_schema(
    tmp_path: Path, kinds: str, sealed: bool
) -> None:
    directory = corpus(tmp_path, 1)
    if kinds != "new":
        segment(directory, SCHEMA_1, [as_schema_1(values) for values in rows()], sealed=True)
    if kinds != "old":
        segment(directory, DOCS, rows(), sealed=sealed)
    found = corpus_files.open(directory)
    table = found.documents()
    assert table.schema == DOCS
    assert table.select(list(EXPECTED[0])).to_pylist() == EXPECTED * (1 + (kinds == "both"))
    for name in (*TEXTS, *DATES, "fetched"):
        assert found.documents([name]).column(name).to_pylist() == table.column(name).to_pylist(), name
    assert [(document.author, document.published) for document in found][:2] == [
        ("K. Č.", date(2026, 3, 1)),
        (None, None),
    ]


def test_an_open_segment_of_schema_1_is_not_continued_with_rows_of_schema_2(tmp_path: Path) -> None:
    directory = corpus(tmp_path, 1)
    segment(directory, SCHEMA_1, [as_schema_1(rows()[0])], sealed=False)
    (stream,) = (directory / "docs").iterdir()
    table = TableSegments(directory / "docs", DOCS, {stream.name: stream.stat().st_size}, 1 << 40)
    table.append(*rows()[1])
    table.flush()
    table.close()
    assert len(list((directory / "docs").glob("*.arrows"))) == 2
    assert corpus_files.open(directory).documents(list(EXPECTED[0])).to_pylist() == EXPECTED


@pytest.mark.parametrize(
    ("text", "expected"), [("2026-02-30", None), ("2026-03", None), ("in spring", None), (None, None)]
)
def test_a_text_that_names_no_day_becomes_null(text: str | None, expected: None) -> None:
    batch = pa.RecordBatch.from_pydict({"published": pa.array([text], pa.string())})
    assert aligned(batch, pa.schema([DOCS.field("published")])).to_pylist() == [{"published": expected}]


def test_columns_of_outcomes_keep_their_empty_texts() -> None:
    batch = pa.RecordBatch.from_pydict({"language": pa.array([""], pa.string())})
    assert aligned(batch, pa.schema([OUTCOMES.field("language")])).to_pylist() == [{"language": ""}]


def test_imported_pages_of_schema_1_are_read_and_rewritten_as_schema_2(tmp_path: Path) -> None:
    directory = corpus(tmp_path, 1)
    (directory / "imports").mkdir()
    path = directory / "imports" / "pages-000001.parquet"
    segment(directory, SCHEMA_1, [as_schema_1(values) for values in rows()], sealed=True)
    (sealed,) = (directory / "docs").iterdir()
    draft = AtomicParquet(path, SCHEMA_1)
    draft.write(pq.read_table(sealed), 1)
    draft.seal({"thresher.sha256": "x"})
    sealed.unlink()
    assert corpus_files.open(directory).documents(list(EXPECTED[0])).to_pylist() == EXPECTED
    assert imported_files.rewrite_pages_without(path, lambda url: url.endswith("/1")) == 1
    assert pq.read_schema(path).field("published").type == pa.date32()
    assert corpus_files.open(directory).documents(list(EXPECTED[0])).to_pylist() == EXPECTED[1:]


def test_upgrading_a_corpus_changes_the_number_of_its_schema_alone(tmp_path: Path) -> None:
    directory = corpus(tmp_path, 1)
    corpus_files.upgrade(directory)
    written = (directory / "corpus.toml").read_text()
    assert written == f'# mine\nlanguage = "cs"\nschema = {SCHEMA}  # so far\n'
    before = (directory / "corpus.toml").stat().st_mtime_ns
    corpus_files.upgrade(directory)
    assert (directory / "corpus.toml").stat().st_mtime_ns == before, "a current corpus is not written"


def test_a_corpus_of_a_newer_schema_is_neither_read_nor_upgraded(tmp_path: Path) -> None:
    directory = corpus(tmp_path, SCHEMA + 1)
    with pytest.raises(UsageError, match=f"schema = {SCHEMA + 1}"):
        load(directory)
    with pytest.raises(UsageError, match=f"schema = {SCHEMA + 1}"):
        corpus_files.upgrade(directory)
