"""Scope: which links may enter the frontier."""

from __future__ import annotations

import pytest

from thresher.config import ConfigError, Scope
from thresher.crawl.scope import Gate

URL = "http://www.a.cz/x?page=2"


@pytest.mark.parametrize(
    ("scope", "source", "admitted"),
    [
        (Scope(), "www.a.cz", True),
        (Scope(tlds=("cz", ".sk")), None, True),
        (Scope(tlds=("sk",)), None, False),
        (Scope(hosts=("a.cz",)), None, True),
        (Scope(hosts=("www.a.cz",)), None, True),
        (Scope(hosts=("b.a.cz", "xa.cz")), None, False),
        (Scope(hosts=("A.CZ",), tlds=("sk",)), None, False),
        (Scope(internal=False), "www.a.cz", False),
        (Scope(internal=False), "b.cz", True),
        (Scope(external=False), "b.cz", False),
        (Scope(external=False), "www.a.cz", True),
        (Scope(external=False), None, True),
        (Scope(queries=False), None, False),
        (Scope(include=(r"page=\d",)), None, True),
        (Scope(include=("nothing",)), None, False),
        (Scope(exclude=("page",)), None, False),
    ],
)
def test_a_url_is_admitted_by_every_rule_or_not_at_all(
    scope: Scope, source: str | None, admitted: bool
) -> None:
    assert Gate(scope).admits(URL, source) == admitted


@pytest.mark.parametrize(
    ("url", "admitted"),
    [
        ("http://a.cz/photo.JPG", False),
        ("http://a.cz/paper.pdf?download=1", False),
        ("http://a.cz/page.html", True),
        ("http://a.cz/show?file=photo.jpg", True),
        ("http://a.cz/sitemap.xml.gz", True),
        ("http://a.cz/about.pdf/", True),
        ("http://a.cz/pdf", True),
    ],
)
def test_files_that_hold_no_page_are_not_asked_for(url: str, admitted: bool) -> None:
    assert Gate(Scope()).admits(url, None) == admitted
    assert Gate(Scope(skip_extensions=())).admits(url, None)


def test_a_sign_of_a_trap_keeps_a_url_out() -> None:
    assert not Gate(Scope()).admits("http://a.cz/" + "x/y/" * 5, None)


def test_a_host_with_a_port_is_named_with_it_or_without() -> None:
    url = "http://www.a.cz:8080/x"
    assert Gate(Scope(hosts=("a.cz",))).admits(url, None)
    assert Gate(Scope(hosts=("www.a.cz:8080",))).admits(url, None)
    assert not Gate(Scope(hosts=("www.a.cz:8081",))).admits(url, None)


def test_names_in_other_scripts_are_those_of_urls() -> None:
    url = "http://www.xn--d1abbgf6aiiy.xn--p1ai/x"
    for scope in (Scope(tlds=(".РФ",)), Scope(hosts=("Президент.рф",)), Scope(hosts=(".xn--p1ai",))):
        assert Gate(scope).admits(url, None)
        assert not Gate(scope).admits("http://www.a.cz/", None)


def test_a_tld_that_no_host_is_under_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"corpus\.toml: 'co\.uk' among the tlds .* hosts = \["):
        Gate(Scope(tlds=("cz", "co.uk")))
