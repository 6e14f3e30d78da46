"""URLs: one canonical form for each, in any spelling."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from thresher.urls import (
    MAX_URL_LENGTH,
    absolute,
    canonical,
    domain,
    host,
    host_in,
    key,
    registrable,
    tld,
    top_level,
    trap,
)

# fmt: off
# Pieces that links are made of, the odd ones too often.
PIECES = [
    "http:", "https:", "HTTP:", "ftp:", "//", "/", "/", "\\", ".", "..", "%2e", "%2E", "%", "%00", "?",
    "&", "=", "#", ";", "@", ":", ":80", ":443", ":8080", "[::1]", "127.0.0.1", "0x7f.1", "1", "xn--",
    "xn--a", "a", "b-", "cz", ".cz", "a.cz", "WWW.A.cz", "český.cz", "☃", "'", '"', "<", "|", "^", "{",
    "utm_source=x", "utm_", "PHPSESSID", "fbclid", ";jsessionid=1", ";sid=", "~", "!", "$", "(", "*",
    "+", ",", "\t", "\n", " ", "\0", "\ud800",
]
NO_WEB_ADDRESSES = [
    "mailto:a@b.cz", "javascript:void(0)", "data:text/html,x", "blob:http://a.cz/1",
    "file:///etc/passwd", "ftp://a.cz/", "b.html", "//a.cz/", "http://", "http://./", "http://..:80/",
    "http://a|b/", "http://a:99999/", "http://[fe80::1%25eth0]/", "http://a%00b/", "http://a.0x../",
    "http://1.2.3.999/", "", "http://a b/",
]
# fmt: on
LINKS = st.one_of(st.text(), st.lists(st.sampled_from(PIECES), max_size=12).map("".join))
PAGES = st.one_of(
    st.none(),
    st.sampled_from(
        [
            "http://a.cz",
            "https://www.a.cz/x/y?q#f",
            "http://u:p@a.cz.:8080/;sid=1/y",
            "http://[::1]/a/b",
            "data:,x",
        ]
    ),
    LINKS,
)
PLAIN_LINKS = st.text(alphabet="ab.%2eEZ9/-_~!$&()*+,=@?;#x", max_size=30).map(
    lambda text: re.sub(r"^//+|[?&]+(?=[&#]|$)", "", text)
)


def test_every_url_of_the_web_platform_tests_is_parsed_as_browsers_do(suites):
    data = json.loads((suites / "url" / "urltestdata.json").read_text())
    cases = [case for case in data if isinstance(case, dict)]
    wrong = [c for c in cases if absolute(c["input"], c["base"]) != (None if c.get("failure") else c["href"])]
    assert (len(cases), wrong) == (891, [])


def test_every_case_of_the_public_suffix_list_gives_its_registered_domain(suites):
    lines = (suites / "psl" / "tests.txt").read_text().splitlines()
    cases = [line.split() for line in lines if line and not line.startswith(("//", "null"))]
    wrong = [(name, said) for name, said in cases if registrable(name) != (None if said == "null" else said)]
    assert (len(cases), wrong) == (77, [])


@given(LINKS, PAGES)
@example("\ud800", "http://a.cz/")
@example("x", "http://a.cz/\udfff")
@example("http://1../", None)
@example("http://a.0x../", None)
@example("http://a.cz/.;sid=1/../b", None)
@example("http://./", None)
def test_a_canonical_url_is_its_own_canonical_form(link, page):
    url = canonical(link, page)
    assert url is None or canonical(url) == url == canonical(url, page)


@given(LINKS, PAGES)
def test_a_canonical_url_has_a_host_a_domain_and_nothing_that_names_the_visitor(link, page):
    url = canonical(link, page)
    if url is None:
        return
    assert url.isascii()
    assert len(url) <= MAX_URL_LENGTH
    assert re.fullmatch(r"https?://[^/@?#]+/[^#]*", url)
    assert host(url)
    assert domain(host(url))
    assert not host(url).partition(":")[0].endswith(".")
    path, mark, query = url.split("/", 3)[3].partition("?")
    assert ";sid=" not in path
    for parameter in query.split("&") if mark else []:
        assert not re.fullmatch(r"((utm_[a-z_]+|fbclid|phpsessid)(=.*)?)?", parameter, re.IGNORECASE)
    assert isinstance(trap(url), str)


@given(LINKS)
def test_http_and_https_of_one_address_have_one_key(link):
    over_http, over_https = canonical("http://a.cz/" + link), canonical("https://a.cz/" + link)
    assert (over_http is None) == (over_https is None)
    if over_http and over_https:
        assert key(over_http) == key(over_https)
        assert len(key(over_http)) == 16


@given(PLAIN_LINKS, st.sampled_from(["http://a.cz/x/y?q#f", "https://www.a.cz:8080", "http://[::1]/a/b/"]))
def test_links_that_take_the_short_cut_arrive_where_the_parser_would_have_brought_them(link, page):
    parsed = absolute(link, page)
    assert parsed is not None
    assert canonical(link, page) == parsed.partition("#")[0]


@given(st.from_regex(r"https?://([a-z0-9-]{1,5}\.){0,3}[a-z0-9-]{1,5}/[a-z./%2e-]{0,8}", fullmatch=True))
def test_absolute_urls_by_the_shortcut_equal_parsed_ones(link):
    assert canonical(link) == absolute(link)


@pytest.mark.parametrize(
    ("link", "page", "url"),
    [
        ("b", "http://a.cz/x/y", "http://a.cz/x/b"),
        ("/b", "http://a.cz/x/y", "http://a.cz/b"),
        ("//b.cz", "https://a.cz/x/y", "https://b.cz/"),
        ("?p=2", "http://a.cz/x/y?p=1", "http://a.cz/x/y?p=2"),
        ("#top", "http://a.cz/x/y?p=1", "http://a.cz/x/y?p=1"),
        ("", "http://a.cz/x/y", "http://a.cz/x/y"),
        ("../../../b", "http://a.cz/x/y", "http://a.cz/b"),
        ("b", "http://a.cz", "http://a.cz/b"),
        ("%2e%2E/b", "http://a.cz/x/y/z", "http://a.cz/x/b"),
        ("  /b\n", "http://a.cz/", "http://a.cz/b"),
        ("/č", "http://a.cz/", "http://a.cz/%C4%8D"),
        ("/%00\0x", "http://a.cz/", "http://a.cz/%00%00x"),
        ("HTTP://Example.CZ:80/A", None, "http://example.cz/A"),
        ("http://user:pw@a.cz/", None, "http://a.cz/"),
        ("http://a.cz./b", None, "http://a.cz/b"),
        ("http://a.cz.:8080/b", None, "http://a.cz:8080/b"),
        ("http://[::1]:8080/", None, "http://[::1]:8080/"),
        ("http://u:p.@[::1]:8080/;sid=1", None, "http://[::1]:8080/"),
        ("http://český.cz/", None, "http://xn--esk-noa0f.cz/"),
        ("http://☃.net/", None, "http://xn--n3h.net/"),
        ("http://a.cz/b;jsessionid=12?c=1;sid=2&d=3", None, "http://a.cz/b?c=1;sid=2&d=3"),
        ("http://a.cz/?UTM_Source=x&a=1&&PHPSESSID=2&b&fbclid", None, "http://a.cz/?a=1&b"),
        ("http://a.cz/?utm=1&utm_=2&xfbclid=3", None, "http://a.cz/?utm=1&utm_=2&xfbclid=3"),
        ("http://a.cz/?", None, "http://a.cz/"),
    ],
)
def test_a_link_has_one_canonical_form(link, page, url):
    assert canonical(link, page) == url


@pytest.mark.parametrize("link", NO_WEB_ADDRESSES)
def test_strings_that_are_not_web_addresses_give_none(link):
    assert canonical(link) is None


@pytest.mark.parametrize(
    "link", ["http://2130706433/", "http://0x7f.1/", "http://017700000001/", "http://127.1./"]
)
def test_an_address_in_disguise_is_unmasked(link):
    assert canonical(link) == "http://127.0.0.1/"


def test_an_ipv4_address_inside_ipv6_has_one_form():
    assert canonical("http://[::FFFF:127.0.0.1]/") == "http://[::ffff:7f00:1]/"


def test_a_url_of_megabytes_is_refused_at_once_and_as_a_base_it_is_ignored():
    endless = "http://a.cz/" + "x" * 2_000_000
    assert canonical(endless) is None
    assert canonical("http://b.cz/", endless) == "http://b.cz/"
    assert canonical("b", endless) is None


def test_a_url_may_be_as_long_as_the_limit_and_no_longer():
    longest = "http://a.cz/".ljust(MAX_URL_LENGTH, "x")
    assert canonical(longest) == longest
    assert canonical(longest + "x") is None
    assert canonical(longest + "?utm_source=" + "x" * 100) == longest


def test_a_base_that_is_no_web_page_still_leaves_absolute_links_whole():
    assert canonical("http://b.cz/c", "data:text/html,x") == "http://b.cz/c"
    assert canonical("c", "data:text/html,x") is None
    assert canonical("c", "") is None


@pytest.mark.parametrize(
    ("name", "registered", "top"),
    [
        ("www.a.cz", "a.cz", "cz"),
        ("www.a.cz:8080", "a.cz", "cz"),
        ("a.b.co.uk", "b.co.uk", "uk"),
        ("co.uk", "co.uk", "uk"),
        ("localhost:80", "localhost", "localhost"),
        ("127.0.0.1:8080", "127.0.0.1", ""),
        ("[::1]", "[::1]", ""),
        ("[::1]:8080", "[::1]", ""),
        ("a..b", "a..b", "b"),
    ],
)
def test_a_host_belongs_to_a_domain_and_a_top_level_domain(name, registered, top):
    assert (domain(name), tld(name)) == (registered, top)


@pytest.mark.parametrize("name", ["127.0.0.1", "[::1]", "", ".", "a..cz", ".a.cz", "cz"])
def test_names_that_cannot_be_registered_have_no_registered_domain(name):
    assert registrable(name) is None


@pytest.mark.parametrize(
    ("url", "sign"),
    [
        ("http://a.cz/", ""),
        ("http://a.cz/a/b/c/d?x=1&y=2&z=3", ""),
        ("http://a.cz/a/b/a/b/a/b", ""),
        ("http://a.cz/a/b/a/b/a/b/a", "repeated segments"),
        ("http://a.cz//a//b//c//d//e", ""),
        ("http://a.cz/1/2/3/4/5/6/7/8/9/10/11/12/", ""),
        ("http://a.cz/1/2/3/4/5/6/7/8/9/10/11/12/13", "too deep"),
        ("http://a.cz/?a&b&c&d&e&f&g&h", ""),
        ("http://a.cz/?a&b&c&d&e&f&g&h&i", "too many parameters"),
        ("http://a.cz/?page=1&page=2&x=/a/a/a/a/a/a", ""),
        ("http://a.cz/?page=1&page=2&page=3", "repeated parameter"),
        ("http://a.cz/?" + "&".join(f"p{n}=1" for n in range(10_000)), "too many parameters"),
    ],
)
def test_a_trap_is_known_by_its_sign(url, sign):
    assert trap(url) == sign


@pytest.mark.parametrize(
    ("text", "label"),
    [("cz", "cz"), (".CZ", "cz"), ("cz.", "cz"), ("рф", "xn--p1ai"), ("XN--P1AI", "xn--p1ai")],
)
def test_a_top_level_domain_gets_the_form_of_hosts(text: str, label: str) -> None:
    assert top_level(text) == label


@pytest.mark.parametrize(
    "text", ["co.uk", "", ".", "c*", "cz/", "cz:80", "1", "a b", "co。uk", "\udcff", "@cz"]
)
def test_names_without_hosts_are_not_top_level_domains(text: str) -> None:
    assert top_level(text) is None


@pytest.mark.parametrize(
    ("text", "host"),
    [
        ("http://Blog.Example.cz?p=12", "blog.example.cz"),
        ("HTTPS://user@a.cz.:8080/x", "a.cz:8080"),
        ("https://žluťoučký.cz/x", "xn--luouk-uva4it5a4g.cz"),
        ("http://žluťoučký.cz#" + "x" * 9_000, "xn--luouk-uva4it5a4g.cz"),
        ("http://A_b.cz:99999/", "a_b.cz:99999"),
        ("a.cz/x", ""),
        ("ftp://a.cz/", ""),
        ("letter 7", ""),
        ("", ""),
    ],
)
def test_the_host_of_a_url_is_found_in_any_spelling(text: str, host: str) -> None:
    assert host_in(text) == host
