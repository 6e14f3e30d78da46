"""Reading of replies, as the crawler does it."""

from __future__ import annotations

import gzip
import json
import unicodedata
from html import escape
from pathlib import Path

import brotli
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from thresher.config import ReadSettings
from thresher.reader import read
from thresher.records import Link, ReadResult, Reply
from thresher.urls import canonical

CZECH = (
    "Včera jsme šli s dětmi do lesa a našli jsme tam mnoho hub, které jsme pak doma uvařili k večeři. "
    "Cestou domů začalo pršet, ale nikomu to nevadilo, protože jsme měli dobré boty. "
)
TURKISH = (
    "Dün çocuklarla ormana gittik ve orada birçok mantar bulduk, sonra onları akşam evde pişirdik. "
    "Eve dönerken yağmur başladı, ama kimse buna aldırmadı, çünkü ayakkabılarımız iyiydi. "
)
TEXT = f"<p>{CZECH}</p>" * 4
URL = "http://www.les.cz/houby/index.html"
ADDRESS_PARTS = (
    "http https HTTP mailto : :// // / ? # ;sid=1 & = utm_source=x PHPSESSID=1 page=2 \\ "
    "www.a.cz A.cz a . .. xn--a - 1.2.3.4 1 "
    ":80 u@ b.html %2e %2f %c5 _~!$()*+, ' | č [ ]"
)


def reply(body: bytes | str, *headers: str, url: str = URL) -> Reply:
    fields = (
        headers
        if any(h.lower().startswith("content-type") for h in headers)
        else (*headers, "Content-Type: text/html")
    )
    head = "\r\n".join(["HTTP/1.1 200 OK", *fields, "", ""])
    return Reply(
        url, 200, head.encode("latin-1"), body.encode() if isinstance(body, str) else body, 1.6e9, 0.1, ""
    )


def page(body: bytes | str, *headers: str, language: str = "") -> ReadResult:
    return read(reply(body, *headers), language)


def links(body: str, *headers: str) -> dict[str, Link]:
    return {link.url.removeprefix("http://www.les.cz"): link for link in page(body, *headers).links}


def test_a_page_is_read_into_title_text_languages_and_fingerprints() -> None:
    found = page(f"<title> Houby\n v lese</title><body><div><h1>Houby</h1>{TEXT}</div>", language="cs")
    assert (found.kind, found.fault, found.title) == ("html", "", "Houby v lese")
    assert found.text == "\n".join(["Houby", *[CZECH.strip()] * 4])
    assert [share.code for share in found.languages] == ["cs"]
    assert found.badness is not None
    assert found.badness < 10
    assert len(found.raw_hash) == len(found.text_hash) == 16


def test_all_blocks_are_kept_with_their_scores_and_the_good_ones_make_the_text() -> None:
    found = page(f'<ul class="menu"><li><a href="/">Domů</a><li><a href="/k">Kontakt</a></ul>{TEXT}')
    assert [block.text for block in found.blocks] == ["Domů", "Kontakt", *[CZECH.strip()] * 4]
    assert found.text == "\n".join(block.text for block in found.blocks if block.boilerplate < 0.5)


def test_badness_is_measured_against_the_target_language() -> None:
    turkish = f"<p>{TURKISH}</p>" * 12
    in_turkish, in_czech = page(turkish, language="tr").badness, page(turkish, language="cs").badness
    assert in_turkish is not None
    assert in_czech is not None
    assert in_turkish < in_czech
    assert page(turkish).badness is None
    assert page(turkish, language="tlh").badness is None


def test_the_same_text_on_another_template_has_the_same_text_hash_and_another_raw_hash() -> None:
    one = page(f"<nav><a href=/>Domů</a></nav><main>{TEXT}</main>")
    other = page(f"<div class=box>{TEXT}</div><footer><a href=/x>© Les</a></footer>")
    assert one.text == other.text
    assert one.text_hash == other.text_hash
    assert one.raw_hash != other.raw_hash
    assert page("<p>").text_hash == b""


def test_content_encodings_are_undone_and_bytes_counted_after() -> None:
    body = TEXT.encode()
    plain = page(body)
    assert plain.html_bytes == len(body)
    assert page(gzip.compress(body), "Content-Encoding: gzip") == plain
    assert page(brotli.compress(body), "Content-Encoding: br") == plain


