"""The command line: JSON for machines, messages with the cure for people, never a traceback."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from pathlib import Path

import pytest

from thresher.lab.demo import MARK
from thresher.read.trained import save
from thresher.read.training import train

PAGE = """<html lang=cs><head><title>Nad \x1b[31mpis</title></head><body>
<nav><a href=/menu>Menu</a> <a href=/o-nas>O nás</a></nav>
<p>{text} <a href="clanek">odkaz v textu</a> a pak to pokračuje dál.</p><p>{text}</p></body></html>"""
TEXT = (
    "Byl jednou jeden král a ten měl tři dcery, které se na něj každý den dívaly a ptaly se ho, co je to za den. "
    * 8
)


def run(*arguments: str | Path, **options: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "thresher.cli", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120, **options)  # type: ignore[call-overload]
    assert "Traceback" not in done.stderr
    return done  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    "command",
    [
        "crawl",
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


def test_read_tells_blocks_languages_links_and_the_verdict(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    page.write_text(PAGE.format(text=TEXT), "utf-8")
    seen = json.loads(run("read", page, "--lang", "cs", "--url", "http://a.cz/x/", "--json").stdout)
    assert seen["file"] == str(page)
    assert "Byl jednou jeden král" in seen["text"] and "Menu" not in seen["text"]
    assert seen["languages"][0]["code"] == "cs"
    assert seen["verdict"] == {"keep": True, "reason": ""}
    scores = {link["url"]: link["boilerplate"] for link in seen["links"]}
    assert scores["http://a.cz/x/clanek"] < 0.5 < scores["http://a.cz/menu"]


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
        (["toyweb", "--hosts", "0"], 2, "at least one host"),
        (["toyweb", "--set.calender", "1"], 2, "calender"),
    ],
)
def test_a_mistake_gets_a_message_and_its_exit_code(
    tmp_path: Path, arguments: list[str], code: int, message: str
) -> None:
    shown = run(*arguments, cwd=tmp_path, stdin=subprocess.DEVNULL)
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
    shown = run("demo", "corpus", "--json", cwd=tmp_path)
    assert shown.returncode == 0, shown.stderr
    result = json.loads(shown.stdout)["demo"]
    assert result["found"] == result["good"] == result["documents"] > 50
    assert result["strange"] == 0
    lines = run("export", "corpus", "--format", "jsonl", "--opted-out", cwd=tmp_path).stdout.splitlines()
    assert len(lines) == result["documents"]
    assert {"url", "text", "language"} <= set(json.loads(lines[0]))
    assert not (tmp_path / "corpus" / "left by an earlier demo").exists()
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").write_text("x")
    assert run("demo", "mine", cwd=tmp_path).returncode == 2
    assert (tmp_path / "mine" / "thesis.tex").exists()


# --- languages --------------------------------------------------------------------------------------------

# A language that no detector knows, because it was made up here.
_SMALL_WORDS = ("ga", "wi", "tun", "oz", "ka", "shem", "ur", "ni", "lue", "zho")
_STEMS = (
    "vork",
    "melu",
    "tashi",
    "runde",
    "olpa",
    "kifre",
    "sanwu",
    "beltro",
    "gomi",
    "ziraf",
    "huden",
    "pallo",
)
_ENDINGS = ("", "en", "atu", "isho")


def made_up(sentences: int, seed: int) -> list[str]:
    """Sentences of the made-up language, others for another seed."""
    chance = random.Random(seed)
    return [
        " ".join(
            f"{chance.choice(_SMALL_WORDS)} {chance.choice(_STEMS)}{chance.choice(_ENDINGS)}"
            for _ in range(chance.randint(4, 7))
        ).capitalize()
        + "."
        for _ in range(sentences)
    ]


@pytest.fixture(autouse=True)
def languages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory of trained languages that is not the user's."""
    directory = tmp_path / "languages"
    monkeypatch.setenv("THRESHER_LANGUAGES", str(directory))
    return directory


def write_sample(path: Path, sentences: int) -> Path:
    path.write_text("\n".join(made_up(sentences, seed=1)), "utf-8")
    return path


def test_a_language_trained_from_a_sample_is_read_listed_and_forgotten(
    tmp_path: Path, languages: Path
) -> None:
    sample = write_sample(tmp_path / "sample.txt", 1_000)
    page = tmp_path / "page.html"
    paragraphs = (" ".join(made_up(12, seed)) for seed in range(2, 8))
    page.write_text(
        "<title>Melu</title>" + "".join(f"<p>{paragraph}</p>" for paragraph in paragraphs), "utf-8"
    )
    assert run("read", page, "--lang", "qmu").returncode == 2

    told = run("language", "train", "qmu", sample)
    assert told.returncode == 0, told.stderr
    letters = sum(map(str.isalpha, sample.read_text("utf-8")))
    file = languages / "qmu.language"
    assert f"{letters:,} letters" in told.stderr and str(file) in told.stderr and file.is_file()
    assert "--lang qmu" in told.stderr and "no Badness" not in told.stderr

    seen = json.loads(run("read", page, "--lang", "qmu", "--json").stdout)
    assert seen["languages"][0]["code"] == "qmu" and seen["languages"][0]["share"] > 0.9
    assert seen["verdict"] == {"keep": True, "reason": ""}
    assert seen["badness"] < 10

    listed = json.loads(run("language", "list", "--json").stdout)
    assert listed[-1] == {
        "code": "qmu",
        "name": "qmu (trained)",
        "trained": True,
        "badness": True,
        "letters": letters,
        "file": str(file),
    }
    assert run("language", "forget", "qmu").returncode == 0
    assert not file.exists()
    assert run("read", page, "--lang", "qmu").returncode == 2


def test_the_list_tells_shipped_languages_with_and_without_a_badness_model() -> None:
    listed = {each["code"]: each for each in json.loads(run("language", "list", "--json").stdout)}
    assert listed["cs"] == {
        "code": "cs",
        "name": "Czech",
        "trained": False,
        "badness": True,
        "letters": None,
        "file": None,
    }
    assert not listed["vo"]["badness"]
    shown = run("language", "list").stderr
    assert "Volapuk" in shown and f"{len(listed)} languages shipped, 0 trained" in " ".join(shown.split())


def test_a_sample_too_short_for_badness_is_said_to_be_with_the_cure(tmp_path: Path) -> None:
    sample = write_sample(tmp_path / "sample.txt", 150)
    told = run("language", "train", "qmu", sample, "--json")
    assert told.returncode == 0
    assert json.loads(told.stdout)["badness"] is False
    assert "no Badness model" in told.stderr
    assert "20,000 characters" in told.stderr and "--replace" in told.stderr
    write_sample(sample, 1_000)
    again = run("language", "train", "qmu", sample, "--replace", "--json")
    assert json.loads(again.stdout)["badness"] is True
    assert "no Badness" not in again.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["train", "qmu", "nowhere.txt"], "nowhere.txt"),
        (["train", "qmu", "."], "cannot be read"),
        (["train", "qmu", "few.txt"], "too few"),
        (["train", "cs", "few.txt"], "Czech is known already"),
        (["train", "../qmu", "few.txt"], "cannot be the name"),
        (["train", "\x1b[31m", "few.txt"], "cannot be the name"),
        (["train", "old", "few.txt"], "trained before"),
        (["forget", "cs"], "there are: old"),
        (["forget", "../few"], "no language '../few' was trained"),
    ],
)
def test_a_mistake_about_languages_is_told_and_changes_nothing(
    tmp_path: Path, languages: Path, arguments: list[str], message: str
) -> None:
    save(train("old", "\n".join(made_up(150, seed=1))))
    write_sample(tmp_path / "few.txt", 5)
    shown = run("language", *arguments, cwd=tmp_path)
    assert (shown.returncode, message in shown.stderr) == (2, True), shown.stderr
    assert "\x1b" not in shown.stderr
    assert [path.name for path in languages.iterdir()] == ["old.language"]


def test_a_broken_model_is_named_with_the_cure(languages: Path) -> None:
    languages.mkdir()
    (languages / "qmu.language").write_bytes(b"\xc1")
    shown = run("language", "list")
    assert shown.returncode == 2
    assert "qmu.language is not a trained language" in shown.stderr and "delete" in shown.stderr
