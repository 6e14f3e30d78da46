"""The toy web: a pure function of its parameters, served as its oracle says."""

from __future__ import annotations

import gzip
import json
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from html import unescape
from urllib.parse import urlsplit

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.webs.toy_webs import WEB, Walk, all_seeds, plain_body, settled, words_of
from thresher.urls import host as host_name
from thresher_lab.toyweb import ToyWeb, answer, reachable, truth
from thresher_lab.toyweb.hosts import find_host, host
from thresher_lab.toyweb.plan import article

# The web is a pure function.


def test_another_process_gives_the_same_bytes_and_truths() -> None:
    urls = [url for url, _ in zip(reach_few(), range(60), strict=False)]
    here = [(answer(WEB, url).body.hex(), msgspec.json.encode(truth(WEB, url)).decode()) for url in urls]
    script = (
        "import json, sys, msgspec\n"
        "from thresher_lab.toyweb import ToyWeb, answer, truth\n"
        "web = msgspec.json.decode(sys.stdin.buffer.readline(), type=ToyWeb)\n"
        "urls = json.loads(sys.stdin.readline())\n"
        "answers = [(answer(web, u).body.hex(), msgspec.json.encode(truth(web, u)).decode()) for u in urls]\n"
        "print(json.dumps(answers))\n"
    )
    given_to = msgspec.json.encode(WEB) + b"\n" + json.dumps(urls).encode() + b"\n"
    environment = {**os.environ, "PYTHONHASHSEED": "4321"}
    there = subprocess.run(
        [sys.executable, "-c", script], input=given_to, capture_output=True, check=True, env=environment
    )
    assert [tuple(pair) for pair in json.loads(there.stdout)] == here


def reach_few() -> Iterator[str]:
    return (url for url, _ in reachable(WEB, all_seeds(WEB)[:3], host_pages=20))


def test_another_seed_gives_another_web() -> None:
    assert set(all_seeds(WEB)).isdisjoint(all_seeds(WEB.but(seed=2)))


