"""Links of sitemaps and feeds, from anything that claims to be XML."""

from __future__ import annotations

import gzip
from datetime import UTC, datetime
from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from thresher.reader.feeds import kind_of, links, text_sitemap
from thresher.records import Link
from thresher.urls import canonical

BASE = "http://www.a.cz/sitemap.xml"

# fmt: off
PIECES = [
    "<", ">", "/", "</", "<!--", "-->", "<![CDATA[", "]]>", "<loc>", "</loc>", "<url>", "<urlset>",
    "<sitemapindex>", "<sitemap>", "<x:loc>", "<image:loc>", "<link>", "</link>", "<link href='",
    "<xhtml:link hreflang='cs' href=\"", "'", '"', "<item>", "</item>", "<entry>", "<title>", "<guid>",
    "<lastmod>", "2026-01-02", "</lastmod>", "<priority>", "0.5", "<pubDate>",
    "<source>", "</source>", "http://a.cz/", "/x", "&amp;", "&#x41;", "&#xD800;", "&#1114112;", "&lol;",
    "<!DOCTYPE x [", "<?xml", "encoding='utf-7'", " ", "č", "\0",
]
# fmt: on


def sitemap(*locs: str, root: str = "urlset", item: str = "url") -> bytes:
    entries = "".join(f"<{item}><loc>{loc}</loc></{item}>" for loc in locs)
    return f'<?xml version="1.0"?><{root} xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{entries}</{root}>'.encode()


def urls(body: bytes, kind="sitemap", base: str = BASE, max_links: int = 1_000) -> list[str]:
    return [link.url for link in links(body, base, kind, max_links)]


def rss(item: str) -> bytes:
    channel = "<title>News</title><link>http://a.cz/</link><image><link>http://a.cz/logo</link></image>"
    return f"<rss><channel>{channel}{item}</channel></rss>".encode()


@given(st.binary() | st.lists(st.sampled_from(PIECES)).map(lambda pieces: "".join(pieces).encode()))
def test_any_bytes_have_links_or_none(body):
    assert kind_of(body) in ("sitemap", "feed", "")
    for kind in ("sitemap", "feed"):
        found = links(body, BASE, kind, 5)
        assert len(found) <= 5
        assert len({link.url for link in found}) == len(found)
        assert all(canonical(link.url) == link.url for link in found)
    assert len(text_sitemap(body, BASE, 5)) <= 5


@given(
    st.lists(st.from_regex(r"http://(www|b)\.a\.cz/[a-z0-9/]{0,9}", fullmatch=True), unique=True), st.data()
)
def test_a_sitemap_cut_off_anywhere_still_gives_the_links_before_the_cut(locs, data):
    body = sitemap(*locs)
    cut = data.draw(st.integers(0, len(body)))
    whole = [loc for loc in locs if body.index(f"<loc>{loc}</loc>".encode()) + len(loc) + 6 <= cut]
    assert urls(body[:cut])[: len(whole)] == [canonical(loc) for loc in whole]


def test_links_of_a_sitemap_are_distinct_canonical_and_in_order():
    body = sitemap(
        "http://www.a.cz/b", "\n http://WWW.A.cz:80/a#top\t", "http://www.a.cz/b?utm_source=x", "/c"
    )
    assert links(body, BASE, "sitemap", 10) == (
        Link("http://www.a.cz/b", "", 0.5, False),
        Link("http://www.a.cz/a", "", 0.5, False),
        Link("http://www.a.cz/c", "", 0.5, False),
    )


def test_no_more_links_than_the_limit_are_read():
    body = sitemap(*(f"http://www.a.cz/{n}" for n in range(20)))
    assert len(urls(body, max_links=7)) == 7
    assert len(text_sitemap(b"http://www.a.cz/1\nhttp://www.a.cz/2", BASE, 1)) == 1
    assert urls(body, max_links=0) == []


def test_a_sitemap_may_only_name_urls_of_its_own_registered_domain():
    body = sitemap(
        "http://blog.a.cz/1",
        "https://a.cz/2",
        "http://b.cz/3",
        "http://a.cz.b.cz/4",
        "ftp://a.cz/5",
        "a.cz/6",
    )
    assert urls(body) == ["http://blog.a.cz/1", "https://a.cz/2"]
    assert urls(sitemap("http://two.co.uk/"), base="http://one.co.uk/") == []
    assert urls(sitemap("http://10.0.0.2/"), base="http://10.0.0.1/") == []


