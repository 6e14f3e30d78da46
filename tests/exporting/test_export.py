"""Exports: every format writes the same documents, the same bytes each time."""

from __future__ import annotations

import gzip
import io
import json
import os
import threading
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from support.corpora.batch_corpora import Here, recipe, write_shard
from support.corpora.exports import TEXTS, exported, make, with_imports
from thresher.annotate import pool
from thresher.errors import UsageError
from thresher.exporting import documents
from thresher.exporting.documents import ExportSelection, regrouped
from thresher.exporting.formats import hf_dataset, tables
from thresher.exporting.registry import FORMATS, ExportReport, export, format_of
from thresher.importing.corpora import import_files
from thresher.pipeline.runs.results import processed
from thresher.pipeline.runs.run import process
from thresher.records import Metadata
from thresher.selection import DocumentFilter
from thresher.store import corpus_files as corpora
from thresher.store.corpus_files import CorpusError, CorpusFiles
from thresher.store.table_segments import seal

pytestmark = pytest.mark.slow

FILES = [name for name, form in FORMATS.items() if form.suffix]
WITH_TOKENS = [name for name, form in FORMATS.items() if form.tokens]


@pytest.fixture
def corpus(tmp_path: Path) -> CorpusFiles:
    return make(tmp_path, TEXTS)


def written(corpus: CorpusFiles, name: str, path: Path, where: DocumentFilter | None = None) -> ExportReport:
    return export(corpus, name, path, where, processes=1)


def contents(path: Path) -> dict[str, bytes]:
    """Return the contents of all files of a folder, or of one file."""
    if path.is_file():
        return {"": path.read_bytes()}
    return {str(one.relative_to(path)): one.read_bytes() for one in path.rglob("*") if one.is_file()}


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_keeps_the_contract(corpus: CorpusFiles, tmp_path: Path, name: str) -> None:
    form = FORMATS[name]
    assert form.summary
    assert not form.suffix or form.suffix.startswith(".")
    one, two, three = (tmp_path / "out" / f"{n}{form.suffix}" for n in range(3))
    one.parent.mkdir()
    assert written(corpus, name, one).documents == 2, "opted-out documents stay out"
    assert written(corpus, name, two).left_out == {"opted out": 1}, "and the report counts it"
    assert contents(one) == contents(two), "the same corpus gives the same bytes"
    assert not any(b"modelu" in data for data in contents(one).values())
    everything = written(corpus, name, three, DocumentFilter(opted_out=True))
    assert (everything.documents, everything.left_out) == (3, {}), "unless they are asked for"
    assert not list(one.parent.glob("*.tmp"))


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_can_write_an_empty_selection(corpus: CorpusFiles, tmp_path: Path, name: str) -> None:
    done = written(corpus, name, tmp_path / "out", DocumentFilter(tlds=("sk",)))
    assert (done.documents, done.left_out) == (0, {"opted out": 1, "tld": 2})
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty" / "corpus.toml").write_text('schema = 1\nlanguage = "cs"\n')
    assert written(corpora.open(tmp_path / "empty"), name, tmp_path / "none").documents == 0


@pytest.mark.parametrize("name", FILES)
def test_every_file_can_be_packed_and_written_to_a_pipe(
    corpus: CorpusFiles, tmp_path: Path, name: str
) -> None:
    plain = exported(corpus, name)
    zipped, packed = (tmp_path / f"out{FORMATS[name].suffix}{end}" for end in (".gz", ".zst"))
    for path in (zipped, packed):
        written(corpus, name, path)
    assert gzip.decompress(zipped.read_bytes()) == plain
    assert zstandard.ZstdDecompressor().stream_reader(packed.read_bytes()).read() == plain
    first = zipped.read_bytes(), packed.read_bytes()
    for path in (zipped, packed):
        written(corpus, name, path)
    assert (zipped.read_bytes(), packed.read_bytes()) == first, "no time, no name in the packed file"
    reader, writer = os.pipe()
    with os.fdopen(reader, "rb") as source:
        with os.fdopen(writer, "wb") as out:
            export(corpus, name, out, processes=1)
        assert source.read() == plain


@pytest.mark.parametrize("name", FILES)
def test_a_pipe_with_a_name_stays_one(corpus: CorpusFiles, tmp_path: Path, name: str) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    found: list[bytes] = []
    reader = threading.Thread(target=lambda: found.append(pipe.read_bytes()))
    reader.start()
    written(corpus, name, pipe)
    reader.join()
    assert found == [exported(corpus, name)]
    assert pipe.is_fifo()


