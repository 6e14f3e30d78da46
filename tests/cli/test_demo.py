"""`thresher demo` on a base install: no wordfreq, no network, and the suggested commands can be run unchanged."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import thresher
from thresher.demo import NODE, QUERY

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(300),
]  # A whole crawl, where other tests may run beside it.


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a working directory with a module `wordfreq` that cannot be imported."""
    directory = tmp_path_factory.mktemp("demo")
    (directory / "blocked").mkdir()
    (directory / "blocked" / "wordfreq.py").write_text('raise ImportError("not installed")\n')
    return directory


def environment(place: Path) -> dict[str, str]:
    paths = [str(place / "blocked"), os.environ.get("PYTHONPATH", "")]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))}


@pytest.fixture(scope="module")
def shown(place: Path) -> str:
    """Return the output of the demo in a pipe."""
    done = subprocess.run(
        [sys.executable, "-m", "thresher.cli", "demo", "my demo"],
        cwd=place,
        env=environment(place),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_demo_finds_every_good_text_and_no_other(shown: str) -> None:
    line = next(line for line in shown.splitlines() if "good texts of this web" in line)
    found, _, good, *_ = line.split()
    assert found == good and int(found) > 100
    assert "and 0 documents that a perfect crawl would reject" in line


def test_the_concordance_and_the_collocates_of_the_demo_are_about_soup(shown: str, place: Path) -> None:
    corpus = thresher.open(place / "my demo")
    search = corpus.search(QUERY)
    assert search.count() > 20
    assert all(row["match"].endswith("polévku") for row in search.concordance(size=20).records())
    near = {row["value"] for row in corpus.search(NODE).collocates(attribute="lc", limit=20).records()}
    assert near & {"uvařila", "vaří", "hrnci", "čočková", "dýňová"}
    assert f"of {search.count():,} hits" in shown


def test_the_commands_that_the_demo_suggests_can_be_run_as_they_stand(shown: str, place: Path) -> None:
    commands = [line.strip() for line in shown.partition("Next:")[2].splitlines() if line.strip()]
    commands += [line for line in shown.splitlines() if " search " in line or " collocates " in line]
    assert len(commands) >= 7
    for command in commands:
        done = subprocess.run(
            ["bash", "-c", f"set -o pipefail; {command}"],
            cwd=place,
            env=environment(place),
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode in (0, 141), (command, done.stderr)  # `head` may close the pipe early.
        assert done.stdout or done.stderr


def test_a_directory_that_no_demo_made_is_spared(place: Path) -> None:
    (place / "mine").mkdir()
    (place / "mine" / "thesis.tex").write_text("x")
    command = [sys.executable, "-m", "thresher.cli", "demo"]
    done = subprocess.run([*command, "mine"], cwd=place, capture_output=True, text=True, check=False)
    assert done.returncode == 2 and "choose another directory" in done.stderr
    assert (place / "mine" / "thesis.tex").exists()
