"""The command `import`: its options, reports and exit codes."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from support.corpora.imported_pages import pages, text, texts
from support.corpora.imports import (
    EXAMPLES,
    PACKERS,
    VERTICAL_EXAMPLE,
    bring,
    run_import,
    stored_files,
    words,
)
from support.samples.archive_files import packed, page, response
from thresher.importing.formats.registry import FORMATS
from thresher.store.imported_files import documents, files


def test_a_full_disk_leaves_no_partial_file(tmp_path: Path) -> None:
    """A limit on the size of files stands in for a disk."""
    (tmp_path / "a.txt").write_text(os.urandom(6 << 20).hex())
    full = run_import(
        *("corpus", "a.txt", "--lang", "cs"),
        cwd=tmp_path,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20)),
    )
    assert (full.returncode, stored_files(tmp_path)) == (1, [])
    assert "File too large" in full.stderr
    assert run_import("corpus", "a.txt", cwd=tmp_path).returncode == 0
    assert stored_files(tmp_path) == ["000001.parquet"]


def test_files_imported_before_the_disk_was_full_are_reported(tmp_path: Path) -> None:
    """The first file is large enough to be closed before the second; the third would not be reached."""
    (tmp_path / "a.jsonl").write_text('{"text": "One."}')
    (tmp_path / "b.txt").write_text(os.urandom(6 << 20).hex())
    (tmp_path / "c.vert").write_bytes(VERTICAL_EXAMPLE)
    full = run_import(
        *("corpus", "a.jsonl", "b.txt", "c.vert", "--lang", "cs", "--json"),
        cwd=tmp_path,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20)),
    )
    assert full.returncode == 1 and "File too large" in full.stderr
    report = json.loads(full.stdout)
    assert (report["files"], report["documents"]) == (["a.jsonl"], 1)
    assert [document.source for document in documents(tmp_path / "corpus")] == ["a.jsonl"]
    assert "1 document imported from 1 of 3 files" in full.stderr


def test_refused_files_are_reported_and_others_imported(tmp_path: Path) -> None:
    for name, data in EXAMPLES.values():
        (tmp_path / name).write_bytes(data)
    (tmp_path / "bad.vert").write_text("a\tb\n")
    (tmp_path / "secret.txt").write_text("One.")
    (tmp_path / "secret.txt").chmod(0)
    names = ["a.vert", "bad.vert", "secret.txt", "a.txt"]
    if os.access(tmp_path / "secret.txt", os.R_OK):  # for a superuser there are no secrets
        names.remove("secret.txt")
    shown = run_import("corpus", *names, "--lang", "cs", "--json", cwd=tmp_path)
    assert shown.returncode == 1
    report = json.loads(shown.stdout)
    assert report["files"] == ["a.vert", "a.txt"]
    assert [each["file"] for each in report["refused"]] == names[1:-1]
    assert f"imported from 2 of {len(names)} files; {len(names) - 2} refused" in shown.stderr
    assert all(each["why"] in shown.stderr for each in report["refused"])


@pytest.mark.parametrize("name", FORMATS)
def test_the_command_imports_every_format(tmp_path: Path, name: str) -> None:
    file, data = EXAMPLES[name]
    (tmp_path / file).write_bytes(data)
    shown = run_import("corpus", file, "--lang", "cs", "--json", cwd=tmp_path)
    assert shown.returncode == 0, shown.stderr
    report = json.loads(shown.stdout)
    assert (report["files"], report["documents"], report["skipped"], report["remarks"]) == ([file], 1, [], [])
    assert "1 document " in shown.stderr


def test_the_command_names_skipped_files(tmp_path: Path) -> None:
    bring(tmp_path, "a.vert", VERTICAL_EXAMPLE)
    shown = run_import("corpus", "a.vert", cwd=tmp_path)
    assert shown.returncode == 0
    assert "a.vert was imported before and is skipped" in shown.stderr
    assert "0 documents imported from 0 of 1 file" in shown.stderr


@pytest.mark.parametrize(
    ("name", "pack"),
    [("text", bytes), ("parquet", bytes), *(("vertical", each) for each in PACKERS.values())],
)
def test_the_command_reads_standard_input_packed_or_not(
    tmp_path: Path, name: str, pack: Callable[[bytes], bytes]
) -> None:
    (tmp_path / "data").write_bytes(pack(EXAMPLES[name][1]))
    with (tmp_path / "data").open("rb") as data:
        shown = run_import("corpus", "-", "--format", name, "--lang", "cs", cwd=tmp_path, stdin=data)
    assert shown.returncode == 0, shown.stderr
    (document,) = documents(tmp_path / "corpus")
    assert document.source == "stdin"


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["corpus", "bad.vert", "--lang", "cs"], 1, "bad.vert, line 1 has 2 columns"),
        (["corpus", "none.vert", "--lang", "cs"], 2, "does not exist"),
        (["corpus", "bad.vert"], 2, "--lang"),
        (["corpus", "bad.vert", "--lang", "czech-ish"], 2, "did you mean"),
        (["corpus", "bad.vert", "--format", "docx"], 2, "docx"),
        (["corpus", "bad.vert", "--langg", "cs"], 2, "unknown option --langg"),
        (["corpus"], 2, "FILE"),
    ],
)
def test_a_mistake_on_the_command_line_has_a_message_and_an_exit_code(
    tmp_path: Path, arguments: list[str], code: int, message: str
) -> None:
    (tmp_path / "bad.vert").write_text("a\tb\n")
    shown = run_import(*arguments, cwd=tmp_path)
    assert (shown.returncode, message in shown.stderr) == (code, True), shown.stderr


def test_the_options_of_the_command_reach_the_import(tmp_path: Path) -> None:
    (tmp_path / "a.vert").write_text("<c n='1'>\na\tb\n&lt;\tc\n</c>\n<c n='2'>\nd\te\n</c>\n")
    options = ["--attributes", "word, tag", "--document", "c", "--entities", "--lang", "cs"]
    assert run_import("corpus", "a.vert", *options, cwd=tmp_path).returncode == 0
    first, second = documents(tmp_path / "corpus")
    assert (words(first), second.meta) == (["a", "<"], {"n": "2"})
    assert files(tmp_path / "corpus")[0].attributes == ("word", "tag")
    (tmp_path / "b.txt").write_text("One.\nTwo.")
    assert "2 documents" in run_import("corpus", "b.txt", "--split", "line", cwd=tmp_path).stderr
    (tmp_path / "c.jsonl").write_text('{"body": "Three."}')
    assert "1 document " in run_import("corpus", "c.jsonl", "--text-column", "body", cwd=tmp_path).stderr


def test_the_command_has_help_with_an_example() -> None:
    shown = run_import("--help")
    assert "Example: thresher import" in shown.stdout


def test_a_refused_archive_is_reported_and_others_are_imported(tmp_path: Path) -> None:
    (tmp_path / "a.warc.gz").write_bytes(packed(response("http://a.uk/1", page(1))))
    (tmp_path / "empty.warc.gz").write_bytes(b"")
    (tmp_path / "b.warc.gz").write_bytes(packed(response("http://a.uk/2", page(2))))
    (tmp_path / "bad.vert").write_text("a\tb\n")
    (tmp_path / "c.vert").write_bytes(VERTICAL_EXAMPLE)
    names = ["a.warc.gz", "empty.warc.gz", "bad.vert", "b.warc.gz", "c.vert"]
    done = run_import("corpus", *names, "--lang", "en", "--json", cwd=tmp_path)
    assert done.returncode == 1
    report = json.loads(done.stdout)
    assert sorted(report["files"]) == ["a.warc.gz", "b.warc.gz", "c.vert"]
    assert [each["file"] for each in report["refused"]] == ["bad.vert", "empty.warc.gz"]
    assert report["pages"]["kept"] == 2
    assert "a.warc.gz: 1 record, 1 page, 1 kept" in done.stderr
    assert "3 documents with 2 tokens imported from 3 of 5 files; 2 refused" in done.stderr
    assert "empty.warc.gz has no readable record; if it is an archive, get it once more" in done.stderr
    assert texts(pages(tmp_path)) == [text(1), text(2)]
    again = run_import("corpus", *names, cwd=tmp_path)
    assert again.returncode == 1 and again.stderr.count("was imported before") == 3


def test_the_command_takes_all_formats_at_once_and_writes_counts_as_json(tmp_path: Path) -> None:
    (tmp_path / "a.warc.gz").write_bytes(
        packed(response("http://a.uk/1", page(1)), response("http://a.uk/2", b"-"))
    )
    (tmp_path / "b.html").write_bytes(page(2))
    (tmp_path / "c.vert").write_bytes(VERTICAL_EXAMPLE)
    names = ["a.warc.gz", "b.html", "c.vert"]
    done = run_import("corpus", *names, "--lang", "en", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert (report["documents"], sorted(report["files"])) == (3, names)
    assert report["pages"]["kept"] == 2 and report["pages"]["rejected"] == {"too little html": 1}
    assert "rejected: 1 × too little html" in done.stderr
    assert "3 documents with 2 tokens imported from 3 of 3 files" in done.stderr


def test_an_archive_may_come_through_a_pipe(tmp_path: Path) -> None:
    data = packed(response("http://a.uk/1", page(1)))
    done = run_import("corpus", "-", "--format", "warc", "--lang", "en", cwd=tmp_path, input=data)
    assert done.returncode == 0, done.stderr
    (found,) = pages(tmp_path)
    assert (found.text, found.warc_file) == (text(1), None)
    again = run_import("corpus", "-", "--format", "warc", cwd=tmp_path, input=data)
    assert "was imported before" in again.stderr


def test_a_directory_of_archives_is_refused_with_the_fix(tmp_path: Path) -> None:
    (tmp_path / "warcs").mkdir()
    done = run_import("corpus", "warcs", "--format", "warc", "--lang", "en", cwd=tmp_path)
    assert done.returncode == 2
    assert "warcs is a directory; give the archives in it: warcs/*" in done.stderr
    assert not (tmp_path / "corpus").exists()


@pytest.mark.parametrize("format", ["warc", "html"])
def test_an_import_that_waits_for_its_input_can_be_interrupted(tmp_path: Path, format: str) -> None:
    line = [sys.executable, "-m", "thresher.cli", "import", "corpus", "-", "--format", format, "--lang", "en"]
    pipe = subprocess.PIPE
    with subprocess.Popen(line, cwd=tmp_path, stdin=pipe, stderr=pipe) as process:
        assert process.stdin and process.stderr
        imports = tmp_path / "corpus" / "imports"
        while not any(imports.glob("pages-000001.parquet.*.tmp")):
            assert process.poll() is None
        process.send_signal(signal.SIGINT)
        try:
            assert process.wait(timeout=60) == 130
        finally:
            process.kill()
        output = process.stderr.read()
    assert b"Fatal" not in output and b"Traceback" not in output
    assert not any(imports.iterdir())
    assert b"0 documents imported from 0 of 1 file" in output