@pytest.mark.parametrize("name", FILES)
def test_every_format_writes_a_document_before_it_takes_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr(tables, "ROW_GROUP_BYTES", 1)
    monkeypatch.setattr(pool, "PORTION", 1)
    corpus = make(tmp_path, ["Jedna věta."] * 5)
    out = io.BytesIO()
    sizes = []
    batches = list(corpus.batches("docs"))

    def one_at_a_time(table: str, columns: Any = None) -> Any:
        for batch in batches:
            yield batch
            sizes.append(out.tell())

    monkeypatch.setattr(corpus, "batches", one_at_a_time)
    assert export(corpus, name, out, processes=1).documents == 4
    assert sizes[-5:-1] == sorted(set(sizes[-5:-1]))


@pytest.mark.parametrize("name", FORMATS)
def test_the_bytes_do_not_depend_on_how_the_corpus_is_stored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr(tables, "ROW_GROUP_BYTES", 3_000)
    monkeypatch.setattr(hf_dataset, "ROW_GROUP_BYTES", 3_000)
    monkeypatch.setattr(hf_dataset, "SHARD_BYTES", 10_000)
    (tmp_path / "corpus").mkdir()
    corpus = make(tmp_path / "corpus", [f"Věta číslo {n}." for n in range(20)])
    written(corpus, name, tmp_path / "before")
    stream = tmp_path / "corpus" / "docs" / "docs-00001.arrows"
    seal(stream, stream.stat().st_size, stream.with_suffix(".parquet"))
    stream.unlink()
    assert written(corpora.open(tmp_path / "corpus"), name, tmp_path / "after").documents == 19
    assert contents(tmp_path / "before") == contents(tmp_path / "after")


@pytest.mark.parametrize("name", WITH_TOKENS)
def test_any_number_of_processes_gives_the_same_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr(pool, "PORTION", 50)
    corpus = make(tmp_path, [f"Věta číslo {n}. A další věta!" for n in range(40)])
    assert exported(corpus, name, processes=2) == exported(corpus, name, processes=1)


def test_an_unknown_format_is_refused_with_the_known_ones(corpus: CorpusFiles) -> None:
    with pytest.raises(
        UsageError, match=r"unknown format 'xml'; choose one of jsonl, parquet, txt, vertical"
    ):
        export(corpus, "xml", io.BytesIO())


@pytest.mark.parametrize(
    ("file", "expected"),
    [
        ("x.jsonl", "jsonl"), ("x.JSONL.GZ", "jsonl"), ("x.txt", "txt"), ("x.vert", "vertical"),
        ("x.vertical.zst", "vertical"), ("x.parquet", "parquet"), ("x.conllu", "conllu"), ("x.xml", "tei"),
        ("x.tei.gz", "tei"), ("x.wacz", "wacz"), ("x.2024.jsonl", "jsonl"),
    ],
)  # fmt: skip
def test_the_name_of_a_file_decides_its_format_unless_one_is_given(file: str, expected: str) -> None:
    assert format_of(Path(file)) == expected
    assert format_of(Path(file), "huggingface") == "huggingface"


def test_the_case_of_a_suffix_makes_no_difference(corpus: CorpusFiles, tmp_path: Path) -> None:
    for name in ("a.jsonl.gz", "b.JSONL.GZ"):
        export(corpus, "jsonl", tmp_path / name)
    assert (tmp_path / "b.JSONL.GZ").read_bytes() == (tmp_path / "a.jsonl.gz").read_bytes()


@pytest.mark.parametrize("output", [Path("x.csv"), Path("folder"), Path("x.gz"), io.BytesIO()])
def test_an_output_without_a_format_in_its_name_is_refused_with_the_formats(
    output: Path | io.BytesIO,
) -> None:
    with pytest.raises(UsageError, match=r"give --format, one of jsonl, parquet, txt, vertical"):
        format_of(output)


