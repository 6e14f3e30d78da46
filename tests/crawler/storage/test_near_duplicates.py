"""Near duplicates: paragraphs that were seen before are dropped, and no others."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import thresher
from support import TESTS
from support.invariants import SETTINGS, check_raw, check_stats
from support.samples.paragraphs import ANY_LENGTH, HEDGEHOGS, KEPT, left, opened, page, slow_runs
from support.webs.toy_webs import all_seeds
from thresher.config import Config, JudgeSettings, parse
from thresher.crawler.api import crawl
from thresher.crawler.policy.yield_stats import YieldStats
from thresher.crawler.storage.keys import SHINGLES
from thresher.crawler.storage.kv_state import KeyValueState
from thresher.crawler.storage.near_duplicates import NearDuplicateFilter, ShingleFilter
from thresher.errors import UsageError
from thresher.reader.quality.fingerprint import text_hash
from thresher.reader.quality.shingles import fates
from thresher.records import ReadResult
from thresher_lab.toyweb import ToyWeb, serve, truth
from thresher_lab.toyweb.words import vocabulary

# The filter


def hashes(count: int, seed: int = 1) -> np.ndarray[tuple[int], np.dtype[np.uint64]]:
    return np.random.default_rng(seed).integers(0, 2**64, count, dtype=np.uint64)


def test_the_filter_grows_loses_nothing_and_keeps_its_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ShingleFilter, "FIRST", 1_000)
    some = ShingleFilter()
    held = hashes(1_300_000)
    for number, begin in enumerate(range(0, len(held), 500)):
        some.add(held[begin : begin + 500], number)
    assert some.may_hold(held).all()
    assert some.may_hold(hashes(500_000, seed=2)).mean() <= 1e-3
    assert some.bytes / len(some) < 4
    assert len(some) == len(held)


def test_shingles_that_share_a_row_are_all_held() -> None:
    some = ShingleFilter()
    crowd = np.arange(2_000, dtype=np.uint64)  # one row has them all
    some.add(crowd, 0)
    assert some.may_hold(crowd).all()


def test_a_filter_at_its_limit_forgets_the_oldest_and_only_these(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ShingleFilter, "FIRST", 1_000)
    some = ShingleFilter(limit=200_000)
    pages = hashes(100_000).reshape(-1, 100)
    for number, own in enumerate(pages):
        some.add(own, number)
        assert some.bytes <= 200_000
    assert 0 < some.oldest < len(pages) - 300
    assert some.may_hold(pages[some.oldest :].reshape(-1)).all()
    assert some.may_hold(pages[: some.oldest].reshape(-1)).mean() <= 1e-3


# Stored records of a page


def test_a_paragraph_is_dropped_when_it_comes_again(tmp_path: Path) -> None:
    with opened(tmp_path) as (near_duplicates, _):
        assert left(near_duplicates, *HEDGEHOGS[:3]) == HEDGEHOGS[:3]
        assert left(near_duplicates, HEDGEHOGS[1], HEDGEHOGS[5], HEDGEHOGS[0]) == [HEDGEHOGS[5]]


def test_a_page_without_repeated_paragraphs_has_no_trace_of_them(tmp_path: Path) -> None:
    with opened(tmp_path) as (near_duplicates, _):
        near_duplicates.sift(page(*HEDGEHOGS[:2]), KEPT)
        sifted, verdict = near_duplicates.sift(page(HEDGEHOGS[2], HEDGEHOGS[1]), KEPT)
    assert verdict == KEPT
    assert sifted.text == HEDGEHOGS[2]
    assert sifted.text_hash == text_hash([HEDGEHOGS[2]])
    assert [block.text for block in sifted.blocks] == ["Home | About", HEDGEHOGS[2]]


def test_a_page_that_is_new_stays_as_it_is(tmp_path: Path) -> None:
    with opened(tmp_path) as (near_duplicates, _):
        given_page = page(*HEDGEHOGS)
        assert near_duplicates.sift(given_page, KEPT) == (given_page, KEPT)


def test_half_may_be_old_and_more_than_half_may_not(tmp_path: Path) -> None:
    old, new = "a b c d e f g h i j", "q r s t u v w x y z 1 2 3 4 5"
    with opened(tmp_path) as (near_duplicates, state):
        left(near_duplicates, old)  # 4 shingles
        state.commit()
        half = f"{old} {' '.join(new.split()[:4])}"  # 4 more, one from each new word
        assert left(near_duplicates, half) == [half]
    with opened(tmp_path) as (near_duplicates, _):
        assert left(near_duplicates, f"{old} {' '.join(new.split()[:3])}") == []


def test_the_share_that_may_be_old_is_a_setting(tmp_path: Path) -> None:
    strict = JudgeSettings(near_duplicates=True, min_text_chars=0, near_duplicate_share=0.1)
    with opened(tmp_path, strict) as (near_duplicates, _):
        left(near_duplicates, "a b c d e f g h i j")
        assert left(near_duplicates, "a b c d e f g h i j q r s t u v w x y z") == []


def test_a_paragraph_that_stands_twice_on_a_page_is_kept_once(tmp_path: Path) -> None:
    with opened(tmp_path) as (near_duplicates, _):
        assert left(near_duplicates, HEDGEHOGS[0], HEDGEHOGS[1], HEDGEHOGS[0]) == HEDGEHOGS[:2]


def test_words_that_only_a_dropped_paragraph_had_are_still_new(tmp_path: Path) -> None:
    with opened(tmp_path) as (near_duplicates, _):
        left(near_duplicates, "a b c d e f g h i j")
        assert left(near_duplicates, HEDGEHOGS[0], "a b c d e f g h i j x y z") == HEDGEHOGS[:1]
        assert left(near_duplicates, "e f g h i j x y z") == ["e f g h i j x y z"]


def test_a_refrain_within_one_paragraph_does_no_harm(tmp_path: Path) -> None:
    with opened(tmp_path) as (near_duplicates, _):
        song = "row row row the boat gently down the stream " * 9
        assert left(near_duplicates, song) == [song]


def test_short_paragraphs_go_with_the_text_that_they_head(tmp_path: Path) -> None:
    with opened(tmp_path) as (near_duplicates, _):
        left(near_duplicates, HEDGEHOGS[0])
        news = ["Old", HEDGEHOGS[0], "New", HEDGEHOGS[1], "The end"]
        assert left(near_duplicates, *news) == ["New", HEDGEHOGS[1], "The end"]
        assert left(near_duplicates, HEDGEHOGS[2], "Old", HEDGEHOGS[0], "The end") == [HEDGEHOGS[2]]


def test_a_page_of_short_paragraphs_alone_is_kept_every_time(tmp_path: Path) -> None:
    with opened(tmp_path) as (near_duplicates, _):
        assert (
            left(near_duplicates, "Too short", "to tell")
            == left(near_duplicates, "Too short", "to tell")
            == ["Too short", "to tell"]
        )


def test_blocks_that_are_not_of_the_text_have_no_say() -> None:
    assert fates([-1, 0, -1, 5, -1], [False, False, False, True, False]) == [True, False, True, False, True]
    assert fates([], []) == []


def test_a_page_without_shingles_is_kept(tmp_path: Path) -> None:
    bare = ReadResult("http://a.example/", "html", text="A reader without shingles sent this.")
    with opened(tmp_path) as (near_duplicates, _):
        assert near_duplicates.sift(bare, KEPT) == (bare, KEPT)


def test_a_page_of_which_too_little_is_new_is_rejected_and_leaves_no_trace(tmp_path: Path) -> None:
    with opened(tmp_path, JudgeSettings(near_duplicates=True, min_text_chars=200)) as (near_duplicates, _):
        left(near_duplicates, *HEDGEHOGS[:4])
        copy = page(*HEDGEHOGS[:4], HEDGEHOGS[5])
        sifted, verdict = near_duplicates.sift(copy, KEPT)
        assert (verdict.keep, verdict.reason, verdict.language) == (False, "near duplicate", "en")
        assert sifted == copy
        assert left(near_duplicates, *HEDGEHOGS[5:]) == HEDGEHOGS[5:]


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
    with opened(tmp_path, JudgeSettings(near_duplicates=True)) as (near_duplicates, _):
        assert left(near_duplicates, *story) == story
        assert left(near_duplicates, *edited) == []
        assert left(near_duplicates, *other) == other


# Memory and disk


def slow_sift(memory: set[tuple[str, ...]], paragraphs: Sequence[str]) -> list[str]:
    """Return the paragraphs that stay, by sets of shingles as words."""
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


@pytest.mark.slow
@settings(max_examples=25)
@given(
    st.lists(
        st.tuples(st.lists(WORDS, min_size=1, max_size=4), st.sampled_from(["go on", "commit", "crash"])),
        max_size=12,
    )
)
def test_the_filter_equals_a_plain_set_through_commits_and_crashes(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[list[str], str]]
) -> None:
    directory = tmp_path_factory.mktemp("near_duplicates")
    memory: set[tuple[str, ...]] = set()
    durable: set[tuple[str, ...]] = set()
    state = KeyValueState(directory)
    near_duplicates = NearDuplicateFilter(state, ANY_LENGTH)
    for paragraphs, then in steps:
        assert left(near_duplicates, *paragraphs) == slow_sift(memory, paragraphs)
        if then == "commit":
            state.commit()
            durable = set(memory)
        elif then == "crash":
            state.close()
            state, memory = KeyValueState(directory), set(durable)
            near_duplicates = NearDuplicateFilter(state, ANY_LENGTH)
    state.close()


CRASH = """
import os, signal, sys
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from support.samples.paragraphs import HEDGEHOGS, left, opened
with opened(Path(sys.argv[1])) as (near_duplicates, state):
    left(near_duplicates, *HEDGEHOGS[:3])
    state.commit()
    left(near_duplicates, *HEDGEHOGS[3:6])
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_page_with_a_lost_commit_leaves_no_shingles(tmp_path: Path) -> None:
    here = str(TESTS)
    killed = subprocess.run([sys.executable, "-c", CRASH, str(tmp_path), here], check=False)
    assert killed.returncode == -signal.SIGKILL
    with opened(tmp_path) as (near_duplicates, _):
        assert left(near_duplicates, *HEDGEHOGS[3:6], HEDGEHOGS[0]) == HEDGEHOGS[3:6]


