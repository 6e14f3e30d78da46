"""The public API: the names at the top of the package, and a corpus from the crawl to the export."""

from __future__ import annotations

import asyncio
import doctest
import gzip
import importlib
import inspect
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

import thresher
from support import TESTS
from support.command_line import run
from support.webs.toy_webs import all_seeds
from thresher.config import load
from thresher.errors import CrawlError, UsageError
from thresher.store.schemas import DOCS
from thresher_lab.toyweb import ToyWeb, serve

PUBLIC = ["Corpus", "Page", "ThresherError", "__version__", "crawl", "extract", "open", "read"]
WEB = ToyWeb.calm(
    hosts=12,
    licensed=0.0,
    rich_hosts=0.9,
    hidden_hosts=0.0,
    pages_per_host=(8, 12),
    page_bytes=(2_500, 3_500),
)
SEEDS = all_seeds(WEB)
FAST: dict[str, dict[str, Any]] = {"polite": {"delay": 0.0}}
MILLS = (
    '<html><head><meta charset="windows-1250"><title>Mlýny &lt;b></title>'
    '<meta name="author" content="K. Č.">'
    '<meta property="article:published_time" content="2024-05-31T09:30:00+02:00">'
    "</head><body><nav><a href=/>Domů</a></nav><article><p>"
    + "Příliš žluťoučký mlýn se pomalu točí ve větru. "
    * 60
    + '</p><p>Více <a href="/dalsi">o mlýnech</a> na jiné stránce, kterou jsme o nich napsali.</p>'
    "</article></body></html>"
)


@pytest.fixture(scope="module")
def web() -> Iterator[str]:
    with serve(WEB) as server:
        yield server.connect_to


