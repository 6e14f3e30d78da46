"""Titles, sites, authors and languages that pages declare."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.samples.page_metadata import author, language, of
from thresher.reader.html.metadata import MAX_AUTHOR, MAX_SITE_NAME, MAX_TITLE, metadata
from thresher.records import Metadata

DATE = re.compile(r"(?:\d{4}-\d\d-\d\d(?:T\d\d:\d\d:\d\d[+-]\d\d:\d\d)?)?")
TAG = re.compile(r"(?:[a-z]{2,3}(?:-[A-Z][a-z]{3})?(?:-(?:[A-Z]{2}|\d{3}))?)?")

# fmt: off
FRAGMENTS = [
    "{", "}", "[", "]", ":", ",", '"', "\\", "\\u", "\\ud800", "\\n", "\n", "\0", "\ud800", "<!--", "//<![CDATA[",
    '"@type":"Article"', '"@type":["WebPage"]', '"@graph":[', '"mainEntity":', '"author":', '"name":', '"@id":"x"',
    '"headline":"', '"datePublished":"2026-03-01"', "1e999", "-0", "null", "By ", "von ", "Jane Doe", "&amp;",
    " and ", " | ", " - ", "The Herald", "2026-02-30", "0000-00-00", "+99:99", "24:00", "http://a.cz", "a@b.cz",
    "März", "作者：",
]
KEYS = [
    "og:title", "og:site_name", "author", "article:published_time", "article:modified_time", "date", "og:locale",
    "content-language", "publisher", "dc.creator", "title",
]
# fmt: on
ANY = st.text(st.characters(categories=None)) | st.lists(st.sampled_from(FRAGMENTS)).map("".join)


# Any page


@given(
    st.lists(st.tuples(st.sampled_from(KEYS) | ANY, ANY)),
    st.lists(
        ANY | st.recursive(ANY, lambda inner: st.lists(inner) | st.dictionaries(ANY, inner)).map(json.dumps)
    ),
    st.lists(st.tuples(ANY, ANY)),
    st.lists(ANY),
    ANY,
    ANY,
    st.floats(),
)
def test_any_strings_have_an_answer_in_its_form(metas, json_ld, times, bylines, title, html_lang, now):
    found = metadata(metas, json_ld, times, bylines, title, html_lang, now)
    assert len(found.title) <= MAX_TITLE
    assert len(found.author) <= MAX_AUTHOR
    assert len(found.site_name) <= MAX_SITE_NAME
    assert DATE.fullmatch(found.published)
    assert DATE.fullmatch(found.modified)
    assert TAG.fullmatch(found.language_declared)
    for line in (found.title, found.author, found.site_name):
        assert line == " ".join(line.split())
        line.encode()  # no lone surrogates


def test_a_page_without_declarations_has_no_metadata():
    assert of() == Metadata("", "", "", "", "", "")


def test_every_property_has_a_maximum_length():
    found = of(
        ("author", ";".join(f"Author{chr(65 + n)} Name" for n in range(20)) * 50),
        ("og:site_name", "x" * 9999),
    )
    assert found.author.startswith("AuthorA Name; AuthorB Name; ")
    assert MAX_AUTHOR - 20 < len(found.author) <= MAX_AUTHOR
    assert found.author.endswith(" Name")
    assert len(found.site_name) == MAX_SITE_NAME
    assert len(of(title="wörd " * 10_000).title) == MAX_TITLE - 1  # the last is a space


# Title and site


@pytest.mark.parametrize(
    "title",
    [
        "Storm - The Herald",
        "Storm | The Herald",
        "Storm — THE HERALD",
        "Storm|The Herald",
        "The Herald » Storm",
        "The Herald | Storm | The Herald",
        "Storm :: The Herald",
    ],
)
def test_the_name_of_the_site_is_no_part_of_the_title(title):
    assert of(("og:site_name", "The Herald"), title=title).title == "Storm"


def test_the_short_name_of_a_site_is_no_part_of_the_title_either():
    metas = ("og:site_name", "CNX Software - Embedded Systems News"), ("og:title", "14 ports? - CNX Software")
    assert of(*metas).title == "14 ports?"


@pytest.mark.parametrize("title", ["Buy an Apple", "Pine-Apple", "Apples - oranges", "Apple: a history"])
def test_a_name_without_a_separator_is_part_of_the_title(title):
    assert of(("og:site_name", "Apple"), title=title).title == title


def test_a_title_for_sharing_is_preferred_to_the_title_of_the_window():
    assert (
        of(("og:title", "Storm in Kent"), title="Storm in Kent | Weather | Herald").title == "Storm in Kent"
    )
    assert (
        of(json_ld=[{"@type": "NewsArticle", "headline": "Storm &amp; rain"}], title="S").title
        == "Storm & rain"
    )


def test_a_title_that_only_names_the_site_is_the_last_choice():
    assert of(("og:title", "Herald"), ("og:site_name", "Herald"), title="Storm | Herald").title == "Storm"
    assert of(("og:title", "Herald"), ("og:site_name", "Herald"), title="Herald").title == "Herald"


def test_the_rest_of_the_window_title_names_the_site():
    assert of(("og:title", "Storm"), title="Storm | The Herald").site_name == "The Herald"
    for rest in ("by Jane Doe", "27 July 2011", "Weather - The Herald", ""):
        assert of(("og:title", "Storm"), title=f"Storm - {rest}").site_name == ""


def test_a_site_has_a_name_and_not_an_address_or_a_handle():
    metas = (
        ("og:site_name", "https://herald.com/"),
        ("application-name", "@herald"),
        ("publisher", "The Herald"),
    )
    assert of(*metas).site_name == "The Herald"


def test_a_site_is_named_by_its_own_description_in_json_ld():
    graph = [
        {"@type": "WebSite", "name": "The Herald"},
        {"@type": "Article", "publisher": {"name": "Herald Ltd"}},
    ]
    assert of(json_ld=[{"@graph": graph}]).site_name == "The Herald"
    assert of(json_ld=graph[1:]).site_name == "Herald Ltd"


# Authors


@pytest.mark.parametrize(
    ("value", "names"),
    [
        ("Jane Doe", "Jane Doe"),
        ("By Jane Doe", "Jane Doe"),
        ("By: JANE DOE and JOHN ROE", "JANE DOE; JOHN ROE"),
        ("Von Max Mustermann", "Max Mustermann"),
        ("Von Miller", "Von Miller"),
        ("Ursula von der Leyen", "Ursula von der Leyen"),
        ("Автор: Мария Захарова", "Мария Захарова"),
        ("作者：王建琦", "王建琦"),
        ("Jane Doe, John Roe and Ann Poe", "Jane Doe; John Roe; Ann Poe"),
        ("Doe, Jane; Roe, John T.", "Doe, Jane; Roe, John T."),
        ("Kaufman, Jeff T.", "Kaufman, Jeff T."),
        ("Jane Doe, MD", "Jane Doe"),
        ("Jane Doe | The Texas Newsroom", "Jane Doe"),
        ("Jane Doe (jane@doe.com)", "Jane Doe"),
        ("Jane Doe jane@doe.com", "Jane Doe"),
        ("Jane Doe https://doe.com/jane", "Jane Doe"),
        ("Jane Doe, Monday January 12, 2026", "Jane Doe"),
        ("Jane Doe 2026-03-01", "Jane Doe"),
        ("Jane Doe posted yesterday", "Jane Doe"),
        ('"Jane Doe"', "Jane Doe"),
        ("Jane Doe; jane doe", "Jane Doe"),
        ("crazy lennys", "crazy lennys"),
        ("user447274", "user447274"),
        ("Department of Health", "Department of Health"),
    ],
)
def test_an_author_is_a_name_and_no_more(value, names):
    assert author(value) == names


@pytest.mark.parametrize(
    "value",
    [
        "https://www.facebook.com/jane",
        "jane@doe.com",
        "@janedoe",
        "www.doe.com",
        "herald.co.uk",
        "admin",
        "By",
        "undefined",
        "2026-03-01",
        "{{nick}}",
        "Senior Editor",
        "Jane is a writer who lives with two cats in the north of England.",
        "We bring you the news",
        "Thank you for reading.",
        "Latest breaking news",
        "Web architecture: John",
        "财讯网提供股票、基金、期货与外汇市场的金融资讯，以及个人理财咨询等服务",
        "",
    ],
)
def test_an_author_is_never_an_address_a_sentence_or_a_placeholder(value):
    assert author(value) == ""


def test_a_person_is_a_better_author_than_the_site():
    site = ("og:site_name", "The Herald")
    assert of(site, ("author", "The Herald"), ("dc.creator", "Jane Doe")).author == "Jane Doe"
    assert of(site, ("author", "the herald"), bylines=["By Jane Doe"]).author == "Jane Doe"
    assert of(site, ("author", "The Herald")).author == "The Herald"


def test_authors_that_are_named_one_by_one_are_all_named():
    assert (
        of(("citation_author", "Doe, Jane"), ("citation_author", "Roe, John")).author
        == "Doe, Jane; Roe, John"
    )


@pytest.mark.parametrize(
    ("bylines", "names"),
    [
        (["Jane Doe"], "Jane Doe"),
        (["Jane Doe, AP Medical Writer", "AP Medical Writer"], "Jane Doe"),
        (["By Jane Doe and John Roe, The Herald January 12, 2012 6:55 AM"], "Jane Doe; John Roe"),
        (["By Jane Doe, John Roe, and Ann van Poe on Monday"], "Jane Doe; John Roe; Ann van Poe"),
        (["Posted by Jane", "Comment by"], "Jane"),
        (["Written By: Jane Doe Last Updated: August 1, 2025"], "Jane Doe"),
        (["Jane Doe Medical correspondent", "Jane Doe"], "Jane Doe"),
        (["Από Δημήτρης Βέργος"], "Δημήτρης Βέργος"),
        (["By KATIE MOISSE // ABC News"], "KATIE MOISSE"),
        (["Jane Doe 4 August 2010"], "Jane Doe"),
    ],
)
def test_a_byline_names_the_author(bylines, names):
    assert of(bylines=bylines).author == names


@pytest.mark.parametrize(
    "bylines",
    [
        ["View Profile", "View Profile Email RSS"],
        ["About the author"],
        ["Name *"],
        ["January 10, 2012"],
        ["Published on Thursday 12 January 2012 00:00"],
        ["Author Archive"],
        ["Home"],
        [
            "Jane Doe is a writer. She lives in the north with two cats, and a dog. She has written for everybody."
        ],
        ["What we know of the storm"],
        [
            "Jane Doe 3/16/2021 at 5:42am Thanks, we have added it to the list of things that we want to do soon"
        ],
        ["by KPeters_from_UK July 24, 2012 9:14 AM"],
        ["ewok 4,701 18 gold badges", "Nicole Hamilton 99 gold badges"],
    ],
)
def test_bylines_without_a_name_give_no_author(bylines):
    assert of(bylines=bylines).author == ""


def test_bylines_of_many_people_belong_to_teasers_or_comments():
    assert of(bylines=["Ann Poe", "Bob Roe", "Cid Doe", "Dan Foe"]).author == ""
    assert of(bylines=["By Ann Poe", "By Bob Roe", "By Cid Doe", "By Dan Foe"]).author == ""
    assert of(bylines=["By Ann Poe", "Bob Roe", "Cid Doe", "Dan Foe", "Eva Moe"]).author == "Ann Poe"


# Language


@pytest.mark.parametrize(
    ("declared", "tag"),
    [
        *(
            ("cs", "cs"),
            ("EN-us", "en-US"),
            ("pt_br", "pt-BR"),
            (" de ", "de"),
            ("en, sv", "en"),
            ("eng", "en"),
        ),
        *(("zh-hant-hk", "zh-Hant-HK"), ("es-419", "es-419"), ("iw", "he"), ("de-DE-1996", "de-DE")),
        *(("en-EN", "en"), ("en-UK", "en-GB"), ("haw", "haw"), ("sr_latn", "sr-Latn")),
        *(("in", "id"), ("ji", "yi"), ("JW", "jv"), ("mo-MD", "ro-MD"), ("ger", "de"), ("uk-UA", "uk-UA")),
    ],
)
def test_a_declared_language_is_written_as_in_bcp_47(declared, tag):
    assert language(declared) == tag


@pytest.mark.parametrize(
    "declared",
    [
        "",
        "english",
        "utf-8",
        "cz",
        "xx",
        "x-default",
        "und",
        "mul",
        "zxx",
        "{{lang}}",
        "en" * 9999,
        "\0",
        "ſv",
        "e\u0301n",
    ],
)
def test_malformed_tags_are_no_language(declared):
    assert language(declared) == ""


def test_the_language_of_the_root_element_is_preferred():
    metas = ("og:locale", "cs_CZ"), ("content-language", "sk")
    assert of(*metas, html_lang="pl").language_declared == "pl"
    assert of(*metas, html_lang="nonsense").language_declared == "sk"
    assert of(metas[0]).language_declared == "cs-CZ"
