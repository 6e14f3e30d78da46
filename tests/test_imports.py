"""Imports: each file is there whole or not at all, and once, whatever its format and whatever happens."""

from __future__ import annotations

import bz2
import fcntl
import gzip
import hashlib
import io
import json
import lzma
import os
import resource
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

from importing import VERTICAL_EXAMPLE, bring, check, words
from thresher.config import ConfigError, load
from thresher.store.corpus import CorpusError
from thresher.store.files import StoreError
from thresher.store.importers import writer
from thresher.store.importers.formats import FORMATS, SUFFIXES
from thresher.store.importers.source import ImportFault
from thresher.store.imports import documents, files, import_files

VERTICAL = VERTICAL_EXAMPLE


def parquet(text: str = "One.") -> bytes:
    out = io.BytesIO()
    pq.write_table(pa.table({"id": ["p"], "text": [text]}), out)
    return out.getvalue()


EXAMPLES = {
    "vertical": ("a.vert", VERTICAL),
    "text": ("a.txt", b"One.\nTwo.\n"),
    "conllu": ("a.conllu", b"# newdoc id = c\n1\tA\ta\tDET\t_\t_\t_\t_\t_\t_\n\n"),
    "tei": ("a.xml", b"<TEI xml:id='t'><text><p><w>A</w></p></text></TEI>"),
    "jsonl": ("a.jsonl", b'{"id": "j", "text": "One."}\n'),
    "parquet": ("a.parquet", parquet()),
}
DAMAGED = {
    "vertical": b"a\tb\n",
    "conllu": b"1\ta\n",
    "tei": b"<TEI><text>",
    "jsonl": b'{"text": "a"}\n{',
    "parquet": parquet()[:-9],
    "text": "a".encode("utf-16"),
}
PACKERS: dict[str, Callable[[bytes], bytes]] = {
    ".gz": gzip.compress,
    ".zst": zstandard.ZstdCompressor().compress,
    ".xz": lzma.compress,
    ".bz2": bz2.compress,
}


def stored(directory: Path) -> list[str]:
    """Names of all files in the folder of imports."""
    return sorted(path.name for path in (directory / "corpus" / "imports").glob("*"))


def test_every_format_has_an_example_here_and_a_suffix() -> None:
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
def test_of_a_damaged_file_nothing_is_imported(tmp_path: Path, name: str) -> None:
    file, data = EXAMPLES[name]
    bring(tmp_path, file, data)
    with pytest.raises(ImportFault, match=f"bad-{file}"):
        bring(tmp_path, f"bad-{file}", DAMAGED[name])
    assert stored(tmp_path) == ["000001.parquet"]
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
        ImportFault, match=rf"a\.txt{suffix} (is cut off|cannot be unpacked).*get it once more"
    ):
        bring(tmp_path, f"a.txt{suffix}", packed)
    assert stored(tmp_path) == []


@pytest.mark.parametrize("suffix", PACKERS)
def test_a_packed_file_may_be_several_on_end(tmp_path: Path, suffix: str) -> None:
    bring(tmp_path, f"a.txt{suffix}", PACKERS[suffix](b"One.\nTw") + PACKERS[suffix](b"o.\n"))
    assert [document.text for document in documents(tmp_path / "corpus")] == ["One.\nTwo."]


def test_the_table_is_as_it_is_promised(tmp_path: Path) -> None:
    bring(tmp_path, "a.vert", VERTICAL)
    path = tmp_path / "corpus" / "imports" / "000001.parquet"
    schema = pq.read_schema(path)
    assert schema.names == ["id", "source", "number", "meta", "text", "tokens", "count"]
    assert schema.field("text").type == pa.large_string()
    assert schema.field("tokens").type == pa.large_binary()
    assert schema.field("meta").type == pa.map_(pa.string(), pa.string())
    told: dict[bytes, bytes] = schema.metadata
    assert told[b"thresher.attributes"] == b"word,pos,lemma"
    assert told[b"thresher.format"] == b"vertical"
    assert told[b"thresher.sha256"] == hashlib.sha256(VERTICAL).hexdigest().encode()
    assert told[b"thresher.language"] == b"cs"
    row = duckdb.sql(f"select id, source, number, meta['id'], text, tokens, count from '{path}'").fetchall()
    assert row == [("v", "a.vert", 1, "v", None, b"\x02s\nA\tX\ta\nb\tY\tb\n\x03s\n", 2)]


