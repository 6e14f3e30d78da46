"""One filter for exports and recipes: hosts, unknown values, dates, and the reasons for leaving documents out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.corpora.batch_corpora import Here, recipe
from support.corpora.exports import make
from thresher.config import ScopeSettings
from thresher.crawler.frontier.url_scope import UrlScope
from thresher.errors import UsageError
from thresher.exporting.imported import facts_of
from thresher.exporting.registry import export
from thresher.pipeline.runs.run import process
from thresher.selection import DocumentFacts, DocumentFilter, HostPatterns
from thresher.store.schemas import DOCS

HOSTS = [
    "example.cz",
    "www.example.cz",
    "www.example.cz:8080",
    "notexample.cz",
    "example.cz.sk",
    "127.0.0.1:80",
]


@pytest.mark.parametrize(
    ("pattern", "numbers"),
    [
        ("example.cz", [0, 1, 2]),
        (".Example.CZ", [0, 1, 2]),
        ("www.example.cz:8080", [2]),
        ("*.example.cz", [1, 2]),
        ("*example.cz", [0, 1, 2, 3]),
        ("cz", [0, 1, 2, 3]),
        ("127.0.0.1", [5]),
    ],
)
def test_a_host_name_stands_for_its_subdomains_and_all_its_ports(pattern: str, numbers: list[int]) -> None:
    matching = [number for number, host in enumerate(HOSTS) if HostPatterns([pattern]).matches(host)]
    assert matching == numbers
    scope = UrlScope(ScopeSettings(hosts=(pattern,)))
    admitted = [number for number, host in enumerate(HOSTS) if scope.admits(f"http://{host}/", None)]
    assert admitted == numbers, "the scope of a crawl matches hosts as a filter does"


def test_an_ipv6_address_matches_itself_on_any_port() -> None:
    hosts = HostPatterns(["[::1]"])
    assert hosts.matches("[::1]") and hosts.matches("[::1]:8080")
    assert not hosts.matches("[::2]") and not hosts.matches("")
    assert not HostPatterns([]) and not HostPatterns([]).matches("a.cz")


@given(st.lists(st.sampled_from(["a", "b", "www", "cz"]), min_size=1, max_size=4), st.integers(0, 3))
def test_every_parent_domain_matches_and_no_other_name_does(labels: list[str], start: int) -> None:
    host = ".".join(labels)
    parent = ".".join(labels[start:]) or host
    assert HostPatterns([parent]).matches(host)
    assert not HostPatterns([f"x.{host}", f"x{parent}"]).matches(host)


@pytest.mark.parametrize(
    ("conditions", "message"),
    [
        ({"since": "May"}, "since must be a date, got 'May'; for example 2024-05-31"),
        ({"until": "2024-5"}, "until must be a date, got '2024-5'"),
        ({"since": "2024-13"}, "since must be a date, got '2024-13'"),
        ({"until": "2024-12-32"}, "until must be a date, got '2024-12-32'"),
        ({"max_badness": float("nan")}, "max_badness must be a number of at least 0, got nan"),
        ({"since": "2025", "until": "2024-12"}, "since = 2025 is after until = 2024-12"),
        ({"tlds": ["co.uk"]}, "'co.uk' is not a top-level domain; .* hosts co.uk"),
        ({"tlds": ["c*"]}, r"'c\*' is not a top-level domain"),
        ({"hosts": ["https://a.cz/x"]}, "'https://a.cz/x' is not a host name; write a.cz"),
        ({"not_hosts": [""]}, "'' is not a host name; write example.cz"),
        ({"min_language_share": 80}, "min_language_share must be between 0 and 1, got 80; for example 0.8"),
        ({"max_suspicion": -1}, "max_suspicion must be between 0 and 1"),
    ],
)
def test_a_condition_that_cannot_be_met_is_refused_with_the_fix(
    conditions: dict[str, Any], message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        DocumentFilter(**conditions)
    with pytest.raises(UsageError, match=message):
        msgspec.convert(conditions, DocumentFilter)


@pytest.mark.parametrize(
    "conditions",
    [{"tlds": ["рф"]}, {"hosts": ["Президент.РФ"]}, {"hosts": ["*.президент.рф"]}, {"hosts": ["www.*.рф"]}],
)
def test_names_in_other_scripts_match_urls(conditions: dict[str, Any]) -> None:
    where = DocumentFilter(**conditions)
    for url in ("http://www.xn--d1abbgf6aiiy.xn--p1ai/", "HTTP://www.президент.рф?a"):
        assert where.reason_against(facts_of({"url": url}, "ru")) == ""
    assert where.reason_against(facts_of({"host": "WWW.Президент.рф"}, "ru")) == ""
    assert where.reason_against(DocumentFacts(host="www.example.com")) in ("host", "tld")


@pytest.mark.parametrize("names", [{"tlds": ("co.uk",)}, {"hosts": ("http://a.cz/",)}])
def test_the_scope_refuses_the_same_names_as_exports_and_says_where_they_stand(names: dict[str, Any]) -> None:
    with pytest.raises(UsageError) as fault:
        DocumentFilter(**names)
    with pytest.raises(UsageError) as in_scope:
        UrlScope(ScopeSettings(**names))
    assert str(in_scope.value) == f"corpus.toml: in [scope], {fault.value}"


def test_dates_are_compared_as_far_as_both_are_given() -> None:
    where = DocumentFilter(since="2024-05-10", until="2024-06")
    inside = ("2024", "2024-05", "2024-05-10", "2024-06-30")
    outside = ("", "2023", "2024-05-09", "2024-07-01")
    assert [where.reason_against(DocumentFacts(date=date)) for date in inside] == [""] * 4
    assert [where.reason_against(DocumentFacts(date=date)) for date in outside] == ["date"] * 4


UNKNOWN: list[tuple[dict[str, Any], str]] = [
    ({"languages": ("cs",)}, "language"),
    ({"min_language_share": 0.5}, "language share"),
    ({"max_badness": 5.0}, "badness"),
    ({"max_suspicion": 0.5}, "suspicious"),
    ({"min_chars": 1}, "too short"),
    ({"hosts": ("a.cz",)}, "host"),
    ({"tlds": ("cz",)}, "tld"),
    ({"since": "2020"}, "date"),
    ({"until": "2020"}, "date"),
    ({"licenses": ("*",)}, "license"),
]


@pytest.mark.parametrize(("condition", "reason"), UNKNOWN)
def test_an_unknown_value_meets_no_bound_unless_unknown_values_are_kept(
    condition: dict[str, Any], reason: str
) -> None:
    unknown = DocumentFacts()
    row = dict.fromkeys(DOCS.names)
    batch = pa.RecordBatch.from_pylist([row], DOCS)
    for keep, expected in ((False, reason), (True, "")):
        where = DocumentFilter(**condition, keep_unknown=keep)
        assert where.reason_against(unknown) == expected
        assert where.reasons(batch.select(where.columns)) == [expected]


def test_an_exclusion_applies_to_known_values_only() -> None:
    where = DocumentFilter(not_hosts=("a.cz",))
    assert where.reason_against(DocumentFacts()) == ""
    assert where.reason_against(DocumentFacts(host="www.a.cz")) == "host"


def test_conditions_that_equal_their_defaults_are_not_listed() -> None:
    assert DocumentFilter().conditions() == {}
    assert DocumentFilter(hosts=("A.cz",), opted_out=True).conditions() == {
        "hosts": ("a.cz",),
        "opted_out": True,
    }


PAGES: list[dict[str, Any]] = [
    {"url": "http://www.example.cz/1", "badness": 1.0},
    {"url": "http://example.cz/2", "badness": None},
    {"url": "http://other.cz/3", "badness": 9.0},
    {"url": "http://example.cz/4", "badness": 1.0, "opt_out": ("noai",)},
]


@pytest.mark.parametrize(
    ("conditions", "expected"),
    [
        ({}, {"opted out": 1}),
        ({"opted_out": True}, {}),
        ({"hosts": ["example.cz"]}, {"opted out": 1, "host": 1}),
        ({"max_badness": 5.0}, {"opted out": 1, "badness": 2}),
        ({"max_badness": 5.0, "keep_unknown": True}, {"opted out": 1, "badness": 1}),
        ({"min_chars": 5, "tlds": ["cz"], "since": "2000"}, {"opted out": 1, "too short": 2}),
    ],
)
def test_an_export_and_the_step_filter_select_the_same_documents_for_the_same_reasons(
    tmp_path: Path, conditions: dict[str, Any], expected: dict[str, int]
) -> None:
    corpus = make(tmp_path, ["jedna", "dva", "tři", "čtyři"], pages=PAGES)
    with (tmp_path / "out.txt").open("wb") as out:
        done = export(corpus, "txt", out, DocumentFilter(**conditions))
    assert done.left_out == expected
    recipe(tmp_path, {"step": "filter", **conditions})
    report = process(tmp_path, Here()).steps[-1].report
    assert report == {"documents": done.documents, "dropped": expected}
