"""The toy web is as faulty as it promises, and no more where it is calm."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from support.webs.toy_webs import WEB, Walk, all_seeds, first, headers, plain_body
from thresher.urls import host as host_name
from thresher_lab.toyweb import ToyWeb, answer, reachable, truth
from thresher_lab.toyweb.hosts import host

PAGE_KINDS = (
    *("front", "list", "text", "thin", "redirect", "chain", "loop", "lost", "gone", "error", "flaky", "slow"),
    *(
        "drip",
        "file",
        "calendar",
        "deeper",
        "robots",
        "feed",
        "sitemap",
        "sitemap index",
        "missing",
        "soft 404",
    ),
)


@pytest.mark.parametrize("kind", PAGE_KINDS)
def test_every_kind_of_page_is_met_in_the_default_web(walked: Walk, kind: str) -> None:
    assert any(found.kind == kind for found in walked.values())


def test_every_kind_of_host_is_in_the_default_web() -> None:
    homes = [host(WEB, number) for number in range(WEB.hosts)]
    assert {h.kind for h in homes} == {"rich", "hidden", "mixed", "spam", "thin", "mirror", "foreign"}
    assert {h.robots for h in homes} == {"rules", "missing", "broken", "moved"}
    assert {h.encoding for h in homes} == {"gzip", "br", "zstd", "identity"}
    assert {h.sitemap for h in homes} == {"", "plain", "gzip"}
    assert {h.feed for h in homes} == {"", "rss", "atom"}
    assert {h.style for h in homes} == {0, 1, 2, 3}
    for trait in (
        "session",
        "calendar",
        "deeper",
        "soft_404",
        "legacy",
        "chunked",
        "crawl_delayed",
        "prefixed",
    ):
        assert {getattr(h, trait) for h in homes} == {True, False}, trait


def test_every_reason_for_rejection_and_every_wish_of_a_page_occurs(walked: Walk) -> None:
    reasons = {found.reason for found in walked.values()}
    assert {"", "language", "too short", "duplicate", "noindex", "junk", "status 404"} <= reasons
    for wish in ("nofollow", "noindex", "noai", "license", "near_duplicate_of", "trap"):
        assert any(getattr(found, wish) for found in walked.values()), wish
    in_header = [url for url in walked if "X-Robots-Tag" in headers(WEB, url)]
    in_page = [
        url for url, found in walked.items() if found.title and b'name="robots"' in plain_body(WEB, url)
    ]
    assert in_header
    assert in_page
    statuses = {found.status for found in walked.values()}
    assert statuses == {200, 301, 302, 307, 308, 404, 410, 500}
    assert {answer(WEB, url).status for url, f in walked.items() if f.kind == "flaky"} == {429, 503}


def test_charsets_are_declared_rightly_wrongly_and_not_at_all(walked: Walk) -> None:
    ways: set[tuple[str, str]] = set()
    charsets = set()
    for url, found in walked.items():
        if found.kind == "text":
            charsets.add(found.charset)
            header = re.search(r"charset=(\S+)", headers(WEB, url)["Content-Type"])
            meta = re.search(rb'<meta charset="([^"]+)">', plain_body(WEB, url))
            says = [header[1] if header else "", meta[1].decode() if meta else ""]
            ways.add(tuple("right" if s == found.charset else s and "wrong" for s in says))  # type: ignore[arg-type]
    assert ways == {("right", "right"), ("right", ""), ("", "right"), ("", ""), ("wrong", "right")}
    assert {"utf-8", "windows-1250"} < charsets or {"utf-8", "iso-8859-2"} < charsets


def test_chains_are_both_within_and_beyond_the_limit_of_a_crawler(walked: Walk) -> None:
    starts = [url for url, found in walked.items() if found.kind == "chain" and "hop=" not in url]
    lengths = [chain_length(url) for url in starts]
    assert min(lengths) <= 8 < max(lengths)


def chain_length(url: str) -> int:
    found = truth(WEB, url)
    return 1 + chain_length(found.location) if found.kind == "chain" else 0


def test_a_loop_comes_back_to_where_it_began(walked: Walk) -> None:
    url = first(walked, "loop")
    assert truth(WEB, truth(WEB, truth(WEB, url).location).location).location == truth(WEB, url).location


def test_redirects_lead_to_other_hosts_too(walked: Walk) -> None:
    away = [f for f in walked.values() if f.kind == "redirect" and host_name(f.location) != host_name(f.url)]
    assert away
    assert all(truth(WEB, found.location).kind != "missing" for found in away)


def test_a_front_page_in_another_language_hides_good_pages(walked: Walk) -> None:
    hidden = [h for h in (host(WEB, n) for n in range(WEB.hosts)) if h.kind == "hidden"]
    for home in hidden:
        front = truth(WEB, f"http://{home.name}/")
        assert front.language != WEB.target
        assert len(front.text) >= WEB.min_text_chars
        assert any(found.good for url, found in walked.items() if host_name(url) == home.name)


def test_a_calm_web_has_nothing_but_pages_lists_sitemaps_and_feeds() -> None:
    web = ToyWeb.calm(hosts=20)
    found = [found for _, found in reachable(web, all_seeds(web))]
    assert {f.kind for f in found} <= {"text", "front", "list", "robots", "sitemap", "sitemap index", "feed"}
    assert {f.reason for f in found} <= {"", "language", "too short", "no page"}


def test_one_kind_of_nastiness_can_be_had_alone() -> None:
    web = ToyWeb.calm(hosts=20, calendar=0.2)
    found = [found for _, found in reachable(web, all_seeds(web), host_pages=200)]
    assert {f.kind for f in found if f.trap} == {"calendar"}


def test_the_benchmark_web_has_pages_and_links_as_real_ones_do() -> None:
    web = ToyWeb.benchmark(hosts=50)
    pages = [(url, f) for url, f in reachable(web, all_seeds(web), host_pages=8) if f.kind == "text"]
    sizes = [len(plain_body(web, url)) for url, _ in pages]
    assert min(sizes) > 25_000
    assert max(sizes) < 85_000
    assert 60 < sum(len(f.links) for _, f in pages) / len(pages) <= 85
    assert {headers(web, url).get("Content-Encoding") for url, _ in pages} == {"gzip"}


def test_the_walk_ends_in_every_trap_and_stays_within_its_bound() -> None:
    web = ToyWeb.calm(hosts=6, calendar=1.0, session=1.0, deeper=1.0)
    visited = Counter(host_name(url) for url, _ in reachable(web, all_seeds(web), host_pages=150))
    assert len(visited) == 6
    assert all(140 <= pages <= 152 for pages in visited.values())


def test_a_predicate_keeps_the_walk_out_of_traps() -> None:
    web = ToyWeb.calm(hosts=6, calendar=1.0)
    found = [f for _, f in reachable(web, all_seeds(web), follow=lambda url: "/calendar/" not in url)]
    assert not any(f.trap for f in found)
