"""The command line: JSON for machines, messages with the fix for people, never a traceback."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from support.command_line import run
from thresher.demo import MARK

pytestmark = pytest.mark.slow

PAGE = """<html lang=cs><head><title>Nad \x1b[31mpis</title></head><body>
<nav><a href=/menu>Menu</a> <a href=/o-nas>O nás</a></nav>
<p>{text} <a href="clanek">odkaz v textu</a> a pak to pokračuje dál.</p><p>{text}</p></body></html>"""
TEXT = (
    "Byl jednou jeden král a ten měl tři dcery, které se na něj každý den dívaly a ptaly se ho, co je to za den. "
    * 8
)


def run_process(*arguments: str | Path, **options: object) -> subprocess.CompletedProcess[str]:
    """Run a command in a process of its own."""
    command = [sys.executable, "-m", "thresher.cli", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120, **options)  # type: ignore[call-overload]
    assert "Traceback" not in done.stderr
    return done  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    "command",
    [
        "crawl",
        "config",
        "status",
        "read",
        "export",
        "forget",
        "language",
        "language train",
        "language list",
        "language forget",
        "seeds",
        "sample",
        "experiment",
        "import",
        "index",
        "search",
        "subcorpora",
        "toyweb",
        "demo",
    ],
)
def test_every_command_has_help_with_an_example(command: str) -> None:
    shown = run(*command.split(), "--help")
    assert shown.returncode == 0
    assert f"Example: thresher {command}" in shown.stdout
    assert "--empty" not in shown.stdout and 'default: ""' not in shown.stdout


def test_read_shows_blocks_languages_links_and_the_verdict(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    page.write_text(PAGE.format(text=TEXT), "utf-8")
    seen = json.loads(run("read", page, "--lang", "cs", "--url", "http://a.cz/x/", "--json").stdout)
    assert seen["file"] == str(page)
    assert "Byl jednou jeden král" in seen["text"] and "Menu" not in seen["text"]
    assert seen["languages"][0]["code"] == "cs"
    assert seen["verdict"] == {"keep": True, "reason": ""}
    scores = {link["url"]: link["boilerplate"] for link in seen["links"]}
    assert scores["http://a.cz/x/clanek"] < 0.5 < scores["http://a.cz/menu"]


def test_an_unknown_charset_is_named(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    page.write_text(PAGE.format(text=TEXT), "utf-8")
    assert "'bogus' is unknown" in run("read", page, "--charset", "bogus").stderr
    assert "unknown" not in run("read", page, "--charset", "utf-8").stderr


def test_text_from_the_web_cannot_drive_the_terminal(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    page.write_text(PAGE.format(text="\x1b]52;c;cm0gLXJm\x07" + TEXT), "utf-8")
    shown = run("read", page)
    assert "\x1b" not in shown.stderr and "\x07" not in shown.stderr


def test_pages_that_cannot_be_read_are_named_and_the_others_read(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    page.write_text(PAGE.format(text=TEXT), "utf-8")
    shown = run("read", tmp_path / "none.html", page, "--json")
    assert shown.returncode == 1
    assert "none.html" in shown.stderr
    assert json.loads(shown.stdout)["title"]


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["status", "nowhere"], 1, "nowhere"),
        (["crawl", "x", "--lang", "czech-ish", "--seeds", "http://a.cz/"], 2, "did you mean"),
        (["crawl", "x", "--lang", "cs", "--seeds", "nowhere.txt"], 2, "nowhere.txt"),
        (["crawl", "x", "--lang", "cs", "--seeds", "http://a.cz/"], 2, "--contact"),
        (
            ["crawl", "x", "--lang", "cs", "--seeds", "http://a.cz/", "--connect-to", "here"],
            2,
            "127.0.0.1:8088",
        ),
        (["crawl", "x", "--max-bytes", "lots"], 2, "1.5GB"),
        (["crawl", "x", "--langg", "cs"], 2, "--lang"),
        (["export", "nowhere", "--format", "jsonl"], 1, "nowhere"),
        (["toyweb", "--hosts", "0"], 2, "hosts must be at least 1"),
        (["toyweb", "--set.calender", "1"], 2, "calender"),
    ],
)
def test_a_mistake_gets_a_message_and_its_exit_code(
    tmp_path: Path, arguments: list[str], code: int, message: str
) -> None:
    shown = run(*arguments, cwd=tmp_path)
    assert (shown.returncode, message in shown.stderr) == (code, True), shown.stderr
    assert not (tmp_path / "x").exists()


def test_a_typo_in_corpus_toml_is_named(tmp_path: Path) -> None:
    (tmp_path / "corpus.toml").write_text("[polite]\ndealy = 1")
    shown = run("crawl", tmp_path)
    assert shown.returncode == 2
    assert "did you mean polite.delay?" in shown.stderr


@pytest.mark.timeout(300)  # a whole crawl, where other tests may run beside it
def test_the_demo_makes_a_corpus_that_exports(tmp_path: Path) -> None:
    (tmp_path / "corpus").mkdir()
    for name in (MARK, "left by an earlier demo"):
        (tmp_path / "corpus" / name).touch()
    shown = run_process("demo", "corpus", "--json", cwd=tmp_path)
    assert shown.returncode == 0, shown.stderr
    result = json.loads(shown.stdout)["demo"]
    assert result["found"] == result["good"] == result["documents"] > 50
    assert result["strange"] == 0
    lines = run_process(
        "export", "corpus", "--format", "jsonl", "--opted-out", cwd=tmp_path
    ).stdout.splitlines()
    assert len(lines) == result["documents"]
    assert {"url", "text", "language"} <= set(json.loads(lines[0]))
    assert not (tmp_path / "corpus" / "left by an earlier demo").exists()
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").write_text("x")
    assert run_process("demo", "mine", cwd=tmp_path).returncode == 2
    assert (tmp_path / "mine" / "thesis.tex").exists()
