"""`thresher seeds` and `thresher sample`: visits over real HTTP, tables for people, JSON for machines."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from support.invariants import check_journal
from support.webs.toy_webs import all_seeds
from thresher.cli import app
from thresher.cli.exit_codes import FAULT
from thresher.config import Config, JudgeSettings, ScopeSettings
from thresher.crawler.frontier.url_scope import UrlScope
from thresher.crawler.sampling.page_visitor import VisitResult, VisitSettings
from thresher.crawler.sampling.sample import sample, size_class
from thresher.crawler.sampling.seed_ranking import SeedRanking, appraise, appraise_all, rank, seed_list
from thresher.crawler.seeds import gather
from thresher.errors import UsageError
from thresher.judge import Judge
from thresher.reader.language.identify import languages
from thresher.records import Block, Link, ReadResult
from thresher.urls import key
from thresher_lab.toyweb import Server, ToyWeb, reachable, serve, truth

pytestmark = pytest.mark.slow

WEB = ToyWeb.calm(
    hosts=12, pages_per_host=(5, 15), page_bytes=(4_000, 8_000), redirect=0.1, lost=0.1, licensed=0.0
)
SENTENCE = "Byl jednou jeden král a ten měl tři dcery, které se ho ptaly, co je to za den. "
HEADLINES = (
    "Vláda dnes jednala o rozpočtu na příští rok",
    "Děti se vrátily do školy",
    "Kde je nejlépe u vody",
)


def run(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "thresher.cli", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=100)
    assert "Traceback" not in done.stderr
    return done


def rows(done: subprocess.CompletedProcess[str]) -> list[dict[str, Any]]:
    return [json.loads(line) for line in done.stdout.splitlines()]


# appraising


def page(text: str = "", headlines: tuple[str, ...] = (), links: int = 0, **fields: Any) -> ReadResult:
    blocks = [Block(text, 0.0)] if text else []
    return ReadResult(
        "http://a.cz/",
        "html",
        html_bytes=20_000,
        text=text,
        blocks=(*blocks, *(Block(headline, 1.0) for headline in headlines)),
        languages=languages(text),
        links=tuple(Link(f"http://{'ab'[n % 2]}.cz/{n}", "", 1.0, False) for n in range(links)),
        **fields,
    )


def appraised(found: ReadResult, downloaded: int = 10_000, url: str = "http://a.cz/") -> SeedRanking:
    visit = VisitResult(url, found.url, downloaded, found, Judge(Config(language="cs")).verdict(found))
    return appraise(visit, "cs", JudgeSettings(), UrlScope(ScopeSettings()))


def test_a_page_with_much_text_in_the_language_for_few_bytes_is_the_best_seed() -> None:
    lean, fat = appraised(page(20 * SENTENCE), 4_000), appraised(page(20 * SENTENCE), 40_000)
    assert lean.good and fat.good
    assert lean.score > fat.score
    assert lean.rate == pytest.approx(20 * len(SENTENCE.encode()) / 4_000, rel=0.05)


def test_a_front_page_of_headlines_is_good_for_its_links() -> None:
    front = appraised(page(headlines=10 * HEADLINES, links=60))
    assert front.good and front.verdict and front.verdict.reason == "too short"
    assert (front.own_links, front.other_links, front.rate) == (30, 30, 0.0)
    assert 0 < front.score < 0.1


def test_links_are_worth_nothing_on_a_page_in_another_language() -> None:
    english = ("The government met today to talk about the budget", "Where the water is best this year")
    front = appraised(page(headlines=10 * english, links=60))
    assert not front.good and front.reason == "language"
    assert front.score == pytest.approx(0.0, abs=0.01)


def test_a_page_with_neither_text_nor_links_is_no_seed() -> None:
    assert appraised(page(headlines=HEADLINES, links=2)).reason == "too short"


def test_links_that_no_crawl_follows_do_not_count() -> None:
    found = appraised(page(headlines=10 * HEADLINES, links=60, nofollow=True))
    assert (found.own_links, found.other_links, found.good) == (0, 0, False)


def test_a_link_farm_gains_little_over_a_page_with_some_links() -> None:
    some, farm = (appraised(page(20 * SENTENCE, links=count)) for count in (100, 10_000))
    assert some.score < farm.score < some.score + 0.04


def test_boilerplate_is_the_share_of_visible_text_outside_the_main_text() -> None:
    found = appraised(page(SENTENCE, headlines=(SENTENCE,) * 3))
    assert found.boilerplate == pytest.approx(0.75)


def test_only_one_of_the_candidates_that_lead_to_a_page_is_good() -> None:
    duplicates = [appraised(page(20 * SENTENCE), url=url) for url in ("http://a.cz/", "http://www.a.cz/")]
    first, second = rank(duplicates)
    assert first.good and not second.good
    assert (second.reason, second.detail) == ("same page", first.url)


def test_good_seeds_come_first_and_failures_last() -> None:
    good = appraised(page(20 * SENTENCE), 100_000, url="http://z.cz/")
    bad = SeedRanking(url="http://b.cz/", final="http://b.cz/", reason="dns")
    ranked = rank([bad, good])
    assert [seed.url for seed in ranked] == ["http://z.cz/", "http://b.cz/"]


def test_a_list_of_seeds_is_a_seeds_file(tmp_path: Path) -> None:
    listed = tmp_path / "seeds.txt"
    listed.write_text(seed_list([appraised(page(20 * SENTENCE)), appraised(page())]), "utf-8")
    assert listed.read_text("utf-8").startswith("# score ")
    assert gather([str(listed)]).urls == ("http://a.cz/",)


# the commands


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serve(WEB, journal=tmp_path_factory.mktemp("web") / "journal") as server:
        yield server


@pytest.fixture(scope="module")
def candidates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return front pages of every language, and pages of every kind."""
    urls = [*all_seeds(WEB), *(url for url, _ in list(reachable(WEB, all_seeds(WEB)))[20::8])]
    path = tmp_path_factory.mktemp("candidates") / "candidates.txt"
    path.write_text("\n".join(dict.fromkeys(url for url in urls if not url.endswith("/robots.txt"))))
    return path


