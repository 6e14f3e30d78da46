"""Crawls in cycles, in which links wait for the next cycle, and in phases."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import accumulate
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import thresher
from support.invariants import SETTINGS, check_crawl, check_stats
from support.webs.toy_webs import all_seeds
from thresher.config import parse
from thresher.crawler.api import crawl
from thresher.crawler.frontier.cycles import good_places
from thresher.crawler.stop_reasons import Ending
from thresher.errors import UsageError
from thresher.judge import page_age_days
from thresher.records import Reply
from thresher_lab.toyweb import Server, ToyWeb, reachable, serve, truth

pytestmark = pytest.mark.slow

SMALL = ToyWeb.calm(hosts=6, licensed=0.0, pages_per_host=(5, 10), page_bytes=(4_000, 6_000))
RICH = ToyWeb.calm(
    hosts=12, rich_hosts=0.8, licensed=0.0, stray=0.1, pages_per_host=(20, 30), page_bytes=(4_000, 6_000)
)


@pytest.fixture(scope="module")
def small() -> Iterator[Server]:
    with serve(SMALL) as server:
        yield server


@pytest.fixture(scope="module")
def rich() -> Iterator[Server]:
    with serve(RICH) as server:
        yield server


def run(directory: Path, server: Server, seeds: list[str], **sections: dict[str, object]) -> Ending:
    given = {**SETTINGS, **sections}
    return crawl(directory, "cs", seeds, settings=given, connect_to=server.connect_to)


def rows_of_cycles(directory: Path) -> list[tuple[int, dict[str, Any]]]:
    """Return the fetched URLs in order, each with the number of its cycle."""
    corpus = thresher.open(directory)
    fetched = [row for row in corpus.outcomes().to_pylist() if row["status"]]
    cycles = corpus.stats()["cycles"]
    ends = list(accumulate(cycle["fetched"] for cycle in cycles))
    assert ends[-1] == len(fetched)
    return [(cycles[bisect_right(ends, place)]["cycle"], row) for place, row in enumerate(fetched)]


# generation cycles


def test_fifty_good_pages_lead_to_more_in_each_cycle_and_status_shows_its_accuracy(
    tmp_path: Path, rich: Server
) -> None:
    every = reachable(RICH, all_seeds(RICH), follow=lambda _: True)
    good = [url for url, found in every if found.good][::4][:50]
    assert len(good) == 50
    terms = {"pages": 40, "domain_pages": 8, "count": 5}
    ending = run(tmp_path, rich, good, cycles=terms, scope={"external": False})
    assert ending.reason == "cycle budget"
    rows = rows_of_cycles(tmp_path)
    cycle_of = {row["url"]: cycle for cycle, row in rows}
    assert {cycle for cycle, _ in rows} == {1, 2, 3, 4, 5}
    late = [row["url"] for cycle, row in rows if row["source"] and cycle <= cycle_of[row["source"]]]
    assert late == []
    assert {row["url"] for cycle, row in rows if cycle == 1} <= set(good)
    assert max(Counter(cycle for cycle, _ in rows).values()) == 40
    assert max(Counter((cycle, row["domain"]) for cycle, row in rows).values()) == 8

    stats = thresher.open(tmp_path).stats()
    for cycle_report in stats["cycles"]:
        here = [row for cycle, row in rows if cycle == cycle_report["cycle"]]
        assert cycle_report["fetched"] == len(here)
        assert cycle_report["ours"] == sum(row["language"] == "cs" for row in here)
        assert cycle_report["kept"] == sum(row["outcome"] == "kept" for row in here)
        assert cycle_report["accuracy"] == cycle_report["ours"] / cycle_report["fetched"]
        assert cycle_report["downloaded"] == sum(row["bytes"] for row in here)
        assert cycle_report["text_bytes"] == sum(row["text_bytes"] for row in here)
        assert cycle_report["yield"] == cycle_report["text_bytes"] / cycle_report["downloaded"]
    assert stats["cycles"][0]["accuracy"] == 1.0
    assert sum(cycle_report["ours"] for cycle_report in stats["cycles"]) == stats["pages"]["ours"]
    check_stats(tmp_path)


@pytest.mark.parametrize("policy", ["spiderling", "learned"])
def test_cycles_find_all_there_is_in_the_end(tmp_path: Path, small: Server, policy: str) -> None:
    given = {"cycles": {"pages": 40, "domain_pages": 10}, "policy": {"name": policy, "threshold": ""}}
    assert run(tmp_path, small, all_seeds(SMALL), **given) == Ending("done")
    check_crawl(tmp_path, SMALL)
    check_stats(tmp_path)
    assert thresher.open(tmp_path).stats()["queue"] == 0


def test_a_crawl_changes_to_cycles_and_back_and_loses_nothing(tmp_path: Path, small: Server) -> None:
    def go_on(**sections: dict[str, object]) -> str:
        return crawl(tmp_path, settings=sections, connect_to=small.connect_to).reason

    assert run(tmp_path, small, all_seeds(SMALL), budget={"max_pages": 30}).reason == "page budget"
    assert go_on(budget={"max_pages": 0}, cycles={"pages": 15, "count": 2}) == "cycle budget"
    check_stats(tmp_path)
    assert go_on(cycles={"count": 3}, budget={"max_pages": 65}) == "page budget"  # in the midst of the third
    assert [cycle["cycle"] for cycle in thresher.open(tmp_path).stats()["cycles"]] == [1, 2, 3]
    assert go_on(cycles={"pages": 0, "count": 0}, budget={"max_pages": 0}) == "done"
    check_crawl(tmp_path, SMALL)
    check_stats(tmp_path)
    assert [cycle["fetched"] for cycle in thresher.open(tmp_path).stats()["cycles"]] == [15, 15, 5]


def test_the_command_line_asks_for_cycles_and_shows_them(tmp_path: Path, small: Server) -> None:
    seeds = tmp_path / "seeds.txt"
    seeds.write_text("\n".join(all_seeds(SMALL)))
    command = [sys.executable, "-m", "thresher.cli", "crawl", str(tmp_path / "corpus"), "--lang", "cs"]
    command += ["--seeds", str(seeds), "--connect-to", small.connect_to, "--delay", "0"]
    command += ["--cycles", "2", "--cycle-pages", "10", "--cycle-domain-pages", "4"]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=60)
    assert (done.returncode, "the cycle budget is spent" in done.stderr) == (3, True), done.stderr
    assert "in language" in done.stdout and "Traceback" not in done.stderr


@pytest.mark.parametrize(
    "terms", [{"count": 3}, {"domain_pages": 3}, {"selection": True}, {"pages": -1}, {"pages": 1, "seeds": 0}]
)
def test_terms_that_cannot_be_used_are_refused_with_the_fix(tmp_path: Path, terms: dict[str, object]) -> None:
    with pytest.raises(
        UsageError, match=r"cycles\.\w+ (= .*--cycle-pages 2500|must be .*for example \w+ = )"
    ):
        crawl(tmp_path / "new", "cs", ["http://a.cz/"], settings={"cycles": terms}, connect_to="127.0.0.1:9")
    assert not (tmp_path / "new").exists()


def kill_in_the_midst(command: list[str], directory: Path) -> None:
    """Crawl until the status shows the third cycle."""
    crawler = subprocess.Popen(command, stderr=subprocess.DEVNULL, start_new_session=True)
    while len(thresher.open(directory).stats()["cycles"]) < 3:
        with suppress(subprocess.TimeoutExpired):
            pytest.fail(f"the crawl ended by itself: {crawler.wait(timeout=0.02)}")
    os.killpg(crawler.pid, signal.SIGKILL)
    crawler.wait()


def test_a_crawl_that_is_killed_within_a_cycle_continues_it(tmp_path: Path) -> None:
    terms = {"cycles": {"pages": 30, "domain_pages": 20}, "store": {"commit_seconds": 0.05}}
    with serve(RICH) as server:
        run(tmp_path, server, all_seeds(RICH), **{**terms, "budget": {"max_pages": 5}})
        command = [sys.executable, "-m", "thresher.cli", "crawl", str(tmp_path), "--max-pages", "0"]
        kill_in_the_midst([*command, "--connect-to", server.connect_to], tmp_path)
        crawl(tmp_path, settings={"store": {"commit_seconds": 1.0}}, connect_to=server.connect_to)
    check_crawl(tmp_path, RICH)
    check_stats(tmp_path)
    rows = rows_of_cycles(tmp_path)
    cycle_of = {row["url"]: cycle for cycle, row in rows}
    assert [row for cycle, row in rows if row["source"] and cycle <= cycle_of[row["source"]]] == []
    assert max(Counter(cycle for cycle, _ in rows).values()) <= 30
    assert max(Counter((cycle, row["domain"]) for cycle, row in rows).values()) <= 20


# cyclic selection


def test_a_phase_begins_with_good_links_of_the_last_one_and_gives_up_the_rest(
    tmp_path: Path, rich: Server
) -> None:
    seeds = [url for url in all_seeds(RICH) if truth(RICH, url).language == "cs"][:1]
    terms = {"pages": 15, "selection": True, "count": 3, "seeds": 10}
    run(tmp_path, rich, seeds, cycles=terms, fetch={"connections": 1})
    corpus = thresher.open(tmp_path)
    links = corpus.links(["source", "target", "boilerplate", "source_badness"]).to_pylist()
    good = {
        (link["source"], link["target"])
        for link in links
        if link["boilerplate"] < 0.5 and link["source_badness"] <= 10
    }
    rows = rows_of_cycles(tmp_path)
    assert [cycle_report["fetched"] for cycle_report in corpus.stats()["cycles"]] == [15, 15, 15]
    cycle_of = {row["url"]: cycle for cycle, row in rows}
    for number in (2, 3):
        here = [row for cycle, row in rows if cycle == number]
        begun = {row["url"] for row in here if row["source"] and cycle_of[row["source"]] < number}
        assert 0 < len(begun) <= 10
        before = {source for source, cycle in cycle_of.items() if cycle == number - 1}
        assert begun <= {target for source, target in good if source in before}
    stats = corpus.stats()
    assert stats["given_up"] > 0
    outcomes = sum(stats["pages"][kind] for kind in ("kept", "failed", "redirect", "disallowed"))
    outcomes += sum(stats["pages"]["rejected"].values())
    assert stats["seen_urls"] == outcomes + stats["queue"] + stats["queue_closed"] + stats["given_up"]
    assert len(set(corpus.outcomes(["url"])["url"].to_pylist())) == outcomes


def test_a_crawl_without_good_links_ends_with_that_reason(tmp_path: Path, small: Server) -> None:
    terms = {"pages": 20, "selection": True, "max_boilerplate": 0.0}
    ending = run(tmp_path, small, all_seeds(SMALL), cycles=terms)
    assert ending.reason == "done"
    given_up = thresher.open(tmp_path).stats()["given_up"]
    assert ending.detail == f"No good URL is left to begin from; {given_up} were given up."
    assert crawl(tmp_path, connect_to=small.connect_to).reason == "done"


@pytest.mark.parametrize(
    ("badness", "places"), [(10.0, [0, 2]), (10.1, []), (None, [0, 2]), (float("nan"), [])]
)
def test_good_places_are_blocks_below_a_bound_on_pages_up_to_one(
    badness: float | None, places: list[int]
) -> None:
    assert good_places(badness, [0.1, 0.5, 0.49, 1.0], 10.0, 0.5).tolist() == places


# highest age of a page

NOW = 1_750_000_000.0  # June 2025


def dated(value: str) -> Reply:
    head = f"HTTP/1.1 200 OK\r\nLast-Modified: {value}\r\n".encode("latin-1", "replace")
    return Reply("http://a.cz/", 200, head, b"", NOW, 0.1, "127.0.0.1")


@pytest.mark.parametrize(
    ("value", "days"),
    [
        ("Sun, 15 Jun 2025 15:06:40 GMT", 0.0),
        ("Sat, 14 Jun 2025 15:06:40 GMT", 1.0),
        ("Sat, 14 Jun 2025 15:06:40 -0000", 1.0),
        ("Mon, 16 Jun 2025 15:06:40 GMT", -1.0),
        ("Thu, 01 Jan 1970 00:00:00 GMT", None),
        ("yesterday", None),
        ("", None),
    ],
)
def test_the_age_of_a_page_comes_from_a_plausible_last_modified(value: str, days: float | None) -> None:
    assert page_age_days(dated(value)) == (None if days is None else pytest.approx(days))


@given(st.text(alphabet=st.characters(max_codepoint=255, exclude_characters="\r\n")))
def test_no_last_modified_is_a_fault(value: str) -> None:
    found = page_age_days(dated(value))
    assert found is None or isinstance(found, float)


SENTENCE = (
    "Byl jednou jeden král a ten měl tři dcery, které se na něj každý den dívaly a ptaly se, co je za den. "
)
DATES = {"/old": "Sat, 14 Jun 2014 15:06:40 GMT", "/undated": None}


class Dated(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        text = f"<h1>{self.path}</h1>" + f"<p>{self.path} {SENTENCE * 8}</p>" * 3
        body = f"<html><body>{text}</body></html>".encode()
        self.send_response(200 if self.path in DATES else 404)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        if date := DATES.get(self.path):
            self.send_header("Last-Modified", date)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


def test_a_page_that_is_too_old_is_rejected_and_one_without_age_passes(
    tmp_path: Path,
) -> None:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Dated)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    seeds = [f"http://a.cz{path}" for path in DATES]
    try:
        given = {**SETTINGS, "judge": {"max_age": 365.0, "max_badness": 0.0}}
        crawl(tmp_path, "cs", seeds, settings=given, connect_to=f"127.0.0.1:{server.server_port}")
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
    rows = thresher.open(tmp_path).outcomes(["url", "outcome", "reason"]).to_pylist()
    assert {row["url"]: (row["outcome"], row["reason"]) for row in rows} == {
        "http://a.cz/old": ("rejected", "too old"),
        "http://a.cz/undated": ("kept", ""),
    }


def test_a_limit_on_age_is_no_negative_number() -> None:
    with pytest.raises(UsageError, match=r"judge\.max_age"):
        parse({"judge": {"max_age": -1}})