def test_the_children_of_a_sitemap_index_are_sitemaps():
    body = sitemap("http://www.a.cz/1.xml", root="sitemapindex", item="sitemap")
    assert links(body, BASE, "sitemap", 10) == (Link("http://www.a.cz/1.xml", "", 0.5, False, "sitemap"),)


def test_versions_in_other_languages_are_alternates():
    body = b"""<urlset><url><loc>http://www.a.cz/</loc>
        <xhtml:link rel="alternate" hreflang="de" href="http://www.a.cz/de?a=1&amp;b=2"/>
        <xhtml:link href='http://www.a.cz/fr' hreflang='fr' rel='alternate' />
        <link rel="stylesheet" href="http://www.a.cz/style.css"/></url></urlset>"""
    assert [(link.url, link.rel) for link in links(body, BASE, "sitemap", 10)] == [
        ("http://www.a.cz/", ""),
        ("http://www.a.cz/de?a=1&b=2", "alternate hreflang=de"),
        ("http://www.a.cz/fr", "alternate hreflang=fr"),
    ]


def marks(body: bytes, kind="sitemap", now: float = inf) -> list[str]:
    return [link.rel for link in links(body, BASE, kind, 100, now)]


def entry(*elements: str) -> bytes:
    return f"<urlset><url>{''.join(elements)}</url></urlset>".encode()


LOC = "<loc>http://www.a.cz/1</loc>"


@pytest.mark.parametrize(
    ("element", "mark"),
    [
        ("<lastmod>2026-01-02</lastmod>", "lastmod=2026-01-02"),
        ("<lastmod> 2026-01-02T10:00:00+01:00\n</lastmod>", "lastmod=2026-01-02"),
        ("<changefreq>daily</changefreq>", "changefreq=daily"),
        ("<priority>.8</priority>", "priority=.8"),
        ("<priority>1.0</priority>", "priority=1.0"),
        ("<lastmod>yesterday</lastmod>", ""),
        ("<lastmod>2026-13-02</lastmod>", ""),
        ("<lastmod>0001-01-01</lastmod>", ""),
        ("<changefreq>often, feed</changefreq>", ""),
        ("<priority>7</priority>", ""),
        ("<priority>high</priority>", ""),
        ("<video:priority>.8</video:priority>", ""),
        ("<lastmod>", ""),
    ],
)
def test_properties_in_a_sitemap_are_marks_unless_they_are_malformed(element: str, mark: str):
    assert marks(entry(LOC, element)) == [mark]
    assert marks(entry(element, LOC)) == [mark], "whichever comes first"


def test_a_page_has_the_marks_of_its_own_entry():
    body = b"""<urlset><url><lastmod>2026-01-02</lastmod><loc>http://www.a.cz/1</loc><priority>0.3</priority></url>
        <url><loc>http://www.a.cz/2</loc></url><url><loc>http://www.a.cz/3</loc><lastmod>2025-01-02</lastmod></url>"""
    assert marks(body) == ["lastmod=2026-01-02 priority=0.3", "", "lastmod=2025-01-02"]
    index = b"<sitemapindex><sitemap><loc>/1.xml</loc><lastmod>2026-01-02</lastmod></sitemap>"
    assert marks(index) == ["sitemap lastmod=2026-01-02"]


def test_marks_of_repeated_entries_are_merged_and_the_first_value_wins():
    both = '<link hreflang="cs" href="http://www.a.cz/1"/><link hreflang="DE" href="http://www.a.cz/2"/>'
    entries = [
        f"<url><loc>http://www.a.cz/{page}</loc>{both}<lastmod>2026-01-0{page}</lastmod></url>"
        for page in (1, 2, 1)
    ]
    first, second = marks(f"<urlset>{''.join(entries)}</urlset>".encode())
    assert sorted(first.split()) == ["alternate", "hreflang=cs", "lastmod=2026-01-01"]
    assert sorted(second.split()) == ["alternate", "hreflang=de", "lastmod=2026-01-02"]


@pytest.mark.parametrize("code", ["x-default", "", "cs nofollow", "c" * 500, "d=e"])
def test_an_alternate_with_an_invalid_language_has_no_language_mark(code: str):
    assert marks(entry(f'<link hreflang="{code}" href="http://www.a.cz/1"/>')) == ["alternate"]


