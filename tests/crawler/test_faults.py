"""Crawls that are killed at random moments and continued lose nothing and keep nothing twice.

THRESHER_KILLS sets the number of kills (`make faults`: 50); the moments come from THRESHER_FAULT_SEED.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

import thresher
from support.invariants import check_crawl, check_journal, check_raw, check_stats, fetched_again
from support.webs.toy_webs import all_seeds
from thresher.config import Config, dump, parse
from thresher_lab.toyweb import ToyWeb, serve

pytestmark = pytest.mark.faults

KILLS = int(os.environ.get("THRESHER_KILLS", "6"))
SEED = int(os.environ.get("THRESHER_FAULT_SEED", "1"))
DELAY = 0.05
CONNECTIONS = 12
COMMIT_PAGES = 20
WEB = ToyWeb(
    hosts=30 + 9 * KILLS,  # enough work for all the runs
    pages_per_host=(10, 30),
    page_bytes=(4_000, 8_000),
    slow_seconds=0.1,
    drip_seconds=0.2,
    crawl_delay=0.05,
    calendar=0.0,  # no endless hosts, so that pages can be counted
    session=0.0,
    deeper=0.0,
)
CONFIG = parse(
    {
        "language": "cs",
        "polite": {
            "delay": DELAY,
            "load_share": 0.0,
            "contact": "x@example.org",
            "backoff": 0.05,
            "robots_retry": 600.0,
        },
        "policy": {"name": "bfs"},
        "fetch": {"connections": CONNECTIONS},
        "store": {
            "commit_pages": COMMIT_PAGES,
            "commit_seconds": 0.2,
            "segment_bytes": 60_000,
            "warc_bytes": 300_000,
        },
    }
)


def begin(directory: Path, connect_to: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "thresher.cli", "crawl", str(directory), "--connect-to", connect_to]
    if not (directory / "seeds.txt").exists():
        seeds = directory.parent / "seeds.txt"
        seeds.write_text("\n".join(all_seeds(WEB)))
        command += ["--seeds", str(seeds)]
    return subprocess.Popen(command, stderr=subprocess.PIPE, start_new_session=True)


@pytest.mark.timeout(120 + 20 * KILLS)
def test_crawls_that_are_killed_and_continued_lose_nothing_and_double_nothing(tmp_path: Path) -> None:
    directory, journal = tmp_path / "corpus", tmp_path / "journal"
    directory.mkdir()
    (directory / "corpus.toml").write_text(dump(CONFIG))
    moments = random.Random(SEED)
    fetched = 0
    kills = 0
    with serve(WEB, journal=journal) as server:
        while kills < KILLS:
            crawler = begin(directory, server.connect_to)
            try:
                crawler.communicate(timeout=moments.uniform(0.5, 2.2))
                break  # the crawl was quicker than its killer
            except subprocess.TimeoutExpired:
                os.killpg(crawler.pid, signal.SIGKILL)
                crawler.communicate()
                kills += 1
            if (directory / "status.json").exists():
                reported = thresher.open(directory).stats()["pages"]["fetched"]
                assert reported >= fetched, "reported pages are not taken back"
                fetched = reported
        last = begin(directory, server.connect_to)
        _, errors = last.communicate(timeout=300)
        assert last.returncode == 0, errors.decode()
    print(f"{kills} kills, {thresher.open(directory).stats()['pages']['fetched']} pages")
    assert kills > KILLS // 2, "the crawl ended before it could be killed often enough"
    check_crawl(directory, WEB)
    check_raw(directory)
    check_stats(directory)
    requests = check_journal(journal, WEB, DELAY)
    again = fetched_again(requests, WEB)
    print(f"{again} pages fetched again")
    assert again <= kills * (CONNECTIONS + COMMIT_PAGES)


@pytest.mark.timeout(120 + 20 * KILLS)
def test_interrupting_once_commits_and_the_crawl_can_continue(tmp_path: Path) -> None:
    directory = tmp_path / "corpus"
    directory.mkdir()
    (directory / "corpus.toml").write_text(dump(CONFIG))
    with serve(WEB) as server:
        crawler = begin(directory, server.connect_to)
        _wait_for_pages(crawler, directory)
        crawler.send_signal(signal.SIGINT)
        _, errors = crawler.communicate(timeout=60)
        assert crawler.returncode == 130, errors.decode()
        assert b"everything fetched is safe" in errors
        assert b"Traceback" not in errors
        stopped = thresher.open(directory).stats()["pages"]["fetched"]
        assert stopped == thresher.open(directory).outcomes().to_pandas()["warc_file"].notna().sum()
        again = begin(directory, server.connect_to)
        assert again.communicate(timeout=300) and again.returncode == 0
    check_crawl(directory, WEB)
    check_raw(directory)


def _wait_for_pages(crawler: subprocess.Popen[bytes], directory: Path) -> None:
    """Wait until a commit has published pages in the status file."""
    import json

    while crawler.poll() is None:
        try:
            if json.loads((directory / "status.json").read_bytes())["pages"]["fetched"] > 20:
                return
        except FileNotFoundError:
            pass
        with suppress(subprocess.TimeoutExpired):
            crawler.wait(timeout=0.005)
    pytest.fail("the crawl reported no pages")


@pytest.mark.timeout(120 + 20 * KILLS)  # more kills have a larger web
@pytest.mark.parametrize("room", [20_000, 400_000])
def test_a_full_disk_ends_the_crawl_with_a_message_and_free_space_lets_it_resume(
    tmp_path: Path, room: int
) -> None:
    """A limit on the size of files stands in for a disk: it fails writes in just the same places."""
    directory = tmp_path / "corpus"
    directory.mkdir()
    config = Config(language="cs", polite=CONFIG.polite, policy=CONFIG.policy, fetch=CONFIG.fetch)
    (directory / "corpus.toml").write_text(dump(config))
    import resource

    with serve(WEB) as server:
        seeds = tmp_path / "seeds.txt"
        seeds.write_text("\n".join(all_seeds(WEB)))
        command = [
            sys.executable,
            "-m",
            "thresher.cli",
            "crawl",
            str(directory),
            "--connect-to",
            server.connect_to,
        ]
        full = subprocess.run(
            [*command, "--seeds", str(seeds)],
            capture_output=True,
            check=False,
            timeout=300,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (room, room)),
        )
        assert full.returncode == 1, full.stderr.decode()
        assert b"disk_full" in full.stderr
        assert b"Traceback" not in full.stderr
        again = subprocess.run(
            [*command, "--seeds", str(seeds)], capture_output=True, check=False, timeout=300
        )
        assert again.returncode == 0, again.stderr.decode()
    check_crawl(directory, WEB)
    check_raw(directory)
    check_stats(directory)