def test_a_file_that_was_imported_is_skipped_under_any_name(tmp_path: Path) -> None:
    bring(tmp_path, "a.vert", VERTICAL)
    again = bring(tmp_path, "b.vert", VERTICAL)
    assert (again.files, again.documents, again.skipped) == ((), 0, ("b.vert",))
    assert "b.vert was imported before and is skipped" in again.remarks[0]
    assert "000001.parquet" in again.remarks[0]
    assert stored(tmp_path) == ["000001.parquet"]
    (tmp_path / "corpus" / "imports" / "000001.parquet").unlink()
    assert bring(tmp_path, "b.vert", VERTICAL).documents == 1


def test_a_file_given_twice_is_imported_once(tmp_path: Path) -> None:
    for name in ("a.vert", "b.vert"):
        (tmp_path / name).write_bytes(VERTICAL)
    found = import_files(tmp_path / "corpus", [tmp_path / "a.vert", tmp_path / "b.vert"], language="cs")
    assert (found.files, found.skipped, found.documents) == (("a.vert",), ("b.vert",), 1)


def write_texts(directory: Path, count: int) -> list[Path]:
    paths = [directory / f"{number}.txt" for number in range(count)]
    for number, path in enumerate(paths):
        path.write_text(f"Text {number}.")
    return paths


def test_small_files_share_a_file_and_each_is_known_again(tmp_path: Path) -> None:
    paths = write_texts(tmp_path, 30)
    found = import_files(tmp_path / "corpus", paths, language="cs")
    assert (len(found.files), found.documents) == (30, 30)
    (shared,) = files(tmp_path / "corpus")
    assert len(shared.sha256) == len(shared.bytes) == shared.rows == 30
    assert [document.source for document in documents(tmp_path / "corpus")] == [path.name for path in paths]
    assert len(import_files(tmp_path / "corpus", paths).skipped) == 30


def test_who_wants_a_small_file_anew_is_told_of_those_that_share_its_own(tmp_path: Path) -> None:
    paths = write_texts(tmp_path, 3)
    import_files(tmp_path / "corpus", paths, language="cs")
    one, two, three = (path.name for path in paths)
    (told,) = import_files(tmp_path / "corpus", [paths[1]]).remarks
    shared = tmp_path / "corpus" / "imports" / "000001.parquet"
    assert told == (
        f"{two} was imported before and is skipped; to import it anew, delete {shared}, "
        f"and import the 2 other files anew that it has, too: {one}, {three}"
    )


def test_files_of_other_formats_and_attributes_do_not_share_one(tmp_path: Path) -> None:
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


def test_a_file_that_fails_late_takes_no_other_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its first documents are on disk by then, in a file of their own."""
    monkeypatch.setattr(writer, "ROW_GROUP_BYTES", 1_000)
    good, bad, last = write_texts(tmp_path, 3)
    bad = bad.rename(tmp_path / "bad.jsonl")
    bad.write_text('{"text": "Long enough, so that it is written out."}\n' * 200 + "{")
    with pytest.raises(ImportFault, match=r"^bad\.jsonl, line 201.*"):
        import_files(tmp_path / "corpus", [good, bad, last], language="cs")
    assert [document.source for document in documents(tmp_path / "corpus")] == [good.name, last.name]
    assert stored(tmp_path) == ["000001.parquet", "000002.parquet"]
    bad.write_text(bad.read_text()[:-1])
    found = import_files(tmp_path / "corpus", [good, bad, last])
    assert (found.skipped, found.files) == ((good.name, last.name), ("bad.jsonl",))
    assert stored(tmp_path) == ["000001.parquet", "000002.parquet", "000003.parquet"]


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
from thresher.store.imports import import_files

tokens = import_files(Path(sys.argv[1]), [Path(sys.argv[2])], language="cs").tokens
# What getrusage tells may be the parent's, from before this program was loaded.
print(tokens, re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1])
"""


