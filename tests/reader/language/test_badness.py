"""Badness distinguishes running text of a language from everything else."""

from __future__ import annotations

import json
import os
import random
import re
import tarfile
import unicodedata
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from xml.etree import ElementTree

import msgspec
import pytest
import wordfreq
from hypothesis import given, settings
from hypothesis import strategies as st

from support import ROOT
from thresher.errors import UsageError
from thresher.reader.language.badness import DATA, BadnessModel, FunctionWord, badness, model, train

SHIPPED = sorted(json.loads(DATA.read_text(encoding="utf-8")))
SPACED = [
    "cs",
    "tr",
    "en",
    "de",
    "fr",
    "pl",
    "fi",
    "hu",
    "ru",
    "el",
    "ar",
    "hi",
    "vi",
    "id",
    "sv",
    "ta",
    "he",
]
BY_CHARACTER = ["zh", "ja", "ko"]
ONE_LANGUAGE = [{"hr", "bs", "sr"}]  # they share their function words
# Closely related languages with common words in their lists.
NEAREST = [{"no", "nn"}, {"no", "da"}, {"id", "ms"}]
FILLER = "zzyx"  # a word of no language


def known(language: str) -> BadnessModel:
    found = model(language)
    assert found is not None
    return found


def running(language: str, words: int = 1500, seed: int = 7) -> str:
    """Return words drawn as often as the language uses them."""
    frequencies = wordfreq.get_frequency_dict(language, "small")
    drawn = random.Random(seed).choices(list(frequencies), list(frequencies.values()), k=words)
    return ("" if language in ("zh", "ja") else " ").join(_written(word) for word in drawn)


def _written(word: str) -> str:
    return word[:-1] + "ς" if len(word) > 1 and word.endswith("σ") else word  # wordfreq folds the final sigma


def word_list(language: str, words: int = 1500) -> str:
    """Return every word once, without the most frequent ones, as in a dictionary or a menu."""
    return " ".join(wordfreq.top_n_list(language, words + 500, "small")[500:])


@cache
def as_expected(language: str) -> str:
    """Return a text with the function words of a model in their shares, and no other known words."""
    expected = known(language)
    size = 5000 if expected.by_character else 700
    units = [word.forms[0] for word in expected.words for _ in range(round(word.share * size))]
    used = sum(map(len, units)) if expected.by_character else len(units)
    units += ["\u3007" if expected.by_character else FILLER] * (size - used)
    random.Random(7).shuffle(units)
    return ("" if expected.by_character else " ").join(units)


# ── The shipped languages ──


def test_a_hundred_languages_are_shipped() -> None:
    assert len(SHIPPED) > 100


@pytest.mark.parametrize("language", SHIPPED)
def test_text_with_function_words_as_expected_is_good(language: str) -> None:
    assert badness(as_expected(language), known(language)) < 5


@pytest.mark.parametrize("language", SHIPPED)
def test_a_list_without_function_words_is_bad(language: str) -> None:
    names = "".join if known(language).by_character else " ".join
    assert badness(names(f"〇{FILLER}〇{n} " for n in range(400)), known(language)) > 20


@pytest.mark.parametrize("language", [code for code in SHIPPED if not known(code).by_character])
def test_function_words_once_each_are_a_list_still(language: str) -> None:
    words = [word.forms[0] for word in known(language).words]
    others = [f"{FILLER}{n}" for n in range(600)]
    assert badness("\n".join([*words, *others]), known(language)) > 10


def test_the_expected_text_of_every_other_language_is_bad() -> None:
    same = {frozenset((one, other)) for group in ONE_LANGUAGE for one in group for other in group}
    taken = [
        (language, other, found)
        for language in SHIPPED
        for other in SHIPPED
        if language != other and frozenset((language, other)) not in same
        if (found := badness(as_expected(other), known(language))) < 20
    ]
    assert taken == []


@pytest.mark.parametrize("language", SPACED + BY_CHARACTER)
def test_running_text_is_good(language: str) -> None:
    assert badness(running(language), known(language)) < 10