def test_seeds_are_ranked_for_machines_and_the_good_ones_written(
    tmp_path: Path, server: Server, candidates: Path
) -> None:
    good = tmp_path / "good.txt"
    common = ("--lang", "cs", "--delay", 0, "--connect-to", server.connect_to)
    done = run("seeds", candidates, *common, "-o", good, "--json")
    assert done.returncode == 0, done.stderr
    found = rows(done)
    assert sorted(row["url"] for row in found) == sorted(candidates.read_text().split())
    scores = [row["score"] for row in found if row["good"]]
    assert scores == sorted(scores, reverse=True)
    for row in found:
        known = truth(WEB, row["final"])
        if row["good"]:
            assert known.language == "cs", row["url"]
        if known.good:
            assert row["good"] or row["reason"] == "same page", row
        if known.kind == "lost":
            assert row["reason"] == "http 404" and row["verdict"] is None
        if known.kind == "front" and known.language == "cs":
            assert row["good"] and row["own_links"] > 0
    assert gather([str(good)]).urls == tuple(row["final"] for row in found if row["good"])
    assert {"http 404", "language"} <= {row["reason"] for row in found}


def test_seeds_are_a_table_with_the_reasons_of_failures(server: Server) -> None:
    lost = next(url for url, known in reachable(WEB, all_seeds(WEB)) if known.kind == "lost")
    front = next(url for url in all_seeds(WEB) if truth(WEB, url).language == "cs")
    done = run("seeds", front, lost, "--lang", "cs", "--delay", 0, "--connect-to", server.connect_to)
    assert "http 404" in done.stdout and "good" in done.stdout
    assert "1 of 2 are good seeds" in done.stderr


