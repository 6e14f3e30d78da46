"""Languages of a text, and the codes by which people call them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from thresher.read.language import known_languages, languages, nearest, normalise

CZECH = "Včera jsme šli s dětmi do lesa a našli jsme tam mnoho hub, které jsme pak doma uvařili k večeři. "
TURKISH = "Dün çocuklarla ormana gittik ve orada birçok mantar bulduk, sonra onları akşam evde pişirdik. "
HEBREW = "אתמול הלכנו עם הילדים ליער ומצאנו שם הרבה פטריות שאחר כך בישלנו בבית לארוחת הערב. "
GREEK = "Χθες πήγαμε με τα παιδιά στο δάσος και βρήκαμε πολλά μανιτάρια που μετά μαγειρέψαμε στο σπίτι. "


@pytest.mark.parametrize(
    ("text", "code"),
    [(CZECH, "cs"), (TURKISH, "tr"), (HEBREW, "he"), (GREEK, "el")],
    ids=["cs", "tr", "he", "el"],
)
def test_a_text_is_known_by_its_language_under_the_code_people_use(text: str, code: str) -> None:
    (only,) = languages(text * 3)
    assert only.code == code
    assert only.share > 0.9


def test_bytes_are_the_share_of_all_bytes_of_the_text() -> None:
    text = CZECH * 4
    (only,) = languages(text)
    assert only.bytes == int(len(text.encode()) * only.share)


def test_a_text_in_two_languages_has_both_with_the_larger_first() -> None:
    found = languages(GREEK * 2 + TURKISH * 12)
    assert [share.code for share in found] == ["tr", "el"]
    assert found[0].share > found[1].share > 0.1


def test_a_text_without_words_has_no_language() -> None:
    assert languages("") == ()
    assert languages("12 345 — 67 %") == ()


@given(st.text(alphabet=st.characters(exclude_categories=["Cs", "Cc"]), max_size=300))
def test_shares_of_any_text_are_at_most_all_of_it(text: str) -> None:
    found = languages(text)
    assert len(found) <= 3
    assert sum(share.share for share in found) <= 1.0


def test_codes_are_known_under_old_new_and_regional_forms() -> None:
    asked = {
        "cs": "cs",
        "CS": "cs",
        "pt-BR": "pt",
        "en_US": "en",
        "iw": "he",
        "jw": "jv",
        "nb": "no",
        "nn": "nn",
    }
    asked |= {"zh-TW": "zh-Hant", "zh_Hant_HK": "zh-Hant", "zh-CN": "zh", "fil": "tl", "in": "id"}
    assert {code: normalise(code) for code in asked} == asked


def test_what_is_no_code_is_not_guessed() -> None:
    assert normalise("czech") is None
    assert normalise("cz") is None
    assert normalise("") is None


def test_a_typing_error_is_answered_with_what_was_meant() -> None:
    assert nearest("czech") == ["cs"]
    assert nearest("cz") == ["cs"]
    assert nearest("jp") == ["ja"]
    assert "de" in nearest("Germn")
    assert nearest("qqqqqqqq") == []


def test_every_known_language_has_a_code_and_a_name() -> None:
    known = known_languages()
    assert len(known) > 150
    assert (known["cs"], known["he"], known["zh-Hant"]) == ("Czech", "Hebrew", "Chinese (traditional)")
    assert all(normalise(code) == code for code in known)
