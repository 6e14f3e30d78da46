"""Commands that query a corpus: results for people, for machines and in files; mistakes with their fix."""

from __future__ import annotations

import csv
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import thresher
from support.command_line import in_terminal, run
from support.corpora.exports import TEXTS, make
from thresher.importing.corpora import import_files
from thresher.search.index.update import update

VERTICAL = """<doc id="a" year="2001" site="x.org">
<p>
<s>
The\tAT0\tthe
old\tAJ0\told
cat\tNN1\tcat
sleeps\tVVZ\tsleep
.\tPUN\t.
</s>
<s>
Cats\tNN2\tcat
sleep\tVVB\tsleep
</s>
</p>
</doc>
<doc id="b" year="2010" site="y.org">
<s>
An\tAT0\ta
old\tAJ0\told
dog\tNN1\tdog
sleeps\tVVZ\tsleep
</s>
</doc>
"""


@pytest.fixture
def imported(tmp_path: Path) -> Path:
    """Return a corpus of two imported documents, indexed in their order."""
    (tmp_path / "small.vert").write_text(VERTICAL)
    directory = tmp_path / "corpus"
    import_files(directory, [tmp_path / "small.vert"], language="en")
    update(directory, order="input")
    return directory


def test_a_vertical_file_is_imported_indexed_and_counted(tmp_path: Path) -> None:
    (tmp_path / "small.vert").write_text(VERTICAL)
    given = (
        "import",
        "c",
        "small.vert",
        "--lang",
        "en",
        "--format",
        "vertical",
        "--attributes",
        "word,pos,lemma",
    )
    assert run(*given, cwd=tmp_path).returncode == 0
    made = json.loads(run("index", "c", "--order", "input", "--json", cwd=tmp_path).stdout)
    assert (made["documents"], made["tokens"], made["order"]) == (2, 11, "input")
    assert made["attributes"] == ["word", "pos", "lemma", "lc"]
    query = '[lemma="old"] [pos="NN."]'
    assert json.loads(run("search", "c", query, "--count", "--json", cwd=tmp_path).stdout) == {"hits": 2}
    found = json.loads(run("search", "c", query, "--spans", "--json", cwd=tmp_path).stdout)
    assert found == {"hits": 2, "spans": [[1, 2], [8, 9]]}
    longest = run(
        "search", "c", '[pos="A.*"]+ []', "--strategy", "longest", "--spans", "--json", cwd=tmp_path
    )
    assert json.loads(longest.stdout)["spans"] == [[0, 2], [7, 9]]
    again = json.loads(run("index", "c", "--json", cwd=tmp_path).stdout)
    assert (again["added"], again["deleted"], again["order"]) == (0, 0, "input")


def test_hits_are_lines_of_json_and_of_context_for_people(imported: Path) -> None:
    hits = run("search", imported, '[lemma="cat"]', "--json", "--meta", "doc_id").rows()
    assert [(hit["first"], hit["match"], hit["doc_id"]) for hit in hits] == [
        (2, "cat", "a"),
        (5, "Cats", "a"),
    ]
    assert hits[0]["left"] == "The old"
    shown = run("search", imported, '[lemma="cat"]')
    assert "The old  cat " in shown.stdout
    assert "2 hits" in shown.stderr


