"""What a page says of itself: the most trusted voice is believed, and nonsense is nobody's word."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from thresher.page import Metadata
from thresher.read.metadata import MAX_AUTHOR, MAX_SITE_NAME, MAX_TITLE, metadata

NOW = datetime(2026, 11, 15, 12, tzinfo=UTC).timestamp()
DATE = re.compile(r"(?:\d{4}-\d\d-\d\d(?:T\d\d:\d\d:\d\d[+-]\d\d:\d\d)?)?")
TAG = re.compile(r"(?:[a-z]{2,3}(?:-[A-Z][a-z]{3})?(?:-(?:[A-Z]{2}|\d{3}))?)?")

# fmt: off
PIECES = [
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
ANY = st.text(st.characters(categories=None)) | st.lists(st.sampled_from(PIECES)).map("".join)


def of(
    *metas: tuple[str, str],
    json_ld: Any = (),
    times: Any = (),
    bylines: Any = (),
    title: str = "",
    html_lang: str = "",
) -> Metadata:
    scripts = [script if isinstance(script, str) else json.dumps(script) for script in json_ld]
    return metadata(metas, scripts, times, bylines, title, html_lang, NOW)


def author(value: str) -> str:
    return of(("author", value)).author


def published(value: str) -> str:
    return of(("article:published_time", value)).published


def language(value: str) -> str:
    return of(html_lang=value).language_declared


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


def test_a_page_that_says_nothing_has_nothing():
    assert of() == Metadata("", "", "", "", "", "")


def test_everything_has_its_limit():
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


def test_what_was_written_for_sharing_is_a_better_title_than_the_window_s():
    assert (
        of(("og:title", "Storm in Kent"), title="Storm in Kent | Weather | Herald").title == "Storm in Kent"
    )
    assert (
        of(json_ld=[{"@type": "NewsArticle", "headline": "Storm &amp; rain"}], title="S").title
        == "Storm & rain"
    )


def test_a_title_that_only_names_the_site_says_nothing_if_another_says_more():
    assert of(("og:title", "Herald"), ("og:site_name", "Herald"), title="Storm | Herald").title == "Storm"
    assert of(("og:title", "Herald"), ("og:site_name", "Herald"), title="Herald").title == "Herald"


def test_the_site_is_what_the_window_s_title_adds_to_the_page_s():
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
def test_a_byline_names_who_wrote_the_page(bylines, names):
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
def test_what_stands_where_names_are_expected_is_not_always_a_name(bylines):
    assert of(bylines=bylines).author == ""


def test_bylines_of_many_people_are_those_of_teasers_or_comments():
    assert of(bylines=["Ann Poe", "Bob Roe", "Cid Doe", "Dan Foe"]).author == ""
    assert of(bylines=["By Ann Poe", "By Bob Roe", "By Cid Doe", "By Dan Foe"]).author == ""
    assert of(bylines=["By Ann Poe", "Bob Roe", "Cid Doe", "Dan Foe", "Eva Moe"]).author == "Ann Poe"


# Dates


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
def test_a_date_that_can_be_read_in_two_ways_or_none_is_no_date(value):
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


def test_a_date_that_cannot_be_leaves_the_word_to_the_next():
    metas = (
        ("article:published_time", "0000-00-00"),
        (" date\n", "2026-03-01"),
        ("article:published_time", "soon"),
    )
    assert of(*metas).published == "2026-03-01"


def test_dates_are_believed_in_the_order_of_trust():
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


def test_a_date_that_readers_see_is_that_of_the_page_if_others_come_later():
    assert of(times=[("", "March 1, 2026"), ("2026-03-02", "a comment")]).published == "2026-03-01"
    assert of(times=[("2026-03-02", "teaser"), ("2026-03-01", "older teaser")]).published == ""
    assert of(times=[("today", "2026-03-01"), ("2026-03-03T10:00Z", "")]).published == "2026-03-01"


# JSON-LD


ARTICLE = {
    "@context": "https://schema.org",
    "@type": "NewsArticle",
    "headline": "Storm",
    "author": {"@type": "Person", "name": "Jane Doe"},
    "datePublished": "2026-03-01",
    "dateModified": "2026-03-02",
}
READ = ("Storm", "Jane Doe", "2026-03-01", "2026-03-02")


def read(script: Any) -> tuple[str, str, str, str]:
    found = of(json_ld=[script])
    return found.title, found.author, found.published, found.modified


@pytest.mark.parametrize(
    "script",
    [
        ARTICLE,
        [ARTICLE],
        {"@graph": [{"@type": "BreadcrumbList"}, ARTICLE]},
        {"@type": "WebPage", "mainEntity": ARTICLE},
        [None, "", {"@graph": {"@graph": [ARTICLE]}}],
        ARTICLE | {"@type": ["Thing", "https://schema.org/BlogPosting"]},
        ARTICLE | {"author": "Jane Doe"},
        ARTICLE | {"author": [{"name": "Jane Doe"}]},
        ARTICLE | {"author": {"name": ["Jane Doe"]}},
        {"@graph": [ARTICLE | {"author": {"@id": "#jane"}}, {"@id": "#jane", "name": "Jane Doe"}]},
        {"@graph": [{"@type": "WebPage", "headline": "The page", "datePublished": "2020-01-01"}, ARTICLE]},
    ],
)
def test_an_article_is_found_where_json_ld_may_have_it(script):
    assert read(script) == READ


def test_a_page_speaks_where_its_article_is_silent():
    graph = [{"@type": "FAQPage"}, {"@type": "Article", "headline": "Storm"}, ARTICLE | {"@type": "WebPage"}]
    assert read({"@graph": graph}) == READ


def test_what_is_said_of_teasers_comments_and_products_is_not_said_of_the_page():
    teasers = {"@type": "ItemList", "itemListElement": [ARTICLE]}
    comments = {"@type": "WebPage", "comment": ARTICLE}
    product = {"@type": "Product", "review": ARTICLE, "datePublished": "2026-03-01"}
    for script in (teasers, comments, product, {"@graph": [teasers, comments, product]}):
        assert read(script) == ("", "", "", "")


@pytest.mark.parametrize(
    "script",
    [
        "<!-- " + json.dumps(ARTICLE) + " -->",
        "//<![CDATA[\n" + json.dumps(ARTICLE) + "\n//]]>",
        json.dumps(ARTICLE) + ";",
        json.dumps(ARTICLE)[:-1] + ",}",
        json.dumps(ARTICLE)[:-2],
        json.dumps(ARTICLE | {"description": "two\nlines"}).replace("\\n", "\n"),
        json.dumps({"weight": 1e999} | ARTICLE),
        json.dumps(ARTICLE).replace("Storm", "St\\u006frm\n") + "\0",
        json.dumps(ARTICLE | {"description": "\ud800"}, ensure_ascii=False),
        json.dumps(ARTICLE | {"author": [{"@type": "Person", "name": "Jane Doe"}, {"name": "John"}]}) + "}",
        json.dumps(ARTICLE)[:-1] + ', "deep": ' + "[" * 100_000,
    ],
)
def test_broken_json_gives_what_can_be_told(script):
    assert read(script) == READ


def test_broken_json_of_something_else_gives_nothing():
    assert read(json.dumps({"@type": "ItemList", "itemListElement": [ARTICLE]}) + ",") == ("", "", "", "")


@pytest.mark.parametrize(
    "script",
    [
        *("", "null", "7", '"Article"', "[" * 100_000, '{"@graph":' * 100_000, "9" * 60_000, '{"a":1,"a":2}'),
        *(
            '"author":{' * 6_000,
            '"headline":"' * 5_000,
            '"author":["\\' * 5_000,
            "[" + "[]," * 20_000 + "[]]",
        ),
        '{"@type":{"@type":[]},"author":{"name":{"name":[{}]}},"headline":[null,[["x"]]]}',
        {
            "@type": "Article",
            "author": {"@id": {"@id": []}},
            "datePublished": 20260301,
            "headline": {"a": "b"},
        },
    ],
)
def test_json_that_says_nothing_gives_nothing(script):
    assert read(script) == ("", "", "", "")


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
def test_a_language_is_written_as_the_standard_has_it(declared, tag):
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
def test_nonsense_is_no_language(declared):
    assert language(declared) == ""


def test_the_root_element_knows_the_language_best():
    metas = ("og:locale", "cs_CZ"), ("content-language", "sk")
    assert of(*metas, html_lang="pl").language_declared == "pl"
    assert of(*metas, html_lang="nonsense").language_declared == "sk"
    assert of(metas[0]).language_declared == "cs-CZ"
