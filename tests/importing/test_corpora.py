"""Each file is imported whole or not at all, and once, in any format and after any interruption."""

from __future__ import annotations

import fcntl
import gzip
import hashlib
import io
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard

from support.corpora.imports import (
    DAMAGED,
    EXAMPLES,
    PACKERS,
    VERTICAL_EXAMPLE,
    bring,
    check,
    parquet,
    stored_files,
)
from thresher.config import load
from thresher.errors import DataError, UsageError
from thresher.importing.corpora import import_files
from thresher.importing.formats import writer
from thresher.importing.formats.registry import FORMATS, SUFFIXES
from thresher.importing.formats.source import ImportFileError
from thresher.store.corpus_files import CorpusError
from thresher.store.imported_files import documents, files


def test_every_format_has_an_example_and_a_suffix() -> None:
    assert set(EXAMPLES) == set(DAMAGED) == set(FORMATS) == set(SUFFIXES.values())


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_keeps_the_contract(tmp_path: Path, name: str) -> None:
    file, data = EXAMPLES[name]
    found = bring(tmp_path, file, data)
    assert (found.files, found.documents, found.skipped, found.remarks) == ((file,), 1, (), ())
    assert load(tmp_path / "corpus").language == "cs"
    (import_file,) = files(tmp_path / "corpus")
    (document,) = documents(tmp_path / "corpus")
    check(document)
    assert (document.source, document.number) == (file, 1)
    assert document.id in ("v", "c", "t", "j", "p", "a.txt#1")
    assert bool(import_file.attributes) == (document.tokens is not None)
    assert (import_file.format, import_file.language, import_file.rows) == (name, "cs", 1)
    assert import_file.sha256 == (hashlib.sha256(data).hexdigest(),)


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("suffix", PACKERS)
def test_every_format_can_be_packed(tmp_path: Path, name: str, suffix: str) -> None:
    file, data = EXAMPLES[name]
    bring(tmp_path, file, data)
    (plain,) = documents(tmp_path / "corpus")
    (tmp_path / "packed").mkdir()
    bring(tmp_path / "packed", file + suffix.upper(), PACKERS[suffix](data))
    (packed,) = documents(tmp_path / "packed" / "corpus")
    assert (packed.text, packed.tokens, packed.meta) == (plain.text, plain.tokens, plain.meta)


@pytest.mark.parametrize("name", FORMATS)
def test_a_damaged_file_is_not_imported_at_all(tmp_path: Path, name: str) -> None:
    file, data = EXAMPLES[name]
    bring(tmp_path, file, data)
    with pytest.raises(ImportFileError, match=f"bad-{file}"):
        bring(tmp_path, f"bad-{file}", DAMAGED[name])
    assert stored_files(tmp_path) == ["000001.parquet"]
    assert len(list(documents(tmp_path / "corpus"))) == 1


