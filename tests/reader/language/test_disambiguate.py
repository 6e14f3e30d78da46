"""Languages that look alike, and scripts that decide."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.samples.language_samples import LONE_LETTERS, LOOK_ALIKES, code_of
from thresher.reader.language.cld2 import ask
from thresher.reader.language.disambiguate import guess, second_opinion
from thresher.reader.language.identify import known_languages, languages
from thresher.reader.language.markers import markers, parse
from thresher.reader.language.scripts import LONE, is_written_in, script_of

pytestmark = pytest.mark.usefixtures("own_languages")


# --- second opinions


@pytest.mark.parametrize("code", LOOK_ALIKES)
def test_look_alikes_are_distinguished_by_their_words(code: str) -> None:
    assert code_of(LOOK_ALIKES[code]) == code


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("Svaki čovjek ima mjesto u svijetu i vrijeme za djecu prije nego što ode.", "hr"),
        ("Svaki čovek ima mesto u svetu i vreme za decu pre nego što ode.", "sr"),
    ],
    ids=["ijekavian", "ekavian"],
)
def test_the_reflex_of_yat_distinguishes_croatian_and_serbian(text: str, code: str) -> None:
    assert {second_opinion(text, each) for each in ("hr", "bs", "sr")} == {code}


def test_a_text_with_words_of_both_neighbours_is_bosnian() -> None:
    assert second_opinion("Niko ne zna gdje je hiljadu ljudi uvijek našlo mjesto.", "hr") == "bs"


def test_a_text_without_markers_keeps_the_language_of_the_detector() -> None:
    for code in ("hr", "bs", "sr", "id", "ms", "da", "no"):
        assert second_opinion("Radio Taxi Hotel 24", code) == code


def test_a_text_without_markers_takes_the_main_language_of_its_page() -> None:
    assert second_opinion("Radio Taxi Hotel 24", "bs", likely="sr") == "sr"
    assert second_opinion("Radio Taxi Hotel 24", "bs", likely="de") == "bs"


def test_english_is_rejected_where_all_words_are_of_another_language() -> None:
    spanish = "La persona que busca una casa con jardín la encuentra en el norte"
    assert second_opinion(spanish, "en", score=300) == "es"
    assert second_opinion("Mbolo ndzati okirr sembal tukwe pinda zarrol huwe brinta", "en", score=90) == ""
    assert second_opinion("Zulu team wins Glasgow derby", "en", score=500) == "en"


def test_russian_that_the_detector_does_not_know_is_russian() -> None:
    assert ask("Недостаточно места для сохранения этих файлов").found == ()
    assert code_of("Недостаточно места для сохранения этих файлов") == "ru"
    assert guess("Недостатньо місця для збереження цих файлів") == "uk"


def test_traditional_characters_decide_the_script_of_chinese() -> None:
    assert second_opinion("這個國家的學生會說兩種語言", "zh") == "zh-Hant"
    assert second_opinion("这个国家的学生会说两种语言", "zh-Hant") == "zh"


def test_small_shares_of_look_alikes_are_added_to_the_main_language() -> None:
    text = "\n".join([LOOK_ALIKES["sr"]] * 8)
    assert [share.code for share in languages(text)] == ["sr"]


def test_every_look_alike_is_a_known_language_with_words_of_its_own() -> None:
    known = markers()
    assert set(known.alike) <= set(known_languages())
    for groups in known.alike.values():
        for group in groups:
            spelt = {code for marker in known.spellings for code in marker.languages}
            assert set(group.languages) <= spelt


def test_a_line_without_languages_is_not_taken_for_markers() -> None:
    with pytest.raises(ValueError, match="line 2"):
        parse(["[alike a b]", "words without a language"])


# --- scripts and short texts


@pytest.mark.parametrize("code", LONE_LETTERS)
def test_a_script_that_only_one_language_uses_decides(code: str) -> None:
    assert code_of(LONE_LETTERS[code]) == code


def test_a_short_text_is_never_in_a_language_of_another_script() -> None:
    for text in (*LONE_LETTERS.values(), *LOOK_ALIKES.values(), "Это", "سلام", "नमस्ते", "你好", "Hola"):
        found = code_of(text)
        assert not found or is_written_in(found, script_of(text))


@given(st.text(alphabet="абвгдежзиклмнопрстуфхцчшщыьэюя ", min_size=10, max_size=80))
def test_a_text_in_cyrillic_is_not_czech(text: str) -> None:
    found = code_of(text)
    assert not found or is_written_in(found, "Cyrl")


def test_japanese_is_known_by_its_kana_and_chinese_by_their_absence() -> None:
    assert script_of("東京都の人口は約千四百万人です") == "Kana"
    assert script_of("北京市的人口大约有两千万") == "Hani"
    assert script_of("1984!") == ""


def test_every_script_that_decides_is_a_script_of_its_language() -> None:
    assert all(is_written_in(code, script) for script, code in LONE.items())