def test_faults_of_encoding_are_values() -> None:
    small = ReadSettings(max_decoded_bytes=1000)
    assert page(b"x", "Content-Encoding: rot13").fault == "unknown encoding"
    assert page(b"\0\1\2", "Content-Encoding: gzip").fault == "damaged encoding"
    bomb = reply(gzip.compress(bytes(100_000)), "Content-Encoding: gzip")
    assert (read(bomb, "", small).kind, read(bomb, "", small).fault) == ("other", "decompression bomb")


def test_the_declared_charset_is_on_record_beside_the_one_used() -> None:
    body = TEXT.encode("cp1250")
    found = page(body, "Content-Type: text/html; charset=Windows-1250")
    assert (found.charset_declared, found.charset) == ("Windows-1250", "windows-1250")
    assert CZECH.strip() in found.text
    meta = page(b'<meta http-equiv=content-type content="text/html; charset=cp1250">' + body)
    assert (meta.charset_declared, meta.charset, meta.text) == ("cp1250", "windows-1250", found.text)


@pytest.mark.parametrize(
    ("body", "content_type", "kind", "fault"),
    [
        (b"%PDF-1.4 ...", "text/html", "other", "binary"),
        (b"%PDF-1.4 ...", "application/pdf", "other", ""),
        (b"PK\x03\x04....", "text/html", "other", "binary"),
        (bytes(range(32)) * 20, "text/html", "other", "binary"),
        (b"<!DOCTYPE html><p>a", "text/plain", "html", ""),
        (b"  <html><p>a", "", "html", ""),
        (
            b'<?xml version="1.0"?><html xmlns="http://www.w3.org/1999/xhtml"><p>a',
            "application/xml",
            "html",
            "",
        ),
        (b"just text", "text/html", "html", ""),
        (b"just text", "text/plain", "other", ""),
        (b'{"a": 1}', "application/json", "other", ""),
        (b"", "text/html", "html", ""),
        ('<p>kůň</p><p class="long">'.encode("utf-16"), "text/html", "html", ""),
        (b'<?xml version="1.0"?><rss version="2.0"><channel></channel></rss>', "text/html", "feed", ""),
        (b'<?xml version="1.0"?><urlset></urlset>', "application/xml", "sitemap", ""),
        (
            gzip.compress(b'<?xml version="1.0"?><urlset></urlset>', mtime=0),
            "application/gzip",
            "sitemap",
            "",
        ),
        (gzip.compress(b"some file", mtime=0), "application/gzip", "other", ""),
    ],
)
def test_the_kind_of_a_body_is_decided_by_its_bytes(
    body: bytes, content_type: str, kind: str, fault: str
) -> None:
    found = page(body, f"Content-Type: {content_type}")
    assert (found.kind, found.fault) == (kind, fault)


def test_a_sitemap_may_be_a_list_of_urls_in_plain_text() -> None:
    found = read(
        reply("http://a.cz/1\nhttp://a.cz/2\n", "Content-Type: text/plain", url="http://a.cz/sitemap.txt")
    )
    assert (found.kind, [link.url for link in found.links]) == ("sitemap", ["http://a.cz/1", "http://a.cz/2"])
    prose = read(reply("Just a readme.\n", "Content-Type: text/plain", url="http://a.cz/readme.txt"))
    assert (prose.kind, prose.links) == ("other", ())


def test_hidden_text_is_not_read() -> None:
    hidden = [
        "<div hidden>SECRET</div>",
        '<div aria-hidden="true">SECRET</div>',
        '<p style="color:red; DISPLAY : none">SECRET</p>',
        '<span style="visibility:hidden">SECRET</span>',
        "<script>SECRET</script>",
        "<style>SECRET</style>",
        "<template><p>SECRET</template>",
        "<noscript>SECRET</noscript>",
        "<svg><title>SECRET</title><text>SECRET</text></svg>",
        "<select><option>SECRET</select>",
        "<textarea>SECRET</textarea>",
        "<button>SECRET</button>",
        "<iframe>SECRET</iframe>",
        "<!-- SECRET -->",
    ]
    for markup in hidden:
        found = page(f"{TEXT}{markup}<p>{CZECH}</p>")
        assert "SECRET" not in "".join(block.text for block in found.blocks), markup
        assert len(found.blocks) == 5, markup


def test_a_page_that_scripts_would_unhide_is_read() -> None:
    assert page(f'<body style="visibility:hidden">{TEXT}').text
    assert CZECH.strip() in page(f"<noscript>{TEXT}</noscript>").text