@pytest.mark.parametrize("suffix", PACKERS)
@pytest.mark.parametrize(
    "damage", [lambda data: data[:-7], lambda data: data[: len(data) // 2] + b"\xff" * 40]
)
def test_a_packed_file_that_is_cut_off_or_damaged_is_refused(
    tmp_path: Path, suffix: str, damage: Callable[[bytes], bytes]
) -> None:
    packed = damage(PACKERS[suffix](os.urandom(3_000).hex().encode()))
    with pytest.raises(
        ImportFileError, match=rf"a\.txt{suffix} (is cut off|cannot be decompressed).*get it once more"
    ):
        bring(tmp_path, f"a.txt{suffix}", packed)
    assert stored_files(tmp_path) == []


@pytest.mark.parametrize("suffix", PACKERS)
def test_a_compressed_file_may_have_several_streams(tmp_path: Path, suffix: str) -> None:
    bring(tmp_path, f"a.txt{suffix}", PACKERS[suffix](b"One.\nTw") + PACKERS[suffix](b"o.\n"))
    assert [document.text for document in documents(tmp_path / "corpus")] == ["One.\nTwo."]


def test_the_table_has_the_documented_columns_and_metadata(tmp_path: Path) -> None:
    bring(tmp_path, "a.vert", VERTICAL_EXAMPLE)
    path = tmp_path / "corpus" / "imports" / "000001.parquet"
    schema = pq.read_schema(path)
    assert schema.names == ["id", "source", "number", "meta", "text", "tokens", "count"]
    assert schema.field("text").type == pa.large_string()
    assert schema.field("tokens").type == pa.large_binary()
    assert schema.field("meta").type == pa.map_(pa.string(), pa.string())
    metadata: dict[bytes, bytes] = schema.metadata
    assert metadata[b"thresher.attributes"] == b"word,pos,lemma"
    assert metadata[b"thresher.format"] == b"vertical"
    assert metadata[b"thresher.sha256"] == hashlib.sha256(VERTICAL_EXAMPLE).hexdigest().encode()
    assert metadata[b"thresher.language"] == b"cs"
    row = duckdb.sql(f"select id, source, number, meta['id'], text, tokens, count from '{path}'").fetchall()
    assert row == [("v", "a.vert", 1, "v", None, b"\x02s\nA\tX\ta\nb\tY\tb\n\x03s\n", 2)]


def test_a_file_that_was_imported_is_skipped_under_any_name(tmp_path: Path) -> None:
    bring(tmp_path, "a.vert", VERTICAL_EXAMPLE)
    again = bring(tmp_path, "b.vert", VERTICAL_EXAMPLE)
    assert (again.files, again.documents, again.skipped) == ((), 0, ("b.vert",))
    assert "b.vert was imported before and is skipped" in again.remarks[0]
    assert "000001.parquet" in again.remarks[0]
    assert stored_files(tmp_path) == ["000001.parquet"]
    (tmp_path / "corpus" / "imports" / "000001.parquet").unlink()
    assert bring(tmp_path, "b.vert", VERTICAL_EXAMPLE).documents == 1


def test_a_file_given_twice_is_imported_once(tmp_path: Path) -> None:
    for name in ("a.vert", "b.vert"):
        (tmp_path / name).write_bytes(VERTICAL_EXAMPLE)
    found = import_files(tmp_path / "corpus", [tmp_path / "a.vert", tmp_path / "b.vert"], language="cs")
    assert (found.files, found.skipped, found.documents) == (("a.vert",), ("b.vert",), 1)


def write_texts(directory: Path, count: int) -> list[Path]:
    paths = [directory / f"{number}.txt" for number in range(count)]
    for number, path in enumerate(paths):
        path.write_text(f"Text {number}.")
    return paths


def test_small_files_share_a_file_and_each_is_recognised(tmp_path: Path) -> None:
    paths = write_texts(tmp_path, 30)
    found = import_files(tmp_path / "corpus", paths, language="cs")
    assert (len(found.files), found.documents) == (30, 30)
    (shared,) = files(tmp_path / "corpus")
    assert len(shared.sha256) == len(shared.bytes) == shared.rows == 30
    assert [document.source for document in documents(tmp_path / "corpus")] == [path.name for path in paths]
    assert len(import_files(tmp_path / "corpus", paths).skipped) == 30


def test_the_remark_about_a_skipped_file_names_the_files_that_share_its_own(tmp_path: Path) -> None:
    paths = write_texts(tmp_path, 3)
    import_files(tmp_path / "corpus", paths, language="cs")
    one, two, three = (path.name for path in paths)
    (remark,) = import_files(tmp_path / "corpus", [paths[1]]).remarks
    shared = tmp_path / "corpus" / "imports" / "000001.parquet"
    assert remark == (
        f"{two} was imported before and is skipped; to import it again, delete {shared}, "
        f"and import its 2 other files again as well: {one}, {three}"
    )


def test_files_of_different_formats_or_attributes_do_not_share_a_file(tmp_path: Path) -> None:
    (tmp_path / "c.vert").write_bytes(b"x\ny\n")
    for name, data in EXAMPLES.values():
        (tmp_path / name).write_bytes(data)
    paths = [tmp_path / name for name in ("a.txt", "a.vert", "c.vert", "a.jsonl")]
    import_files(tmp_path / "corpus", paths, language="cs")
    assert [(file.format, file.attributes) for file in files(tmp_path / "corpus")] == [
        ("text", ()),
        ("vertical", ("word", "pos", "lemma")),
        ("vertical", ("word",)),
        ("jsonl", ()),
    ]
    assert [file.path.name for file in files(tmp_path / "corpus")] == [
        f"00000{n}.parquet" for n in range(1, 5)
    ]


def test_a_file_that_fails_late_does_not_affect_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first documents of the file are on disk by then, in a file of their own."""
    monkeypatch.setattr(writer, "ROW_GROUP_BYTES", 1_000)
    good, bad, last = write_texts(tmp_path, 3)
    bad = bad.rename(tmp_path / "bad.jsonl")
    bad.write_text('{"text": "Long enough, so that it is written out."}\n' * 200 + "{")
    with pytest.raises(ImportFileError, match=r"^bad\.jsonl, line 201.*"):
        import_files(tmp_path / "corpus", [good, bad, last], language="cs")
    assert [document.source for document in documents(tmp_path / "corpus")] == [good.name, last.name]
    assert stored_files(tmp_path) == ["000001.parquet", "000002.parquet"]
    bad.write_text(bad.read_text()[:-1])
    found = import_files(tmp_path / "corpus", [good, bad, last])
    assert (found.skipped, found.files) == ((good.name, last.name), ("bad.jsonl",))
    assert stored_files(tmp_path) == ["000001.parquet", "000002.parquet", "000003.parquet"]


def test_row_groups_and_files_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer, "ROW_GROUP_BYTES", 10_000)
    monkeypatch.setattr(writer, "SHARED_BYTES", 50_000)
    paths = write_texts(tmp_path, 60)
    for number, path in enumerate(paths):
        path.write_text(f"{number} " * 1_500)
    import_files(tmp_path / "corpus", paths, language="cs")
    found = files(tmp_path / "corpus")
    assert len(found) > 3
    for file in found:
        groups = pq.ParquetFile(file.path).metadata
        assert all(groups.row_group(n).total_byte_size < 20_000 for n in range(groups.num_row_groups))
        assert [batch.num_rows for batch in file.batches(["id"])] == [
            groups.row_group(n).num_rows for n in range(groups.num_row_groups)
        ]
    assert [document.source for document in documents(tmp_path / "corpus")] == [path.name for path in paths]


MEASURED = """
import re, sys
from pathlib import Path
from thresher.importing.corpora import import_files

tokens = import_files(Path(sys.argv[1]), [Path(sys.argv[2])], language="cs").tokens
# getrusage may count the parent, from before this program was loaded.
print(tokens, re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1])
"""


def _import_huge(folder: Path, times: int) -> tuple[int, int]:
    """Import one document of `times` 2.7 MB without structures to cut at; return its tokens and the peak in kB."""
    folder.mkdir()
    lines = b"".join(b"%s\tN\tword\n" % os.urandom(9).hex().encode() for _ in range(100_000))
    with (
        (folder / "huge.vert.zst").open("wb") as out,
        zstandard.ZstdCompressor().stream_writer(out) as stream,
    ):
        stream.write(b"<doc id='huge'>\n")
        for _ in range(times):
            stream.write(lines)
    line = [sys.executable, "-c", MEASURED, str(folder / "corpus"), str(folder / "huge.vert.zst")]
    done = subprocess.run(line, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    tokens, kilobytes = map(int, done.stdout.split())
    return tokens, kilobytes


@pytest.mark.growth
def test_a_huge_document_is_cut_and_takes_no_more_memory_than_its_parts(tmp_path: Path) -> None:
    half_tokens, half_kilobytes = _import_huge(tmp_path / "half", 55)  # three parts, two of them full
    tokens, kilobytes = _import_huge(tmp_path / "whole", 110)  # 297 MB
    assert (half_tokens, tokens) == (5_500_000, 11_000_000)
    assert kilobytes < 1.1 * half_kilobytes
    (file,) = files(tmp_path / "whole" / "corpus")
    ids = [name for batch in file.batches(["id"]) for name in batch.column("id").to_pylist()]
    assert ids == ["huge", *(f"huge#{n}" for n in range(2, 6))]


def test_a_killed_import_leaves_no_documents(tmp_path: Path) -> None:
    line = [
        sys.executable,
        "-m",
        "thresher.cli",
        "import",
        "corpus",
        "-",
        "--lang",
        "cs",
        "--format",
        "jsonl",
    ]
    process = subprocess.Popen(line, cwd=tmp_path, stdin=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdin and process.stderr
    text = json.dumps({"text": "word " * 200_000}).encode() + b"\n"
    imports = tmp_path / "corpus" / "imports"
    while not any(path.stat().st_size for path in imports.glob("000001.parquet.*.tmp")):
        process.stdin.write(text)
        process.stdin.flush()
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdin.close()
    process.stderr.close()
    assert len(stored_files(tmp_path)) == 1
    assert list(documents(tmp_path / "corpus")) == []
    bring(tmp_path, "a.vert", VERTICAL_EXAMPLE)
    assert stored_files(tmp_path) == ["000001.parquet"]


def test_an_interrupted_import_keeps_complete_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = write_texts(tmp_path, 2)

    def interrupt(_: int, calls: list[int] = []) -> None:  # noqa: B006 - counts across calls
        calls.append(1)
        if len(calls) == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        import_files(tmp_path / "corpus", [first, second], language="cs", progress=interrupt)
    assert [document.source for document in documents(tmp_path / "corpus")] == [first.name]
    assert stored_files(tmp_path) == ["000001.parquet"]


def test_tiny_documents_are_written_before_they_fill_the_memory(tmp_path: Path) -> None:
    bring(tmp_path, "a.txt", b"a\n" * 50_000, split="line")
    (file,) = files(tmp_path / "corpus")
    assert file.rows == 50_000
    groups = pq.ParquetFile(file.path).metadata
    assert max(groups.row_group(n).num_rows for n in range(groups.num_row_groups)) < 20_000


def test_a_corpus_in_use_names_the_process(tmp_path: Path) -> None:
    bring(tmp_path, "a.vert", VERTICAL_EXAMPLE)
    with (tmp_path / "corpus" / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        lock.write("4711\n")
        lock.flush()
        with pytest.raises(DataError, match=r"corpus is in use by process 4711; wait"):
            bring(tmp_path, "b.txt", b"One.")
    assert bring(tmp_path, "b.txt", b"One.").documents == 1


def test_a_foreign_file_among_the_imports_is_named(tmp_path: Path) -> None:
    bring(tmp_path, "a.vert", VERTICAL_EXAMPLE)
    stranger = tmp_path / "corpus" / "imports" / "000002.parquet"
    stranger.write_bytes(parquet())
    with pytest.raises(
        CorpusError, match=r"000002\.parquet is damaged or not a file of imports.*restore or delete"
    ):
        files(tmp_path / "corpus")
    stranger.write_bytes(b"PAR1")
    with pytest.raises(CorpusError, match="000002"):
        files(tmp_path / "corpus")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"format": "html"}, "unknown format 'html'; choose one of vertical"),
        ({"files": ["a.doc"]}, r"a\.doc: the format does not follow from the name.*--format"),
        ({"files": ["none.txt"]}, "none.txt does not exist"),
        ({"files": ["."]}, "is a directory"),
        ({"files": ["-"]}, "the format does not follow from the name"),
        ({"attributes": ["word"]}, "--attributes applies to vertical; no file has that format"),
        ({"split": "line", "format": "jsonl"}, "--split applies to text"),
        ({"text_column": "body"}, "--text-column applies to jsonl and parquet"),
        (
            {"attributes": ["lemma"], "format": "vertical"},
            r"the first column must be the word; try word,lemma",
        ),
        ({"attributes": ["word", "a b"], "format": "vertical"}, "'a b' is not a name"),
        ({"attributes": ["word", "word"], "format": "vertical"}, "each name may occur once"),
        ({"language": ""}, "a new corpus needs a language"),
    ],
)
def test_a_mistake_is_refused_before_anything_is_created(
    tmp_path: Path, options: dict[str, Any], message: str
) -> None:
    for name in ("a.txt", "a.doc"):
        (tmp_path / name).write_text("One.")
    given = [Path("-") if name == "-" else tmp_path / name for name in options.pop("files", ["a.txt"])]
    with pytest.raises(UsageError, match=message):
        import_files(tmp_path / "corpus", given, **{"language": "cs", **options})
    assert not (tmp_path / "corpus").exists()


def test_an_import_needs_a_corpus_of_the_same_language_or_an_empty_directory(tmp_path: Path) -> None:
    bring(tmp_path, "a.txt", b"One.")
    with pytest.raises(UsageError, match="corpus in 'cs', not 'sk'"):
        import_files(tmp_path / "corpus", [tmp_path / "a.txt"], language="sk")
    with pytest.raises(UsageError, match="not a corpus and not empty"):
        import_files(tmp_path, [tmp_path / "a.txt"], language="cs")


def test_a_named_pipe_is_read_like_standard_input(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with ThreadPoolExecutor(1) as other:
        other.submit((tmp_path / "pipe").write_bytes, gzip.compress(VERTICAL_EXAMPLE))
        found = import_files(tmp_path / "corpus", [tmp_path / "pipe"], format="vertical", language="cs")
    assert (found.files, found.tokens) == (("pipe",), 2)


def test_bytes_of_a_name_that_are_not_utf8_are_replaced(tmp_path: Path) -> None:
    path = Path(os.fsdecode(os.fsencode(tmp_path) + b"/p\xf8\xedklad.txt"))
    path.write_text("One.")
    assert import_files(tmp_path / "corpus", [path], language="cs").documents == 1
    (document,) = documents(tmp_path / "corpus")
    assert document.id == "p\ufffd\ufffdklad.txt#1"


def test_standard_input_is_recognised_the_second_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for expected in ((), ("stdin",)):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(VERTICAL_EXAMPLE)))
        found = import_files(tmp_path / "corpus", [Path("-")], format="vertical", language="cs")
        assert found.skipped == expected
    assert stored_files(tmp_path) == ["000001.parquet"]