@pytest.mark.parametrize("language", SPACED + BY_CHARACTER)
def test_a_list_of_words_is_bad(language: str) -> None:
    assert badness(word_list(language), known(language)) > 20


@pytest.mark.parametrize(
    ("language", "other"),
    [
        *[("cs", "sk"), ("sk", "cs"), ("da", "nb"), ("no", "da"), ("sv", "da"), ("id", "ms"), ("ms", "id")],
        *[("es", "pt"), ("pt", "es"), ("ca", "es"), ("sl", "sh"), ("hr", "sl"), ("ru", "uk"), ("uk", "ru")],
        *[("bg", "mk"), ("mk", "bg"), ("ru", "bg"), ("de", "nl"), ("ar", "fa"), ("ur", "hi"), ("zh", "ja")],
    ],
)
def test_a_close_relative_is_another_language(language: str, other: str) -> None:
    nearest = {language, {"nb": "no"}.get(other, other)} in NEAREST
    assert badness(running(other), known(language)) > (15 if nearest else 20)


def test_a_language_without_frequencies_has_no_model() -> None:
    assert model("tlh") is None
    assert model("no such language") is None


def test_languages_have_models_under_their_other_codes() -> None:
    assert model("nb") == model("no")
    assert model("fil") == model("tl")
    assert model("zh-Hant") == model("zh")


# ── Texts against a model ──


def test_a_short_text_is_given_the_benefit_of_the_doubt() -> None:
    czech = known("cs")
    bad = word_list("cs")
    assert badness(bad[:60], czech) < badness(bad[:600], czech) < badness(bad, czech)
    assert badness(bad[:60], czech) < 10


def test_more_missing_words_make_a_text_worse() -> None:
    english, text = known("en"), as_expected("en")
    steps = [
        text,
        *(re.sub(rf"\b({words})\b", FILLER, text) for words in ("the|of", "the|of|and|to|in|a|is")),
    ]
    found = [badness(step, english) for step in steps]
    assert found == sorted(found)
    assert found[0] < found[1] < found[2]


def test_stuffing_one_word_does_not_make_up_for_the_others() -> None:
    assert badness("the " * 300 + f"{FILLER} " * 500, known("en")) > 20


def test_capitals_apostrophes_and_marks_do_not_hide_words() -> None:
    french = known("fr")
    text = "la mer et le vent de la nuit dans les yeux du roi , "
    plain = badness(text * 40, french)
    assert badness(text.upper() * 40, french) == plain
    assert badness(text.title() * 40, french) == plain
    assert badness(text.replace(" et ", "\u00a0et\u202f") * 40, french) == plain
    assert badness("L'eau de la mer et l’air " * 200, french) < badness("Leau dela mer etlair " * 200, french)


def test_the_turkish_i_has_its_dot_in_capitals() -> None:
    turkish = known("tr")
    assert badness("İçin " * 300, turkish) == badness("için " * 300, turkish)


def test_sentence_ends_of_other_scripts_do_not_hide_words() -> None:
    assert badness("है। " * 300, known("hi")) == badness("है । " * 300, known("hi"))


def test_accents_may_stand_apart() -> None:
    text = running("vi")
    apart = unicodedata.normalize("NFD", text)
    assert badness(apart, known("vi")) == pytest.approx(badness(text, known("vi")), abs=2)


def test_serbian_is_good_in_both_of_its_scripts() -> None:
    latin = "je i da u se na ne za su to sam od što a ali kao bi će si mi "
    cyrillic = "је и да у се на не за су то сам од што а али као би ће си ми "
    assert badness(cyrillic * 50, known("sr")) == pytest.approx(badness(latin * 50, known("sr")))
    assert badness(cyrillic * 50, known("hr")) > 20


def test_traditional_characters_count_as_the_simplified_ones() -> None:
    assert badness("這就為了對從還" * 200, known("zh-Hant")) == badness("这就为了对从还" * 200, known("zh"))


def test_writing_without_spaces_is_no_short_text() -> None:
    assert badness("漢字" * 1500, known("cs")) > 20


