"""Annotators: every row keeps the contract with the real library, and the best one is chosen for a language."""

from __future__ import annotations

import sys
from functools import cache
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from thresher.annotate import registry
from thresher.annotate.analysers import Sentence, Token, word_by_word
from thresher.annotate.characters import clean
from thresher.annotate.registry import ANNOTATORS, AnnotatorError, LoadedAnnotator, annotator

# A language of each row, and a paragraph in it.
SAMPLES = {
    "plain": ("eu", "Euskara hizkuntza bat da. Nor zara? 😀"),
    "simplemma": ("cs", "Dr. Novák viděl ženy 3. května 2020 na https://a.cz/b. Kdo ví?"),
    "hanta": ("de", "Die Häuser standen am 3. Oktober leer. Siehe https://a.de/b!"),
    "fugashi": ("ja", "東京タワーへ2024年に行きました。iPhoneは難しい😀！"),
    "jieba": ("zh", "我来到北京清华大学2024年iPhone手机。你好！"),
    "kiwipiepy": ("ko", "어제 학교에서 공부를 했다. 예뻐요! 12,000원 iPhone을 😀"),
    "pymorphy3": ("ru", "В 1918 г. столицей стала Москва. Это https://a.ru 😀!"),
    "apertium": ("en", "The men can't fish in New York, e.g. ^x$ a/b [x]. He said it."),
    "spacy": ("en", "The men don't fish, e.g. in New York. He said it."),
    "stanza": ("en", "The men don't fish, e.g. in New York. He said it."),
}
OF_THE_USERS = {"apertium", "spacy", "stanza"}  # programs and models that no package brings


@cache
def ready(name: str) -> LoadedAnnotator:
    language, _ = SAMPLES[name]
    if name in OF_THE_USERS and ANNOTATORS[name].parts(language) is None:
        pytest.skip(f"{name} has no model for {language} here")
    return annotator(language, name)


def check(annotate: LoadedAnnotator, paragraph: str) -> None:
    sentences = annotate(paragraph)
    assert all(sentences)
    tokens = [token for sentence in sentences for token in sentence]
    assert "".join([token[0] for token in tokens]) == "".join(clean(paragraph).split())
    assert {len(token) for token in tokens} <= {len(annotate.attributes)}
    values = [value for token in tokens for value in token]
    assert all(value.strip() for value in values)
    assert not any("\t" in value or len(value.splitlines()) > 1 for value in values)


@pytest.mark.slow
@pytest.mark.parametrize("name", ANNOTATORS)
def test_every_annotator_keeps_the_contract(name: str) -> None:
    annotate, (_, paragraph) = ready(name), SAMPLES[name]
    check(annotate, paragraph)
    assert len(annotate(paragraph)) > 1
    assert annotate(paragraph) == annotate(paragraph)
    assert annotate("") == annotate(" \t\u200b") == []
    assert annotate.name == name
    assert annotate.attributes == ANNOTATORS[name].attributes
    assert annotate.version.startswith(f"{name} (thresher ")
    assert ANNOTATORS[name].summary


@pytest.mark.slow
@pytest.mark.parametrize("name", ANNOTATORS)
@given(
    text=st.lists(st.text(max_size=6) | st.sampled_from([text for _, text in SAMPLES.values()])).map(" ".join)
)
def test_every_annotator_takes_any_text(name: str, text: str) -> None:
    check(ready(name), text)


@pytest.mark.parametrize("name", ANNOTATORS)
@pytest.mark.parametrize("unit", ["ab", "가", "我", "あ", "."])
def test_a_long_text_without_spaces_is_annotated_quickly(name: str, unit: str) -> None:
    # Libraries that take the square of a word's length in time would take hours here.
    check(ready(name), unit * 10_000)


def said(language: str, paragraph: str, name: str | None = None) -> list[Token]:
    return [token for sentence in annotator(language, name)(paragraph) for token in sentence]


@pytest.mark.slow
def test_lemmas_and_parts_of_speech_fit_the_language() -> None:
    assert ("ženami", "žena") in said("cs", "S ženami.")
    assert ("knjigama", "knjiga") in said("sr", "U knjigama.")
    assert ("Häuser", "Haus", "NN") in said("de", "Die Häuser standen leer.")
    assert ("don’t", "do", "VDB+XX0") in said("en", "I don’t know.")
    assert ("книгами", "книга", "NOUN") in said("ru", "С книгами.")
    assert ("м’яти", "м'ята", "NOUN") in said("uk", "Багато м’яти.")
    assert ("行き", "行く", "動詞-非自立可能") in said("ja", "東京へ行きました。")
    assert ("東京", "東京", "名詞-固有名詞") in said("ja", "東京へ行きました。")
    assert ("タワー", "タワー", "名詞-普通名詞") in said("ja", "東京タワー")
    assert ("北京", "ns") in said("zh", "我来到北京。")
    assert ("했", "하다", "VV+EP") in said("ko", "공부를 했다.")
    assert ("huizen", "huis") in said("nl", "De huizen.")


