"""Metadata of pages from JSON-LD, also where it is broken."""

from __future__ import annotations

import json
from typing import Any

import pytest

from support.samples.page_metadata import of

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


def test_properties_missing_from_the_article_are_taken_from_the_page():
    graph = [{"@type": "FAQPage"}, {"@type": "Article", "headline": "Storm"}, ARTICLE | {"@type": "WebPage"}]
    assert read({"@graph": graph}) == READ


def test_properties_of_teasers_comments_and_products_are_not_taken_for_the_page():
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
def test_broken_json_gives_the_properties_that_can_be_read(script):
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
def test_json_without_properties_gives_none(script):
    assert read(script) == ("", "", "", "")