@pytest.mark.parametrize(
    ("language", "sentence"),
    [
        ("cs", "Byl jednou jeden král a ten měl tři dcery, co ho měly rády. "),
        ("zh", "从前有一个国王，他有三个女儿。"),
    ],
)
def test_a_repeated_sentence_counts_once(language: str, sentence: str) -> None:
    once = badness(sentence, known(language))
    assert badness(sentence * 30, known(language)) == pytest.approx(once, rel=0.2)
    assert badness("\n".join([sentence.strip()] * 30), known(language)) == pytest.approx(once, rel=0.2)
    assert once < 10


def test_a_menu_does_not_get_better_by_repetition() -> None:
    menu = (
        "Domů\nKontakt\nCeník\nNovinky\nFotogalerie\nE-shop | Přihlásit se | Registrace | Košík | Doprava\n"
    )
    assert badness(menu, known("cs")) < 10
    assert badness(menu * 30, known("cs")) > 20


def test_all_parts_of_a_long_text_count() -> None:
    czech = known("cs")
    good, bad = running("cs", 10_000), word_list("cs", 10_000)
    assert badness(good, czech) < badness(bad[:20_000] + good, czech) < badness(bad, czech)
    assert badness(good, czech) < badness(good + bad[:20_000], czech) < badness(bad, czech)


def test_an_empty_text_is_not_bad() -> None:
    assert badness("", known("cs")) == 0.0
    assert badness(" \n", known("cs")) == 0.0
    assert badness("", known("zh")) == 0.0


def test_a_model_without_words_finds_nothing_bad() -> None:
    assert badness("anything", BadnessModel("xx", ())) == 0.0


@given(
    st.text(max_size=300) | st.binary(max_size=300).map(lambda raw: raw.decode("utf-8", "surrogateescape"))
)
@settings(max_examples=60)
def test_badness_of_any_text_is_a_number_from_zero_up(text: str) -> None:
    for language in ("cs", "zh", "ar"):
        assert 0.0 <= badness(text, known(language)) < 100


# ── Trained models ──


@pytest.mark.parametrize("language", ["cs", "fi", "ar", "hi", "zh", "ja"])
def test_a_sample_is_enough_for_a_model(language: str) -> None:
    trained = train(running(language, 60_000, seed=1), "own")
    assert trained.language == "own"
    assert trained.by_character == (language in BY_CHARACTER)
    assert badness(running(language, seed=2), trained) < 10
    assert badness(running("sv"), trained) > 20
    if not trained.by_character:
        assert badness(word_list(language), trained) > 20


def test_a_word_that_one_text_is_about_is_no_function_word() -> None:
    topics = "".join(f"topic{'abcdefgh'[n % 8]} " * 40 + running("en", 400, seed=n) for n in range(60))
    words = {form for word in train(topics, "xx").words for form in word.forms}
    assert not any(word.startswith("topic") for word in words)
    assert {"the", "of", "and"} <= words


def test_words_that_vary_between_texts_have_a_wide_spread() -> None:
    texts = [running("en", 500, seed=n) + " mostly" * (120 if n % 2 else 4) for n in range(60)]
    spreads = {word.forms[0]: word.spread for word in train(" ".join(texts), "xx").words}
    assert spreads["the"] < 0.5 < spreads["mostly"]


@pytest.mark.parametrize("sample", ["", "a few words", " \n" * 50_000, "!?" * 50_000])
def test_too_little_text_for_a_model_is_refused(sample: str) -> None:
    with pytest.raises(UsageError, match=r"'xx'.* too few; try 20,000 or more"):
        train(sample, "xx")


def test_a_list_is_no_sample() -> None:
    words = " ".join(map("".join, zip(*[iter(random.Random(1).choices("abcdefghijkl", k=60_000))] * 6)))  # noqa: B905
    with pytest.raises(UsageError, match="try running text, not a list"):
        train(words, "xx")


def test_a_model_survives_being_stored() -> None:
    made = train(running("cs", 30_000), "own")
    for format_ in (msgspec.json, msgspec.msgpack):
        assert format_.decode(format_.encode(made), type=BadnessModel) == made
    text = running("cs", seed=3)
    stored = msgspec.json.decode(msgspec.json.encode(made), type=BadnessModel)
    assert badness(text, stored) == badness(text, made)


