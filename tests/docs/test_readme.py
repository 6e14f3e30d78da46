"""The sessions of the README run as they stand there, with the output that they show."""

from __future__ import annotations

import contextlib
import doctest
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from support import ROOT
from thresher_lab.toyweb import ToyWeb, seeds, serve

pytestmark = pytest.mark.slow

README = (ROOT / "README.md").read_text("utf-8")
MOST_WORDS = 900
FAST = {"polite": {"delay": 0}}


def block(language: str) -> str:
    """Return the first block of code in a language."""
    found = re.search(rf"```{language}\n(.*?)```", README, re.DOTALL)
    assert found
    return found[1]


def commands() -> list[tuple[list[str], list[str]]]:
    """Return the commands of the console session, each with the lines that it prints."""
    session: list[tuple[list[str], list[str]]] = []
    for line in block("console").splitlines():
        if line.startswith("$ "):
            session.append((shlex.split(line[2:]), []))
        elif line != "…":
            session[-1][1].append(line)
    return session


def words_of(line: str) -> list[str]:
    """Return the words of a line; figures may differ in their last digits."""
    return re.sub(r"\d[\d,.]*", "0", line).split()


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the directory in which both sessions run, with the corpus that `make demo` makes."""
    directory = tmp_path_factory.mktemp("readme")
    demo = [sys.executable, "-m", "thresher.cli", "demo", "demo-corpus"]
    subprocess.run(demo, cwd=directory, check=True, capture_output=True)
    return directory


@pytest.fixture(scope="module")
def printed(place: Path) -> list[str]:
    """Return the output of each command of the console session."""
    found = []
    for command, _ in commands():
        assert command[0] == "thresher"
        done = subprocess.run(
            [sys.executable, "-m", "thresher.cli", *command[1:]],
            cwd=place,
            check=False,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, (command, done.stderr)
        found.append(done.stdout + done.stderr)
    return found


@pytest.mark.timeout(300)
def test_the_console_session_prints_the_output_in_the_readme(printed: list[str]) -> None:
    for (command, shown), output in zip(commands(), printed, strict=True):
        lines = [words_of(line) for line in output.splitlines()]
        for line in shown:
            assert words_of(line) in lines, (command, output)
    assert any(shown for _, shown in commands())


@pytest.mark.timeout(300)
def test_the_python_session_prints_the_output_in_the_readme(printed: list[str], place: Path) -> None:
    web = ToyWeb.calm(hosts=8, text="sentences", languages=("cs", "en", "de"))
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    session = doctest.DocTestParser().get_doctest(block("pycon"), {"FAST": FAST}, "README", None, None)
    report: list[str] = []
    with serve(web) as server, contextlib.chdir(place):
        Path("seeds.txt").write_text("\n".join(seeds(web)["cs"]))
        for example in session.examples:
            example.want = example.want.replace("…", "...")
            if "thresher.crawl(" in example.source:  # of the real web in the README, and of a toy web here
                given = example.source.rstrip().removesuffix(")").replace("500", "50")
                example.source = (
                    f'{given}, connect_to="{server.connect_to}", settings=FAST, progress=False)\n'
                )
        doctest.DocTestRunner(optionflags=flags, verbose=False).run(session, out=report.append)
    assert not report, "".join(report)
    assert len(session.examples) >= 5
    assert (place / "czech" / "corpus.toml").exists()


def test_the_readme_is_short_and_names_no_requirement() -> None:
    assert len(README.split()) <= MOST_WORDS
    assert not re.findall(r"\b[SHGN]\d+\b", README + (ROOT / "docs" / "features.md").read_text("utf-8"))


def test_every_link_of_the_readme_leads_to_a_file() -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", README):
        assert (ROOT / target).exists(), target


def test_the_two_commands_of_the_readme_are_targets_of_the_makefile() -> None:
    makefile = (ROOT / "Makefile").read_text()
    targets = re.findall(r"^make (\w+)", block(""), re.MULTILINE)
    assert targets == ["demo", "test"]
    for target in targets:
        assert re.search(rf"^{target}:", makefile, re.MULTILINE)


def test_the_extras_of_the_readme_match_the_project() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    rows = re.findall(r"^\| (`.+?`) \|", README, re.MULTILINE)
    named = {name for row in rows for name in re.findall(r"`(\w+)`", row)}
    assert named and named <= set(extras)


def test_no_package_registry_is_named_and_every_dependency_has_an_exact_version() -> None:
    for name in ("pyproject.toml", "constraints.txt", "Makefile"):
        assert "://" not in (ROOT / name).read_text("utf-8"), name
    pinned = dict(line.lower().split("==") for line in (ROOT / "constraints.txt").read_text().split())
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    wanted = [*project["dependencies"], *extras["dev"]]
    for requirement in wanted:  # An extra of our own stands for its requirements.
        if own := re.fullmatch(r"thresher\[(.*)\]", requirement):
            wanted += [one for name in own[1].split(",") for one in extras[name]]
    wanted = [requirement for requirement in wanted if not requirement.startswith("thresher[")]
    names = {re.split(r"[><=;\[ ]", requirement)[0].lower() for requirement in wanted}
    assert {name for name in names if name not in pinned and name.replace("-", "_") not in pinned} == set()