def test_a_single_huge_document_is_cut_and_takes_no_more_memory_than_its_parts(tmp_path: Path) -> None:
    lines = b"".join(b"%s\tN\tword\n" % os.urandom(9).hex().encode() for _ in range(100_000))
    times = 110  # 297 MB, and no structure to cut at
    with (
        (tmp_path / "huge.vert.zst").open("wb") as out,
        zstandard.ZstdCompressor().stream_writer(out) as stream,
    ):
        stream.write(b"<doc id='huge'>\n")
        for _ in range(times):
            stream.write(lines)
    line = [sys.executable, "-c", MEASURED, str(tmp_path / "corpus"), str(tmp_path / "huge.vert.zst")]
    done = subprocess.run(line, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    tokens, kilobytes = map(int, done.stdout.split())
    assert tokens == 100_000 * times
    assert kilobytes < 420_000
    (file,) = files(tmp_path / "corpus")
    ids = [name for batch in file.batches(["id"]) for name in batch.column("id").to_pylist()]
    assert ids == ["huge", *(f"huge#{n}" for n in range(2, 6))]


def command(*arguments: str | Path, **options: Any) -> subprocess.CompletedProcess[str]:
    line = [sys.executable, "-m", "thresher.cli", "import", *map(str, arguments)]
    done = subprocess.run(line, capture_output=True, text=True, check=False, timeout=120, **options)
    assert "Traceback" not in done.stderr, done.stderr
    return done  # type: ignore[no-any-return]


def test_an_import_that_is_killed_leaves_nothing_that_counts(tmp_path: Path) -> None:
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
    temporary = tmp_path / "corpus" / "imports" / "000001.parquet.tmp"
    while not temporary.exists() or not temporary.stat().st_size:
        process.stdin.write(text)
        process.stdin.flush()
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdin.close()
    process.stderr.close()
    assert stored(tmp_path) == ["000001.parquet.tmp"]
    assert list(documents(tmp_path / "corpus")) == []
    bring(tmp_path, "a.vert", VERTICAL)
    assert stored(tmp_path) == ["000001.parquet"]


def test_an_interrupted_import_keeps_what_was_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = write_texts(tmp_path, 2)

    def interrupt(_: int, calls: list[int] = []) -> None:  # noqa: B006 - counts across calls
        calls.append(1)
        if len(calls) == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        import_files(tmp_path / "corpus", [first, second], language="cs", progress=interrupt)
    assert [document.source for document in documents(tmp_path / "corpus")] == [first.name]
    assert stored(tmp_path) == ["000001.parquet"]


def test_millions_of_tiny_documents_are_written_out_in_time(tmp_path: Path) -> None:
    bring(tmp_path, "a.txt", b"a\n" * 50_000, split="line")
    (file,) = files(tmp_path / "corpus")
    assert file.rows == 50_000
    groups = pq.ParquetFile(file.path).metadata
    assert max(groups.row_group(n).num_rows for n in range(groups.num_row_groups)) < 20_000


def test_a_full_disk_leaves_nothing_half(tmp_path: Path) -> None:
    """A limit on the size of files stands in for a disk."""
    (tmp_path / "a.txt").write_text(os.urandom(6 << 20).hex())
    full = command(
        *("corpus", "a.txt", "--lang", "cs"),
        cwd=tmp_path,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20)),
    )
    assert (full.returncode, stored(tmp_path)) == (1, [])
    assert "File too large" in full.stderr
    assert command("corpus", "a.txt", cwd=tmp_path).returncode == 0
    assert stored(tmp_path) == ["000001.parquet"]


def test_what_is_durable_before_the_disk_is_full_is_told(tmp_path: Path) -> None:
    """The first file is large enough to be closed before the second; the third would not be reached."""
    (tmp_path / "a.jsonl").write_text('{"text": "One."}')
    (tmp_path / "b.txt").write_text(os.urandom(6 << 20).hex())
    (tmp_path / "c.vert").write_bytes(VERTICAL)
    full = command(
        *("corpus", "a.jsonl", "b.txt", "c.vert", "--lang", "cs", "--json"),
        cwd=tmp_path,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20)),
    )
    assert full.returncode == 1 and "File too large" in full.stderr
    told = json.loads(full.stdout)
    assert (told["files"], told["documents"]) == (["a.jsonl"], 1)
    assert [document.source for document in documents(tmp_path / "corpus")] == ["a.jsonl"]
    assert "1 documents imported from 1 of 3 files" in full.stderr