@pytest.mark.parametrize(
    ("item", "mark"),
    [
        ("<pubDate>Fri, 02 Jan 2026 10:00:00 GMT</pubDate>", "lastmod=2026-01-02"),
        ("<dc:date>2026-01-02T10:00:00Z</dc:date>", "lastmod=2026-01-02"),
        ("<updated>soon</updated><published>2026-01-02T10:00:00Z</published>", "lastmod=2026-01-02"),
        ("<pubDate>Fri</pubDate>", ""),
        ("<source><updated>2026-01-02</updated></source>", ""),
    ],
)
def test_items_of_feeds_have_their_dates(item: str, mark: str):
    dated = f"<item><link>http://a.cz/1</link>{item}</item><item><guid>http://a.cz/2</guid></item>"
    assert marks(rss(dated), "feed") == [mark, ""]


def test_a_date_in_the_future_is_ignored():
    now = datetime(2026, 1, 5, tzinfo=UTC).timestamp()
    assert marks(entry(LOC, "<lastmod>2026-01-04</lastmod>"), now=now) == ["lastmod=2026-01-04"]
    assert marks(entry(LOC, "<lastmod>2027-01-04</lastmod>"), now=now) == [""]
    item = "<item><link>http://a.cz/1</link><pubDate>04 Jan 2027</pubDate></item>"
    assert marks(rss(item), "feed", now) == [""]


def test_images_and_videos_are_no_pages_but_a_prefix_of_the_root_is_its_own():
    body = b"""<s:urlset><s:url><s:loc>http://www.a.cz/1</s:loc><image:loc>http://www.a.cz/2.jpg</image:loc>
        <video:player_loc>http://www.a.cz/3</video:player_loc></s:url></s:urlset>"""
    assert urls(body) == ["http://www.a.cz/1"]


@pytest.mark.parametrize(
    ("written", "url"),
    [
        ("http://www.a.cz/?a=1&amp;b=2", "http://www.a.cz/?a=1&b=2"),
        ("http://www.a.cz/?a=1&b=2", "http://www.a.cz/?a=1&b=2"),
        ("http://www.a.cz/?a=1&copy=2", "http://www.a.cz/?a=1&copy=2"),
        ("http://www.a.cz/&#x41;&#66;", "http://www.a.cz/AB"),
        ("<![CDATA[http://www.a.cz/?a=1&b=2]]>", "http://www.a.cz/?a=1&b=2"),
        (" <![CDATA[ http://www.a.cz/<![CDATA[]]> ", "http://www.a.cz/"),
        ("http://www.a.cz/<![CDATA[?a&]]>amp;b", "http://www.a.cz/?a&amp;b"),
        ("http://www.a.cz/&lol;", "http://www.a.cz/&lol;"),
    ],
)
def test_references_and_cdata_are_resolved_and_nothing_else(written, url):
    assert urls(sitemap(written)) == [url]


def test_commented_out_links_are_ignored():
    assert urls(b"<urlset><!-- <loc>http://www.a.cz/1</loc> --><loc>http://www.a.cz/2</loc><!--") == [
        "http://www.a.cz/2"
    ]


@pytest.mark.parametrize(
    "fault",
    [
        "<url><loc>",
        "</urlset>",
        "&",
        "<",
        "\0",
        "<url",
        "</loc>",
        "<loc/>",
        "]]>",
        "<?php die ?>",
        "<loc>http://[",
    ],
)
def test_links_before_and_after_a_fault_are_read(fault):
    body = f"<urlset><loc>http://www.a.cz/1</loc>{fault}<url><loc>http://www.a.cz/2</loc>".encode()
    assert urls(body) == ["http://www.a.cz/1", "http://www.a.cz/2"]


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-le", "utf-16-be"])
def test_every_unicode_encoding_is_read(encoding):
    body = sitemap("http://www.a.cz/č").decode().encode(encoding)
    assert kind_of(body) == "sitemap"
    assert urls(body) == ["http://www.a.cz/%C4%8D"]


def test_a_declared_encoding_is_used():
    feed = '<?xml version="1.0" encoding="windows-1250"?><item><title>šťáva</title><link>/1</link></item>'
    assert links(feed.encode("cp1250"), BASE, "feed", 5)[0].anchor == "šťáva"


@pytest.mark.parametrize(
    "charset", ["punycode", "utf-7", "zlib", "undefined", "iso-8859-12", "windows-1299", "x", ""]
)
def test_an_absurd_encoding_is_ignored(charset):
    body = f'<?xml version="1.0" encoding="{charset}"?><urlset><loc>http://www.a.cz/1</loc>'.encode()
    assert urls(body) == ["http://www.a.cz/1"]