def test_a_stored_model_with_impossible_shares_is_refused() -> None:
    made = msgspec.json.encode(BadnessModel("xx", (FunctionWord(("a",), 2.0, 0.4),)))
    with pytest.raises(msgspec.ValidationError, match=r"\$\.words"):
        msgspec.json.decode(made, type=BadnessModel)


# ── Real texts ──

# Declarations in a script, dialect or style that is not the one of the model.
OTHER_WRITING = {
    "azj_cyrl",
    "bos_cyrl",
    "ell_polytonic",
    "jav_java",
    "mly_arab",
    "tuk_cyrl",
    "uzn_cyrl",
    "vie_han",
}
OTHER_WRITING |= {"auv", "prv", "chr_uppercase"}
FAR_FROM_NEWS = {"mal", "mal_chillus", "tam", "tam_LK", "tel", "tuk_latn"}  # the style of laws
CODES = {"nb": "no", "zlm": "ms", "als": "sq", "lah": "pnb", "cmn": "zh"}


@pytest.fixture(scope="module")
def gold() -> Path:
    """Return the folder of texts from other projects; skip the test where there is none."""
    folder = Path(os.environ.get("THRESHER_GOLD", ROOT.parent / "shared" / "gold"))
    if not folder.is_dir():
        pytest.skip(f"no gold in {folder}; set THRESHER_GOLD")
    return folder


@pytest.fixture(scope="module")
def declarations(gold: Path) -> dict[str, tuple[str, str]]:
    """Return the language and text of each Universal Declaration of Human Rights, by its key."""
    found = {}
    for name, raw in _files(gold / "udhr.tar.gz", r"\.xml$"):
        key = name.removeprefix("udhr_").removesuffix(".xml")
        root = ElementTree.fromstring(raw)
        tag = root.get("{http://www.w3.org/XML/1998/namespace}lang", "").partition("-")[0]
        text = "\n".join(
            "".join(part.itertext()).strip() for part in root.iter() if part.tag.endswith("para")
        )
        if not key.isdigit() and key not in OTHER_WRITING and len(text) > 1_000:
            found[key] = (CODES.get(tag, tag), text[:5_000])
    return found


def _files(archive: Path, wanted: str) -> Iterator[tuple[str, bytes]]:
    if not archive.exists():
        pytest.skip(f"no {archive.name} in {archive.parent}")
    with tarfile.open(archive) as opened:
        for member in opened:
            if member.isfile() and re.search(wanted, member.name) and (file := opened.extractfile(member)):
                yield Path(member.name).name, file.read()


def test_the_declaration_of_human_rights_is_good_in_its_language(
    declarations: dict[str, tuple[str, str]],
) -> None:
    found = {
        key: round(badness(text, known(language)), 1)
        for key, (language, text) in declarations.items()
        if language in SHIPPED and key not in FAR_FROM_NEWS
    }
    assert len(found) > 90
    assert {key: value for key, value in found.items() if value >= 10} == {}


def test_news_is_good(gold: Path) -> None:
    files = dict(_files(gold / "daniel.tar.gz", r"/gold/|/pages\.jsonl$"))
    language = {page["id"]: page["language"] for page in map(json.loads, files["pages.jsonl"].splitlines())}
    names = {"English": "en", "Greek": "el", "Polish": "pl", "Russian": "ru"}
    for name, code in names.items():
        texts = [re.sub("<[^>]+>", " ", files[key].decode()) for key in language if language[key] == name]
        found = sorted(badness(text[:5_000], known(code)) for text in texts if len(text) > 1_500)
        assert len(found) > 40
        assert found[len(found) * 95 // 100] < 10


def test_the_declaration_of_human_rights_is_bad_in_every_other_language(
    declarations: dict[str, tuple[str, str]],
) -> None:
    taken = [
        (language, key, round(found, 1))
        for language in SHIPPED
        for key, (other, text) in declarations.items()
        if other in SHIPPED
        and other != language
        and not any({language, other} <= group for group in ONE_LANGUAGE)
        if (found := badness(text, known(language))) <= (20 if {language, other} not in NEAREST else 15)
    ]
    assert taken == []