def test_refused_files_do_not_stand_in_the_way_of_others_and_are_told(tmp_path: Path) -> None:
    for name, data in EXAMPLES.values():
        (tmp_path / name).write_bytes(data)
    (tmp_path / "bad.vert").write_text("a\tb\n")
    (tmp_path / "secret.txt").write_text("One.")
    (tmp_path / "secret.txt").chmod(0)
    names = ["a.vert", "bad.vert", "secret.txt", "a.txt"]
    if os.access(tmp_path / "secret.txt", os.R_OK):  # for a superuser there are no secrets
        names.remove("secret.txt")
    shown = command("corpus", *names, "--lang", "cs", "--json", cwd=tmp_path)
    assert shown.returncode == 1
    told = json.loads(shown.stdout)
    assert told["files"] == ["a.vert", "a.txt"]
    assert [each["file"] for each in told["refused"]] == names[1:-1]
    assert f"imported from 2 of {len(names)} files; {len(names) - 2} refused" in shown.stderr
    assert all(each["why"] in shown.stderr for each in told["refused"])


def test_a_corpus_in_use_says_by_whom(tmp_path: Path) -> None:
    bring(tmp_path, "a.vert", VERTICAL)
    with (tmp_path / "corpus" / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        lock.write("4711\n")
        lock.flush()
        with pytest.raises(StoreError, match=r"corpus is in use by process 4711; wait"):
            bring(tmp_path, "b.txt", b"One.")
    assert bring(tmp_path, "b.txt", b"One.").documents == 1


def test_a_stranger_among_the_imports_is_named(tmp_path: Path) -> None:
    bring(tmp_path, "a.vert", VERTICAL)
    stranger = tmp_path / "corpus" / "imports" / "000002.parquet"
    stranger.write_bytes(parquet())
    with pytest.raises(CorpusError, match=r"000002\.parquet is no import of ours.*restore or delete"):
        files(tmp_path / "corpus")
    stranger.write_bytes(b"PAR1")
    with pytest.raises(CorpusError, match="000002"):
        files(tmp_path / "corpus")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"format": "html"}, "no format 'html'; there are vertical"),
        ({"files": ["a.doc"]}, r"a\.doc: its name does not tell the format.*--format"),
        ({"files": ["none.txt"]}, "none.txt does not exist"),
        ({"files": ["."]}, "is a directory"),
        ({"files": ["-"]}, "does not tell the format"),
        ({"attributes": ["word"]}, "--attributes is for vertical; there is no such file"),
        ({"split": "line", "format": "jsonl"}, "--split is for text"),
        ({"text_column": "body"}, "--text-column is for jsonl and parquet"),
        ({"attributes": ["lemma"], "format": "vertical"}, r"the first column is the word; try word,lemma"),
        ({"attributes": ["word", "a b"], "format": "vertical"}, "'a b' is no name"),
        ({"attributes": ["word", "word"], "format": "vertical"}, "each name may stand there once"),
        ({"language": ""}, "which language"),
    ],
)
def test_a_mistake_is_named_before_anything_is_made(
    tmp_path: Path, options: dict[str, Any], message: str
) -> None:
    for name in ("a.txt", "a.doc"):
        (tmp_path / name).write_text("One.")
    given = [Path("-") if name == "-" else tmp_path / name for name in options.pop("files", ["a.txt"])]
    with pytest.raises(ConfigError, match=message):
        import_files(tmp_path / "corpus", given, **{"language": "cs", **options})
    assert not (tmp_path / "corpus").exists()


def test_a_corpus_of_another_language_or_no_corpus_is_not_written_to(tmp_path: Path) -> None:
    bring(tmp_path, "a.txt", b"One.")
    with pytest.raises(ConfigError, match="corpus in 'cs', not 'sk'"):
        import_files(tmp_path / "corpus", [tmp_path / "a.txt"], language="sk")
    with pytest.raises(ConfigError, match="not a corpus and not empty"):
        import_files(tmp_path, [tmp_path / "a.txt"], language="cs")


# The command line


@pytest.mark.parametrize("name", FORMATS)
def test_the_command_imports_every_format(tmp_path: Path, name: str) -> None:
    file, data = EXAMPLES[name]
    (tmp_path / file).write_bytes(data)
    shown = command("corpus", file, "--lang", "cs", "--json", cwd=tmp_path)
    assert shown.returncode == 0, shown.stderr
    told = json.loads(shown.stdout)
    assert (told["files"], told["documents"], told["skipped"], told["remarks"]) == ([file], 1, [], [])
    assert "1 documents" in shown.stderr


