"""`thresher config`: settings shown, changed with checks, and described."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from support.command_line import run
from thresher.cli.views.configuration import settings_reference
from thresher.config import load
from thresher.files.durable_files import locked

DOCS = Path(__file__).parents[2] / "docs" / "configuration.md"
WRITTEN = """\
# A corpus for a thesis.
language = "cs"
thresher = "0.1.0"
schema = 2

[polite]
delay = 2  # agreed with the library
"""


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    (tmp_path / "corpus.toml").write_text(WRITTEN)
    return tmp_path


def test_all_settings_are_shown_with_their_values(corpus: Path) -> None:
    shown = run("config", corpus)
    assert shown.returncode == 0
    (delay,) = [line for line in shown.stdout.splitlines() if line.strip().startswith("polite.delay")]
    assert " 2 " in delay and "default" not in delay and "Time between two requests" in delay
    (memory,) = [line for line in shown.stdout.splitlines() if line.strip().startswith("read.memory")]
    assert '"2GiB"' in memory and "default" in memory


def test_descriptions_are_shown_with_their_brackets(corpus: Path) -> None:
    assert "[[process]]" in run("config", corpus, "process").stdout


def test_one_setting_or_one_section_is_shown_alone(corpus: Path) -> None:
    assert "judge" not in run("config", corpus, "polite").stdout
    shown = json.loads(run("config", corpus, "polite.delay", "--json").stdout)
    assert shown == {
        "polite.delay": {
            "value": 2.0,
            "default": 5.0,
            "is_default": False,
            "values": "a duration in seconds from 0 to 365d",
            "description": "Time between two requests to a host.",
        }
    }


@pytest.mark.parametrize(
    ("key", "words", "value"),
    [
        ("policy.patience", ["0.5"], 0.5),
        ("budget.max_bytes", ["20GB"], 20_000_000_000),
        ("budget.max_time", ["2h"], 7200.0),
        ("scope.tlds", ["cz", "sk"], ("cz", "sk")),
        ("scope.tlds", ["[]"], ()),
        ("fetch.ports", ["80", "443"], (80, 443)),
        ("store.links", ["false"], False),
        ("policy.threshold", ["0.02 * (log10(n) - 1)"], "0.02 * (log10(n) - 1)"),
        ("judge.language", ["true"], True),
    ],
)
def test_a_setting_is_changed_and_comments_stay(
    corpus: Path, key: str, words: list[str], value: object
) -> None:
    changed = run("config", corpus, key, *words)
    assert changed.returncode == 0, changed.stderr
    section, name = key.split(".")
    assert getattr(getattr(load(corpus), section), name) == value
    assert (corpus / "corpus.toml").read_text().startswith(WRITTEN)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["polite.delay", "-1"], "polite.delay must be a duration in seconds from 0 to 365d, got"),
        (["polite.contact", "me"], "polite.contact must be an e-mail address or an http(s) URL"),
        (["policy.patience", "9"], "policy.patience must be a number from 0 to 1, got 9"),
        (["policy.name", "dfs"], 'policy.name must be one of "bfs"'),
        (["policy.threshold", "n +"], "n +"),
        (["polite.dealy", "3"], "'polite.dealy' is not a setting; did you mean polite.delay?"),
        (["polite.dealy"], "did you mean polite.delay?"),
        (["language", "sk"], "language is fixed when a corpus is made"),
        (["shards.count", "4"], "was made with no shards"),
        (["cycles.count", "4"], "--cycle-pages"),
        (["process", "filter"], "[[process]]"),
        (["fetch.connect_to", "here"], "ADDR:PORT"),
    ],
)
def test_a_mistake_is_named_and_changes_nothing(corpus: Path, arguments: list[str], message: str) -> None:
    refused = run("config", corpus, *arguments)
    assert (refused.returncode, message in refused.stderr) == (2, True), refused.stderr
    assert (corpus / "corpus.toml").read_text() == WRITTEN


def test_a_change_while_a_crawl_is_at_work_applies_to_the_next_one(corpus: Path) -> None:
    with locked(corpus):
        changed = run("config", corpus, "polite.delay", "3")
    assert changed.returncode == 0
    assert "applies when it is started again" in changed.stderr
    assert "applies" not in run("config", corpus, "polite.delay", "4").stderr


def test_settings_can_be_read_where_nothing_can_be_written(tmp_path: Path) -> None:
    assert run("config", tmp_path).returncode == 1
    assert run("config").returncode == 2


def test_the_reference_of_settings_is_up_to_date() -> None:
    assert DOCS.read_text("utf-8") == settings_reference(), "make docs"
    assert run("config", "--reference").stdout == settings_reference()