def test_shingles_that_the_filter_drops_leave_the_state(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ShingleFilter, "FIRST", 100)
    small = JudgeSettings(near_duplicates=True, min_text_chars=0, near_duplicate_memory=4_000)
    texts = [vocabulary("en").paragraphs(number, 500) for number in range(60)]

    def stored(state: KeyValueState) -> int:
        return sum(len(value) // 8 for _, value in state.entries(SHINGLES))

    for portion in (texts[:30], texts[30:]):  # with a restart in between
        with opened(tmp_path, small) as (near_duplicates, state):
            for text in portion:
                assert left(near_duplicates, *text) == text
                state.commit()
                assert stored(state) <= 4_000 * 9 // 32
            assert left(near_duplicates, *portion[-1]) == []
    with opened(tmp_path, small) as (near_duplicates, _):
        assert left(near_duplicates, *texts[-1]) == []
        assert left(near_duplicates, *texts[0]) == texts[0]


# Asking for it


def test_near_duplicates_are_off_by_default() -> None:
    assert not Config().judge.near_duplicates
    assert not Config().read.shingles


@pytest.mark.parametrize("share", [50, 0, "half"])
def test_a_share_outside_its_range_is_refused_with_the_fix(share: object) -> None:
    with pytest.raises(UsageError, match=r"judge.near_duplicate_share must be .*near_duplicate_share = 0\.5"):
        parse({"judge": {"near_duplicate_share": share}})


def test_shingles_are_sent_with_their_page() -> None:
    whole = page(*HEDGEHOGS)
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(whole), type=ReadResult) == whole


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
    """Return the text that a page has, exactly or nearly."""
    found = truth(WEB, url)
    return found.near_duplicate_of or found.group


