"""Languages of texts and paragraphs."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.samples.language_samples import CZECH, DECLARED, GREEK, HEBREW, LOOK_ALIKES, TURKISH, code_of
from thresher.reader.language.identify import known_languages, languages, paragraph_languages

pytestmark = pytest.mark.usefixtures("own_languages")


@pytest.mark.parametrize(
    ("text", "code"),
    [(CZECH, "cs"), (TURKISH, "tr"), (HEBREW, "he"), (GREEK, "el")],
    ids=["cs", "tr", "he", "el"],
)
def test_the_language_of_a_text_has_its_common_code(text: str, code: str) -> None:
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


def test_all_parts_of_a_long_text_are_examined() -> None:
    found = languages((CZECH + "\n") * 600 + (TURKISH + "\n") * 300)
    assert [share.code for share in found] == ["cs", "tr"]
    assert found[0].share == pytest.approx(2 / 3, abs=0.08)
    assert found[0].bytes + found[1].bytes == pytest.approx(
        len((CZECH * 600 + TURKISH * 300).encode()), rel=0.03
    )


@pytest.mark.parametrize("other", [TURKISH, GREEK, LOOK_ALIKES["es"]])
def test_a_paragraph_in_another_language_counts_wherever_it_stands_in_a_long_text(other: str) -> None:
    half = CZECH * 30
    for text in (f"{half}\n{other * 3}\n{half}", f"{half}{half}\n{other * 3}", f"{other * 3}\n{half}{half}"):
        assert [share.code for share in languages(text)] == [
            "cs",
            *{share.code for share in languages(other)},
        ]
    assert [(share.code, share.share) for share in languages(half + half)] == [("cs", 0.99)]


def test_a_text_without_words_has_no_language() -> None:
    assert languages("") == ()
    assert languages("12 345 — 67 %") == ()


@given(st.text(alphabet=st.characters(exclude_categories=[]), max_size=300))
def test_any_characters_have_languages_that_are_at_most_all_of_the_text(text: str) -> None:
    found = languages(text)
    assert len(found) <= 3
    assert sum(share.share for share in found) <= 1.0
    assert {share.code for share in found} <= set(known_languages())


def test_control_characters_do_not_hide_the_language() -> None:
    assert code_of("\x00\ud800" + CZECH.replace(" ", "\x0b ") * 2) == "cs"


# --- paragraphs


def test_a_paragraph_in_another_language_is_found_in_a_good_document() -> None:
    paragraphs = [CZECH] * 5 + [TURKISH] + [CZECH] * 4 + [GREEK]
    assert paragraph_languages(paragraphs) == ["cs"] * 5 + ["tr"] + ["cs"] * 4 + ["el"]


def test_look_alikes_on_one_page_are_distinguished_paragraph_by_paragraph() -> None:
    codes = ["es", "pt", "es", "gl", "pt"]
    assert paragraph_languages([LOOK_ALIKES[code] for code in codes]) == codes


def test_a_paragraph_that_is_too_short_has_no_language() -> None:
    assert paragraph_languages([CZECH, "Praha 2024", "", "***"]) == ["cs", "", "", ""]


def test_control_characters_do_not_move_paragraphs() -> None:
    broken = [CZECH, "\x00" * 50 + TURKISH, "\ud800" + GREEK]
    assert paragraph_languages(broken) == ["cs", "tr", "el"]


@given(st.lists(st.text(max_size=60), max_size=8))
def test_every_paragraph_has_one_answer(paragraphs: list[str]) -> None:
    found = paragraph_languages(paragraphs)
    assert len(found) == len(paragraphs)
    assert set(found) <= {*known_languages(), ""}


def test_paragraphs_of_a_page_have_the_language_that_they_have_alone(
    declarations: dict[str, list[str]],
) -> None:
    page = [*declarations["ces"], *declarations["deu_1996"][:9], *declarations["fra"][9:30]]
    page[5:5] = declarations["hun"][3:5]
    page[30:30] = declarations["rus"][6:7]
    together = paragraph_languages(page)
    alone = [code_of(text) if len(text.encode()) >= 40 else "" for text in page]
    agreed = sum(one == other for one, other in zip(together, alone, strict=True))
    assert agreed >= 0.97 * len(page)


# --- the Universal Declaration

MERGED = {"bs": "hr", "sr": "hr", "ms": "id", "nn": "no"}


def test_paragraphs_of_the_declaration_are_identified_in_more_than_66_languages(
    declarations: dict[str, list[str]],
) -> None:
    total = strict = merged = 0
    codes = dict(pair.split(":") for pair in DECLARED.split())
    for key, code in codes.items():
        for text in declarations[key]:
            if len(text) >= 40:
                found = code_of(text)
                total += 1
                strict += found == code
                merged += MERGED.get(found, found) == MERGED.get(code, code)
    assert len(codes) > 66
    assert strict >= 0.98 * total
    assert merged >= 0.99 * total
