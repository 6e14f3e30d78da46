"""Novelty: text that was seen before is dropped, paragraph by paragraph, and nothing else is."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import thresher
from invariants import SETTINGS, check_books, check_raw, start
from thresher.config import Config, ConfigError, Judging, Reading, parse
from thresher.crawl.novelty import PREFIX, Novelty, RunFilter
from thresher.crawl.start import crawl
from thresher.crawl.state import State, after
from thresher.crawl.yields import Yields
from thresher.lab.toyweb import ToyWeb, serve, truth
from thresher.lab.toyweb.words import vocabulary
from thresher.page import Block, Page, Reply, Runs, Verdict
from thresher.read import read
from thresher.read.fingerprint import text_hash
from thresher.read.runs import LOOKED_AT, fates, runs

KEPT = Verdict(True, language="en", language_share=1.0)
ANY_LENGTH = Judging(near_duplicates=True, min_text_chars=0)
HEDGEHOGS = [f"On day {day} we met {day + 2} hedgehogs under the old oak and fed them." for day in range(9)]


def runs_of(*texts: str) -> list[list[int]]:
    """The hashes of the runs of each text."""
    found = runs(texts, [True] * len(texts))
    hashes = iter(np.frombuffer(found.hashes, np.uint64).tolist())
    return [[next(hashes) for _ in range(count)] for count in found.counts]


def page(*paragraphs: str) -> Page:
    """A page of these paragraphs, with a menu in front."""
    texts = ["Home | About", *paragraphs]
    chosen = [False, *[True] * len(paragraphs)]
    return Page(
        "http://a.example/",
        "html",
        blocks=tuple(Block(text, 0.1 if said else 0.9) for text, said in zip(texts, chosen, strict=True)),
        text="\n".join(paragraphs),
        text_hash=text_hash(paragraphs),
        runs=runs(texts, chosen),
    )


@contextmanager
def opened(directory: Path, judging: Judging = ANY_LENGTH) -> Iterator[tuple[Novelty, State]]:
    """A novelty on a state; what is not committed is forgotten at the end."""
    state = State(directory / "state")
    try:
        yield Novelty(state, judging), state
    finally:
        state.close()


def left(novelty: Novelty, *paragraphs: str) -> list[str]:
    """The paragraphs that are kept of a page of these; none of one that is rejected."""
    sifted, verdict = novelty.sift(page(*paragraphs), KEPT)
    return sifted.text.split("\n") if verdict.keep else []


# Runs of words

UNITS = re.compile(r"(?P<word>[aé1]+)|(?P<sign>[字か\U00020000])|(?P<letter>[ไา])")
WEIGHTS = {"word": 4, "sign": 2, "letter": 1}


def slow_runs(text: str) -> list[tuple[str, ...]]:
    """The runs of a text, word for word."""
    units = [(match[0], WEIGHTS[match.lastgroup or ""]) for match in UNITS.finditer(text.lower())]
    found = []
    for begin in range(len(units)):
        weight = 0
        for end, (_, own) in enumerate(units[begin:], begin + 1):
            weight += own
            if weight >= 28:
                found.append(tuple(word for word, _ in units[begin:end]))
                break
    return found


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
    found = runs([text * 3 for text, _ in parts], [said for _, said in parts])
    assert [count >= 0 for count in found.counts] == [said for _, said in parts]
    assert sum(count for count in found.counts if count > 0) == len(found.hashes) // 8


def test_text_that_is_no_valid_unicode_has_runs() -> None:
    assert [len(hashes) for hashes in runs_of("\ud800 a b c d e f g \udfff", "\x00" * 50)] == [1, 0]


@pytest.mark.parametrize("text", ["word " * 2_000_000, "字" * 5_000_000, "İ " * 3_000_000])
def test_a_huge_text_costs_no_more_than_a_long_one(text: str) -> None:
    started = time.process_time()
    found = runs([text] * 3, [True] * 3)
    assert time.process_time() - started < 1.0
    assert found.counts[0] > 0 == found.counts[1] == found.counts[2]
    assert len(found.hashes) <= 8 * LOOKED_AT


def test_a_reader_sends_runs_only_if_it_is_asked_to() -> None:
    story = vocabulary("en").paragraphs(1, 3_000)
    body = "<nav><a href=/>Home</a> <a href=/about>About us</a></nav>" + "".join(
        f"<p>{text}</p>" for text in story
    )
    reply = Reply(
        "http://a.example/", 200, b"HTTP/1.1 200\r\nContent-Type: text/html\r\n", body.encode(), 0.0, 0.0, ""
    )
    assert read(reply).runs == Runs()
    found = read(reply, settings=Reading(runs=True))
    said = [block.text for block, count in zip(found.blocks, found.runs.counts, strict=True) if count >= 0]
    assert "\n".join(said) == found.text
    assert len(said) < len(found.blocks)
    assert found.runs.hashes == runs(said, [True] * len(said)).hashes != b""


# The filter


def hashes(count: int, seed: int = 1) -> np.ndarray[tuple[int], np.dtype[np.uint64]]:
    return np.random.default_rng(seed).integers(0, 2**64, count, dtype=np.uint64)


def test_the_filter_grows_loses_nothing_and_keeps_its_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RunFilter, "FIRST", 1_000)
    some = RunFilter()
    held = hashes(1_300_000)
    for number, begin in enumerate(range(0, len(held), 500)):
        some.add(held[begin : begin + 500], number)
    assert some.may_hold(held).all()
    assert some.may_hold(hashes(500_000, seed=2)).mean() <= 1e-3
    assert some.bytes / len(some) < 4
    assert len(some) == len(held)


def test_runs_that_share_all_their_place_are_all_held() -> None:
    some = RunFilter()
    crowd = np.arange(2_000, dtype=np.uint64)  # one row has them all
    some.add(crowd, 0)
    assert some.may_hold(crowd).all()


def test_a_filter_at_its_limit_forgets_the_oldest_and_only_these(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RunFilter, "FIRST", 1_000)
    some = RunFilter(limit=200_000)
    pages = hashes(100_000).reshape(-1, 100)
    for number, own in enumerate(pages):
        some.add(own, number)
        assert some.bytes <= 200_000
    assert 0 < some.oldest < len(pages) - 300
    assert some.may_hold(pages[some.oldest :].reshape(-1)).all()
    assert some.may_hold(pages[: some.oldest].reshape(-1)).mean() <= 1e-3


# What stays of a page


def test_a_paragraph_is_dropped_when_it_comes_again(tmp_path: Path) -> None:
    with opened(tmp_path) as (novelty, _):
        assert left(novelty, *HEDGEHOGS[:3]) == HEDGEHOGS[:3]
        assert left(novelty, HEDGEHOGS[1], HEDGEHOGS[5], HEDGEHOGS[0]) == [HEDGEHOGS[5]]


def test_what_is_left_is_all_that_a_document_says(tmp_path: Path) -> None:
    with opened(tmp_path) as (novelty, _):
        novelty.sift(page(*HEDGEHOGS[:2]), KEPT)
        sifted, verdict = novelty.sift(page(HEDGEHOGS[2], HEDGEHOGS[1]), KEPT)
    assert verdict == KEPT
    assert sifted.text == HEDGEHOGS[2]
    assert sifted.text_hash == text_hash([HEDGEHOGS[2]])
    assert [block.text for block in sifted.blocks] == ["Home | About", HEDGEHOGS[2]]


def test_a_page_that_is_new_stays_as_it_is(tmp_path: Path) -> None:
    with opened(tmp_path) as (novelty, _):
        given_page = page(*HEDGEHOGS)
        assert novelty.sift(given_page, KEPT) == (given_page, KEPT)


def test_half_may_be_old_and_more_than_half_may_not(tmp_path: Path) -> None:
    old, new = "a b c d e f g h i j", "q r s t u v w x y z 1 2 3 4 5"
    with opened(tmp_path) as (novelty, state):
        left(novelty, old)  # 4 runs
        state.commit()
        half = f"{old} {' '.join(new.split()[:4])}"  # 4 more, one from each new word
        assert left(novelty, half) == [half]
    with opened(tmp_path) as (novelty, _):
        assert left(novelty, f"{old} {' '.join(new.split()[:3])}") == []


def test_the_share_that_may_be_old_is_a_setting(tmp_path: Path) -> None:
    strict = Judging(near_duplicates=True, min_text_chars=0, near_duplicate_share=0.1)
    with opened(tmp_path, strict) as (novelty, _):
        left(novelty, "a b c d e f g h i j")
        assert left(novelty, "a b c d e f g h i j q r s t u v w x y z") == []


def test_a_paragraph_that_stands_twice_on_a_page_is_kept_once(tmp_path: Path) -> None:
    with opened(tmp_path) as (novelty, _):
        assert left(novelty, HEDGEHOGS[0], HEDGEHOGS[1], HEDGEHOGS[0]) == HEDGEHOGS[:2]


def test_words_that_only_a_dropped_paragraph_had_are_still_new(tmp_path: Path) -> None:
    with opened(tmp_path) as (novelty, _):
        left(novelty, "a b c d e f g h i j")
        assert left(novelty, HEDGEHOGS[0], "a b c d e f g h i j x y z") == HEDGEHOGS[:1]
        assert left(novelty, "e f g h i j x y z") == ["e f g h i j x y z"]


def test_a_refrain_within_one_paragraph_does_no_harm(tmp_path: Path) -> None:
    with opened(tmp_path) as (novelty, _):
        song = "row row row the boat gently down the stream " * 9
        assert left(novelty, song) == [song]


def test_short_paragraphs_go_with_the_text_that_they_head(tmp_path: Path) -> None:
    with opened(tmp_path) as (novelty, _):
        left(novelty, HEDGEHOGS[0])
        news = ["Old", HEDGEHOGS[0], "New", HEDGEHOGS[1], "The end"]
        assert left(novelty, *news) == ["New", HEDGEHOGS[1], "The end"]
        assert left(novelty, HEDGEHOGS[2], "Old", HEDGEHOGS[0], "The end") == [HEDGEHOGS[2]]


def test_a_page_of_short_paragraphs_alone_is_kept_every_time(tmp_path: Path) -> None:
    with opened(tmp_path) as (novelty, _):
        assert (
            left(novelty, "Too short", "to tell")
            == left(novelty, "Too short", "to tell")
            == ["Too short", "to tell"]
        )


def test_blocks_that_are_not_of_the_text_have_no_say() -> None:
    assert fates([-1, 0, -1, 5, -1], [False, False, False, True, False]) == [True, False, True, False, True]
    assert fates([], []) == []


def test_a_page_without_runs_is_kept(tmp_path: Path) -> None:
    bare = Page("http://a.example/", "html", text="A reader that was not asked for runs sent this.")
    with opened(tmp_path) as (novelty, _):
        assert novelty.sift(bare, KEPT) == (bare, KEPT)


def test_a_page_of_which_too_little_is_new_is_rejected_and_leaves_no_trace(tmp_path: Path) -> None:
    with opened(tmp_path, Judging(near_duplicates=True, min_text_chars=200)) as (novelty, _):
        left(novelty, *HEDGEHOGS[:4])
        copy = page(*HEDGEHOGS[:4], HEDGEHOGS[5])
        sifted, verdict = novelty.sift(copy, KEPT)
        assert (verdict.keep, verdict.reason, verdict.language) == (False, "near duplicate", "en")
        assert sifted == copy
        assert left(novelty, *HEDGEHOGS[5:]) == HEDGEHOGS[5:]


@pytest.mark.parametrize("language", ["cs", "ja", "th"])
def test_a_text_with_a_few_words_changed_is_a_near_duplicate_and_another_text_is_not(
    tmp_path: Path, language: str
) -> None:
    if language == "th":  # no vocabulary of it: letters in any order
        dice = np.random.default_rng(1)
        story = ["".join(map(chr, dice.integers(0x0E01, 0x0E2F, 300))) for _ in range(8)]
        edited = [f"{text[:90]}ก{text[91:200]}ก{text[201:]}" for text in story]
        other = [text[::-1] for text in story]
    else:
        words = vocabulary(language)
        story, other = words.paragraphs(1, 4_000), words.paragraphs(2, 4_000)
        edited = words.paragraphs(1, 4_000, edit=0.02, editor=3)
    assert story != edited
    with opened(tmp_path, Judging(near_duplicates=True)) as (novelty, _):
        assert left(novelty, *story) == story
        assert left(novelty, *edited) == []
        assert left(novelty, *other) == other


# Memory and disk


def slow_sift(memory: set[tuple[str, ...]], paragraphs: Sequence[str]) -> list[str]:
    """What stays of a page, by sets of runs as they are written."""
    before: set[tuple[str, ...]] = set()
    stays, kept = [], set()
    for paragraph in paragraphs:
        own = slow_runs(paragraph)
        stays.append(not own or sum(run in memory or run in before for run in own) <= 0.5 * len(own))
        before.update(own)
        if stays[-1]:
            kept.update(own)
    known = [place for place, paragraph in enumerate(paragraphs) if slow_runs(paragraph)]
    for place in range(len(paragraphs)):
        if known and place not in known:
            stays[place] = stays[next((later for later in known if later > place), known[-1])]
    memory.update(kept)
    return [paragraph for paragraph, stay in zip(paragraphs, stays, strict=True) if stay]


WORDS = st.lists(st.sampled_from(["a", "é", "1"]), min_size=1, max_size=14).map(" ".join)


@settings(max_examples=25)
@given(
    st.lists(
        st.tuples(st.lists(WORDS, min_size=1, max_size=4), st.sampled_from(["go on", "commit", "crash"])),
        max_size=12,
    )
)
def test_novelty_equals_a_plain_set_through_commits_and_crashes(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[list[str], str]]
) -> None:
    directory = tmp_path_factory.mktemp("novelty")
    memory: set[tuple[str, ...]] = set()
    durable: set[tuple[str, ...]] = set()
    state = State(directory)
    novelty = Novelty(state, ANY_LENGTH)
    for paragraphs, then in steps:
        assert left(novelty, *paragraphs) == slow_sift(memory, paragraphs)
        if then == "commit":
            state.commit()
            durable = set(memory)
        elif then == "crash":
            state.close()
            state, memory = State(directory), set(durable)
            novelty = Novelty(state, ANY_LENGTH)
    state.close()


CRASH = """
import os, signal, sys
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from test_novelty import HEDGEHOGS, left, opened
with opened(Path(sys.argv[1])) as (novelty, state):
    left(novelty, *HEDGEHOGS[:3])
    state.commit()
    left(novelty, *HEDGEHOGS[3:6])
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_page_whose_commit_was_lost_left_no_runs_behind(tmp_path: Path) -> None:
    here = str(Path(__file__).parent)
    killed = subprocess.run([sys.executable, "-c", CRASH, str(tmp_path), here], check=False)
    assert killed.returncode == -signal.SIGKILL
    with opened(tmp_path) as (novelty, _):
        assert left(novelty, *HEDGEHOGS[3:6], HEDGEHOGS[0]) == HEDGEHOGS[3:6]


