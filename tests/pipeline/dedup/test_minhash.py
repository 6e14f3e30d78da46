"""Near duplicates of documents: the first of near-identical documents stays, with any shards and memory."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from thresher.pipeline.dedup.conclude import dropped, losses
from thresher.pipeline.dedup.documents import drop
from thresher.pipeline.dedup.files import DedupFileError, DedupReader, number, writing
from thresher.pipeline.dedup.minhash import MIN_RECALL, PLACES, bands, cluster, conclude, sign
from thresher.pipeline.steps.plans import run_here
from thresher.pipeline.steps.ranges import FILE, as_output
from thresher.pipeline.steps.similar import clustering
from thresher.reader.quality.shingles import hashed
from thresher_lab.toyweb.words import vocabulary

ENGLISH = vocabulary("en")


def story(key: int, edit: float = 0.0) -> list[str]:
    return ENGLISH.paragraphs(key, 2_000, edit=edit, editor=key + 1)


def corpus() -> tuple[list[list[str]], list[bool]]:
    """Return stories, some of them copied with a few words changed, and flags for the copies."""
    stories = []
    for key in range(120):
        stories.append((story(key), False))
        if key % 3 == 2:
            stories.append((story(key // 2, 0.001), True))
    return [document for document, _ in stories], [is_copy for _, is_copy in stories]


def clusters_of(signed: list[Path], counts: list[int], folder: Path) -> Path:
    return (
        run_here(clustering([as_output(path) for path in signed], counts, 0.8, 1 << 14), folder).path / FILE
    )


def test_the_first_of_near_identical_documents_stays() -> None:
    documents, copies = corpus()
    assert list(drop(documents)) == copies


@pytest.mark.parametrize(("memory", "shard_documents"), [(1 << 12, 7), (1 << 15, 50), (1 << 20, 1)])
def test_memory_and_shards_make_no_difference(memory: int, shard_documents: int) -> None:
    documents, copies = corpus()
    assert list(drop(documents, memory=memory, shard_documents=shard_documents)) == copies


def test_signatures_estimate_the_similarity_of_documents(tmp_path: Path) -> None:
    documents = [story(1), *(story(1, edit) for edit in (0.005, 0.02, 0.05, 0.1)), story(2)]
    sign(documents, tmp_path / "signed")
    with DedupReader(tmp_path / "signed") as file:
        rows = file.part(0, np.uint32, len(documents) * PLACES).reshape(-1, PLACES)
    runs = [set(hashed(document).hashes.tolist()) for document in documents]
    for row, theirs in zip(rows, runs, strict=True):
        similarity = len(runs[0] & theirs) / len(runs[0] | theirs)
        assert abs((row == rows[0]).mean() - similarity) < 0.15


def test_documents_without_shingles_all_stay() -> None:
    assert list(drop([["Too short", "to tell"], ["Too short", "to tell"], [], []])) == [False] * 4


@settings(max_examples=30)
@given(st.lists(st.lists(st.text(max_size=40), max_size=3), max_size=6))
def test_any_documents_are_accepted_and_exact_copies_dropped(documents: list[list[str]]) -> None:
    found = list(drop(documents + documents))
    has_runs = [bool(len(hashed(document).hashes)) for document in documents]
    assert found[len(documents) :] == has_runs


def test_dropped_documents_are_listed_and_counted(tmp_path: Path) -> None:
    documents, copies = corpus()
    signed = [tmp_path / "signed-1", tmp_path / "signed-2"]
    sign(documents[:90], signed[0] / FILE)
    sign(documents[90:], signed[1] / FILE)
    clusters = clusters_of(signed, [90, len(documents) - 90], tmp_path)
    outputs = [tmp_path / "gone-1", tmp_path / "gone-2"]
    conclude(signed[0] / FILE, outputs[0], clusters)
    conclude(signed[1] / FILE, outputs[1], clusters, first_document=90)
    assert [gone for path in outputs for (gone,) in dropped(path)] == copies
    before, after = map(losses, outputs)
    assert (before.documents, after.documents) == (90, len(documents) - 90)
    assert before.emptied + after.emptied == sum(copies)
    gone, words = before.dropped_words + after.dropped_words, before.words + after.words
    assert 0.2 < gone / words < 0.3


@settings(max_examples=60)
@given(st.integers(1, 40), st.integers(0, 60), st.integers(0, 1 << 30))
def test_clusters_are_the_connected_components_of_pairs(
    tmp_path_factory: pytest.TempPathFactory, documents: int, many: int, seed: int
) -> None:
    dice = random.Random(seed)
    pairs = sorted(
        (max(both), min(both)) for both in ([dice.randrange(documents) for _ in "ab"] for _ in range(many))
    )
    folder = tmp_path_factory.mktemp("clusters")
    with writing(folder / "matched") as writer:
        place = writer.put(np.array([later << 32 | earlier for later, earlier in pairs], np.uint64))
        writer.put_named("places", np.array([place, len(pairs)], np.int64))
    cluster([folder / "matched"], folder / "clusters", documents=documents)
    firsts = list(range(documents))
    for _ in range(documents):
        for one, other in pairs:
            firsts[one] = firsts[other] = min(firsts[one], firsts[other])
    with DedupReader(folder / "clusters") as file:
        assert file.array("firsts", np.uint32).tolist() == firsts
    assert number(folder / "clusters", "clusters") == len(set(firsts))


@given(st.floats(0.3, 1.0))
def test_bands_find_documents_as_similar_as_the_threshold(threshold: float) -> None:
    cut = bands(threshold)
    assert cut.many * cut.height <= PLACES
    assert 1 - (1 - threshold**cut.height) ** cut.many >= MIN_RECALL


def test_settings_and_files_that_cannot_be_used_are_refused_with_the_fix(tmp_path: Path) -> None:
    with pytest.raises(
        DedupFileError, match=r"threshold must be above 0 and at most 1, got 1\.2; try threshold = 0\.8"
    ):
        bands(1.2)
    sign([story(1)], tmp_path / "signed" / FILE)
    sign([story(1)] * 3, tmp_path / "others" / FILE)
    clusters = clusters_of([tmp_path / "signed"], [1], tmp_path / "run")
    with pytest.raises(DedupFileError, match="delete it and run the step again"):
        conclude(tmp_path / "others" / FILE, tmp_path / "gone", clusters)
    (tmp_path / "others" / FILE).write_bytes(b"something else")
    with pytest.raises(DedupFileError, match=r"others/.* cannot be used"):
        clusters_of([tmp_path / "others"], [3], tmp_path / "another run")
