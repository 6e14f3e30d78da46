"""The way of a page over real HTTP, from seeds to a corpus."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import get_args

import pytest

import thresher
from support.invariants import SETTINGS, check_crawl, check_journal, check_raw, check_stats
from support.webs.toy_webs import all_seeds
from thresher.config import PolicyName, load, parse, parse_address
from thresher.crawler.api import crawl
from thresher.crawler.coordination import alone
from thresher.crawler.crawl_state import CrawlState
from thresher.crawler.engine import Crawl
from thresher.crawler.parts import crawl_parts
from thresher.crawler.policy.yield_stats import PRIOR_YIELD
from thresher.crawler.stop_reasons import Ending
from thresher.errors import CrawlError, UsageError
from thresher.judge import CLAIM_GRANTED, TextClaim
from thresher.store.shard_layout import Shard
from thresher.urls import host
from thresher_lab.toyweb import Server, ToyWeb, serve, truth

pytestmark = pytest.mark.slow

# Everything nasty that the toy web has, in a small and quick edition.
WEB = ToyWeb(
    hosts=40,
    pages_per_host=(5, 20),
    page_bytes=(4_000, 8_000),
    slow_seconds=0.1,
    drip_seconds=0.2,
    crawl_delay=0.1,
)
SMALL = ToyWeb.calm(hosts=6, licensed=0.0, pages_per_host=(5, 10), page_bytes=(4_000, 6_000))


@pytest.fixture(scope="module")
def small() -> Iterator[Server]:
    with serve(SMALL) as server:
        yield server


def settings(**sections: dict[str, object]) -> dict[str, dict[str, object]]:
    return {name: {**SETTINGS.get(name, {}), **sections.get(name, {})} for name in {**SETTINGS, **sections}}


def run(directory: Path, server: Server, web: ToyWeb = SMALL, **sections: dict[str, object]) -> str:
    given = settings(**sections)
    return crawl(directory, "cs", all_seeds(web), settings=given, connect_to=server.connect_to).reason


def test_every_page_is_fetched_once_and_every_good_text_is_kept_once(tmp_path: Path) -> None:
    journal = tmp_path / "journal"
    with serve(WEB, journal=journal) as server:
        assert run(tmp_path / "corpus", server, WEB) == "waiting"  # for hosts with a broken robots.txt
    check_crawl(tmp_path / "corpus", WEB)
    check_raw(tmp_path / "corpus")
    check_stats(tmp_path / "corpus")
    requests = check_journal(journal, WEB, delay=0.0)
    again = {
        url
        for url, count in requests.items()
        if count > 1 and not url.endswith("/robots.txt") and truth(WEB, url).kind not in ("flaky", "error")
    }
    assert again == set()


@pytest.mark.parametrize("policy", get_args(PolicyName))
def test_every_policy_finds_all_there_is_in_the_end(tmp_path: Path, small: Server, policy: str) -> None:
    assert run(tmp_path, small, policy={"name": policy, "threshold": ""}) == "done"
    check_crawl(tmp_path, SMALL)
    check_stats(tmp_path)


def test_an_outcome_has_the_yield_that_was_expected_when_its_url_was_chosen(
    tmp_path: Path, small: Server
) -> None:
    # With one connection, since the first pages of a host are needed to expect anything of the next.
    run(tmp_path, small, policy={"name": "bfs"}, fetch={"connections": 1})
    rows = thresher.open(tmp_path).outcomes(["weight", "host", "text_bytes"]).to_pylist()
    assert rows[0]["weight"] == pytest.approx(PRIOR_YIELD)
    rich = max(rows, key=lambda row: row["text_bytes"])["host"]
    assert max(row["weight"] for row in rows if row["host"] == rich) > PRIOR_YIELD


def test_a_crawl_continues_where_its_budget_stopped_it(tmp_path: Path, small: Server) -> None:
    assert run(tmp_path, small, budget={"max_pages": 10}) == "page budget"
    assert thresher.open(tmp_path).stats()["pages"]["fetched"] == 10
    assert (
        crawl(tmp_path, settings={"budget": {"max_pages": 0}}, connect_to=small.connect_to).reason == "done"
    )
    check_crawl(tmp_path, SMALL)
    check_raw(tmp_path)
    check_stats(tmp_path)


@pytest.mark.parametrize(
    ("budget", "ending"), [({"max_bytes": 20_000}, "byte budget"), ({"max_time": 0.001}, "time budget")]
)
def test_bytes_and_time_are_budgets_too(
    tmp_path: Path, small: Server, budget: dict[str, object], ending: str
) -> None:
    assert run(tmp_path, small, budget=budget) == ending


def test_a_host_budget_ends_a_host_and_not_the_crawl(tmp_path: Path, small: Server) -> None:
    assert run(tmp_path, small, budget={"host_pages": 3}) == "done"
    pages = thresher.open(tmp_path).outcomes(["host"]).to_pandas()["host"].value_counts()
    assert pages.max() == 3
    assert thresher.open(tmp_path).stats()["hosts"]["closed"] >= 1


class SlowTexts:
    """Text claims that are all granted at once, after enough of them were made."""

    def __init__(self, enough: int) -> None:
        self._missing = enough
        self._is_enough = asyncio.Event()

    async def claim(self, text_hash: bytes, url: str) -> TextClaim:
        self._missing -= 1
        if not self._missing:
            self._is_enough.set()
        await self._is_enough.wait()
        return CLAIM_GRANTED


def test_visits_that_wait_for_a_text_claim_hold_no_connection(tmp_path: Path, small: Server) -> None:
    connections = 2
    config = parse({**settings(fetch={"connections": connections}), "language": "cs"})

    async def run() -> Ending:
        with closing(CrawlState(tmp_path, config)) as state:
            coordination = alone(state.politeness)._replace(
                texts=SlowTexts(enough=2 * connections), shard=Shard(0, 2)
            )
            parts = crawl_parts(config, parse_address(small.connect_to))
            async with asyncio.timeout(60), Crawl(state, parts, coordination=coordination) as one:
                one.seed(all_seeds(SMALL))
                return await one.run()

    assert asyncio.run(run()).reason == "done"


def test_the_delay_is_kept_between_two_requests_to_a_host(tmp_path: Path) -> None:
    journal = tmp_path / "journal"
    with serve(SMALL, journal=journal) as server:
        run(tmp_path / "corpus", server, polite={"delay": 0.05}, budget={"max_pages": 60})
    assert sum(check_journal(journal, SMALL, delay=0.05).values()) >= 60


@pytest.mark.parametrize(("wish", "records"), [("none", False), ("kept", True)])
def test_raw_pages_are_kept_as_set(tmp_path: Path, small: Server, wish: str, records: bool) -> None:
    run(tmp_path, small, store={"keep_raw": wish})
    rows = thresher.open(tmp_path).outcomes(["outcome", "warc_file"]).to_pylist()
    assert {row["outcome"] for row in rows if row["warc_file"]} == ({"kept"} if records else set())
    if records:
        check_raw(tmp_path)


def test_a_crawl_stays_in_its_top_level_domains(tmp_path: Path, small: Server) -> None:
    run(tmp_path, small, scope={"tlds": ["cz"]})
    hosts = set(thresher.open(tmp_path).outcomes(["host"])["host"].to_pylist())
    assert hosts and all(name.partition(":")[0].endswith(".cz") for name in hosts)


def test_without_external_links_a_crawl_stays_on_its_seeds_hosts(tmp_path: Path, small: Server) -> None:
    run(tmp_path, small, scope={"external": False})
    assert set(thresher.open(tmp_path).outcomes(["host"])["host"].to_pylist()) <= {
        host(url) for url in all_seeds(SMALL)
    }


def test_the_link_structure_is_written_with_scores(tmp_path: Path, small: Server) -> None:
    run(tmp_path, small, budget={"max_pages": 30})
    links = thresher.open(tmp_path).links().to_pandas()
    assert len(links) > 100
    assert links["boilerplate"].between(0, 1).all()
    menu, running = links[~links["in_text"]], links[links["in_text"]]
    assert len(running) and menu["boilerplate"].mean() > running["boilerplate"].mean() + 0.3


def test_a_second_crawler_is_refused_while_the_first_is_at_work(tmp_path: Path, small: Server) -> None:
    refusals = []

    def meddle(_: object) -> None:
        command = [
            sys.executable,
            "-m",
            "thresher.cli",
            "crawl",
            str(tmp_path),
            "--connect-to",
            small.connect_to,
            "--max-pages",
            "70",
        ]
        refusals.append(subprocess.run(command, check=False, capture_output=True, text=True))

    given = settings(budget={"max_pages": 5})
    crawl(tmp_path, "cs", all_seeds(SMALL), settings=given, connect_to=small.connect_to, progress=meddle)
    assert {refusal.returncode for refusal in refusals} == {2}
    assert f"in use by another crawler (process {os.getpid()})" in refusals[0].stderr
    assert load(tmp_path).budget.max_pages == 5


def test_a_corpus_with_a_lost_state_is_not_wiped(tmp_path: Path, small: Server) -> None:
    import shutil

    run(tmp_path, small, budget={"max_pages": 20})
    before = sorted(path for path in tmp_path.rglob("*.parquet"))
    shutil.rmtree(tmp_path / "state")
    with pytest.raises(UsageError, match="its state is gone"):
        crawl(tmp_path, connect_to=small.connect_to)
    assert sorted(path for path in tmp_path.rglob("*.parquet")) == before != []


def test_a_crawl_without_a_network_reports_it_and_keeps_its_queue(tmp_path: Path, small: Server) -> None:
    with pytest.raises(CrawlError, match="is there a network"):
        crawl(tmp_path, "cs", all_seeds(SMALL), settings=settings(), connect_to="127.0.0.1:9")
    assert crawl(tmp_path, connect_to=small.connect_to).reason == "done"
    check_crawl(tmp_path, SMALL)


@pytest.mark.parametrize(
    ("language", "seeds", "message"),
    [
        ("", ["http://a.cz/"], "needs a language"),
        ("cs", [], "needs --seeds"),
        ("xx-nonsense", ["http://a.cz/"], "unknown language 'xx-nonsense'"),
        ("czech", ["mailto:a@b.cz"], "no usable seeds|does not exist"),
    ],
)
def test_a_new_corpus_is_refused_with_the_fix(
    tmp_path: Path, language: str, seeds: list[str], message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        crawl(tmp_path / "new", language, seeds, settings=settings(), connect_to="127.0.0.1:9")
    assert not (tmp_path / "new").exists()


def test_the_open_web_is_not_crawled_without_a_contact(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="--contact"):
        crawl(tmp_path / "new", "cs", ["http://a.cz/"])


def test_a_directory_with_other_things_in_it_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("do not touch")
    with pytest.raises(UsageError, match="not empty"):
        crawl(tmp_path, "cs", ["http://a.cz/"], connect_to="127.0.0.1:9")


def test_another_language_does_not_get_into_a_corpus(tmp_path: Path, small: Server) -> None:
    run(tmp_path, small, budget={"max_pages": 5})
    with pytest.raises(UsageError, match="is a corpus in 'cs', not 'tr'"):
        crawl(tmp_path, "tr", connect_to=small.connect_to)


def test_status_has_the_fields_of_the_contract(tmp_path: Path, small: Server) -> None:
    run(tmp_path, small, budget={"max_pages": 20})
    command = [sys.executable, "-m", "thresher.cli", "status", str(tmp_path), "--json"]
    status = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
    assert status["pages"]["fetched"] == 20
    assert {"kept", "failed", "rejected"} <= set(status["pages"])
    assert {"downloaded", "text"} <= set(status["bytes"])
    assert {"bytes", "documents"} == set(status["yield"])
    assert {"seen", "open", "closed"} <= set(status["hosts"])
    assert {"queue", "seen_urls"} <= set(status)
    assert {"wall_s", "cpu_s"} <= set(status["time"])