@pytest.mark.parametrize(
    ("pages", "walkers", "words"),
    [(0, 1, "--pages must be at least 1"), (1, 0, "--walkers must be at least 1")],
)
def test_a_sample_of_nothing_is_refused(pages: int, walkers: int, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        sample(["http://a.cz/"], VisitSettings("cs", contact="me@example.org"), pages=pages, walkers=walkers)


@pytest.mark.parametrize("command", ["seeds", "sample"])
def test_each_command_has_help_with_an_example(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    app.help_print([command])
    assert f"Example: thresher {command}" in capsys.readouterr().out


def test_seeds_end_at_once_if_no_candidate_can_be_reached() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # nothing listens on this port, so connections are refused
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        done = run(
            "seeds", "http://a.cz/", "http://b.cz/1", "http://b.cz/2", "--lang", "cs", "--connect-to", address
        )
    assert done.returncode == FAULT
    # Each candidate would have a result and a reason of its own, had the command waited for second tries.
    assert "none of 3 candidates could be reached" in done.stderr


def test_a_sample_holds_each_page_once_with_its_true_properties(tmp_path: Path, server: Server) -> None:
    journal = server.journal
    assert journal
    before = journal.read_text()
    common = ("--lang", "cs", "--delay", 0, "--connect-to", server.connect_to, "--seed", 1, "--walkers", 1)
    done = run("sample", tmp_path / "sample", "--seeds", *all_seeds(WEB), "--pages", 60, *common)
    assert done.returncode == 0, done.stderr
    assert "95 % interval" in done.stdout
    found = [json.loads(line) for line in (tmp_path / "sample" / "sample.jsonl").read_text().splitlines()]
    assert len(found) == len({row["url"] for row in found}) == 60
    assert sum(row["weight"] for row in found) == pytest.approx(1.0)
    for row in found:
        known = truth(WEB, row["url"])
        assert known.status == 200 and not known.disallowed
        if known.kind == "text":
            assert row["language"] == known.language and row["text_bytes"] > 1_000
        assert row["tld"] and row["bytes"] > 2_000
    asked = Counter(
        line.split("\t")[1] + line.split("\t")[2] for line in journal.read_text()[len(before) :].splitlines()
    )
    assert max(asked.values()) == 1  # downloaded once, robots.txt included
    check_journal(journal, WEB, delay=0.0)


def test_a_sample_of_more_pages_than_there_are_ends_with_all_of_them(server: Server) -> None:
    taken = sample(
        all_seeds(WEB), VisitSettings("cs", delay=0.0, connect_to=server.connect_to), pages=100_000
    )
    pages = reachable(WEB, all_seeds(WEB))
    there = {key(url) for url, known in pages if known.status == 200 and known.language}
    sampled = {key(row.url) for row in taken.rows}
    assert sampled <= there
    assert len(sampled) > 0.9 * len(there)  # except for pages that only feeds and sitemaps name


def test_visits_before_an_interruption_are_not_lost(server: Server, candidates: Path) -> None:
    urls = gather([str(candidates)]).urls
    terms = VisitSettings("cs", delay=0.0, connect_to=server.connect_to)

    def interrupt(calls: list[int], done: int) -> None:
        if done == 3 and 3 not in calls:
            os.kill(os.getpid(), signal.SIGINT)
        calls.append(done)

    seeds = appraise_all(urls, terms, partial(interrupt, []))
    assert seeds.interrupted and 3 <= len(seeds.seeds) < len(urls)
    taken = sample(urls, terms, pages=10_000, walkers=2, progress=partial(interrupt, []))
    assert taken.interrupted and 3 <= len(taken.rows) < 100
    assert sum(row.weight for row in taken.rows) == pytest.approx(1.0)


@pytest.mark.parametrize(("count", "name"), [(0, "under 2 kB"), (2_000, "2-10 kB"), (10**9, "over 250 kB")])
def test_every_size_has_a_class(count: int, name: str) -> None:
    assert size_class(count) == name


def test_a_tld_that_no_host_is_under_is_refused(tmp_path: Path) -> None:
    row = '{"url": "http://a.xn--p1ai/", "mime": "text/html", "status": "200", "languages": "rus"}'
    (tmp_path / "a.cdxj").write_text(f"xn--p1ai,a)/ 20260301093000 {row}\n")
    done = run("seeds", str(tmp_path / "a.cdxj"), "--lang", "ru", "--tld", "co.uk")
    assert (done.returncode, "--tld 'co.uk' is not a top-level domain" in done.stderr) == (2, True)
    for name in ("рф", ".XN--P1AI"):
        assert (
            "http://a.xn--p1ai/"
            in run("seeds", str(tmp_path / "a.cdxj"), "--lang", "ru", "--tld", name).stdout
        )