ANALYSES = [
    ("freq", ("[]", "--by", "lemma@match"), {"value": "sleep", "count": 3}),
    ("freq", ('[pos="V.*"]', "--by", "pos@match", "doc_year"), {"count": 1}),
    ("collocates", ('"old"', "--minimum", "2", "--attribute", "lemma"), {"value": "sleep", "joint": 3}),
    ("collocates", ('"dog"', "--minimum", "1", "--window", "-1,-1"), {"value": "old", "joint": 1}),
    ("distribution", ("[]", "--by", "doc_site"), {"value": "x.org", "hits": 7}),
    ("dispersion", ('"old"',), {"hits": 2}),
    ("dispersion", ('"old"', "--parts", "2"), {"parts": 2}),
    ("words", ("--attribute", "lc", "--matching", "s.*"), {"value": "sleeps", "count": 2}),
    ("words", ("--no-spread", "--limit", "1"), {"value": "old"}),
    ("ngrams", ("2", "--attribute", "pos"), {"value": "AJ0 NN1", "count": 2}),
    ("retrieve", ("old", "dog", "--unit", "s", "--rank", "rarity=2"), {"text": "An old dog sleeps"}),
    ("retrieve", ("old dog", "--unit", "s"), {"text": "An old dog sleeps"}),
]
OLD_FLAGS = [
    ("freq", ("[]", "--freq", "lemma@match"), {"value": "sleep", "count": 3}),
    ("freq", ('[pos="V.*"]', "--freq", "pos@match", "--by", "doc_year"), {"count": 1}),
    (
        "collocates",
        ('"old"', "--collocates", "--minimum", "2", "--attribute", "lemma"),
        {"value": "sleep", "joint": 3},
    ),
    ("distribution", ("[]", "--distribution", "doc_site"), {"value": "x.org", "hits": 7}),
    ("dispersion", ('"old"', "--dispersion"), {"hits": 2}),
    ("words", ("--words", "--attribute", "lc", "--matching", "s.*"), {"value": "sleeps", "count": 2}),
    ("ngrams", ("--ngrams", "2", "--attribute", "pos"), {"value": "AJ0 NN1", "count": 2}),
    (
        "retrieve",
        ("--retrieve", "old dog", "--unit", "s", "--rank", "rarity=2"),
        {"text": "An old dog sleeps"},
    ),
]


@pytest.mark.parametrize(("command", "options", "first"), ANALYSES)
def test_every_analysis_is_a_command(
    imported: Path, command: str, options: tuple[str, ...], first: dict[str, object]
) -> None:
    done = run(command, imported, *options, "--json")
    assert (done.returncode, done.stderr.count("deprecated")) == (0, 0), done.stderr
    assert done.rows()[0].items() >= first.items()


@pytest.mark.parametrize(("command", "options", "first"), OLD_FLAGS)
def test_old_flags_of_search_work_with_a_warning_that_names_the_command(
    imported: Path, command: str, options: tuple[str, ...], first: dict[str, object]
) -> None:
    done = run("search", imported, *options, "--json")
    assert done.rows()[0].items() >= first.items()
    assert f"use: thresher {command}" in done.stderr


def test_plain_words_are_searched_as_they_are(imported: Path) -> None:
    def spans(*words: str) -> list[list[int]]:
        return json.loads(run("search", imported, *words, "--spans", "--json").stdout)["spans"]  # type: ignore[no-any-return]

    assert spans("cat") == spans('"cat"') == [[2, 2]]
    assert spans("old", "dog") == spans("old dog") == spans('"old" "dog"') == [[8, 9]]
    assert spans("cats", "--any-case") == [[5, 5]]


def test_a_line_says_where_it_comes_from(imported: Path) -> None:
    shown = run("search", imported, "old").stdout
    assert "a #1" in shown and "b #2" in shown
    assert "doc_site" not in shown
    shown = run("search", imported, "old", "--meta", "doc_site", "doc_year").stdout
    assert "doc_site=x.org  doc_year=2001" in shown and "doc_site=y.org  doc_year=2010" in shown


def test_one_hit_is_one_hit(imported: Path) -> None:
    assert "thresher: 1 hit\n" in run("search", imported, "dog").stderr
    assert run("search", imported, "old", "--count").stdout == "2 hits\n"


def test_nothing_is_cut_in_a_pipe(imported: Path, tmp_path: Path) -> None:
    long = "x" * 300
    (tmp_path / "long.vert").write_text(f'<doc id="{long}">\n<s>\n{long}\nword\n</s>\n</doc>\n')
    import_files(imported, [tmp_path / "long.vert"], attributes=("word",))
    update(imported)
    shown = run("search", imported, "word").stdout
    assert shown.count(long) == 2


@pytest.mark.parametrize(
    "command",
    ["search", "freq", "collocates", "distribution", "dispersion", "words", "ngrams", "keywords", "retrieve"],
)
def test_every_command_has_a_short_help_with_an_example(command: str) -> None:
    shown = run(command, "--help").stdout
    assert f"Example: thresher {command} czech" in shown
    assert len(shown.splitlines()) < 80
    assert "--ngrams" not in shown, "an old flag is shown"


