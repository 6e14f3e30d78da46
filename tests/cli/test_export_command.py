"""The commands export and forget on the command line."""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path
from typing import get_args

import pytest

from support.command_line import CommandResult, run
from support.corpora.batch_corpora import Here, recipe, write_shard
from support.corpora.exports import TEXTS, make
from thresher.cli.commands.exporting import FormatName
from thresher.exporting.registry import FORMATS
from thresher.importing.corpora import import_files
from thresher.pipeline.runs.run import process

pytestmark = pytest.mark.slow


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    (tmp_path / "corpus").mkdir()
    make(tmp_path / "corpus", TEXTS)
    return tmp_path


def export(where: Path, *arguments: str) -> CommandResult:
    return run("export", "corpus", *arguments, cwd=where)


def test_the_command_knows_every_format() -> None:
    assert get_args(FormatName) == tuple(FORMATS)


def test_export_guesses_the_format_and_an_explicit_one_wins(corpus: Path) -> None:
    assert run("export", corpus / "corpus", "-o", corpus / "x.jsonl.gz")[0] == 0
    assert gzip.decompress((corpus / "x.jsonl.gz").read_bytes()).startswith(b'{"url":')
    assert run("export", corpus / "corpus", "--format", "txt", "-o", corpus / "x.jsonl")[0] == 0
    assert (corpus / "x.jsonl").read_text().startswith("# title:")
    code, _, err = run("export", corpus / "corpus")
    assert code == 2 and "give --format, one of jsonl" in err


def test_export_reports_left_out_documents_by_reason(corpus: Path) -> None:
    done = export(corpus, "--format", "vertical", "-o", "out.vert.zst", "--json", "--processes", "1")
    assert json.loads(done.stdout) == {
        "documents": 2,
        "left_out": {"opted out": 1},
        "attributes": ["word", "lemma"],
        "output": "out.vert.zst",
    }
    assert "2 of 3 documents written" in done.stderr
    assert "left out: 1 × opted out" in done.stderr
    assert "--entities --attributes word,lemma" in done.stderr
    again = run(
        "import",
        "again",
        "out.vert.zst",
        "--lang",
        "cs",
        "--entities",
        "--attributes",
        "word,lemma",
        cwd=corpus,
    )
    assert "2 documents with" in again.stderr


def test_every_option_reaches_the_export(corpus: Path) -> None:
    options = [
        "--lang",
        "cs",
        "--min-language-share",
        "0.5",
        "--host",
        "a.cz",
        "*.b.cz",
        "--tld",
        "cz",
        "--opted-out",
    ]
    options += ["--from", "2026", "--to", "2026-12", "--annotator", "plain"]
    done = export(corpus, "--format", "conllu", *options)
    assert done.stdout.startswith("# newdoc id = http://a.cz/0")
    assert "3 of 3 documents" in done.stderr
    for option in (["--max-badness", "10"], ["--license", "by"], ["--lang", "de"]):
        assert "0 of 3" in export(corpus, "--format", "txt", *option).stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--format", "xml"], "xml"),
        (["--format", "huggingface"], "-o FOLDER"),
        (["--format", "txt", "--from", "yesterday"], "since must be a date, got 'yesterday'"),
        (["--format", "txt", "-o", "nodir/o.txt"], "nodir is not a directory; create it first"),
        (["-o", "corpus/docs/new.jsonl"], "docs of the corpus"),
        (["--format", "txt", "-o", "corpus/corpus.toml"], "choose another name or folder"),
        (["--format", "txt", "--tld", "co.uk"], "'co.uk' is not a top-level domain"),
        (["--format", "vertical", "--processes", "-1"], "Must be >= 0"),
        (["--format", "txt", "--lang", "xx-nonsense"], "unknown language"),
    ],
)
def test_a_mistake_gets_a_message_with_its_fix(corpus: Path, arguments: list[str], message: str) -> None:
    done = export(corpus, *arguments)
    assert "Traceback" not in done.stderr
    assert done.returncode == 2 or {"xml", "-1"} & {*arguments}
    assert message in done.stderr + done.stdout


def test_imports_that_were_not_processed_are_reported_with_a_fix(tmp_path: Path) -> None:
    directory = tmp_path / "corpus"
    directory.mkdir()
    write_shard(directory, 0, ["jedna", "dva"])
    recipe(directory, {"step": "exact_duplicates"})
    (tmp_path / "copies.jsonl").write_text('{"text": "jedna"}\n' * 4)
    import_files(directory, [tmp_path / "copies.jsonl"])
    process(directory, Here())
    reported = export(tmp_path, "--format", "txt", "--processed").stderr
    assert "2 of 6 documents written" in reported and "left out: 4 × imported, and not processed" in reported
    assert "an export without --processed has imports" in reported
    reported = export(tmp_path, "--format", "txt").stderr
    assert "6 of 6 documents written" in reported and "--processed" not in reported


def test_forget_reports_the_removed_records(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"id": "1", "text": "a"}\n{"url": "https://b.cz/x", "text": "b"}\n')
    run("import", "corpus", "a.jsonl", "--lang", "cs", cwd=tmp_path)
    reported = run("forget", "corpus", "--host", "b.cz", "--dry-run", "--json", cwd=tmp_path)
    assert json.loads(reported.stdout)["imports"] == 1
    assert "to be forgotten: 1 imported documents" in reported.stderr
    assert "forgotten: 1 imported documents" in run("forget", "corpus", "--host", "b.cz", cwd=tmp_path).stderr
    assert (
        "forgotten: nothing: no such documents"
        in run("forget", "corpus", "--host", "b.cz", cwd=tmp_path).stderr
    )
    assert len((tmp_path / "corpus" / "forgotten.jsonl").read_text().splitlines()) == 2
    reported = run("forget", "corpus", "--url", "www.b.cz/x", "1", "--dry-run", cwd=tmp_path).stderr
    assert "--url 'www.b.cz/x' has no https:// and is not the id of an imported document" in reported
    assert "--url https://www.b.cz/x" in reported and reported.count("is not the id") == 1
    done = run("forget", "corpus", "--url", os.fsdecode(b"\xff"), cwd=tmp_path)
    assert (done.returncode, "is not UTF-8" in done.stderr) == (2, True)
    done = run("forget", "corpus", cwd=tmp_path)
    assert (done.returncode, "give --url, --host or --domain" in done.stderr) == (2, True)