def test_a_billion_laughs_cost_nothing_and_no_entity_is_looked_up():
    entities = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 30))
    bomb = f'<!DOCTYPE x [<!ENTITY l0 "ha"><!ENTITY f SYSTEM "file:///etc/passwd">{entities}]>'
    body = f"{bomb}<urlset><loc>http://www.a.cz/&l29;&f;</loc></urlset>".encode()
    assert urls(body) == ["http://www.a.cz/&l29;&f;"]


@pytest.mark.parametrize(
    ("item", "found"),
    [
        ("<item><title>A</title><link>http://b.cz/1</link></item>", [("http://b.cz/1", "A")]),
        (
            "<item><link>/1</link><title><![CDATA[A &#8211; <b>B</b>]]></title></item>",
            [("http://www.a.cz/1", "A – <b>B</b>")],
        ),
        ("<item><title> A\n&amp;amp; B </title><link> http://b.cz/1 </link>", [("http://b.cz/1", "A & B")]),
        ("<item><guid>http://b.cz/1</guid></item>", [("http://b.cz/1", "")]),
        ("<item><guid isPermaLink='false'>tag:1</guid></item>", []),
        ("<item><guid>http://b.cz/g</guid><link>http://b.cz/1</link></item>", [("http://b.cz/1", "")]),
        (
            "<item><link>http://b.cz/1</link><media:title>M</media:title><title>T</title></item>",
            [("http://b.cz/1", "T")],
        ),
        ("<item><link>http://b.cz/1</link></item><link>http://b.cz/2</link>", [("http://b.cz/1", "")]),
        ("<item><description><![CDATA[<link>http://b.cz/0</link>]]></description></item>", []),
        ("<item/><item><link>http://b.cz/1</link></item>", [("http://b.cz/1", "")]),
        ("<item><link>mailto:a@b.cz</link></item>", []),
    ],
)
def test_an_item_of_rss_leads_to_its_page_under_its_title(item, found):
    assert [(link.url, link.anchor) for link in links(rss(item), BASE, "feed", 10)] == found


def test_an_entry_of_atom_leads_to_its_page_and_not_to_its_feed_editor_or_source():
    body = b"""<feed xmlns="http://www.w3.org/2005/Atom"><title>F</title><link href="http://a.cz/"/>
        <entry><source><title>S</title><link href="http://c.cz/"/></source><title type="html">E</title>
        <link rel="self" href="http://a.cz/feed"/><link rel='edit' href='http://a.cz/edit'/>
        <link href="http://a.cz/1"/><link rel="http://www.iana.org/assignments/relation/alternate" href="2"/>
        </entry></feed>"""
    found = links(body, "http://a.cz/x/feed", "feed", 10)
    assert [(link.url, link.anchor) for link in found] == [("http://a.cz/1", "E"), ("http://a.cz/x/2", "E")]


def test_items_of_rdf_and_of_prefixed_atom_are_read():
    rdf = b"<rdf:RDF><channel><link>http://a.cz/</link></channel><item rdf:about='x'><link>http://a.cz/1</link></item>"
    atom = b"<atom:feed><atom:entry><atom:title>T</atom:title><atom:link href='http://a.cz/2'/></atom:entry></atom:feed>"
    assert urls(rdf, "feed") == ["http://a.cz/1"]
    assert links(atom, BASE, "feed", 5) == (Link("http://a.cz/2", "T", 0.5, False),)


@pytest.mark.parametrize(
    ("head", "kind"),
    [
        ("<urlset>", "sitemap"),
        ("\ufeff \n<?xml version='1.0'?>\n<!-- <rss> --><x:sitemapindex xmlns:x='y'>", "sitemap"),
        ('<!DOCTYPE rss PUBLIC "x" [<!ENTITY a "b">]><rss version="2.0">', "feed"),
        ("<?xml-stylesheet href='a'?><feed\nxmlns='x'>", "feed"),
        ("<rdf:RDF xmlns:rdf='x'>", "feed"),
        ("<RSS/>", "feed"),
        ("<html><rss>", ""),
        ("<!DOCTYPE html><html>", ""),
        ("<rssx>", ""),
        ("text <rss>", ""),
        ("", ""),
        ("<!--" * 500, ""),
        ("<??>" * 500, ""),
    ],
)
def test_the_kind_of_a_document_is_decided_by_its_root(head, kind):
    assert kind_of(head.encode()) == kind