def test_help_and_errors_show_text_that_looks_like_markup(imported: Path) -> None:
    assert "<s> for borders" in run("search", "--help").stdout
    assert "[]{0,3} for gaps" in run("search", "--help").stdout
    assert "'[lemma=\"jazyk\"]'" in run("collocates", "--help").stdout
    assert "[red]x" in run("search", imported, "old", "--sort", "[red]x").stderr
    assert "'word@[red]'" in run("freq", imported, "old", "--by", "word@[red]").stderr


def test_help_shows_no_empty_defaults() -> None:
    for command in ("search", "index", "words"):
        shown = run(command, "--help").stdout
        assert "[default: False]" not in shown and '[default: ""]' not in shown


def test_tables_are_shown_to_people(imported: Path) -> None:
    shown = run("collocates", imported, '"old"', "--minimum", "1", "--limit", "3")
    assert "logdice" in shown.stdout
    assert "the first 3 of" in shown.stderr


def test_results_are_written_as_files(imported: Path, tmp_path: Path) -> None:
    for name in ("out.csv", "out.jsonl", "out.parquet"):
        assert run("freq", imported, "[]", "--by", "word@match", "-o", tmp_path / name).returncode == 0
    with (tmp_path / "out.csv").open(newline="") as file:
        from_csv = [row["value"] for row in csv.DictReader(file)]
    assert from_csv == [
        row["value"] for row in map(json.loads, (tmp_path / "out.jsonl").read_text().splitlines())
    ]
    assert from_csv == pq.read_table(tmp_path / "out.parquet").column("value").to_pylist()


def test_a_subcorpus_has_a_name_and_is_searched_alone(imported: Path) -> None:
    made = run("subcorpora", imported, "new", "--where", "doc_year=>=2005")
    assert "new has 1 document\n" in made.stderr
    rows = run("search", imported, '[lemma="sleep"]', "--count", "--within", "new", "--json").rows()
    assert rows[0]["hits"] == 1
    assert run("subcorpora", imported, "--json").rows()[0]["name"] == "new"
    keywords = run("keywords", imported, "--within", "new", "--json").rows()
    assert {row["value"] for row in keywords[:2]} <= {"a", "dog", "An"}
    assert run("subcorpora", imported, "new", "--delete").returncode == 0
    assert run("search", imported, "[]", "--count", "--within", "new").returncode == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (('[lemma="cat"',), "expected ]"),
        (('[lema="cat"]',), "no attribute lema"),
        ((), "a query is missing"),
        (("[]", "--freq", "word@nowhere"), "invalid place"),
        (("[]", "--freq", "word@match", "--collocates"), "exclude each other"),
        (("[]", "--limit", "3"), "thresher freq"),
        (("--retrieve", "cat", "--rank", "quality=x"), "--rank quality=1"),
        (("[]*",), "can match no token"),
        (("[]", "--sort", "up"), "left"),
        (("cat within s",), 'expected [ or "word"'),
    ],
)
def test_a_mistake_is_refused_with_its_remedy(
    imported: Path, arguments: tuple[str, ...], message: str
) -> None:
    done = run("search", imported, *arguments)
    assert done.returncode == 2
    assert message in done.stderr


def test_a_corpus_without_an_index_says_how_to_make_one(tmp_path: Path) -> None:
    make(tmp_path, TEXTS)
    done = run("search", tmp_path, '"a"')
    assert done.returncode == 1
    assert f"thresher index {tmp_path}" in done.stderr


def test_a_search_that_reaches_its_time_limit_reports_it(imported: Path) -> None:
    done = run("search", imported, "[]", "--spans", "--seconds", "0", "--json")
    assert done.returncode == 1
    assert json.loads(done.stdout)["stopped"] == "the search took too long"


