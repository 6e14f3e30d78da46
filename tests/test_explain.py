"""Why a URL has its weight, told from outside."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import thresher
from invariants import SETTINGS, start
from thresher.cli import app
from thresher.config import ConfigError, PolicyName
from thresher.crawl.explain import explain
from thresher.crawl.start import crawl
from thresher.lab.toyweb import ToyWeb, serve

WEB = ToyWeb.calm(hosts=8, pages_per_host=(8, 16), page_bytes=(4_000, 6_000))


def crawled(directory: Path, policy: PolicyName) -> Path:
    given = {**SETTINGS, "budget": {"pages": 40}, "policy": {"name": policy}}
    with serve(WEB) as server:
        crawl(directory, "cs", start(WEB), settings=given, connect_to=server.connect_to)
    return directory


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return crawled(tmp_path_factory.mktemp("explained") / "corpus", "learned")


def waiting_url(corpus: Path) -> str:
    """A URL that was linked to and not visited."""
    visited = set(thresher.open(corpus).outcomes(["url"])["url"].to_pylist())
    links = thresher.open(corpus).links(["target"])["target"].to_pylist()
    return next(url for url in links if url not in visited and explain(corpus, url).state == "waiting")


def test_a_url_that_waits_is_told_with_clues_and_what_each_makes_of_it(
    corpus: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    url = waiting_url(corpus)
    app(["explain", str(corpus), url, "--json"], result_action="return_value")
    told = json.loads(capsys.readouterr().out)
    assert (told["url"], told["state"], told["policy"]) == (url, "waiting", "learned")
    clues = {clue["name"]: clue for clue in told["clues"]}
    assert clues["its host"]["pages"] > 0
    assert 0 <= clues["its host"]["ours"] <= 1
    assert any(clue["without"] != told["expected"] for clue in clues.values())
    app(["explain", str(corpus), url], result_action="return_value")
    shown = capsys.readouterr().err
    assert "its host" in shown
    assert "bytes of text for each byte downloaded" in shown


def test_a_url_that_was_visited_is_told_with_what_it_gave_and_what_was_expected(corpus: Path) -> None:
    kept = next(document.url for document in thresher.open(corpus))
    told = explain(corpus, kept)
    assert told.state == "visited"
    assert told.detail.startswith("kept: ")
    assert "was expected" in told.detail


def test_a_url_that_nobody_has_seen_is_weighed_all_the_same(corpus: Path) -> None:
    home, abroad = (explain(corpus, f"http://nobody.{tld}/") for tld in ("cz", "de"))
    assert home.state == abroad.state == "unknown"
    assert home.weight > abroad.weight


def test_other_policies_explain_by_the_host(tmp_path: Path) -> None:
    corpus = crawled(tmp_path / "corpus", "host-yield")
    told = explain(corpus, waiting_url(corpus))
    assert [clue.name for clue in told.clues] == ["its host"]
    assert told.expected > 0


def test_what_cannot_be_explained_is_told(corpus: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="not a URL"):
        explain(corpus, "mailto:me@example.org")
    (tmp_path / "corpus.toml").write_text('language = "cs"\n')
    with pytest.raises(ConfigError, match="crawl it first"):
        explain(tmp_path, "http://a.cz/")