def test_the_command_says_what_it_skips(tmp_path: Path) -> None:
    bring(tmp_path, "a.vert", VERTICAL)
    shown = command("corpus", "a.vert", cwd=tmp_path)
    assert shown.returncode == 0
    assert "a.vert was imported before and is skipped" in shown.stderr
    assert "0 documents imported from 0 of 1 files" in shown.stderr


@pytest.mark.parametrize(
    ("name", "pack"),
    [("text", bytes), ("parquet", bytes), *(("vertical", each) for each in PACKERS.values())],
)
def test_the_command_reads_standard_input_packed_or_not(
    tmp_path: Path, name: str, pack: Callable[[bytes], bytes]
) -> None:
    (tmp_path / "data").write_bytes(pack(EXAMPLES[name][1]))
    with (tmp_path / "data").open("rb") as data:
        shown = command("corpus", "-", "--format", name, "--lang", "cs", cwd=tmp_path, stdin=data)
    assert shown.returncode == 0, shown.stderr
    (document,) = documents(tmp_path / "corpus")
    assert document.source == "stdin"


def test_a_pipe_with_a_name_is_read_as_standard_input_is(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with ThreadPoolExecutor(1) as other:
        other.submit((tmp_path / "pipe").write_bytes, gzip.compress(VERTICAL))
        found = import_files(tmp_path / "corpus", [tmp_path / "pipe"], format="vertical", language="cs")
    assert (found.files, found.tokens) == (("pipe",), 2)


def test_a_name_that_is_not_utf8_is_kept_as_far_as_it_can_be(tmp_path: Path) -> None:
    path = Path(os.fsdecode(os.fsencode(tmp_path) + b"/p\xf8\xedklad.txt"))
    path.write_text("One.")
    assert import_files(tmp_path / "corpus", [path], language="cs").documents == 1
    (document,) = documents(tmp_path / "corpus")
    assert document.id == "p\ufffd\ufffdklad.txt#1"


def test_standard_input_is_known_again_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for expected in ((), ("stdin",)):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(VERTICAL)))
        found = import_files(tmp_path / "corpus", [Path("-")], format="vertical", language="cs")
        assert found.skipped == expected
    assert stored(tmp_path) == ["000001.parquet"]


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["corpus", "bad.vert", "--lang", "cs"], 1, "bad.vert, line 1 has 2 columns"),
        (["corpus", "none.vert", "--lang", "cs"], 2, "does not exist"),
        (["corpus", "bad.vert"], 2, "--lang"),
        (["corpus", "bad.vert", "--lang", "czech-ish"], 2, "did you mean"),
        (["corpus", "bad.vert", "--format", "docx"], 2, "docx"),
        (["corpus", "bad.vert", "--langg", "cs"], 2, "no option --langg"),
        (["corpus"], 2, "FILE"),
    ],
)
def test_a_mistake_on_the_command_line_gets_a_message_and_its_exit_code(
    tmp_path: Path, arguments: list[str], code: int, message: str
) -> None:
    (tmp_path / "bad.vert").write_text("a\tb\n")
    shown = command(*arguments, cwd=tmp_path)
    assert (shown.returncode, message in shown.stderr) == (code, True), shown.stderr


def test_the_options_of_the_command_reach_the_import(tmp_path: Path) -> None:
    (tmp_path / "a.vert").write_text("<c n='1'>\na\tb\n&lt;\tc\n</c>\n<c n='2'>\nd\te\n</c>\n")
    options = ["--attributes", "word, tag", "--document", "c", "--entities", "--lang", "cs"]
    assert command("corpus", "a.vert", *options, cwd=tmp_path).returncode == 0
    first, second = documents(tmp_path / "corpus")
    assert (words(first), second.meta) == (["a", "<"], {"n": "2"})
    assert files(tmp_path / "corpus")[0].attributes == ("word", "tag")
    (tmp_path / "b.txt").write_text("One.\nTwo.")
    assert "2 documents" in command("corpus", "b.txt", "--split", "line", cwd=tmp_path).stderr
    (tmp_path / "c.jsonl").write_text('{"body": "Three."}')
    assert "1 documents" in command("corpus", "c.jsonl", "--text-column", "body", cwd=tmp_path).stderr


def test_the_command_has_help_with_an_example() -> None:
    shown = command("--help")
    assert "Example: thresher import" in shown.stdout
