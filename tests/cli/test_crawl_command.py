"""`thresher crawl`: flags, and the log of a crawl."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from support.command_line import run
from support.webs.toy_webs import all_seeds
from thresher.cli.app import GROUPS, app
from thresher.config import load
from thresher_lab.toyweb import ToyWeb, serve

WEB = ToyWeb.calm(hosts=6, licensed=0.0, pages_per_host=(8, 12), page_bytes=(2_500, 3_500))
NEW = ("--lang", "cs", "--seeds", "http://a.cz/")


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--max-pages", "-3"], "budget.max_pages must be a whole number of at least 0, got -3"),
        (["--delay", "-1"], "polite.delay must be a duration in seconds from 0 to 365d, got -1"),
        (["--contact", "me"], 'must be an e-mail address or an http(s) URL, got "me"; for example --contact'),
        (["--contact", "me@example.org", "--processes", "-1"], "read.processes must be a whole number"),
    ],
)
def test_a_flag_that_cannot_be_used_is_refused_before_anything_is_written(
    tmp_path: Path, flags: list[str], message: str
) -> None:
    refused = run("crawl", tmp_path / "corpus", *NEW, *flags)
    assert (refused.returncode, message in refused.stderr) == (2, True), refused.stderr
    assert not (tmp_path / "corpus").exists()


def test_every_command_is_in_a_group_of_the_help() -> None:
    commands = {name for name in app if not name.startswith("-")}
    assert commands == {name for names in GROUPS.values() for name in names}
    shown = run("--help").stdout
    places = [shown.index(f" {group} ") for group in GROUPS]
    assert places == sorted(places)


@pytest.mark.slow
def test_an_old_flag_works_with_a_warning(tmp_path: Path) -> None:
    with serve(WEB) as server:
        given = [
            "--seeds",
            *all_seeds(WEB),
            "--connect-to",
            server.connect_to,
            "--delay",
            "0",
            "--max-pages",
            "5",
        ]
        crawled = run("crawl", tmp_path / "corpus", "--lang", "cs", *given, "--readers", "1")
    assert "--readers is --processes now" in crawled.stderr
    assert "waiting" not in crawled.stdout + run("status", tmp_path / "corpus").stdout, "the crawl is over"
    assert load(tmp_path / "corpus").read.processes == 1


@pytest.mark.slow
@pytest.mark.parametrize("shards", [0, 2])
def test_a_crawl_writes_its_log_into_the_corpus(tmp_path: Path, shards: int) -> None:
    corpus = tmp_path / "corpus"
    with serve(WEB) as server:
        given = [
            "--lang",
            "cs",
            "--seeds",
            *all_seeds(WEB),
            "--connect-to",
            server.connect_to,
            "--delay",
            "0",
        ]
        crawled = run("crawl", corpus, *given, "--max-pages", "30", "--shards", str(shards), "-v")
        assert crawled.returncode == 3, crawled.stderr
        again = run("crawl", corpus, "--max-pages", "40", "--log-format", "json")
    assert "every connection goes to" in again.stderr and "as before" in again.stderr
    lines = (corpus / "logs" / "crawl.log").read_text("utf-8").splitlines()
    assert "INFO thresher.crawler.api: thresher" in lines[0] and lines[0] in crawled.stderr
    messages = [json.loads(line)["message"] for line in lines if line.startswith("{")]
    assert "budget.max_pages is 40 now, was 30" in messages
    assert any(message.startswith("the crawl ended: page budget") for message in messages)