def test_unusable_options_are_refused_with_the_fix(corpus: CorpusFiles, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"is a folder of files; name it with -o"):
        export(corpus, "huggingface", io.BytesIO())
    with pytest.raises(
        UsageError, match=r"none/out\.txt cannot be written: .*none is not a directory; create it"
    ):
        export(corpus, "txt", tmp_path / "none" / "out.txt")
    with pytest.raises(UsageError, match=r"is a directory; name a file in it"):
        export(corpus, "txt", tmp_path)
    with pytest.raises(UsageError, match=r"exists and is not empty"):
        export(corpus, "huggingface", tmp_path)
    with pytest.raises(UsageError, match=r"--annotator is for formats with tokens \(vertical, conllu, tei"):
        export(corpus, "txt", io.BytesIO(), annotator="plain")
    with pytest.raises(UsageError, match=r"unknown annotator 'none such'"):
        export(corpus, "vertical", io.BytesIO(), annotator="none such")


@pytest.mark.parametrize("name", FORMATS)
def test_an_export_that_fails_leaves_the_former_file(corpus: CorpusFiles, tmp_path: Path, name: str) -> None:
    target = tmp_path / "out"
    form = FORMATS[name]
    if form.suffix:
        target.write_bytes(b"before")
    (corpus.directory / "docs" / "docs-00001.arrows").unlink()
    (corpus.directory / "status.json").write_text('{"files": {"docs/docs-00001.arrows": 5}}')
    with pytest.raises(CorpusError):
        written(corpus, name, target)
    assert target.read_bytes() == b"before" if form.suffix else not target.exists()
    assert not list(tmp_path.glob("*.tmp"))


def test_a_device_is_written_to_as_it_is(corpus: CorpusFiles) -> None:
    assert written(corpus, "txt", Path(os.devnull)).documents == 2
    assert Path(os.devnull).is_char_device()


# which documents


PAGES: list[dict[str, Any]] = [
    {"url": "http://www.a.cz/1", "language": "cs", "share": 0.9, "badness": 3.0},
    {"url": "http://b.sk:8080/2", "language": "sk", "share": 0.5, "badness": None},
    {"url": "http://c.b.sk/3", "language": "cs", "share": 0.7, "badness": 12.0,
     "license": "https://creativecommons.org/licenses/by-sa/4.0/"},
    {"url": "http://d.cz/4", "language": "cs", "badness": 1.0, "opt_out": ("noai",)},
]  # fmt: skip


@pytest.mark.parametrize(
    ("asked", "numbers", "reason"),
    [
        ({}, "123", ""),
        ({"opted_out": True}, "1234", ""),
        ({"languages": ["cs"]}, "13", "language"),
        ({"languages": ["cs", "sk"]}, "123", ""),
        ({"min_language_share": 0.7}, "13", "language share"),
        ({"max_badness": 10}, "1", "badness"),
        ({"max_badness": 10, "keep_unknown": True}, "12", "badness"),
        ({"min_chars": 4}, "1", "too short"),
        ({"not_hosts": ["b.sk"]}, "1", "host"),
        ({"hosts": ["a.cz"]}, "1", "host"),
        ({"hosts": ["b.sk"]}, "23", "host"),
        ({"hosts": ["*.b.sk"]}, "3", "host"),
        ({"hosts": ["*.SK", "www.*"]}, "123", ""),
        ({"hosts": [".b.sk"]}, "23", "host"),
        ({"tlds": [".SK"]}, "23", "tld"),
        ({"since": "2026"}, "123", ""),
        ({"since": "2026-09-22"}, "", "date"),
        ({"since": "2026-09-21", "until": "2026-09"}, "123", ""),
        ({"until": "2025"}, "", "date"),
        ({"licenses": ["by-sa"]}, "3", "license"),
        ({"licenses": ["*"]}, "3", "license"),
        ({"licenses": ["*/by/*"]}, "", "license"),
    ],
)
def test_documents_are_chosen_in_every_format(
    tmp_path: Path, asked: dict[str, Any], numbers: str, reason: str
) -> None:
    corpus = make(tmp_path, ["jedna", "dva", "tři", "čtyři"], pages=PAGES)
    chosen = DocumentFilter(**asked)
    out = io.BytesIO()
    done = export(corpus, "jsonl", out, chosen)
    assert "".join(json.loads(line)["url"][-1] for line in out.getvalue().splitlines()) == numbers
    left = 4 - len(numbers) - (not asked.get("opted_out"))
    assert done.left_out.get(reason, 0) == left
    assert sum(done.left_out.values()) + done.documents == 4
    for name in ("vertical", "wacz", "parquet"):
        assert export(corpus, name, io.BytesIO(), chosen, processes=1) == ExportReport(
            done.documents, done.left_out, ("word", "lemma") if name == "vertical" else ()
        )