@pytest.mark.parametrize(
    ("name", "left"),
    [
        ("manifest.json", b"{"),
        ("000001/tokens", b"{"),
        ("000001/tokens", None),
        ("000001/doc.parquet", b"{"),
        ("000001/doc.parquet", None),
        ("000001", None),
    ],
)
def test_a_damaged_index_names_the_rebuild_that_repairs_it(
    imported: Path, name: str, left: bytes | None
) -> None:
    path = imported / "index" / name
    if left is not None:
        path.write_bytes(left)
    elif path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink()
    for command in (("search", imported, "[]"), ("index", imported)):
        done = run(*command)
        assert done.returncode == 1
        assert "--rebuild" in done.stderr
    assert run("index", imported, "--order", "input", "--rebuild").returncode == 0
    assert json.loads(run("search", imported, "[]", "--count", "--json").stdout) == {"hits": 11}


def test_a_result_without_rows_is_reported(imported: Path) -> None:
    for command in ("freq", "retrieve", "collocates"):
        shown = run(command, imported, "horse")
        assert (shown.returncode, shown.stderr.splitlines()[-1]) == (0, "thresher: nothing found")
    assert "define one: thresher subcorpora" in run("subcorpora", imported).stderr


def test_the_number_of_hits_is_said_once(imported: Path) -> None:
    assert run("search", imported, "old", "--sort", "right", "--size", "1").stderr.count(" 2") == 1
    assert "no hits on page 9, as there are 2" in run("search", imported, "old", "--page", "9").stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("search", "old", "--size", "0"), "size must be at least 1, got 0"),
        (("words", "--limit", "0"), "limit must be at least 1, got 0"),
        (("ngrams", "2", "--limit", "-1"), "limit must be at least 1, got -1"),
        (("search", "[lemma=cat]"), 'put the value in quotes: lemma="cat"'),
        (("index", "--order", "qualty"), "unknown order 'qualty'; choose one of quality"),
    ],
)
def test_an_invalid_value_is_named_with_its_fix(
    imported: Path, arguments: tuple[str, ...], message: str
) -> None:
    command, *others = arguments
    failed = run(command, imported, *others)
    assert failed.returncode == 2
    assert message in failed.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ("ngrams", "--structure", "X"),
        ("search", "cat", "--window", "*"),
        ("search", "cat", "--seconds", "nan"),
        ("search", "cat", "--seconds", "-1"),
        ("search", "cat", "--context", "9" * 5000),
        ("search", "cat", "--context", "9" * 20),
        ("search", "\udcff"),
        ("collocates", "nothing", "--window", "junk"),
        ("freq", "nothing", "--by", "nan"),
        ("freq", "cat", "--minimum", "9" * 20),
        ("distribution", "cat", "--minimum", "9" * 20),
        ("dispersion", "cat", "--parts", "9" * 5000),
        ("dispersion", "cat", "--parts", "100"),
        ("retrieve", "cat", "--longest", "9" * 20),
        ("words", "--flags=-"),
        ("words", "--matching", "\udcff"),
        ("subcorpora", "--where", "junk"),
        ("subcorpora", "name", "--where", "junk"),
        ("words", "-o", "corpus/index/manifest.json", "--format", "jsonl"),
    ],
)
def test_a_value_is_checked_even_if_it_would_not_matter(imported: Path, arguments: tuple[str, ...]) -> None:
    command, *others = arguments
    failed = run(command, "corpus", *others, cwd=imported.parent)
    assert (failed.returncode, failed.stdout) == (2, "")
    assert failed.stderr.startswith("thresher: ") and len(failed.stderr) < 500


def test_the_status_of_a_corpus_that_was_only_imported_counts_its_documents(imported: Path) -> None:
    shown = run("status", imported)
    assert shown.returncode == 0
    assert "2 documents imported, 2 documents in the index, no crawl" in shown.stdout
    assert run("status", imported, "--json").rows() == [{"documents": 2, "indexed": 2}]
    assert repr(thresher.open(imported)).endswith("en, 0 documents, 2 imported texts>")
    shutil.rmtree(imported / "index")
    assert f"make an index: thresher index {imported}" in run("status", imported).stderr


