"""The erasure log: requests, the documents that they cover, and the refusal of documents later."""

from __future__ import annotations

import json
import tempfile
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.corpora.erasures import SPELLINGS
from thresher.errors import UsageError
from thresher.store.erasure_log import (
    FILE,
    ErasureMatcher,
    ErasureRequest,
    erasure_request,
    hashed,
    load,
    log_request,
)
from thresher.urls import key

WHEN = datetime(2026, 1, 2, tzinfo=UTC)


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({}, "nothing to forget; give --url"),
        ({"hosts": ["https://a.cz/"]}, r"--host 'https://a.cz/' is not the name of a host; try www"),
        ({"domains": ["a.cz/x"]}, "is not the name of a domain"),
        ({"urls": [""]}, "--url must not be empty"),
        ({"urls": ["\udcff"]}, r"--url '\\udcff' is not UTF-8"),
        ({"hosts": ["*.cz"]}, r"--host '\*\.cz' is a pattern, .*--domain example\.cz"),
        ({"domains": ["example.?z"]}, "is a pattern"),
        ({"hosts": ["www[12].cz"]}, "is a pattern"),
        (
            {"hosts": [".example.cz"]},
            r"--host '\.example\.cz' has an empty part between its dots; try example\.cz",
        ),
        ({"domains": ["example..cz"]}, r"try example\.cz"),
    ],
)
def test_a_request_that_cannot_be_used_is_refused_with_the_fix(
    asked: dict[str, list[str]], message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        erasure_request(**asked)


def test_a_request_covers_urls_hosts_and_domains() -> None:
    matcher = ErasureMatcher(erasure_request(urls=["http://A.cz/x#top"], hosts=["b.cz"], domains=["c.cz"]))
    covered = ["https://a.cz/x", "http://b.cz/", "http://b.cz:8080/y", "http://c.cz/", "https://d.c.cz/z"]
    assert all(map(matcher.covers, covered))
    others = ["http://a.cz/x/", "http://www.b.cz/", "http://cc.cz/", "http://d.cz/c.cz", "c.cz", "", None]
    assert not any(map(matcher.covers, others))


@pytest.mark.parametrize(("name", "meta"), SPELLINGS)
def test_a_host_is_recognised_in_any_spelling(name: str, meta: dict[str, str], tmp_path: Path) -> None:
    asked = erasure_request(hosts=["blog.example.cz", "žluťoučký.cz"])
    assert ErasureMatcher(asked).covers_document(name, meta)
    log_request(tmp_path, asked, {}, WHEN)
    assert load(tmp_path).holds_document({"id": name, **meta})
    others = erasure_request(hosts=["example.cz", "blog.cz"], domains=["og.example.cz"], urls=["a.jsonl"])
    assert not ErasureMatcher(others).covers_document(name, meta)


def test_logs_of_older_versions_are_still_obeyed(tmp_path: Path) -> None:
    names = [
        "url l1",
        f"url {key('http://a.cz/x?y=1').hex()}",
        "host b.cz",
        "domain c.cz",
        "host xn--hkkyrkk-5waec.fi",
    ]
    line = {
        "time": "",
        "asked": {},
        "found": {},
        "salt": "s",
        "hashes": [hashed(name, "s") for name in names],
    }
    (tmp_path / FILE).write_text(json.dumps(line) + "\n")
    refused = load(tmp_path).holds
    of_old = ["l1", "https://a.cz/x?y=1#z", "http://b.cz:8080/", "https://d.c.cz/?a", "http://häkkyräkkä.fi/"]
    assert all(map(refused, of_old))
    assert not refused("l2") and not refused("http://a.cz/x") and not refused("b.cz")


LABEL = st.text("abc", min_size=1, max_size=2)
HOST = st.lists(LABEL, min_size=1, max_size=3).map(lambda labels: ".".join([*labels, "cz"]))
URL = st.builds(lambda host, path: f"http://{host}/{path}", HOST, LABEL)


@given(st.frozensets(URL, max_size=3), st.frozensets(HOST, max_size=2), st.frozensets(HOST, max_size=2), URL)
def test_later_refusals_agree_with_the_request(
    urls: frozenset[str], hosts: frozenset[str], domains: frozenset[str], url: str
) -> None:
    asked = ErasureRequest(urls, hosts, domains)
    with tempfile.TemporaryDirectory() as directory:
        log_request(Path(directory), asked, {}, WHEN)
        assert load(Path(directory)).holds(url) == ErasureMatcher(asked).covers(url)