def test_the_date_of_publication_counts_before_that_of_the_download(tmp_path: Path) -> None:
    corpus = make(tmp_path, ["a", "b"], pages=[{"metadata": Metadata("", "", "2001-02-03")}, {}])
    assert export(corpus, "txt", io.BytesIO(), DocumentFilter(until="2001")).documents == 1
    assert export(corpus, "txt", io.BytesIO(), DocumentFilter(since="2002")).documents == 0


def test_a_date_that_was_written_as_1970_is_not_known(tmp_path: Path) -> None:
    corpus = make(tmp_path, ["a", "b"])
    table = corpus.documents()
    (stream,) = (tmp_path / "docs").iterdir()
    stream.unlink()
    place, field = table.schema.get_field_index("fetched"), table.schema.field("fetched")
    moments = pa.array([0, 1_790_000_000_000_000], field.type)
    pq.write_table(table.set_column(place, field, moments), stream.with_suffix(".parquet"))
    assert json.loads(exported(corpus, "jsonl"))["fetched"] is None
    assert export(corpus, "txt", io.BytesIO(), DocumentFilter(until="2000")).left_out["date"] == 1


# imports


@pytest.fixture
def mixed(tmp_path: Path) -> CorpusFiles:
    return with_imports(tmp_path)


def test_imports_are_exported_with_the_crawl(mixed: CorpusFiles) -> None:
    text = exported(mixed, "vertical").decode()
    assert '<doc id="l1" source="letter.jsonl" language="cs" url="https://x.sk/l" date="1999-01-02">' in text
    assert "Milá\t\tmilý" in text or "Milá\t\t" in text, "text is annotated"
    assert '<s n="7">\nPsi\tNN\tpes\n</s>\n' in text, "tokens are taken as they are"
    assert text.count("<doc ") == 3
    assert export(mixed, "vertical", io.BytesIO(), processes=1).attributes == ("word", "pos", "lemma")


@pytest.mark.parametrize("name", ["jsonl", "txt", "parquet"])
def test_tokens_are_left_out_of_rows_and_reported(mixed: CorpusFiles, name: str) -> None:
    done = export(mixed, name, io.BytesIO())
    assert (done.documents, done.left_out) == (2, {documents.AS_TOKENS: 1, "opted out": 1})


def test_a_filter_holds_for_imports_too(mixed: CorpusFiles) -> None:
    for asked in (DocumentFilter(hosts=["x.sk"]), DocumentFilter(until="2000"), DocumentFilter(tlds=["sk"])):
        done = export(mixed, "conllu", io.BytesIO(), asked, processes=1)
        assert (done.documents, sum(done.left_out.values())) == (1, 3)


@pytest.mark.parametrize("name", [name for name in FORMATS if name != "wacz"])  # which has pages only
def test_imports_that_no_step_has_seen_are_not_taken_for_processed_ones(tmp_path: Path, name: str) -> None:
    write_shard(tmp_path, 0, ["jedna", "dva"])
    recipe(tmp_path, {"step": "exact_duplicates"})
    (tmp_path / "copies.jsonl").write_text('{"text": "jedna"}\n' * 4)
    (tmp_path / "old.vert").write_text("<doc>\njedna\n</doc>\n<doc opt_out='noai'>\njedna\n</doc>\n")
    import_files(tmp_path, [tmp_path / "copies.jsonl", tmp_path / "old.vert"])
    process(tmp_path, Here())
    done = written(processed(tmp_path), name, tmp_path / "out")
    assert (done.documents, done.left_out) == (2, {documents.NOT_PROCESSED: 5, "opted out": 1})
    assert "pos" not in done.attributes


@given(st.lists(st.integers(0, 5_000), max_size=20), st.integers(1, 6), st.integers(1, 12_000))
def test_rows_are_cut_at_the_same_places_however_they_come(sizes: list[int], step: int, most: int) -> None:
    table = pa.table({"text": pa.array(["x" * size for size in sizes], pa.large_string())})
    one = [group.num_rows for group in regrouped(table.to_batches(), most)]
    other = [group.num_rows for group in regrouped(table.to_batches(max_chunksize=step), most)]
    assert one == other
    assert sum(one) == len(sizes)
    assert 0 not in one


def test_a_selection_counts_left_out_documents_once(corpus: CorpusFiles) -> None:
    chosen = ExportSelection(corpus, DocumentFilter())
    assert sum(batch.num_rows for batch in chosen.pages()) == 2
    assert chosen.left_out == {"opted out": 1}
