"""Spam signals: absent from good texts, present in generated ones."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support import ROOT
from thresher.reader.quality.spam_signals import measure, spam_signals
from thresher.records import Link, SpamSignals
from thresher_lab.toyweb.words import vocabulary
from thresher_lab.training import gold

URL = "http://www.garden.example/letters/7"
STORY = [
    "My grandmother kept bees behind the old school, in seven hives that her brother painted blue. Every "
    "spring she would open the hives one by one, very slowly, and tell us how the bees had come through "
    "the winter.",
    "One year only two of the hives were alive. She did not say much about it (she never did), but she "
    "sat by the empty ones until it was dark, and the next morning she went to the village to ask for a "
    "swarm.",
    "The beekeeper in the village was a difficult man. “Bees are not potatoes,” he told her, “you cannot "
    "fetch a sack of them whenever you like.” She waited until he had finished, then put a jar of last "
    "year's honey on his table. He tasted it, looked out of the window for a while, and gave her a swarm "
    "from his best hive.",
    "We carried it home in a basket with a cloth on top. My brother, who was afraid of nothing, walked in "
    "front; I came last and listened to the basket. It hummed all the way like a kettle that will not "
    "boil.",
    "By August there was honey again. The jars stood on the shelf above the stove, and in the evening sun "
    "the whole kitchen looked as if somebody had painted it yellow. When people ask me what my "
    "grandmother was like, I think of that shelf, of the blue hives and of a difficult man who had "
    "nothing more to say.",
]
CHINESE = [
    "外婆在老学校后面养蜜蜂，一共有七个蜂箱，都是她弟弟漆成蓝色的。每年春天她慢慢地打开箱子，告诉我们蜜蜂怎样过了冬天。",
    "有一年只剩下两箱活着。她没有多说什么，只是在空箱子旁边坐到天黑，第二天一早就到村里去要一群新的蜜蜂。"
    "村里的养蜂人脾气很坏，他说：“蜜蜂又不是土豆，不是你想要就能拿一袋走的。”外婆等他说完，把一罐去年的蜂蜜放在桌上。"
    "他尝了一口，朝窗外看了很久，最后从最好的箱子里分了一群给她。",
]
FAULTLESS = SpamSignals()


def suspicion(paragraphs: Sequence[str], links: Sequence[Link] = (), url: str = URL) -> float:
    return spam_signals(paragraphs, links, url).suspicion


def words(paragraphs: Sequence[str]) -> list[str]:
    return " ".join(paragraphs).split()


def link(url: str, anchor: str) -> Link:
    return Link(url, anchor, 0.3, False)


def bag(language: str, seed: int, *, stuffed: bool = False) -> list[str]:
    return vocabulary(language).paragraphs(seed * 7919, 3_000, stuffed=stuffed)


# Good texts


@pytest.mark.parametrize("text", [STORY, CHINESE], ids=["English", "Chinese"])
def test_a_story_is_not_suspicious(text: list[str]) -> None:
    assert suspicion(text) < 0.2


def test_a_page_without_text_and_links_has_no_signal() -> None:
    assert spam_signals([], [], "") == FAULTLESS


@pytest.mark.parametrize("text", [["spam"] * 40, ["buy now " * 20], ["买" * 30], [""] * 10])
def test_a_short_text_has_the_benefit_of_the_doubt(text: list[str]) -> None:
    assert spam_signals(text, [], URL) == FAULTLESS


def test_a_song_may_have_a_refrain() -> None:
    refrain = "Row the boat home, my darling, row the boat home before the tide has turned."
    song = [part for verse in STORY for part in (verse, refrain)]
    assert spam_signals(song, [], URL).repetition < 0.5


def test_a_list_of_goods_may_repeat_a_brand() -> None:
    goods = [
        "kettle",
        "pan",
        "stove",
        "lamp",
        "chair",
        "table",
        "mirror",
        "shelf",
        "basket",
        "ladder",
        "hammer",
        "bucket",
    ]
    shelf = [f"Hearthside {ware} no. {number}, £{number}.50" for number, ware in enumerate(goods * 3, 10)]
    assert spam_signals(shelf, [], URL).stuffing == 0


def test_lists_with_brackets_after_their_numbers_are_not_incoherent() -> None:
    numbered = [f"{number}) {paragraph}" for number, paragraph in enumerate(STORY, 1)]
    assert measure("\n".join(numbered)).broken == 0


def test_brackets_within_brackets_are_whole() -> None:
    assert measure(" ".join(STORY) + " (one (two) three) [four]").broken == 0


@pytest.mark.parametrize(
    "marks", ['""', "„“", "„”", "“”", "«»", "»«", "「」", "『』", "《》", "()", "（）", "[]"]
)
def test_quotation_marks_of_all_countries_are_paired(marks: str) -> None:
    plain = [paragraph.translate(dict.fromkeys(map(ord, "“”()"))) for paragraph in STORY]
    found = measure(" ".join(f"{marks[0]}{paragraph}{marks[1]}" for paragraph in plain))
    assert (found.marks, found.broken) == (2 * len(STORY), 0)


def test_inch_marks_inside_words_are_not_paired() -> None:
    assert measure(" ".join([*STORY, 'a 5"x8"x2 board'])).marks == measure(" ".join(STORY)).marks


# Generated text


def test_the_same_sentences_again_and_again_are_repetition() -> None:
    assert spam_signals([STORY[0]] * 12, [], URL).repetition == 1


def test_one_sentence_with_its_gaps_filled_in_is_repetition() -> None:
    frame = (
        "If you are looking for a good hotel in {0} then come to us because {0} has the best hotels of all"
    )
    spun = [
        frame.format(town)
        for town in ["Bath", "Hull", "York", "Leeds", "Dover", "Derby", "Ely", "Wells", "Truro", "Ripon"]
    ]
    assert spam_signals(spun, [], URL).repetition > 0.5


@pytest.mark.parametrize(
    ("text", "space", "phrase"), [(STORY, " ", "cheap insurance"), (CHINESE, "", "便宜保险")]
)
def test_a_phrase_pushed_in_everywhere_is_stuffing(text: list[str], space: str, phrase: str) -> None:
    units = words(text) if space else list("".join(text))
    every = 6 if space else 12
    stuffed = space.join(unit + space + phrase if n % every == 0 else unit for n, unit in enumerate(units))
    assert spam_signals([stuffed], [], URL).stuffing > 0.5
    assert spam_signals([space.join(units)], [], URL).stuffing == 0


def test_a_few_keywords_in_any_order_are_stuffing() -> None:
    dice = random.Random(3)
    line = " ".join(dice.choice(["credit", "loan", "cheap", "online", "fast", "bank"]) for _ in range(200))
    assert spam_signals([line], [], URL).stuffing == 1


@pytest.mark.parametrize("language", ["en", "cs", "ru", "zh", "fi"])
def test_a_list_of_words_is_flat_in_every_language(language: str) -> None:
    assert spam_signals(bag(language, 1, stuffed=True), [], URL).suspicion > 0.5


@pytest.mark.parametrize("language", ["en", "de", "ru"])
def test_words_drawn_by_chance_are_less_coherent_than_a_story(language: str) -> None:
    drawn = fmean(spam_signals(bag(language, seed), [], URL).incoherence for seed in range(10))
    assert drawn > 2 * spam_signals(STORY, [], URL).incoherence


def test_brackets_torn_apart_make_a_text_less_coherent() -> None:
    bracketed = [paragraph.replace(" the ", " (the) ") for paragraph in STORY]
    dice = random.Random(1)
    pieces = [
        piece for word in words(bracketed) for piece in word.replace("(", "( ").replace(")", " )").split()
    ]
    marks = [place for place, piece in enumerate(pieces) if piece in "()"]
    torn = list(pieces)
    for place, other in zip(marks, dice.sample(marks, len(marks)), strict=True):
        torn[place] = pieces[other]
    assert measure(" ".join(torn)).broken > 5
    assert (
        spam_signals([" ".join(torn)], [], URL).incoherence
        > spam_signals([" ".join(pieces)], [], URL).incoherence
    )


# Links


def farm(size: int) -> list[Link]:
    trades = ["cheap flights", "cheap hotels", "online casino", "casino hotels", "cheap casino"]
    return [link(f"http://site{n}.example/", f"{trades[n % 5]} {trades[n % 3]} {n % 7}") for n in range(size)]


def test_many_sites_called_by_the_same_few_words_are_a_farm() -> None:
    assert spam_signals(STORY[:1], farm(120), URL).link_farm > 0.5


def test_a_list_of_friends_is_no_farm() -> None:
    names = vocabulary("en").words[3_000:]
    friends = [
        link(f"http://{name}.example/", f"{name} {names[-n - 1]}") for n, name in enumerate(names[:120])
    ]
    assert spam_signals(STORY[:1], friends, URL).link_farm < 0.5


def test_the_pages_of_the_own_site_are_no_farm() -> None:
    own = [link(f"http://shop{n}.garden.example/{n}", "cheap flights") for n in range(120)]
    assert spam_signals(STORY[:1], own, URL).link_farm == 0


def test_links_without_words_are_no_farm() -> None:
    silent = [link(f"http://site{n}.example/", " ") for n in range(120)]
    assert spam_signals([], silent, URL).link_farm == 0


def test_a_long_text_may_lead_to_many_sites() -> None:
    assert spam_signals(STORY * 10, farm(120), URL).link_farm == 0


def test_a_fan_of_links_about_the_word_of_the_page_is_a_doorway() -> None:
    fan = [
        link(f"http://www.garden.example/{name}", f"plumber in {name}")
        for name in vocabulary("en").words[900:960]
    ]
    page = [paragraph.replace(" the ", " plumber ").replace(" a ", " plumber ") for paragraph in STORY]
    assert spam_signals(page, fan, URL).doorway > 0.5
    assert spam_signals(STORY, fan, URL).doorway == 0


# Any input


def test_signals_survive_being_stored() -> None:
    page = spam_signals(STORY, (), URL)
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(page), type=SpamSignals) == page


def in_range(found: SpamSignals) -> bool:
    *shares, sketch = msgspec.structs.astuple(found)
    return all(0 <= share <= 1 for share in (*shares, found.suspicion)) and 0 <= sketch < 2**64


@settings(max_examples=150)
@given(
    st.lists(st.text(max_size=200), max_size=8),
    st.lists(st.tuples(st.text(max_size=30), st.text(max_size=30)), max_size=40),
    st.text(max_size=30),
    st.integers(1, 60),
)
def test_the_signals_of_any_page_are_between_0_and_1(
    paragraphs: list[str], links: list[tuple[str, str]], url: str, times: int
) -> None:
    found = spam_signals(paragraphs * times, [link(*parts) for parts in links] * times, url)
    assert in_range(found)


@pytest.mark.growth
@pytest.mark.parametrize(
    "text",
    [
        "word " * 1_000_000,
        "(" * 3_000_000,
        "字" * 2_000_000,
        '"' * 2_000_000,
        "İ" * 10_000,
        "a b " * 9_999,
        "\U0001f600" * 9_999,
    ],
)
def test_a_huge_page_costs_no_more_than_a_long_one(text: str) -> None:
    many = [link(f"http://a{n}.example/", "cheap flights") for n in range(20_000)]
    started = time.process_time()
    assert in_range(spam_signals([text] * 3, many, URL))
    assert time.process_time() - started < 0.5


# Gold


def test_hardly_any_gold_text_is_suspicious() -> None:
    folder = Path(os.environ.get("THRESHER_GOLD", ROOT.parent / "shared" / "gold"))
    sets = [folder / f"{name}.tar.gz" for name in ("daniel", "dragnet")]
    if not all(path.exists() for path in sets):
        pytest.skip(f"no gold in {folder}; set THRESHER_GOLD")
    texts = [page.text.splitlines() for page in gold.load(sets)]
    assert fmean(suspicion(text) >= 0.5 for text in texts) <= 0.005
