"""Explanations of the weight of a URL, by function and command."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import thresher
from support.invariants import SETTINGS
from support.webs.toy_webs import all_seeds
from thresher.cli import app
from thresher.config import PolicyName
from thresher.crawler.api import crawl
from thresher.crawler.explain import explain
from thresher.crawler.host_report import hosts
from thresher.errors import UsageError
from thresher_lab.toyweb import ToyWeb, serve

pytestmark = pytest.mark.slow

WEB = ToyWeb.calm(hosts=8, pages_per_host=(8, 16), page_bytes=(4_000, 6_000))


def crawled(directory: Path, policy: PolicyName) -> Path:
    given = {**SETTINGS, "budget": {"max_pages": 40}, "policy": {"name": policy}}
    with serve(WEB) as server:
        crawl(directory, "cs", all_seeds(WEB), settings=given, connect_to=server.connect_to)
    return directory


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return crawled(tmp_path_factory.mktemp("explained") / "corpus", "learned")


def waiting_url(corpus: Path) -> str:
    """Return a URL that was linked to and not visited."""
    visited = set(thresher.open(corpus).outcomes(["url"])["url"].to_pylist())
    links = thresher.open(corpus).links(["target"])["target"].to_pylist()
    return next(url for url in links if url not in visited and explain(corpus, url).state == "waiting")


def test_a_waiting_url_is_explained_by_features_with_the_prediction_without_each(
    corpus: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    url = waiting_url(corpus)
    app(["explain", str(corpus), url, "--json"], result_action="return_value")
    explained = json.loads(capsys.readouterr().out)
    assert (explained["url"], explained["state"], explained["policy"]) == (url, "waiting", "learned")
    features = {feature["name"]: feature for feature in explained["features"]}
    assert features["its host"]["pages"] > 0
    assert 0 <= features["its host"]["ours"] <= 1
    assert any(feature["without"] != explained["expected"] for feature in features.values())
    app(["explain", str(corpus), url], result_action="return_value")
    shown = capsys.readouterr().out
    assert "its host" in shown
    assert "bytes of text for each byte downloaded" in shown


def test_a_visited_url_is_explained_with_its_result_and_its_prediction(corpus: Path) -> None:
    kept = next(document.url for document in thresher.open(corpus))
    explained = explain(corpus, kept)
    assert explained.state == "visited"
    assert explained.detail.startswith("kept: ")
    assert "was expected" in explained.detail


def test_an_unknown_url_is_weighed_as_if_it_were_found_now(corpus: Path) -> None:
    home, abroad = (explain(corpus, f"http://unknown.{tld}/") for tld in ("cz", "de"))
    assert home.state == abroad.state == "unknown"
    assert home.weight > abroad.weight


def test_other_policies_explain_by_the_host(tmp_path: Path) -> None:
    corpus = crawled(tmp_path / "corpus", "host-yield")
    explained = explain(corpus, waiting_url(corpus))
    assert [feature.name for feature in explained.features] == ["its host"]
    assert explained.expected > 0


def test_explaining_and_listing_hosts_write_nothing_into_the_corpus(corpus: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in corpus.rglob("*")}
    explain(corpus, "http://unknown.cz/")
    assert hosts(corpus, now=0.0)
    assert {path: path.stat().st_mtime_ns for path in corpus.rglob("*")} == before


def test_a_string_that_is_no_url_and_a_corpus_without_a_crawl_are_refused(
    corpus: Path, tmp_path: Path
) -> None:
    with pytest.raises(UsageError, match="not a URL"):
        explain(corpus, "mailto:me@example.org")
    (tmp_path / "corpus.toml").write_text('language = "cs"\n')
    with pytest.raises(UsageError, match="crawl it first"):
        explain(tmp_path, "http://a.cz/")