def test_blocks_end_at_block_elements_and_double_line_breaks_only() -> None:
    inline, table, pre = "a <b>b</b><i>c</i>\n d", "<table><tr><td>h<td>i</table>", "<pre>l\n  m\n\nn</pre>"
    markup = f"<div>{inline}<br>e<br> <br>f<p>g{table}j<hr>k</div>{pre}"
    assert [b.text for b in page(markup).blocks] == ["a bc d e", "f", "g", "h", "i", "j", "k", "l\n  m\nn"]


def test_text_is_free_of_scripts_and_control_characters() -> None:
    dirty = "a\0b\x07c\x85d\u202ee\u2066f\ufeffg\ufdd0h\U0001fffei&#x202e;j&#1;k&#xd800;l&shy;m e\u0301"
    (block,) = page(f"<p>{dirty}</p>", "Content-Type: text/html; charset=utf-8").blocks
    assert block.text == "abc defghijk\ufffdlm \u00e9"
    assert (
        page("<p>می\u200cخواهم</p>", "Content-Type: text/html; charset=utf-8").blocks[0].text
        == "می\u200cخواهم"
    )


def test_links_are_canonical_absolute_and_of_the_web_only() -> None:
    found = links(
        "<a href=b.html#top>b</a> <a href='../c?utm_source=x'>c</a> <a href=//jiny.cz>d</a> "
        "<a href=mailto:a@b.cz>m</a> <a href='javascript:x()'>j</a> <a href=#top>t</a> "
        "<a href='ftp://f.cz/'>f</a> <a href=''>e</a> <a name=n>n</a>"
    )
    assert list(found) == ["/houby/b.html", "/c", "http://jiny.cz/"]


@settings(max_examples=500)
@given(st.lists(st.sampled_from([" ", *ADDRESS_PARTS.split()]), max_size=7).map("".join))
@example("https://www.a.cz/b/c.html")
@example("http://a.cz/%2e%2E/b")
@example("http://xn--a.cz/")
@example("http://a.1/b")
@example("/b//c")
@example("/b?id=1&utm_source=x")
@example("/b?id=1&&page=2")
@example("b?_GA=1")
@example("/b?")
@example("/" + "b" * 3000)
@example("b/" * 1020)
def test_odd_addresses_of_links_are_resolved(address: str) -> None:
    found = [link.url for link in page(f'<a href="{escape(address)}">x</a>').links]
    expected = canonical(address, URL) if address and not address.startswith("#") else None
    assert found == ([expected] if expected else [])


def test_the_first_base_counts_and_is_itself_relative_to_the_page() -> None:
    assert list(links('<base href="/jinde/"><base href="/nikde/"><a href=x>x</a>')) == ["/jinde/x"]
    assert list(links('<base href="data:,"><a href=x>x</a>')) == ["/houby/x"]


def test_a_link_carries_the_score_of_its_block_and_whether_it_stands_in_running_text() -> None:
    menu = "".join(f'<li><a href="/m{n}">Položka {n}</a></li>' for n in range(8))
    found = links(
        f'<ul class="menu">{menu}</ul><p>{CZECH} Viz <a href="/clanek">článek o houbách</a>.</p>{TEXT}'
    )
    assert (found["/clanek"].in_text, found["/m3"].in_text) == (True, False)
    assert found["/clanek"].boilerplate < 0.3
    assert found["/m3"].boilerplate > 0.7
    assert found["/clanek"].anchor == "článek o houbách"


def test_a_url_linked_twice_is_one_link_in_its_first_place_with_the_better_score() -> None:
    found = links(
        f'<nav><a href="/a">A</a> <a href="/b">B</a></nav><p>{CZECH}<a href="/a#x">o tom více</a>.</p>{TEXT}'
    )
    assert list(found) == ["/a", "/b"]
    assert (found["/a"].anchor, found["/a"].in_text) == ("o tom více", True)


def test_anchors_are_the_text_or_the_picture_of_a_link_on_one_line_and_not_endless() -> None:
    found = links(
        "<a href=/1> a <b>b</b>\n c<div>d</div></a><a href=/2><img alt='obraz lesa'></a>"
        f"<a href=/3>{'x' * 999}</a><map><area href=/4 alt='les'></map><a href=/5>e<a href=/6>f</a>"
    )
    assert [found[f"/{n}"].anchor for n in (1, 2, 4, 5, 6)] == ["a b c d", "obraz lesa", "les", "e", "f"]
    assert len(found["/3"].anchor) == 200


