"""The step `index` leaves what indexing anew would leave, whatever it was that changed."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

import thresher
from batch_corpora import Here, made, recipe, write_shard
from thresher.batch.run import process
from thresher.query.update import update
from thresher.store.imports import import_files

TALES = [
    " ".join(f"The {animal} {number} went over hill and dale" for number in range(20))
    for animal in ("fox", "hare", "owl", "newt")
]
PLAIN = {"step": "index", "annotator": "plain"}
CHANGES: dict[str, tuple[list[dict[str, Any]], list[dict[str, Any]]]] = {
    "a short paragraph, which no hash of a text knows": (
        [{"step": "batch_steps:headed", "heading": "Old"}, PLAIN],
        [{"step": "batch_steps:headed", "heading": "New"}, PLAIN],
    ),
    "another annotator": ([PLAIN], [{"step": "index", "annotator": "batch_steps:spelt"}]),
    "words in small letters": ([PLAIN], [{**PLAIN, "lowercase": False}]),
    "what is known of documents": (
        [{"step": "batch_steps:dated", "year": "1999"}, PLAIN],
        [{"step": "batch_steps:dated", "year": "2001"}, PLAIN],
    ),
    "their quality": (
        [{"step": "batch_steps:valued", "badness": -1}, PLAIN],
        [{"step": "batch_steps:valued", "badness": 9}, PLAIN],
    ),
    "their order": ([PLAIN], [{**PLAIN, "order": "length"}]),
}


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    write_shard(tmp_path, 0, TALES[:2])
    write_shard(tmp_path, 1, [*TALES[2:], f"{TALES[0]} and more"])
    recipe(tmp_path, PLAIN)
    return tmp_path


def indexed(directory: Path) -> tuple[list[str], int, list[dict[str, Any]]]:
    """What there is in an index: attributes, documents and each of them in the order in which they stand."""
    index = thresher.open(directory).index
    lines = thresher.open(directory).ask(
        "kwic", "<doc> []{1,400} </doc>", context=0, meta=["doc_url", "doc_year"], attributes=index.attributes
    )
    return index.attributes, index.documents, list(lines.records())


def anew(directory: Path) -> Path:
    """The same corpus, with nothing made of it yet."""
    copy = directory / "anew"
    shutil.copytree(directory, copy, ignore=shutil.ignore_patterns("runs", "index", "anew"))
    return copy


@pytest.mark.parametrize("change", CHANGES)
def test_an_index_follows(corpus: Path, change: str) -> None:
    before, after = CHANGES[change]
    recipe(corpus, *before)
    process(corpus, Here())
    told = indexed(corpus)
    recipe(corpus, *after)
    process(corpus, Here())
    other = anew(corpus)
    process(other, Here())
    assert indexed(corpus) == indexed(other) != told


def test_documents_that_did_not_change_stay_where_they_are(corpus: Path) -> None:
    process(corpus, Here())
    write_shard(corpus, 2, ["one more"])
    assert process(corpus, Here()).steps[-1].report == {"added": 1, "deleted": 0, "tokens": 2}
    recipe(corpus, {"step": "filter", "not_hosts": ["h2.*"]}, PLAIN)
    assert process(corpus, Here()).steps[-1].report == {"added": 0, "deleted": 1, "tokens": 0}


def test_imports_are_annotated_anew_where_their_annotator_is_another_one(corpus: Path) -> None:
    text = corpus / "letter.txt"
    text.write_text("The Geese Went")
    import_files(corpus, [text], format="text")
    process(corpus, Here())
    recipe(corpus, {**PLAIN, "lowercase": False})
    process(corpus, Here())
    assert "lc" not in thresher.open(corpus).index.attributes
    recipe(corpus, {"step": "index", "annotator": "batch_steps:spelt"})
    process(corpus, Here())
    index = thresher.open(corpus).index
    assert (index.documents, index.search('[word="Geese" & lemma="geese"]').count()) == (6, 1)
    assert made(process(corpus, Here())) == {}


def test_an_index_that_others_built_anew_does_not_count(corpus: Path) -> None:
    """Its manifest may be the same, to the byte."""
    process(corpus, Here())
    manifest = corpus / "index" / "manifest.json"
    left = manifest.read_bytes()
    update(corpus, annotator="plain", processes=1, lowercase=False, rebuild=True)
    assert manifest.read_bytes() == left and "lc" not in thresher.open(corpus).index.attributes
    assert made(process(corpus, Here())) == {"index": 1}
    assert "lc" in thresher.open(corpus).index.attributes
    assert made(process(corpus, Here())) == {}


def test_of_documents_that_are_the_same_in_all_as_many_are_indexed_as_there_are(corpus: Path) -> None:
    recipe(corpus, {"step": "batch_steps:doubled"}, PLAIN)
    process(corpus, Here())
    assert thresher.open(corpus).index.documents == 10
    recipe(corpus, {"step": "batch_steps:doubled"}, {"step": "exact_duplicates"}, PLAIN)
    process(corpus, Here())
    assert thresher.open(corpus).index.documents == 5