@pytest.mark.slow
def test_a_crawl_keeps_new_paragraphs_of_near_duplicates_and_all_other_texts_whole(tmp_path: Path) -> None:
    given = {**SETTINGS, "judge": {"near_duplicates": True}}
    with serve(WEB) as server:
        assert (
            crawl(tmp_path, "cs", all_seeds(WEB), settings=given, connect_to=server.connect_to).reason
            == "done"
        )
    check_stats(tmp_path)
    check_raw(tmp_path)
    corpus = thresher.open(tmp_path)
    texts = {document.url: document.text for document in corpus}
    families: set[str] = set()
    again = reduced = 0
    for row in corpus.outcomes(["url", "outcome", "reason", "text_bytes"]).to_pylist():
        url, text = row["url"], texts.get(row["url"], "")
        oracle = truth(WEB, url)
        if not oracle.keepable or row["reason"] in ("raw duplicate", "text duplicate"):
            continue
        assert row["text_bytes"] == len(text.encode())
        if family(url) not in families:
            assert oracle.text in text, url
            families.add(family(url))
        else:
            again += 1
            reduced += row["reason"] == "near duplicate" or len(text) < len(oracle.text) / 2
    assert len(families) > 50 and again > 20
    assert reduced >= 0.95 * again
    assert corpus.stats()["pages"]["rejected"]["near duplicate"] > 0
    gained: Counter[str] = Counter()
    for row in corpus.outcomes(["host", "outcome", "text_bytes"]).to_pylist():
        gained[row["host"]] += row["text_bytes"]
    state = KeyValueState(tmp_path / "state", read_only=True)
    shown_yields = {name: tally.text_bytes for name, tally in YieldStats(state).hosts.items()}
    state.close()
    assert shown_yields == {name: gained[name] for name in shown_yields}, "yields count new text only"
    assert sum(shown_yields.values()) == gained.total()