@pytest.fixture(scope="module")
def made(web: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a corpus of the toy web with an index."""
    directory = tmp_path_factory.mktemp("api") / "czech"
    corpus = thresher.crawl(
        directory, "cs", SEEDS, max_pages=40, connect_to=web, progress=False, settings=FAST
    )
    corpus.index(annotator="plain", processes=1)
    return directory


@pytest.fixture
def corpus(made: Path) -> thresher.Corpus:
    return thresher.open(made)


def output_of(source: str, directory: Path, *arguments: str) -> str:
    """Run a script without `if __name__ == "__main__"` in a directory and return its output."""
    script = directory / "script.py"
    script.write_text(source)
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(TESTS), *sys.path])}
    command = [sys.executable, str(script), *arguments]
    done = subprocess.run(
        command, cwd=directory, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


# the package


def test_the_package_shows_exactly_its_public_names() -> None:
    assert dir(thresher) == sorted(thresher.__all__) == PUBLIC
    for name in PUBLIC:
        assert inspect.getdoc(getattr(thresher, name)), name
    with pytest.raises(AttributeError, match="no attribute 'crwal'"):
        thresher.crwal  # noqa: B018


def test_importing_the_package_and_reading_a_page_load_no_arrow(tmp_path: Path) -> None:
    heavy = "sorted({'pyarrow', 'numba', 'pycurl', 'uvloop'} & set(sys.modules))"
    source = f"import sys, thresher\nprint({heavy})\nthresher.read('<p>x')\nprint('pyarrow' in sys.modules)\n"
    assert output_of(source, tmp_path).splitlines() == ["[]", "False"]


def test_the_examples_of_the_public_names_run(
    web: str, made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    tried = 0
    for name in ("thresher", "thresher.page", "thresher.corpus", "thresher.crawling"):
        for test in doctest.DocTestFinder().find(importlib.import_module(name), name):
            known = {"thresher": thresher, "seeds": SEEDS, "web": web, "fast": FAST}
            test.globs = known | ({"corpus": thresher.open(made)} if test.name != "thresher" else {})
            runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
            assert runner.run(test).failed == 0, test.name
            tried += bool(test.examples)
    assert tried >= 6


@pytest.mark.parametrize(
    ("function", "names"),
    [
        (thresher.crawl, "contact max_pages max_bytes max_time tlds policy progress settings connect_to"),
        (thresher.read, "url language headers charset mode"),
        (thresher.extract, "url language headers charset mode"),
    ],
)
def test_functions_have_typed_parameters_by_name(function: Any, names: str) -> None:
    parameters = inspect.signature(function).parameters.values()
    assert [one.name for one in parameters if one.kind is one.KEYWORD_ONLY] == names.split()
    assert all(one.annotation is not one.empty for one in parameters)


@pytest.mark.parametrize(
    ("command", "method"),
    [
        ("thresher.cli.commands.exporting:export", thresher.Corpus.export),
        ("thresher.cli.commands.importing:import_corpora", thresher.Corpus.import_files),
        ("thresher.cli.commands.processing:process", thresher.Corpus.process),
        ("thresher.cli.commands.searching.index:index", thresher.Corpus.index),
    ],
)
def test_methods_of_a_corpus_have_the_parameters_of_their_commands(command: str, method: Any) -> None:
    module, _, name = command.partition(":")
    flags = set(inspect.signature(getattr(importlib.import_module(module), name)).parameters)
    of_the_terminal = {"directory", "json", "log", "output", "status", "dry_run", "lang"}
    of_python = {"self", "path", "progress", "lang"}
    assert flags - of_the_terminal == set(inspect.signature(method).parameters) - of_python


# pages


def test_a_text_is_read_although_its_markup_declares_another_encoding() -> None:
    page = thresher.read(MILLS, url="https://example.cz/mlyny", language="cs")
    assert page.text.startswith("Příliš žluťoučký mlýn se pomalu točí ve větru.")
    assert (page.title, page.author, page.date) == ("Mlýny <b>", "K. Č.", date(2024, 5, 31))
    assert (page.language, page.verdict.keep) == ("cs", True)
    assert page.languages[0].share > 0.9 and page.badness is not None
    assert [link.url for link in page.links] == ["https://example.cz/", "https://example.cz/dalsi"]
    assert page.paragraphs[0].boilerplate > 0.5 > page.paragraphs[1].boilerplate
    assert page.metadata.published == "2024-05-31T09:30:00+02:00"


@pytest.mark.parametrize(
    ("data", "options"),
    [
        (MILLS.encode("windows-1250"), {}),
        (MILLS.replace("windows-1250", "").encode("windows-1250"), {"charset": "windows-1250"}),
        (MILLS.encode("windows-1250"), {"headers": {"content-type": "text/html"}}),
        (gzip.compress(MILLS.encode("windows-1250"), mtime=0), {"headers": {"Content-Encoding": "gzip"}}),
        (MILLS.encode("windows-1250"), {"headers": {"Content-Encoding": "gzip"}}),  # as requests gives them
        (MILLS, {"headers": {"Content-Encoding": "gzip", "Content-Type": "text/html; charset=koi8-r"}}),
    ],
)
def test_bytes_are_decoded_by_headers_charset_and_markup(data: bytes | str, options: dict[str, Any]) -> None:
    assert thresher.read(data, **options).text == thresher.read(MILLS).text


def test_the_text_alone_is_extracted_or_none() -> None:
    assert thresher.extract(MILLS) == thresher.read(MILLS).text
    assert thresher.extract("<html><body></body></html>") is None
    assert thresher.extract(b"") is None
    assert thresher.extract("\ud800") in (None, "?")


def test_modes_take_more_or_fewer_of_the_doubtful_blocks() -> None:
    sizes = [len(thresher.extract(MILLS, mode=mode) or "") for mode in ("precision", "balanced", "recall")]
    assert sizes == sorted(sizes)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"url": "example"}, "url must be a web address, got 'example'"),
        ({"language": "czech"}, r"unknown language 'czech'; did you mean cs"),
        ({"mode": "best"}, "unknown mode 'best'; choose one of precision, balanced, recall"),
        ({"charset": "utf-8"}, "charset = 'utf-8' is for bytes"),
    ],
)
def test_an_option_that_cannot_be_used_is_named(options: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        thresher.read("<p>x", **options)


@pytest.mark.parametrize("markup", [None, 3, ["<p>x"]])
def test_markup_of_another_type_is_refused(markup: Any) -> None:
    with pytest.raises(UsageError, match=f"html must be str or bytes, got {type(markup).__name__}"):
        thresher.extract(markup)


def test_headers_cannot_end_the_headers() -> None:
    headers = {"A\r\n\r\n": "b", "Content-Type\r\nX": "c\r\n\r\n", "Server": None}
    assert thresher.extract(MILLS.encode(), headers=headers) == thresher.extract(MILLS)


def test_a_page_shows_itself_and_its_markup_is_escaped_in_notebooks() -> None:
    page = thresher.read(MILLS.replace("o mlýnech", "&lt;script>alert(1)&lt;/script>"), language="cs")
    assert repr(page).startswith("<Page 'Mlýny <b>', cs, 'Příliš žluťoučký")
    assert repr(page).endswith("verdict: keep>")
    shown = page._repr_html_()
    assert "Mlýny &lt;b&gt;" in shown and "&lt;script&gt;" in shown
    assert "<script>" not in shown and "<b>" not in shown
    with pytest.raises(AttributeError):
        page.verdict = None  # type: ignore[misc, assignment]


def test_the_command_read_prints_the_same_page(tmp_path: Path) -> None:
    path = tmp_path / "mills.html"
    path.write_bytes(MILLS.encode("windows-1250"))
    code, out, _ = run("read", path, "--lang", "cs", "--url", "https://example.cz/mlyny", "--json")
    assert code == 0
    page = thresher.read(path.read_bytes(), url="https://example.cz/mlyny", language="cs")
    assert json.loads(out) == json.loads(json.dumps({"file": str(path), **page.to_dict()}))


# crawls


def test_a_crawl_returns_its_corpus_and_says_why_it_ended(made: Path, corpus: thresher.Corpus) -> None:
    assert len(corpus) > 10
    assert repr(corpus) == f"<Corpus {str(made)!r}, cs, {len(corpus)} documents>"
    assert "<td>cs</td>" in corpus._repr_html_()
    assert corpus.ending is None, "only a crawl knows"
    assert corpus.stats()["pages"]["fetched"] >= 40


def test_a_crawl_resumes_with_its_settings_except_for_the_given_ones(web: str, tmp_path: Path) -> None:
    directory = tmp_path / "corpus"
    settings = FAST | {"scope": {"queries": False}}
    first = thresher.crawl(
        directory, "cs", SEEDS, policy="bfs", tlds="cz", max_pages=5, max_bytes="20GB", max_time="2h",
        contact="me@example.org", connect_to=web, progress=False, settings=settings,
    )  # fmt: skip
    assert first.ending and first.ending.reason == "page budget"
    before = load(directory)
    assert (before.policy.name, before.scope.tlds, before.scope.queries) == ("bfs", ("cz",), False)
    assert (before.budget.max_bytes, before.budget.max_time) == (20 * 10**9, 7_200)
    second = thresher.crawl(directory, max_pages=8, connect_to=web, progress=False)
    after = load(directory)
    assert (after.policy, after.scope, after.polite) == (before.policy, before.scope, before.polite)
    assert second.stats()["pages"]["fetched"] >= 8
    urls = second.outcomes(["url"])["url"].to_pylist()
    assert len(urls) == len(set(urls)), "a page was fetched again"


def test_a_crawl_reports_by_default_and_is_silent_if_asked(
    web: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options: dict[str, Any] = {"connect_to": web, "settings": FAST}
    thresher.crawl(tmp_path / "a", "cs", SEEDS, max_pages=5, **options)
    first = capsys.readouterr()
    assert "pages fetched" in first.err and not first.out
    thresher.crawl(tmp_path / "b", "cs", [*SEEDS, "http://["], max_pages=5, progress=False, **options)
    assert capsys.readouterr() == ("", "")
    reported: list[Any] = []
    thresher.crawl(tmp_path / "c", "cs", SEEDS, max_pages=5, progress=reported.append, **options)
    assert reported[-1]["pages"]["fetched"] >= 5
    assert "pages fetched" not in capsys.readouterr().err


def test_a_crawl_that_cannot_begin_says_why(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="new corpus"):
        thresher.crawl(tmp_path / "a")
    with pytest.raises(UsageError, match="contact"):
        thresher.crawl(tmp_path / "b", "cs", SEEDS)
    with pytest.raises(UsageError, match="20 apples"):
        thresher.crawl(tmp_path / "c", "cs", SEEDS, max_bytes="20 apples")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        unused = f"127.0.0.1:{free.getsockname()[1]}"
    with pytest.raises(CrawlError, match="no host could be reached"):
        thresher.crawl(tmp_path / "d", "cs", SEEDS[:1], connect_to=unused, progress=False, settings=FAST)


def handlers() -> list[Any]:
    return [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]


def test_ctrl_c_commits_and_raises_keyboard_interrupt(web: str, tmp_path: Path) -> None:
    settings = FAST | {"store": {"commit_pages": 4}}

    interrupted: list[int] = []
    before = handlers()

    def interrupt(status: Any) -> None:
        if status["pages"]["fetched"] >= 4 and not interrupted:
            interrupted.append(status["pages"]["fetched"])
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        thresher.crawl(tmp_path / "c", "cs", SEEDS, connect_to=web, progress=interrupt, settings=settings)
    assert thresher.open(tmp_path / "c").outcomes().num_rows >= 4
    assert handlers() == before, "Ctrl-C after a crawl would be ignored"


def test_a_crawl_runs_in_a_notebook_whose_event_loop_is_running(web: str, tmp_path: Path) -> None:
    async def cell() -> thresher.Corpus:
        return thresher.crawl(
            tmp_path / "c", "cs", SEEDS, max_pages=5, connect_to=web, progress=False, settings=FAST
        )

    corpus = asyncio.run(cell())
    assert corpus.ending and corpus.ending.reason == "page budget"


def test_ctrl_c_in_a_notebook_stops_the_crawl_and_leaves_the_corpus_free(web: str, tmp_path: Path) -> None:
    interrupted: list[int] = []

    def interrupt(status: Any) -> None:
        if status["pages"]["fetched"] >= 4 and not interrupted:
            interrupted.append(status["pages"]["fetched"])
            os.kill(os.getpid(), signal.SIGINT)

    async def cell() -> None:
        settings = FAST | {"store": {"commit_pages": 4}}
        thresher.crawl(tmp_path / "c", "cs", SEEDS, connect_to=web, progress=interrupt, settings=settings)

    loop = asyncio.new_event_loop()
    try:
        with pytest.raises(KeyboardInterrupt):
            loop.run_until_complete(cell())
    finally:
        loop.close()
    before = thresher.open(tmp_path / "c").outcomes().num_rows
    assert before >= 4
    resumed = thresher.crawl(tmp_path / "c", max_pages=before + 5, connect_to=web, progress=False)
    assert resumed.outcomes().num_rows > before


SCRIPT = """
import json, sys


class NoPandas:
    # As if pandas were not installed.
    def find_spec(self, name, path=None, target=None):
        if name == "pandas":
            raise ModuleNotFoundError(name)


sys.meta_path.insert(0, NoPandas())
import thresher

web, shards, seeds = sys.argv[1], int(sys.argv[2]), json.loads(sys.argv[3])
settings = {"polite": {"delay": 0.0}, "shards": {"count": shards}}
corpus = thresher.crawl("czech", "cs", seeds, max_pages=30, connect_to=web, settings=settings)
print("crawled", corpus.ending.reason)
print(corpus.documents(["url", "title", "text"]).num_rows == len(corpus) > 0)
print(corpus.index(annotator="plain").added == len(corpus))
print(len(corpus.search('[word=".*"]').first(3)))
print(corpus.export("czech.jsonl.gz").documents == len(corpus))
print(corpus.process().state)
try:
    corpus.search('[word=".*"]').freq().to_pandas()
except thresher.ThresherError as fault:
    print(fault)
"""


@pytest.mark.parametrize("shards", [0, pytest.param(2, marks=pytest.mark.slow)])
def test_a_plain_script_in_a_fresh_folder_needs_no_main_guard_and_no_pandas(
    web: str, tmp_path: Path, shards: int
) -> None:
    lines = output_of(SCRIPT, tmp_path, web, str(shards), json.dumps(SEEDS)).splitlines()
    assert lines[:-1] == ["crawled page budget", "True", "True", "3", "True", "done"]
    assert lines[-1].endswith("run: pip install pandas")


# corpora


def test_documents_are_chosen_by_conditions_named_as_flags(corpus: thresher.Corpus) -> None:
    table = corpus.documents()
    assert table.schema == DOCS
    host = table["host"][0].as_py()
    chosen = corpus.documents(["url"], where={"host": host})
    assert chosen.column_names == ["url"]
    assert chosen["url"].to_pylist() == [
        row["url"] for row in table.to_pylist() if row["host"].endswith(host) and not row["opt_out"]
    ]
    assert corpus.documents(where={"host": [host], "min_chars": 10**9}).num_rows == 0
    assert corpus.documents(["url"], where={"lang": "cs", "since": date(2000, 1, 1)}).num_rows > 0
    with pytest.raises(UsageError, match="unknown condition 'hots'; choose one of lang, host"):
        corpus.documents(where={"hots": host})
    with pytest.raises(UsageError, match="max_badness"):
        corpus.documents(where={"max_badness": "low"})


def test_a_corpus_is_imported_indexed_processed_and_exported(web: str, tmp_path: Path) -> None:
    corpus = thresher.crawl(
        tmp_path / "c", "cs", SEEDS, max_pages=25, connect_to=web, progress=False, settings=FAST
    )
    letter = tmp_path / "letter.txt"
    letter.write_text("Milá babičko!\nPíšu ti ze mlýna.\n")
    imported: list[int] = []
    report = corpus.import_files(letter, progress=lambda progress: imported.append(progress.bytes))
    assert (report.documents, imported[-1]) == (1, letter.stat().st_size)
    counted: list[int] = []
    changes = corpus.index("plain", processes=1, progress=counted.append)
    assert changes.added == len(corpus) + 1
    assert corpus.search('[word="mlýna"]').count() == 1
    assert corpus.index_reader.documents == changes.added
    run = corpus.process(processes=1)
    assert run.state == "done"
    assert corpus.export(tmp_path / "all.vert").attributes[0] == "word"
    report = corpus.export(tmp_path / "x.jsonl", processed=True)
    assert report.documents == len((tmp_path / "x.jsonl").read_text().splitlines())
    with pytest.raises(UsageError, match=r"x\.csv has no suffix"):
        corpus.export(tmp_path / "x.csv")


# former names


def test_former_names_work_and_warn(corpus: thresher.Corpus) -> None:
    with pytest.warns(DeprecationWarning, match=r"^Corpus\.docs\(\) is deprecated; use documents\(\)$"):
        assert corpus.docs(["url"]) == corpus.documents(["url"])
    with pytest.warns(DeprecationWarning, match="ask"):
        table = corpus.ask("freq", '[word=".*"]', by="word@node", limit=3)
    assert table.records() == corpus.search('[word=".*"]').freq("word@node", limit=3).records()


def test_the_former_module_of_crawl_can_be_imported_beside_the_function(tmp_path: Path) -> None:
    source = (
        "import warnings\nwarnings.simplefilter('error')\n"
        "try:\n    from thresher.crawl.start import crawl\nexcept DeprecationWarning as fault:\n    print(fault)\n"
        "warnings.simplefilter('ignore')\nfrom thresher.crawl.start import crawl\nimport thresher\n"
        "print(crawl.__module__, thresher.crawl.__module__)\n"
    )
    first, second = output_of(source, tmp_path).splitlines()
    assert first.startswith("thresher.crawl.start.crawl is deprecated; use thresher.crawl")
    assert second == "thresher.crawler.api thresher.crawling"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"settings": {"polite": 1}}, "settings must be tables"),
        ({"seeds": 5}, "a text, a path or a list of them is needed, got 5"),
    ],
)
def test_a_crawl_refuses_arguments_of_the_wrong_type(
    tmp_path: Path, arguments: dict[str, Any], message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        thresher.crawl(tmp_path / "corpus", "cs", **arguments)
    assert not (tmp_path / "corpus").exists()


@pytest.mark.parametrize(
    ("where", "message"), [("x", "must be a mapping"), ({"max_badness": "x"}, "max_badness")]
)
def test_conditions_of_another_shape_are_refused(corpus: thresher.Corpus, where: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        corpus.documents(where=where)


def test_a_report_is_a_table_in_a_notebook(corpus: thresher.Corpus, tmp_path: Path) -> None:
    report = corpus.export(tmp_path / "report.jsonl")
    assert "<th>documents</th>" in report._repr_html_()
    assert report.to_pandas()["documents"].tolist() == [report.documents]
    run = corpus.process(processes=1)
    assert repr(run).startswith(f"<Run {run.number}, done: ")
    assert run.to_pandas()["step"].tolist() == [step.name for step in run.steps]
    assert "<script>" not in replace(report, left_out={"<script>": 1})._repr_html_()