@pytest.mark.parametrize(
    ("language", "name"),
    [
        ("cs", "simplemma"),
        ("de", "hanta"),
        ("ja", "fugashi"),
        ("ko", "kiwipiepy"),
        ("nl", "simplemma"),
        ("sr-Latn", "simplemma"),
        ("th", "plain"),
        ("xx", "plain"),
        ("zh", "jieba"),
        ("zh-Hant", "plain"),
    ],
)
def test_the_best_annotator_of_a_language_is_chosen(language: str, name: str) -> None:
    assert annotator(language).name == name


def test_the_version_names_the_libraries_that_find_words() -> None:
    assert "icu4py" in annotator("th").version
    assert "pymorphy3-dicts-uk" in annotator("uk").version
    assert annotator("cs", "plain").version == annotator("fi", "plain").version


def test_without_a_library_the_next_best_is_chosen_and_the_error_names_the_command(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(
        registry, "are_installed", lambda names: "fugashi" not in names and "HanTa" not in names
    )
    assert annotator("ja").name == "plain"
    assert annotator("de").name == "simplemma"
    with pytest.raises(AnnotatorError, match=r"pip install 'thresher\[japanese\]'"):
        annotator("ja", "fugashi")


def test_an_error_names_the_annotators_and_their_languages() -> None:
    with pytest.raises(AnnotatorError, match="choose one of plain, simplemma"):
        annotator("cs", "simplema")
    with pytest.raises(AnnotatorError, match="it knows de, en, nl"):
        annotator("cs", "hanta")


def test_the_languages_of_simplemma_match_the_library() -> None:
    from simplemma.strategies.dictionaries.dictionary_factory import SUPPORTED_LANGUAGES

    others = {"no", "fil", "bs", "cnr", "hr", "sh", "sr"}  # names that others have for some of them
    assert ANNOTATORS["simplemma"].languages == SUPPORTED_LANGUAGES | others
    for language in others:
        assert annotator(language).name == "simplemma"


def test_letters_without_a_name_are_no_error() -> None:
    assert said("ru", "Слово \U00017000.") == [
        ("Слово", "слово", "NOUN"),
        ("\U00017000", "\U00017000", "UNKN"),
        (".", ".", "PNCT"),
    ]


def test_a_word_form_is_looked_up_once() -> None:
    asked = []
    annotate = word_by_word("en", lambda word: (asked.append(word) or word.lower(),))
    assert annotate("The the The the.") == annotate("The the The the.")
    assert asked == ["The", "the", "."]


def own_module(monkeypatch: pytest.MonkeyPatch, **names: object) -> None:
    module = ModuleType("rivers")
    vars(module).update(names)
    monkeypatch.setitem(sys.modules, "rivers", module)


def test_an_annotator_of_your_own_is_named_by_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
    def shout(paragraph: str) -> list[Sentence]:
        return [[(word, word.upper()) for word in paragraph.split()]]

    shout.attributes = ("word", "loud")
    own_module(monkeypatch, shout=shout)
    annotate = annotator("cs", "rivers:shout")
    assert annotate.attributes == ("word", "loud")
    assert annotate("ano ne") == [[("ano", "ANO"), ("ne", "NE")]]
    assert annotate.version == "rivers:shout (without a version)"


@pytest.mark.parametrize("token", [("a",), ("a", ""), ("a", " "), ("a", "b\tc"), ("a", "b\nc"), ("a", 1)])
def test_wrong_values_of_your_own_annotator_are_refused(
    monkeypatch: pytest.MonkeyPatch, token: Token
) -> None:
    def tag(paragraph: str) -> list[Sentence]:
        return [[token]]

    tag.attributes = ("word", "tag")
    own_module(monkeypatch, tag=tag)
    with pytest.raises(AnnotatorError, match="rivers:tag"):
        annotator("cs", "rivers:tag")("a")


def test_an_annotator_of_your_own_must_name_its_attributes(monkeypatch: pytest.MonkeyPatch) -> None:
    own_module(monkeypatch, tag=lambda paragraph: [], wrong=1)
    with pytest.raises(AnnotatorError, match=r"for example: tag.attributes = "):
        annotator("cs", "rivers:tag")
    for name in ("rivers:wrong", "rivers:nothing", "no.such.module:tag", ":tag"):
        with pytest.raises(AnnotatorError):
            annotator("cs", name)


def test_an_exception_of_your_own_annotator_names_its_line(tmp_path: Path) -> None:
    (tmp_path / "brooks.py").write_text(
        "def tag(paragraph):\n    raise ValueError('too deep')\ntag.attributes = ('word',)\n"
    )
    (tmp_path / "creeks.py").write_text("1 / 0\n")
    annotate = annotator("cs", "brooks:tag", folders=[str(tmp_path)])
    with pytest.raises(
        AnnotatorError, match=r"'brooks:tag' failed: ValueError: too deep; see .*brooks.py, line 2"
    ):
        annotate("a")
    with pytest.raises(AnnotatorError, match=r"'creeks:tag' failed: ZeroDivisionError: .*creeks.py, line 1"):
        annotator("cs", "creeks:tag", folders=[str(tmp_path)])
