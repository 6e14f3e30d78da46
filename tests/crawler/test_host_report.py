"""Reports on the hosts of a crawl: yields, states and reasons."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from support.invariants import SETTINGS
from support.webs.toy_webs import all_seeds
from thresher.cli import app
from thresher.crawler.api import crawl
from thresher.crawler.host_report import HostReport, hosts
from thresher.errors import UsageError
from thresher_lab.toyweb import ToyWeb, serve

pytestmark = pytest.mark.slow

WEB = ToyWeb.calm(hosts=12, pages_per_host=(8, 16), page_bytes=(4_000, 6_000))


def test_hosts_of_a_running_crawl_are_listed_by_yield_with_their_state(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    seen: list[list[HostReport]] = []

    def look(_: dict[str, Any]) -> None:
        seen.append(hosts(tmp_path / "corpus", now=0.0))

    given = {**SETTINGS, "budget": {"host_pages": 9}}
    with serve(WEB) as server:
        crawl(
            tmp_path / "corpus",
            "cs",
            all_seeds(WEB),
            settings=given,
            connect_to=server.connect_to,
            progress=look,
        )
    found = seen[-1]
    assert [host.rate for host in found] == sorted((host.rate for host in found), reverse=True)
    assert found[0].text_bytes > 0
    assert {host.reason for host in found if host.state == "closed"} == {"host budget"}
    assert all(host.pages >= 9 for host in found if host.state == "closed")
    app(["hosts", str(tmp_path / "corpus"), "--json"], result_action="return_value")
    rows = list(map(json.loads, capsys.readouterr().out.splitlines()))
    assert [row["host"] for row in rows] == [host.host for host in found]
    assert rows[0]["yield"] == pytest.approx(found[0].rate)


def test_a_corpus_that_was_never_crawled_has_no_hosts(tmp_path: Path) -> None:
    (tmp_path / "corpus.toml").write_text('language = "cs"\n')
    with pytest.raises(UsageError, match="crawl it first"):
        hosts(tmp_path, now=0.0)
