"""Token lines are read back as they were written, and no value can look like a line, a tag or another value."""

from __future__ import annotations

import re
import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from thresher.store.token_lines import (
    CloseTag,
    OpenTag,
    Token,
    clean,
    clean_name,
    closing,
    opening,
    read,
    token,
)

# Every code point, halves of surrogate pairs included: files and JSON bring all of them.
ANY_TEXT = st.text(st.characters())
FORBIDDEN = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")


@given(st.lists(ANY_TEXT, min_size=1, max_size=5))
@example(["\x02s", "\x03s"])
@example(["", "", ""])
def test_a_token_is_read_back_as_its_clean_values(values: list[str]) -> None:
    assert list(read(token(values))) == [Token(tuple(map(clean, values)))]


@given(ANY_TEXT, st.dictionaries(ANY_TEXT, ANY_TEXT, max_size=4))
@example("s", {"a=b": "c=d", "": ""})
def test_a_structure_is_read_back_with_its_clean_attributes(name: str, attributes: dict[str, str]) -> None:
    expected = {clean_name(key): clean(value) for key, value in attributes.items()}
    assert list(read(opening(name, attributes))) == [OpenTag(clean_name(name), expected)]
    assert list(read(closing(name))) == [CloseTag(clean_name(name))]


@given(ANY_TEXT)
@example("\u0338\x00\u0301e\u0301")
@example("\ud800\udc00")
def test_a_clean_text_has_no_controls_is_in_nfc_and_stays_as_it_is(text: str) -> None:
    cleaned = clean(text)
    assert not FORBIDDEN.search(cleaned)
    assert unicodedata.is_normalized("NFC", cleaned)
    assert clean(cleaned) == cleaned


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain", "plain"),
        ("a\tb\nc\rd", "a b c d"),
        ("a\r\nb", "a b"),
        ("\x00\x02\x1b\x7f\x85\x9f\u2028\u2029", "\ufffd" * 8),
        ("\u00a0\u200c\ufeff", "\u00a0\u200c\ufeff"),
        ("A\u030a", "Å"),
    ],
)
def test_forbidden_characters_are_replaced_and_others_are_kept(text: str, expected: str) -> None:
    assert clean(text) == expected


def test_a_document_is_read_line_by_line() -> None:
    lines = opening("p", {}) + opening("s", {"id": "1"}) + token(["On", "PR", "on"]) + token(["", "", ""])
    lines += closing("s") + closing("p")
    assert list(read(lines)) == [
        OpenTag("p", {}),
        OpenTag("s", {"id": "1"}),
        Token(("On", "PR", "on")),
        Token(("", "", "")),
        CloseTag("s"),
        CloseTag("p"),
    ]
    assert list(read(b"")) == []
