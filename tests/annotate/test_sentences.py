"""Sentences: where they end in every script, and where a full stop ends none."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from thresher.annotate.sentences import LONGEST_SENTENCE, ends, sentences
from thresher.annotate.tokenizer import tokens

# A bar stands where a sentence ends.
EXPECTED = [
    ("en", "He came.| She left!| Why?| Nobody knows…"),
    ("en", "Mr. and Mrs. J. R. Smith met Dr. Jones, e.g. in St. Louis.| They talked."),
    ("en", "It was sold by Smith Inc. to others.| We like Smith Inc.| They do not."),
    ("en", "The U.S. Army came at 5 p.m. on time.| It left at 6 p.m.| Nobody cared."),
    ("en", "“Really?” he asked.| “Yes.| I think so.”| She left."),
    ("en", '"Really?" he asked.| "Yes."| She left.| (She did.)| "Oh!" :-)| Well… 😀'),
    ("en", "In 1990.| Then 20 people came.| 1. First things first."),
    ("en", "Wait... what?!| No."),
    ("cs", "Narodil se 3. května 1990.| Karel IV. byl král.| Tzv. pan Novák atd.| Konec."),
    ("cs", "„Přišel.| Odešel.“| A co?"),
    ("de", "Am 3. Oktober 1990 z. B. kam Dr. Müller.| Er blieb bis 1991.| Dann ging er."),
    ("de", "»Ja.«| Er ging."),
    ("fr", "« Oui. »| M. Dupont est là.| Il part."),
    ("es", "¿Qué?| ¡Nada!| Vive en EE.UU. desde 1990."),
    ("pl", "Mieszka przy ul. Długiej, m.in. z prof. Nowakiem.| Koniec."),
    ("ru", "Родился в 1918 г. в Москве, т. е. там.| Это было в 1918 г.| Потом уехал."),
    ("el", "Τι κάνεις;| Καλά.| Εσύ;"),
    ("hy", "Բարև։| Ինչպե՞ս եք։"),
    ("ar", "كيف حالك؟| أنا بخير.| شكرا"),
    ("ur", "یہ کتاب ہے۔| وہ گھر ہے۔"),
    ("hi", "डॉ. शर्मा आए।| वे गए॥| फिर?"),
    ("am", "ሰላም፡ነው፡፡| እንዴት ነህ፧| ደህና።"),
    ("my", "စကား။| မြန်မာ။"),
    ("km", "ភាសា។| ខ្មែរ៕"),
    ("bo", "བོད་ཡིག།| སྐད།"),
    ("zh", "他说：“你好。”| 我走了！| 真的吗？"),
    ("ja", "「行きます。」| そうですか？| はい"),
    ("ko", "학교에 갔다.| 재미있었다!"),
]
WORDS = "a B 1 12 1990 . ... ! ? 。 ፡ ፡፡ \" ' ( ) « » „ “ ” Dr. J. e.g. etc. 😀 :)"


@pytest.mark.parametrize(("language", "text"), EXPECTED)
def test_sentences_end_where_they_should(language: str, text: str) -> None:
    expected = ["".join(part.split()) for part in text.split("|")]
    found = sentences(tokens(text.replace("|", ""), language), language)
    assert ["".join(sentence) for sentence in found] == expected


@given(st.lists(st.sampled_from(WORDS.split())))
def test_sentences_are_the_tokens_and_none_is_empty(words: list[str]) -> None:
    for language in ("", "cs", "el", "en"):
        cut = sentences(words, language)
        assert [word for sentence in cut for word in sentence] == words
        assert all(cut)
        assert [len(sentence) for sentence in cut] == [
            end - start
            for start, end in zip([0, *ends(words, language)], ends(words, language), strict=False)
        ]


def test_a_sentence_without_end_is_cut() -> None:
    words = ["word"] * (2 * LONGEST_SENTENCE + 3)
    assert list(map(len, sentences(words))) == [LONGEST_SENTENCE, LONGEST_SENTENCE, 3]
    assert list(map(len, sentences(words[:LONGEST_SENTENCE]))) == [LONGEST_SENTENCE]
    assert sentences([]) == []


@pytest.mark.parametrize("unit", [". ", '. " ', "1 . ", ". a ", "Dr. ", "( . ) "])
def test_time_is_linear_in_any_tokens(unit: str) -> None:
    # Were it to grow with the square of their number, the test would take too long and be stopped.
    words = [*(unit * 100_000).split(), "a"]
    assert ends(words, "cs")[-1] == len(words)
