"""The hosts of a crawl, told from outside: what they gave, and why some are closed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from invariants import SETTINGS, start
from thresher.cli import app
from thresher.config import ConfigError
from thresher.crawl.hosts import Host, hosts
from thresher.crawl.start import crawl
from thresher.lab.toyweb import ToyWeb, serve

WEB = ToyWeb.calm(hosts=12, pages_per_host=(8, 16), page_bytes=(4_000, 6_000))


def test_hosts_are_told_by_yield_with_their_state_while_the_crawl_is_at_work(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    seen: list[list[Host]] = []

    def look(_: dict[str, Any]) -> None:
        seen.append(hosts(tmp_path / "corpus", now=0.0))

    given = {**SETTINGS, "budget": {"host_pages": 9}}
    with serve(WEB) as server:
        crawl(
            tmp_path / "corpus",
            "cs",
            start(WEB),
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
    told = list(map(json.loads, capsys.readouterr().out.splitlines()))
    assert [row["host"] for row in told] == [host.host for host in found]
    assert told[0]["yield"] == pytest.approx(found[0].rate)


def test_a_corpus_that_was_never_crawled_has_no_hosts(tmp_path: Path) -> None:
    (tmp_path / "corpus.toml").write_text('language = "cs"\n')
    with pytest.raises(ConfigError, match="crawl it first"):
        hosts(tmp_path, now=0.0)
