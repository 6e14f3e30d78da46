"""Scope: which links may enter the frontier."""

from __future__ import annotations

import pytest

from thresher.config import ScopeSettings
from thresher.crawler.frontier.url_scope import UrlScope
from thresher.errors import UsageError

URL = "http://www.a.cz/x?page=2"


@pytest.mark.parametrize(
    ("scope", "source", "admitted"),
    [
        (ScopeSettings(), "www.a.cz", True),
        (ScopeSettings(tlds=("cz", ".sk")), None, True),
        (ScopeSettings(tlds=("sk",)), None, False),
        (ScopeSettings(hosts=("a.cz",)), None, True),
        (ScopeSettings(hosts=("www.a.cz",)), None, True),
        (ScopeSettings(hosts=("b.a.cz", "xa.cz")), None, False),
        (ScopeSettings(hosts=("A.CZ",), tlds=("sk",)), None, False),
        (ScopeSettings(internal=False), "www.a.cz", False),
        (ScopeSettings(internal=False), "b.cz", True),
        (ScopeSettings(external=False), "b.cz", False),
        (ScopeSettings(external=False), "www.a.cz", True),
        (ScopeSettings(external=False), None, True),
        (ScopeSettings(queries=False), None, False),
        (ScopeSettings(include=(r"page=\d",)), None, True),
        (ScopeSettings(include=("nothing",)), None, False),
        (ScopeSettings(exclude=("page",)), None, False),
    ],
)
def test_a_url_is_admitted_by_every_rule_or_not_at_all(
    scope: ScopeSettings, source: str | None, admitted: bool
) -> None:
    assert UrlScope(scope).admits(URL, source) == admitted


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
def test_files_without_a_page_are_out_of_scope(url: str, admitted: bool) -> None:
    assert UrlScope(ScopeSettings()).admits(url, None) == admitted
    assert UrlScope(ScopeSettings(skip_extensions=())).admits(url, None)


def test_a_sign_of_a_trap_keeps_a_url_out() -> None:
    assert not UrlScope(ScopeSettings()).admits("http://a.cz/" + "x/y/" * 5, None)


def test_a_host_with_a_port_is_named_with_it_or_without() -> None:
    url = "http://www.a.cz:8080/x"
    assert UrlScope(ScopeSettings(hosts=("a.cz",))).admits(url, None)
    assert UrlScope(ScopeSettings(hosts=("www.a.cz:8080",))).admits(url, None)
    assert not UrlScope(ScopeSettings(hosts=("www.a.cz:8081",))).admits(url, None)


def test_host_names_in_other_scripts_match_urls() -> None:
    url = "http://www.xn--d1abbgf6aiiy.xn--p1ai/x"
    for scope in (
        ScopeSettings(tlds=(".РФ",)),
        ScopeSettings(hosts=("Президент.рф",)),
        ScopeSettings(hosts=(".xn--p1ai",)),
    ):
        assert UrlScope(scope).admits(url, None)
        assert not UrlScope(scope).admits("http://www.a.cz/", None)


def test_a_tld_that_no_host_is_under_is_refused() -> None:
    with pytest.raises(
        UsageError, match=r"corpus\.toml: in \[scope\], 'co\.uk' is not a top-level domain; .* hosts co\.uk"
    ):
        UrlScope(ScopeSettings(tlds=("cz", "co.uk")))