def test_what_the_filter_forgets_leaves_the_state_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(RunFilter, "FIRST", 100)
    small = Judging(near_duplicates=True, min_text_chars=0, near_duplicate_memory=4_000)
    texts = [vocabulary("en").paragraphs(number, 500) for number in range(60)]

    def stored(state: State) -> int:
        return sum(len(value) // 8 for _, value in state.committed(PREFIX, after(PREFIX)))

    for portion in (texts[:30], texts[30:]):  # and it goes on after a restart
        with opened(tmp_path, small) as (novelty, state):
            for text in portion:
                assert left(novelty, *text) == text
                state.commit()
                assert stored(state) <= 4_000 * 9 // 32
            assert left(novelty, *portion[-1]) == []
    with opened(tmp_path, small) as (novelty, _):
        assert left(novelty, *texts[-1]) == []
        assert left(novelty, *texts[0]) == texts[0]


# Asking for it


def test_near_duplicates_are_looked_for_only_if_asked() -> None:
    assert not Config().judge.near_duplicates
    assert not Config().read.runs


@pytest.mark.parametrize("share", [50, 0, "half"])
def test_a_share_that_is_none_is_refused_with_the_cure(share: object) -> None:
    with pytest.raises(ConfigError, match=r"judge.near_duplicate_share = .*try near_duplicate_share = 0\.5"):
        parse({"judge": {"near_duplicate_share": share}})


def test_runs_travel_with_their_page() -> None:
    whole = page(*HEDGEHOGS)
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(whole), type=Page) == whole