def test_a_table_in_a_file_has_all_rows_and_one_on_a_terminal_the_first(tmp_path: Path) -> None:
    words = "\n".join(f"word{number}" for number in range(60))
    (tmp_path / "many.vert").write_text(f'<doc id="d">\n<s>\n{words}\n</s>\n</doc>\n')
    import_files(tmp_path / "corpus", [tmp_path / "many.vert"], language="en", attributes=("word",))
    update(tmp_path / "corpus")
    command = ("words", tmp_path / "corpus", "--limit", "60")
    assert run(*command).stdout.count("word") == 60
    assert in_terminal(120, *command).count("word") == 50


def test_a_closed_pipe_ends_a_command_in_silence(imported: Path) -> None:
    line = f"{sys.executable} -m thresher.cli words {imported} | true; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("0\n", "")


def test_a_count_and_the_last_line_hold_for_the_lines_that_are_kept(imported: Path) -> None:
    kept = ("search", imported, "old", "--keep", '"dog"')
    assert run(*kept, "--count").stdout == "1 hit\n"
    assert run(*kept, "--count", "--json").rows() == [{"hits": 1}]
    assert run(*kept).stderr == "thresher: 1 of 2 hits\n"
    refused = run(*kept, "--spans")
    assert (refused.returncode, "leave --keep" in refused.stderr) == (2, True)


def test_positions_of_hits_can_be_written_to_a_file(imported: Path, tmp_path: Path) -> None:
    assert run("search", imported, "old", "--spans", "-o", tmp_path / "spans.csv").returncode == 0
    with (tmp_path / "spans.csv").open() as file:
        assert list(csv.reader(file)) == [["first", "last"], ["1", "1"], ["8", "8"]]


def test_a_file_gets_all_rows_unless_a_limit_is_given(tmp_path: Path) -> None:
    words = "\n".join(f"word{number}" for number in range(1_200))
    (tmp_path / "many.vert").write_text(f'<doc id="d">\n<s>\n{words}\n</s>\n</doc>\n')
    import_files(tmp_path / "corpus", [tmp_path / "many.vert"], language="en", attributes=("word",))
    update(tmp_path / "corpus")
    for limit, lines in (((), 1_201), (("--limit", "7"), 8)):
        run("words", tmp_path / "corpus", "-o", tmp_path / "words.tsv", *limit)
        written = (tmp_path / "words.tsv").read_text("utf-8").splitlines()
        assert len(written) == lines and written[0].split("\t")[:2] == ["value", "count"]


def test_unknown_values_are_named_in_tables(tmp_path: Path) -> None:
    (tmp_path / "two.vert").write_text(
        '<doc id="a" year="2001">\n<s>\ncat\n</s>\n</doc>\n<doc id="b">\n<s>\ncat\n</s>\n</doc>\n'
    )
    import_files(tmp_path / "c", [tmp_path / "two.vert"], language="en", attributes=("word",))
    update(tmp_path / "c")
    shown = run("distribution", tmp_path / "c", "cat")
    assert "(unknown)" in shown.stdout and "2001" in shown.stdout
    assert run("distribution", tmp_path / "c", "horse").stderr == "thresher: nothing found\n"


def test_defaults_of_older_versions_still_work(imported: Path) -> None:
    lines = run("search", imported, "old", "--json").stdout
    assert run("search", imported, "old", "--json", "--context", "", "--sort", "").stdout == lines
    assert run("search", imported, "old", "--count", "--collocates", "--json").rows() == [{"hits": 2}]


@pytest.mark.parametrize("window", ["junk", "3", "1,-1", "1,x"])
def test_an_invalid_window_is_refused_even_without_hits(imported: Path, window: str) -> None:
    refused = run("collocates", imported, "horse", "--window", window)
    assert refused.returncode == 2 and refused.stderr.startswith("thresher: ")


@pytest.mark.parametrize("command", [("words",), ("ngrams", "2"), ("collocates", "word"), ("freq", "word")])
def test_an_index_without_documents_has_no_rows(tmp_path: Path, command: tuple[str, ...]) -> None:
    make(tmp_path, [])
    update(tmp_path, annotator="plain", processes=1)
    name, *others = command
    shown = run(name, tmp_path, *others)
    assert (shown.returncode, shown.stdout, shown.stderr) == (0, "", "thresher: nothing found\n")