def test_a_plain_text_sitemap_has_one_url_on_each_line():
    body = "\ufeffhttp://www.a.cz/1\r\n  http://www.a.cz/2 \n\nnonsense\n/3\nhttp://b.cz/4\rhttp://www.a.cz/č".encode()
    found = text_sitemap(body, BASE, 10)
    assert [link.url for link in found] == [
        "http://www.a.cz/1",
        "http://www.a.cz/2",
        "http://www.a.cz/%C4%8D",
    ]


@pytest.mark.parametrize(
    ("name", "base", "count"),
    [
        ("sitemaps/atom.xml", "http://example.org/", 2),
        ("sitemaps/do-not-visit.txt", "http://www.example.com/", 1),
        ("sitemaps/sitemap-with-bom.txt", "http://www.domain.com/", 2),
        ("sitemaps/sitemap.badns.xml", "http://www.example.com/", 2),
        ("sitemaps/sitemap.index.xml", "https://example.com/", 15),
        ("sitemaps/sitemap.ns.xml", "http://www.example.com/", 2),
        ("sitemaps/sitemap.txt", "http://www.domain.com/", 2),
        ("sitemaps/sitemap.txt.gz", "http://www.example.com/", 5),
        ("sitemaps/xmlSitemap.gz", "http://www.example.com/", 5),
        (
            "sitemaps/extension/hebdenbridgetimes-articles-sitemap.xml",
            "http://www.hebdenbridgetimes.co.uk/",
            74,
        ),
        ("sitemaps/extension/pagemaps-sitemap.xml", "http://www.example.com/", 2),
        ("sitemaps/extension/shinpaideshou-news-sitemap.xml", "https://shinpaideshou.wordpress.com/", 3),
        ("sitemaps/extension/sitemap-images.xml", "http://www.example.com/", 1),
        ("sitemaps/extension/sitemap-links.xml", "http://www.example.com/", 3),
        ("sitemaps/extension/sitemap-mobile.xml", "http://www.example.com/", 3),
        ("sitemaps/extension/sitemap-news.xml", "http://www.example.org/", 2),
        ("sitemaps/extension/sitemap-videos-tvshow.xml", "https://example.org/", 1),
        ("sitemaps/extension/sitemap-videos.xml", "http://www.example.com/", 3),
        ("rss/feed.rss", "https://www.example.com/", 4),
        ("rss/xmlRss_pubDate.xml", "http://www.example.com/", 7),
    ],
)
def test_real_sitemaps_and_feeds_have_the_links_counted_by_hand(suites, name, base, count):
    path = suites / name
    body = path.read_bytes()
    if path.suffix == ".gz":
        body = gzip.decompress(body)
    kind = kind_of(body)
    assert (kind == "") == (".txt" in name)
    found = links(body, base, kind, 100) if kind else text_sitemap(body, base, 100)
    assert len(found) == count


def test_a_sitemap_of_fifty_thousand_urls_is_read_whole():
    entry = "<url>\n<loc>https://www.a.cz/articles/2024/section/a-title-of-some-words-%d.html</loc>\n" + (
        "<lastmod>2024-10-10T10:00:00+00:00</lastmod><changefreq>monthly</changefreq><priority>.5</priority></url>"
    )
    body = ("<urlset>" + "".join(entry % n for n in range(50_000)) + "</urlset>").encode()
    assert len(urls(body, base="https://www.a.cz/s.xml", max_links=50_000)) == 50_000


HOSTILE = [
    "<",
    "<!--",
    "<loc>",
    "<loc><![CDATA[",
    "<![CDATA[]]>",
    "<link ",
    "<a:",
    "a",
    "&#",
    "]",
    "<item>",
    " ",
    "a='",
]


@pytest.mark.timeout(20)  # seconds; quadratic time would be minutes
@pytest.mark.parametrize("piece", HOSTILE)
@pytest.mark.parametrize("head", ["", "<loc>", "<item><title>", "<item><link "])
def test_a_document_made_to_be_slow_is_read_and_has_no_links(piece, head):
    body = (head + piece * (300_000 // len(piece))).encode()
    assert kind_of(body) == ""
    for kind in ("sitemap", "feed"):
        assert urls(body, kind) == []
