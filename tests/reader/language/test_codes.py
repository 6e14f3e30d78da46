"""Codes of languages, and the forms in which people write them."""

from __future__ import annotations

import pytest

from thresher.reader.language.identify import known_languages, nearest, normalise

pytestmark = pytest.mark.usefixtures("own_languages")


def test_codes_have_old_new_and_regional_forms() -> None:
    forms = {
        "cs": "cs",
        "CS": "cs",
        "pt-BR": "pt",
        "en_US": "en",
        "iw": "he",
        "jw": "jv",
        "nb": "no",
        "nn": "nn",
    }
    forms |= {"zh-TW": "zh-Hant", "zh_Hant_HK": "zh-Hant", "zh-CN": "zh", "fil": "tl", "in": "id"}
    assert {code: normalise(code) for code in forms} == forms


def test_unknown_codes_are_not_guessed() -> None:
    assert normalise("czech") is None
    assert normalise("cz") is None
    assert normalise("") is None


def test_the_nearest_codes_are_suggested_for_a_misspelt_one() -> None:
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
