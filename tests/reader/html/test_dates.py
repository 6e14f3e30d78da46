"""Dates of publication and modification that pages declare."""

from __future__ import annotations

import pytest

from support.samples.page_metadata import of, published


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("2026-03-01", "2026-03-01"),
        ("2026-03-01T09:30:00+01:00", "2026-03-01T09:30:00+01:00"),
        ("2026-03-01T09:30:15.273Z", "2026-03-01T09:30:15+00:00"),
        ("2026-03-01T09:30:15+0100", "2026-03-01T09:30:15+01:00"),
        (" 2026-03-01 09:30:15 -0600\n", "2026-03-01T09:30:15-06:00"),
        ("2011-12-14T15:53GMT", "2011-12-14T15:53:00+00:00"),
        ("2026-03-01T09:30:00", "2026-03-01"),
        ("2026-03-01 09:30:00 EST", "2026-03-01"),
        ("2026-03-01T24:00:00Z", "2026-03-01"),
        ("2026-03-01T09:30:00+23:00", "2026-03-01"),
        ("2026/3/1", "2026-03-01"),
        ("2026.03.01", "2026-03-01"),
        ("20260301", "2026-03-01"),
        ("20260301093000", "2026-03-01"),
        ("20260301T093000Z", "2026-03-01T09:30:00+00:00"),
        ("Sun, 01 Mar 2026 09:30:00 +0100", "2026-03-01T09:30:00+01:00"),
        ("Sun, 1 Mar 2026 09:30:00 GMT", "2026-03-01T09:30:00+00:00"),
        ("Sunday, 01-Mar-2026 09:30:00 GMT", "2026-03-01T09:30:00+00:00"),
        ("1 March 2026", "2026-03-01"),
        ("March 1st, 2026", "2026-03-01"),
        ("14/3/2026 11:00", "2026-03-14"),
        ("14.03.2026", "2026-03-14"),
        ("3/14/2026", "2026-03-14"),
        ("03/03/2026", "2026-03-03"),
    ],
)
def test_a_date_that_can_be_read_in_one_way_is_read(value, expected):
    assert published(value) == expected


@pytest.mark.parametrize(
    "value",
    [
        *("01/03/2026", "1.3.2026", "13/14/2026", "2026-02-30", "2026-13-01", "0000-00-00", "-0001-11-30"),
        *(
            "2026",
            "2026-03",
            "01.03.26",
            "yesterday",
            "3 hours ago",
            "1 Foo 2026",
            "Marathon 12, 2026",
            "9999999999",
            "20260301999",
            "",
        ),
    ],
)
def test_ambiguous_and_malformed_dates_are_ignored(value):
    assert published(value) == ""


@pytest.mark.parametrize(
    ("value", "plausible"),
    [
        *(("1989-12-31", False), ("1990-01-01", True), ("2026-11-17", True), ("2026-11-18", False)),
        *(("1970-01-01T00:00:00Z", False), ("9999-12-31T23:59:59-12:00", False), ("0001-01-01", False)),
    ],
)
def test_no_page_is_older_than_the_web_or_from_the_future(value, plausible):
    assert bool(published(value)) is plausible


def test_after_an_impossible_date_the_next_one_counts():
    metas = (
        ("article:published_time", "0000-00-00"),
        (" date\n", "2026-03-01"),
        ("article:published_time", "soon"),
    )
    assert of(*metas).published == "2026-03-01"


def test_dates_are_taken_in_the_order_of_trust():
    article = {"@type": "Article", "datePublished": "2026-02-02", "dateModified": "2026-02-22"}
    times = [("2026-05-05", "")]
    metas = [
        ("date", "2026-04-04"),
        ("datepublished", "2026-03-03"),
        ("article:published_time", "2026-01-01"),
    ]
    assert of(*metas, json_ld=[article], times=times).published == "2026-01-01"
    assert of(*metas[:2], json_ld=[article], times=times).published == "2026-02-02"
    assert of(*metas[:2], times=times).published == "2026-03-03"
    assert of(*metas[:1], times=times).published == "2026-04-04"
    assert of(times=times).published == "2026-05-05"
    assert of(("og:updated_time", "2026-03-03"), json_ld=[article]).modified == "2026-02-22"


def test_a_visible_date_is_used_if_no_earlier_one_follows():
    assert of(times=[("", "March 1, 2026"), ("2026-03-02", "a comment")]).published == "2026-03-01"
    assert of(times=[("2026-03-02", "teaser"), ("2026-03-01", "older teaser")]).published == ""
    assert of(times=[("today", "2026-03-01"), ("2026-03-03T10:00Z", "")]).published == "2026-03-01"
