"""Badness tells running text of a language from everything else."""

from __future__ import annotations

import random

import pytest
import wordfreq
from hypothesis import given
from hypothesis import strategies as st

from thresher.read.badness import BadnessModel, badness, model

SPACED = ["cs", "tr", "en", "de", "fr", "pl", "fi", "hu", "ru", "el", "ar", "hi", "vi", "id", "sv"]
BY_CHARACTER = ["zh", "ja", "ko"]


def running(language: str, words: int = 1500) -> str:
    """Words drawn as often as the language uses them: a text as far as frequencies go."""
    frequencies = wordfreq.get_frequency_dict(language, "small")
    drawn = random.Random(7).choices(list(frequencies), list(frequencies.values()), k=words)
    return ("" if language in ("zh", "ja") else " ").join(drawn)


def word_list(language: str, words: int = 1500) -> str:
    """Every word once, the most frequent left out: a dictionary, a catalogue, a menu."""
    return " ".join(wordfreq.top_n_list(language, words + 500, "small")[500:])


def known(language: str) -> BadnessModel:
    found = model(language)
    assert found is not None
    return found


@pytest.mark.parametrize("language", SPACED + BY_CHARACTER)
def test_running_text_is_good(language: str) -> None:
    assert badness(running(language), known(language)) < 10


@pytest.mark.parametrize("language", SPACED)
def test_a_list_of_words_is_bad(language: str) -> None:
    assert badness(word_list(language), known(language)) > 20


@pytest.mark.parametrize(
    ("language", "other"),
    [
        ("cs", "de"),
        ("tr", "fi"),
        ("en", "fr"),
        ("de", "nl"),
        ("es", "pt"),
        ("ru", "el"),
        ("ar", "fa"),
        ("zh", "ja"),
    ],
)
def test_another_language_is_bad(language: str, other: str) -> None:
    assert badness(running(other), known(language)) > 12


@pytest.mark.parametrize(("language", "other"), [("cs", "pl"), ("ru", "bg"), ("sl", "sh"), ("sv", "da")])
def test_a_close_relative_is_worse_than_the_language_itself(language: str, other: str) -> None:
    assert badness(running(other), known(language)) > 5 + badness(running(language), known(language))


def test_a_short_text_is_given_the_benefit_of_the_doubt() -> None:
    czech = known("cs")
    bad = word_list("cs")
    assert badness(bad[:60], czech) < badness(bad[:600], czech) < badness(bad, czech)


def test_words_at_sentence_starts_and_behind_apostrophes_count() -> None:
    french = known("fr")
    assert badness("L'eau de la mer et l’air " * 200, french) < badness("Leau dela mer etlair " * 200, french)


def test_serbian_is_known_in_both_of_its_scripts() -> None:
    latin = "je i da u se na ne za su to sam od što a ali kao bi će si mi "
    cyrillic = "је и да у се на не за су то сам од што а али као би ће си ми "
    assert badness(cyrillic * 50, known("sr")) == pytest.approx(badness(latin * 50, known("sr")))


def test_traditional_characters_count_as_the_simplified_ones() -> None:
    assert badness("這個是我們的" * 200, known("zh-Hant")) == badness("这个是我们的" * 200, known("zh"))


def test_a_language_without_word_frequencies_has_no_model() -> None:
    assert model("eu") is None
    assert model("no such language") is None


def test_an_empty_text_is_not_bad() -> None:
    assert badness("", known("cs")) == 0.0


@given(st.text(max_size=300), st.sampled_from(["cs", "zh", "ar"]))
def test_badness_of_any_text_is_a_number_from_zero_up(text: str, language: str) -> None:
    assert 0.0 <= badness(text, known(language)) < 40


def test_of_a_long_text_only_the_beginning_counts() -> None:
    czech = known("cs")
    text = running("cs", 25_000)
    assert badness(text + " xyz" * 1_000_000, czech) == badness(text + " abc", czech)
