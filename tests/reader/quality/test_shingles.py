"""Shingles: equal words give equal hashes, in any text and within bounded time."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.samples.paragraphs import runs_of, slow_runs
from thresher.config import ReadSettings
from thresher.reader import read
from thresher.reader.quality.shingles import MAX_SHINGLED_CHARS, page_shingles
from thresher.records import Reply, Shingles
from thresher_lab.toyweb.words import vocabulary


@settings(max_examples=200)
@given(st.lists(st.text("aéAÉ1 ,.-“字か\U00020000ไา", max_size=80), max_size=6))
def test_two_runs_have_one_hash_if_and_only_if_their_words_are_the_same(texts: list[str]) -> None:
    hashes = runs_of(*texts, *texts)
    words = [slow_runs(text) for text in (*texts, *texts)]
    assert list(map(len, hashes)) == list(map(len, words))
    pairs = {
        (run, value)
        for some, many in zip(words, hashes, strict=True)
        for run, value in zip(some, many, strict=True)
    }
    assert len(pairs) == len({run for run, _ in pairs}) == len({value for _, value in pairs})


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("one two three four five six", 0),
        ("one two three four five six seven", 1),
        ("one two three four five six seven eight nine", 3),
        ("мы не знаем где он живёт теперь", 1),
        ("한국어는 띄어쓰기를 하는 언어 이므로 낱말을 세면 된다", 2),
        ("今天天气很好我们去公园走走", 0),  # 13 characters
        ("今天天气很好我们去公园走走吧", 1),
        ("Python 3 是一种编程语言很好", 0),  # two words, and nine characters that are four and a half
        ("Python 3 是一种编程语言很好用", 1),
        ("ภาษาไทยเป็นภาษาที่ไม่เว้นวร", 0),  # 27 letters and signs over them
        ("ภาษาไทยเป็นภาษาที่ไม่เว้นวรร", 1),
        ("", 0),
    ],
)
def test_a_run_is_seven_words_or_as_many_characters_as_seven_words_have(text: str, count: int) -> None:
    assert len(runs_of(text)[0]) == count


def test_case_and_punctuation_do_not_matter() -> None:
    first, second = runs_of("One, two; THREE – four (five) six seven!", "one two three four five six seven")
    assert first == second


def test_the_order_of_words_matters_and_so_does_where_one_ends() -> None:
    texts = "a b c d e f g", "b a c d e f g", "ab c d e f g h", "a bc d e f g h"
    assert len({hashes[0] for hashes in runs_of(*texts)}) == len(texts)


def test_no_run_goes_beyond_its_paragraph() -> None:
    assert runs_of("one two three four", "five six seven eight") == [[], []]


@settings(max_examples=100)
@given(st.lists(st.tuples(st.text(max_size=60), st.booleans()), max_size=10))
def test_any_text_has_runs(parts: list[tuple[str, bool]]) -> None:
    found = page_shingles([text * 3 for text, _ in parts], [texts for _, texts in parts])
    assert [count >= 0 for count in found.counts] == [texts for _, texts in parts]
    assert sum(count for count in found.counts if count > 0) == len(found.hashes) // 8


def test_text_that_is_no_valid_unicode_has_runs() -> None:
    assert [len(hashes) for hashes in runs_of("\ud800 a b c d e f g \udfff", "\x00" * 50)] == [1, 0]


@pytest.mark.growth
@pytest.mark.parametrize("text", ["word " * 2_000_000, "字" * 5_000_000, "İ " * 3_000_000])
def test_a_huge_text_costs_no_more_than_a_long_one(text: str) -> None:
    started = time.process_time()
    found = page_shingles([text] * 3, [True] * 3)
    assert time.process_time() - started < 1.0, "some 5 ms are usual"
    assert found == page_shingles([text[:MAX_SHINGLED_CHARS]] * 3, [True] * 3)
    assert found.counts[0] > 0 == found.counts[1] == found.counts[2]
    assert len(found.hashes) <= 8 * MAX_SHINGLED_CHARS


def test_a_reader_sends_runs_only_if_it_is_asked_to() -> None:
    story = vocabulary("en").paragraphs(1, 3_000)
    body = "<nav><a href=/>Home</a> <a href=/about>About us</a></nav>" + "".join(
        f"<p>{text}</p>" for text in story
    )
    reply = Reply(
        "http://a.example/", 200, b"HTTP/1.1 200\r\nContent-Type: text/html\r\n", body.encode(), 0.0, 0.0, ""
    )
    assert read(reply).shingles == Shingles()
    found = read(reply, settings=ReadSettings(shingles=True))
    texts = [
        block.text for block, count in zip(found.blocks, found.shingles.counts, strict=True) if count >= 0
    ]
    assert "\n".join(texts) == found.text
    assert len(texts) < len(found.blocks)
    assert found.shingles.hashes == page_shingles(texts, [True] * len(texts)).hashes != b""
