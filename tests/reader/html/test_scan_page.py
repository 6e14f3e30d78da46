"""The scan of a page agrees with a real HTML parser, and its kernels are compiled once."""

from __future__ import annotations

import html
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from selectolax.lexbor import LexborHTMLParser

from thresher.reader.html.scan_page import Markup, scan

TAGS = (
    *(
        "a",
        "b",
        "i",
        "span",
        "p",
        "div",
        "ul",
        "ol",
        "li",
        "dl",
        "dt",
        "dd",
        "table",
        "caption",
        "colgroup",
        "tbody",
    ),
    *(
        "thead",
        "tr",
        "td",
        "th",
        "h1",
        "h2",
        "section",
        "article",
        "form",
        "blockquote",
        "button",
        "pre",
        "em",
    ),
    *("font", "nobr", "custom-tag"),
)
ATTRIBUTES = (
    "",
    ' class="x"',
    " href=/here",
    ' href="/there?a=1&amp;b=2"',
    " HREF='/x>y'",
    " / ",
    " hidden=''",
)
PIECES = st.one_of(
    st.builds("<{}{}>".format, st.sampled_from(TAGS), st.sampled_from(ATTRIBUTES[:-1])),
    st.builds("</{}>".format, st.sampled_from(TAGS)),
    st.sampled_from(
        ["<br>", "<hr>", "<img alt=x>", "<!-- c -->", "<!-->", "<!bogus>", "</>", "< ", "&lt;", "&amp;"]
    ),
    st.from_regex(r"[a-z]{1,6} ?", fullmatch=True),
)


def words(markup: Markup) -> Counter[str]:
    return Counter("".join("".join(markup.texts).split()))


@settings(max_examples=400)
@given(st.lists(PIECES, max_size=40).map("".join))
@example("<table>a<tr>b<td>c</table>d")
@example("<p><a href=/here>a<p>b</a>c")
@example("<b><p>a</b>b</p><li>c<li>d</ul>e")
def test_text_and_links_of_any_soup_match_a_real_parser(soup: str) -> None:
    ours = scan(soup.encode(), 1000)
    tree = LexborHTMLParser(soup.encode())
    for node in tree.css("button"):
        node.decompose()
    assert tree.body
    assert words(ours) == Counter("".join(tree.body.text().split()))
    theirs = {node.attributes["href"] for node in LexborHTMLParser(soup.encode()).css("a[href]")}
    assert set(ours.anchors.hrefs) == theirs


@given(st.text("&#xX;abcegilmnopqrtuyAMPLT0123456789= ", max_size=30))
@example("&notit; &notin; &amp &ampx &copy2 &#x80; &#0; &#xD800; &#99999999; &NotLessLess;")
@example("&fjlig;ord &ThickSpace; b")
def test_references_are_resolved_as_in_a_browser(text: str) -> None:
    (found,) = scan(f"<p>x{text}x".encode(), 10).texts
    assert found == " ".join(f"x{html.unescape(text)}x".split())


def test_a_reference_in_an_address_counts_only_where_it_ends() -> None:
    found = scan(b"<a href='/?a=1&copy=2&amp;b=3&lt'>x</a>", 10)
    assert found.anchors.hrefs == ["/?a=1&copy=2&b=3<"]


@pytest.mark.parametrize("broken", [b"\xc3", b"\xe2\x82", b"\xf0\x9f"])
def test_a_broken_character_does_not_swallow_the_tag_after_it(broken: bytes) -> None:
    assert scan(b"<p>a" + broken + b"<p>b" + broken, 10).texts == ["a", "b"]


def test_a_link_that_crosses_blocks_is_a_link_in_each() -> None:
    found = scan(b"<p><a href=/x>one</p><p>two</a> three</p>", 10)
    assert (found.anchors.texts([0, 1]), found.anchors.blocks.tolist()) == (["one", "two"], [0, 1])


def test_declarations_of_a_page_are_found() -> None:
    found = scan(
        b"<html lang=cs><base href=/b/><title>T &amp; U</title><meta property=og:type content=article>"
        b'<link rel="alternate" hreflang="DE" href=/de><script type=application/ld+json>{"a": "<b>"}</script>'
        b'<p class="byline">By <b>Jan</b></p><time datetime=2026-01-02>yesterday</time>',
        10,
    )
    assert (found.language, found.base, found.title) == ("cs", "/b/", "T & U")
    assert found.metas == [("og:type", "article")]
    assert found.head_links == [("/de", "alternate hreflang=de")]
    assert found.json_ld == ['{"a": "<b>"}']
    assert (found.bylines, found.times) == (["By Jan"], [("2026-01-02", "yesterday")])


@pytest.mark.parametrize(
    ("markup", "shown"),
    [
        ("<svg><title>a</title><style>b</style><text>c</text></svg>d", "d"),
        ("<svg><path/><p>broken out", "broken out"),
        ("<select><option>a<option>b</select>c", "c"),
        ("<script><!-- <script>a</script> b --></script>c", "c"),
        ("<script>if (a < b && c > d) '</scripts>'</script>e", "e"),
        ("<style>a</style ><title>b</title>c", "c"),
        ("<template><p>a</template>b", "b"),
        ("<noscript>please turn it on</noscript>a", "a"),
        ("<div aria-hidden=true>a</div><i aria-hidden=false>b</i>", "b"),
        ("<p style='color:red; DISPLAY : none'>a</p><p style='display:block'>b", "b"),
        ("<!-- a --!> b <!-- > c --> d <!--> e <!---> f", "b d e f"),
        ("<textarea>a</textarea>b<plaintext>c", "b c"),
        ("a<div", "a"),
        ("a<p title='b>c", "a"),
        ("1 < 2 <3 </ 4", "1 < 2 <3"),
    ],
)
def test_only_visible_text_is_text(markup: str, shown: str) -> None:
    assert " ".join(scan(markup.encode(), 10).texts) == shown


def test_a_page_that_is_invisible_until_a_script_has_run_is_seen() -> None:
    text = "<p>Here is a sentence of the page.</p>" * 90
    assert len(scan(f"<div style='visibility:hidden'>{text}</div>".encode(), 10).texts) == 90
    assert scan(f"<p>{'Shown. ' * 90}<div hidden>{text}</div>".encode(), 10).texts == [
        ("Shown. " * 90).strip()
    ]


@given(st.binary(max_size=200))
def test_any_bytes_are_scanned_to_the_end(raw: bytes) -> None:
    found = scan(raw, 5)
    assert len(found.texts) == len(found.blocks)
    assert len(found.anchors.hrefs) <= 5


@pytest.mark.slow
def test_kernels_are_compiled_by_one_process_and_kept(tmp_path: Path) -> None:
    command = [sys.executable, "-c", "import thresher.reader.html.kernels.scanner"]
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    started = [subprocess.Popen(command, env=environment, stderr=subprocess.PIPE) for _ in range(2)]
    said = b"".join(process.communicate()[1] for process in started)
    assert said.count(b"compiling kernels") == 1
    again = subprocess.run(command, env=environment, capture_output=True, check=True)
    assert again.stderr == b""