def test_every_host_is_found_by_its_name_in_a_small_and_in_a_huge_web() -> None:
    for web in (WEB, ToyWeb(hosts=3_000_000)):
        for number in range(0, web.hosts, max(1, web.hosts // 60)):
            found = host(web, number)
            assert find_host(web, found.name.upper() + ":80") == found


def test_even_the_smallest_web_holds_good_pages() -> None:
    web = ToyWeb.calm(hosts=1)
    assert any(found.good for _, found in reachable(web, all_seeds(web)))


@pytest.mark.parametrize(
    ("wrong", "named"), [({"hosts": 0}, "hosts"), ({"target": "sk"}, "target"), ({"thin": -0.1}, "thin")]
)
def test_parameters_that_make_no_web_are_refused_by_name(wrong: dict[str, object], named: str) -> None:
    with pytest.raises(ValueError, match=named):
        ToyWeb(**wrong)  # type: ignore[arg-type]


@given(
    path=st.text(max_size=60), name=st.sampled_from([host(WEB, n).name for n in range(8)] + ["", "a-1.cz"])
)
def test_any_url_has_an_answer_and_a_truth(path: str, name: str) -> None:
    url = f"http://{name}/{path}"
    assert answer(WEB, url).status in (200, 301, 302, 307, 308, 404, 500, 502)
    assert truth(WEB, url).reason


# The oracle describes the served pages.


def test_every_paragraph_stands_in_the_page_in_its_true_charset(walked: Walk) -> None:
    for url, found in walked.items():
        if not found.text:
            continue
        shown = words_of(plain_body(WEB, url).decode(found.charset))
        assert all(paragraph in shown for paragraph in found.text.split("\n")), url


def test_status_and_location_match_the_answer(walked: Walk) -> None:
    for url, found in walked.items():
        reply = settled(WEB, url, "")
        assert reply.status == found.status, url
        assert ("Location" in dict(reply.headers)) == bool(found.location), url


def test_every_link_of_the_oracle_stands_in_the_page_and_no_other(walked: Walk) -> None:
    from thresher.urls import canonical

    for url, found in walked.items():
        if found.title:
            html = plain_body(WEB, url).decode(found.charset)
            hrefs = {canonical(unescape(href), url) for href in re.findall(r'<a [^>]*href="([^"]*)"', html)}
            assert hrefs == {*found.links, *found.nofollow_links}, url


def test_texts_are_equal_within_a_group_and_nowhere_else(walked: Walk) -> None:
    groups: dict[str, set[str]] = {}
    for found in walked.values():
        if len(found.text) >= WEB.min_text_chars:
            groups.setdefault(found.group, set()).add(found.text)
    assert all(len(texts) == 1 for texts in groups.values())
    texts = [text for texts in groups.values() for text in texts]
    assert len(texts) == len(set(texts))


def test_a_group_has_at_most_one_good_page(walked: Walk) -> None:
    good = Counter(found.group for found in walked.values() if found.good)
    assert max(good.values()) == 1
    assert {found.group for found in walked.values() if found.keepable} >= set(good)


def test_a_near_duplicate_differs_in_about_one_word_of_fifty(walked: Walk) -> None:
    near = [found for found in walked.values() if found.near_duplicate_of and found.language != "ja"]
    assert near
    for found in near:
        original = truth(WEB, found.near_duplicate_of or "")
        assert original.text != found.text
        pairs = list(zip(original.text.split(), found.text.split(), strict=True))
        assert 0 < sum(a.lower() != b.lower() for a, b in pairs) / len(pairs) < 0.08


def test_a_mirror_gives_the_same_bytes_under_another_name(walked: Walk) -> None:
    copies = [
        (url, found.duplicate_of)
        for url, found in walked.items()
        if found.duplicate_of and url.split("/", 3)[3] == found.duplicate_of.split("/", 3)[3]
        if host_name(url) != host_name(found.duplicate_of)
    ]
    assert copies
    assert all(answer(WEB, copy, attempt=9) == answer(WEB, original, attempt=9) for copy, original in copies)


def test_pages_that_robots_txt_forbids_are_neither_good_nor_walked(walked: Walk) -> None:
    assert not any(found.disallowed for found in walked.values())
    forbidden = 0
    for number in range(WEB.hosts):
        home = host(WEB, number)
        robots = truth(WEB, f"http://{home.name}/robots.txt")
        rules = plain_body(WEB, robots.location or robots.url).decode() if robots.status != 404 else ""
        for page in (article(WEB, number, n) for n in range(1, home.pages + 1)):
            if home.mirrors < 0:
                found = truth(WEB, f"http://{home.name}{page.path}")
                assert found.disallowed == (robots.status == 500 or not allowed(rules, page.path)), found.url
                assert not (found.disallowed and (found.good or found.keepable))
                forbidden += found.disallowed
    assert forbidden


def allowed(robots: str, path: str) -> bool:
    """Return whether the longest matching rule of the group for all crawlers allows a path."""
    rules = re.findall(r"^(Allow|Disallow): (\S+)$", robots.partition("User-agent: *")[2], re.MULTILINE)
    matching = [
        (len(rule), name) for name, rule in rules if re.match(re.escape(rule).replace(r"\*", ".*"), path)
    ]
    return not matching or max(matching)[1] == "Allow"


def test_sitemaps_and_feeds_name_the_links_of_the_oracle(walked: Walk) -> None:
    kinds: Counter[str] = Counter()
    for url, found in walked.items():
        if found.kind in ("sitemap", "sitemap index", "feed"):
            body = plain_body(WEB, url)
            body = gzip.decompress(body) if url.endswith(".gz") else body
            kinds[found.kind + url.rpartition(".")[2]] += 1
            named = re.findall(r'<(?:loc|link)>([^<]+)</|<link href="([^"]+)"', body.decode())
            assert set(found.links) <= {unescape(a or b) for a, b in named}
    assert set(kinds) == {"sitemapxml", "sitemapgz", "sitemap indexxml", "feedxml"}


def test_orphans_are_reached_and_only_through_sitemap_or_feed(walked: Walk) -> None:
    by_page: set[str] = set()
    by_file: set[str] = set()
    for found in walked.values():
        (by_page if found.title or found.location else by_file).update(
            urlsplit(link)._replace(scheme="").geturl() for link in (*found.links, found.location)
        )
    orphans = {url for url in walked if urlsplit(url)._replace(scheme="").geturl() in by_file - by_page}
    assert any(walked[url].good for url in orphans)