def test_the_head_of_a_page_links_to_its_other_forms() -> None:
    found = links(
        "<link rel=canonical href=/k><link rel=alternate hreflang=DE href=/de>"
        '<link rel="alternate" type="application/rss+xml" href=/rss>'
        "<link rel=next href=/2><link rel=stylesheet href=/s>"
        '<meta http-equiv=refresh content="5; URL=\'/dal\'"><a href=/k rel="NoFollow">k</a>'
    )
    assert {url: link.rel for url, link in found.items()} == {
        "/k": "nofollow canonical",
        "/de": "alternate hreflang=de",
        "/rss": "alternate feed",
        "/2": "next",
        "/dal": "refresh",
    }
    assert list(links("<noscript><meta http-equiv=refresh content='0;url=/bez'></noscript>")) == ["/bez"]
    assert links("<meta http-equiv=refresh content=30>") == {}


def test_hidden_links_are_taken_but_not_trusted() -> None:
    link = links(f"{TEXT}<div hidden><p><a href=/past>x</a></div>")["/past"]
    assert (link.boilerplate, link.in_text) == (1.0, False)


def test_no_more_links_are_kept_than_allowed() -> None:
    many = "".join(f"<a href=/{n}>{n}</a> " for n in range(500))
    assert len(read(reply(many), "", ReadSettings(max_links=100)).links) == 100


@pytest.mark.parametrize(
    ("directive", "noindex", "nofollow"),
    [
        ("noindex", True, False),
        ("NOINDEX, NoFollow", True, True),
        ("none", True, True),
        ("all", False, False),
        ("unavailable_after: 25 Jun 2010 15:00:00 GMT", True, False),
        ("unavailable_after: 2019-12-31", True, False),
        ("unavailable_after: 25 Jun 2044 15:00:00 GMT", False, False),
        ("unavailable_after: once upon a time", False, False),
        ("max-snippet: 0, nofollow", False, True),
    ],
)
def test_robots_directives_are_obeyed_in_header_and_markup(
    directive: str, noindex: bool, nofollow: bool
) -> None:
    for found in (
        page(TEXT, f"X-Robots-Tag: {directive}"),
        page(f'<meta name=ROBOTS content="{directive}">{TEXT}'),
    ):
        assert (found.noindex, found.nofollow) == (noindex, nofollow)


def test_robots_directives_for_other_agents_are_ignored() -> None:
    assert not page(TEXT, "X-Robots-Tag: googlebot: noindex, nofollow").noindex
    assert not page(f"<meta name=googlebot content=noindex>{TEXT}").noindex
    assert page(TEXT, "X-Robots-Tag: googlebot: nofollow, thresher: noindex").noindex
    assert page(f"<meta name=thresher content=noindex>{TEXT}").noindex


def test_opt_outs_of_machine_learning_are_recorded() -> None:
    found = page(
        f"<meta name=robots content='noai, noimageai'><meta name=tdm-reservation content=1>{TEXT}",
        "X-Robots-Tag: noai",
        "Content-Signal: search=yes, ai-train=no",
        "Content-Usage: train-ai=n",
    )
    assert found.opt_out == (
        "noai",
        "noimageai",
        "tdm-reservation",
        "content-signal: ai-train=no",
        "content-usage: train-ai=n",
    )
    assert page(TEXT, "TDM-Reservation: 1").opt_out == ("tdm-reservation",)
    assert page(TEXT, "TDM-Reservation: 0").opt_out == ()


def test_a_licence_is_found_by_its_rel_or_its_address() -> None:
    by = "https://creativecommons.org/licenses/by/4.0/"
    assert page(f"{TEXT}<a href='{by}'>CC BY</a>").license == by
    assert (
        page(f"<a href='{by}'>x</a>{TEXT}<a rel=license href=/licence>L</a>").license
        == "http://www.les.cz/licence"
    )
    assert page(TEXT).license == ""


@pytest.mark.parametrize(
    "markup",
    [
        "<div>" * 100_000,
        "<span>" * 100_000 + "</i>" * 100_000,
        "<i><div>" * 50_000 + "</i>" * 50_000,
        "<div>" * 30_000 + "</div>" * 30_000,
        f"<a {' '.join(f'a{n}=1' for n in range(50_000))}>",
        f"<p>{''.join(f'<b id={n}>' for n in range(2_000))}</p>{'<p>x</p>' * 4_000}",
        "<noscript>" * 100_000,
        f"<!--{'<' * 5_000_000}-->",
        "<a href=/x>" * 200_000,
        f"<table>{'<td><table>' * 50_000}",
        f"<ul>{'<li><ul>' * 50_000}",
        f"<svg>{'<g>' * 100_000}<p>",
        f"<select>{'<option>' * 100_000}</select>",
    ],
    ids=[
        *("deep", "unmatched", "crossed", "closed", "attributes", "formatting", "noscript"),
        *("comment", "links", "tables", "lists", "drawing", "options"),
    ],
)
def test_text_after_hostile_markup_is_found(markup: str) -> None:
    assert page(f"{markup}<p>{CZECH}").blocks[-1].text == CZECH.strip()