# The whole way

WEB = ToyWeb.calm(
    hosts=12,
    rich_hosts=0.6,
    pages_per_host=(15, 30),
    page_bytes=(5_000, 9_000),
    near_duplicate=0.25,
    reprint=0.05,
    mirror_hosts=0.1,
    licensed=0.0,
)


def family(url: str) -> str:
    """The text that a page has, whether word for word or nearly so."""
    found = truth(WEB, url)
    return found.near_duplicate_of or found.group


def test_a_crawl_keeps_of_near_duplicates_what_is_new_and_all_other_texts_whole(tmp_path: Path) -> None:
    asked = {**SETTINGS, "judge": {"near_duplicates": True}}
    with serve(WEB) as server:
        assert (
            crawl(tmp_path, "cs", start(WEB), settings=asked, connect_to=server.connect_to).reason == "done"
        )
    check_books(tmp_path)
    check_raw(tmp_path)
    corpus = thresher.open(tmp_path)
    texts = {document.url: document.text for document in corpus}
    told: set[str] = set()
    again = reduced = 0
    for row in corpus.outcomes(["url", "outcome", "reason", "text_bytes"]).to_pylist():
        url, text = row["url"], texts.get(row["url"], "")
        oracle = truth(WEB, url)
        if not oracle.keepable or row["reason"] in ("raw duplicate", "text duplicate"):
            continue
        assert row["text_bytes"] == len(text.encode())
        if family(url) not in told:
            assert oracle.text in text, url
            told.add(family(url))
        else:
            again += 1
            reduced += row["reason"] == "near duplicate" or len(text) < len(oracle.text) / 2
    assert len(told) > 50 and again > 20
    assert reduced >= 0.95 * again
    assert corpus.stats()["pages"]["rejected"]["near duplicate"] > 0
    gained: Counter[str] = Counter()
    for row in corpus.outcomes(["host", "outcome", "text_bytes"]).to_pylist():
        gained[row["host"]] += row["text_bytes"]
    state = State(tmp_path / "state", read_only=True)
    told_of = {name: tally.text_bytes for name, tally in Yields(state).hosts.items()}
    state.close()
    assert told_of == {name: gained[name] for name in told_of}, "yields count what is new, and nothing else"
    assert sum(told_of.values()) == gained.total()