@pytest.mark.parametrize(
    "markup",
    [
        "<table>" + "<tr><td>a<td>b" * 9_000,
        "<p>a<br>" * 9_000,
        f"<p title='{'slovo ' * 9_000}'>{CZECH}",
        "<" * 99_999,
    ],
    ids=["open cells", "open paragraphs", "long attribute", "brackets"],
)
def test_odd_markup_is_read(markup: str) -> None:
    assert page(markup).fault == ""


def check(found: ReadResult) -> None:
    """Check the properties that every page has, for any bytes."""
    texts = [found.title, found.text, *(b.text for b in found.blocks), *(link.anchor for link in found.links)]
    for text in texts:
        text.encode("utf-8")
        assert unicodedata.is_normalized("NFC", text)
        assert not any(
            unicodedata.category(sign) == "Cc" for sign in text.replace("\n", "").replace("\t", "")
        )
    assert all(block.text.strip() and 0.0 <= block.boilerplate <= 1.0 for block in found.blocks)
    assert all(canonical(link.url) == link.url for link in found.links)
    assert len({link.url for link in found.links}) == len(found.links)
    assert sum(share.bytes for share in found.languages) <= len(found.text.encode())


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(
    st.binary(max_size=500),
    st.sampled_from(["text/html", "text/html; charset=utf-16", "", "text/xml", "a\xff"]),
)
def test_any_bytes_give_a_page(body: bytes, content_type: str) -> None:
    check(page(body, f"Content-Type: {content_type}", language="cs"))


SCRAPS = """<p>|<div>|</div>|<a href='/x'>|<a href=../y rel=nofollow>|</a>|<br>|<li>|<ul>|<table>|<td>|<pre>
</pre>|<b>|<i>|</b>|<svg>|<math>|<template>|</template>|<select>|<base href=//z>|<title>|</title>|<noscript>
<img alt=x>|<!--|-->|<script>|</script>|<meta http-equiv=refresh content='0;/q'>|<frameset>|<body hidden>
<p a<b>|<a<div>|<plaintext>|</p>|</table>|&amp;|&lt;|&#0;|&#xd800;|&nbsp;|<![CDATA[|]]>|<?php|<h1>
<form>|<nav>|<area href=/z>"""
SOUP = st.lists(
    st.one_of(st.sampled_from(SCRAPS.replace("\n", "|").split("|")), st.text(max_size=12)), max_size=60
).map("".join)


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(SOUP)
def test_any_soup_of_tags_gives_a_page(soup: str) -> None:
    check(
        page(soup.encode("utf-8", "surrogatepass"), "Content-Type: text/html; charset=utf-8", language="cs")
    )


@given(st.binary(max_size=200))
def test_any_headers_give_a_page(headers: bytes) -> None:
    check(read(Reply(URL, 200, b"HTTP/1.1 200 OK\r\n" + headers, TEXT.encode(), 0.0, 0.0, "")))


def test_every_page_of_the_html_conformance_suite_is_read(suites: Path) -> None:
    cases = [
        case.partition(b"\n#errors")[0]
        for file in sorted((suites / "html5").glob("*.dat"))
        for case in file.read_bytes().split(b"#data\n")[1:]
    ]
    assert len(cases) > 1_500
    for case in cases:
        check(page(case, "Content-Type: text/html; charset=utf-8"))


def test_naughty_strings_keep_all_their_letters_and_digits(suites: Path) -> None:
    strings = json.loads((suites / "strings" / "blns.json").read_text())
    for string in strings:
        escaped = string.replace("&", "&amp;").replace("<", "&lt;")
        found = page(f"{TEXT}<p>{escaped}</p>", "Content-Type: text/html; charset=utf-8")
        check(found)
        readable = "".join(sign for sign in string if sign.isalnum())
        read_back = "".join(sign for block in found.blocks[4:] for sign in block.text if sign.isalnum())
        assert read_back == unicodedata.normalize("NFC", readable)
