"""The step `index` leaves the index that rebuilding would leave, after any change of the documents."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

import thresher
from support.corpora.batch_corpora import Here, made, recipe, write_shard
from thresher.errors import UsageError
from thresher.importing.corpora import import_files
from thresher.pipeline.runs.run import process
from thresher.search.index.update import update
from thresher.workers.local_engine import LocalEngine

TALES = [
    " ".join(f"The {animal} {number} went over hill and dale" for number in range(20))
    for animal in ("fox", "hare", "owl", "newt")
]
PLAIN = {"step": "index", "annotator": "plain"}
CHANGES: dict[str, tuple[list[dict[str, Any]], list[dict[str, Any]]]] = {
    "a short paragraph, which hashes of texts leave out": (
        [{"step": "support.batch_steps:headed", "heading": "Old"}, PLAIN],
        [{"step": "support.batch_steps:headed", "heading": "New"}, PLAIN],
    ),
    "another annotator": ([PLAIN], [{"step": "index", "annotator": "support.batch_steps:spelt"}]),
    "lower-case words": ([PLAIN], [{**PLAIN, "lowercase": False}]),
    "metadata": (
        [{"step": "support.batch_steps:dated", "year": "1999"}, PLAIN],
        [{"step": "support.batch_steps:dated", "year": "2001"}, PLAIN],
    ),
    "quality": (
        [{"step": "support.batch_steps:valued", "badness": -1}, PLAIN],
        [{"step": "support.batch_steps:valued", "badness": 9}, PLAIN],
    ),
    "order": ([PLAIN], [{**PLAIN, "order": "length"}]),
}


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    write_shard(tmp_path, 0, TALES[:2])
    write_shard(tmp_path, 1, [*TALES[2:], f"{TALES[0]} and more"])
    recipe(tmp_path, PLAIN)
    return tmp_path


def indexed(directory: Path) -> tuple[list[str], int, list[dict[str, Any]]]:
    """Return the attributes of an index, the number of its documents, and their texts in the order of the index."""
    index = thresher.open(directory).index_reader
    lines = (
        thresher.open(directory)
        .search("<doc> []{1,400} </doc>")
        .concordance(context=0, meta=["doc_url", "doc_year"], attributes=index.attributes)
    )
    return index.attributes, index.documents, list(lines.records())


def unprocessed_copy(directory: Path) -> Path:
    """Copy a corpus without its runs and its index."""
    copy = directory / "copy"
    shutil.copytree(directory, copy, ignore=shutil.ignore_patterns("runs", "index", "copy"))
    return copy


@pytest.mark.parametrize("change", CHANGES)
def test_an_updated_index_equals_a_new_one(corpus: Path, change: str) -> None:
    before, after = CHANGES[change]
    recipe(corpus, *before)
    process(corpus, Here())
    former = indexed(corpus)
    recipe(corpus, *after)
    process(corpus, Here())
    other = unprocessed_copy(corpus)
    process(other, Here())
    assert indexed(corpus) == indexed(other) != former


def test_an_annotator_may_lie_beside_the_corpus(corpus: Path) -> None:
    (corpus / "shouting.py").write_text(
        "def tag(paragraph):\n    return [[(word, word.upper()) for word in paragraph.split()]]\n\n\n"
        'tag.attributes = ("word", "loud")\n'
    )
    recipe(corpus, {"step": "index", "annotator": "shouting:tag"})
    process(corpus, Here())
    assert indexed(corpus)[0] == ["word", "loud", "lc"]


def test_unchanged_documents_are_not_indexed_again(corpus: Path) -> None:
    process(corpus, Here())
    write_shard(corpus, 2, ["one more"])
    assert process(corpus, Here()).steps[-1].report == {"added": 1, "deleted": 0, "tokens": 2}
    recipe(corpus, {"step": "filter", "not_hosts": ["h2.*"]}, PLAIN)
    assert process(corpus, Here()).steps[-1].report == {"added": 0, "deleted": 1, "tokens": 0}


def test_imports_are_annotated_again_by_another_annotator(corpus: Path) -> None:
    text = corpus / "letter.txt"
    text.write_text("The Geese Went")
    import_files(corpus, [text], format="text")
    process(corpus, Here())
    recipe(corpus, {**PLAIN, "lowercase": False})
    process(corpus, Here())
    assert "lc" not in thresher.open(corpus).index_reader.attributes
    recipe(corpus, {"step": "index", "annotator": "support.batch_steps:spelt"})
    process(corpus, Here())
    index = thresher.open(corpus).index_reader
    assert (index.documents, index.search('[word="Geese" & lemma="geese"]').count()) == (6, 1)
    assert made(process(corpus, Here())) == {}


OWN_ANNOTATOR = """
def tag(paragraph):
    from own_tags import known
    return [[(word, known(word)) for word in paragraph.split()]]

tag.attributes = ("word", "tag")
tag.version = 1
"""


def test_an_annotator_of_the_user_is_found_beside_the_configuration(corpus: Path, tmp_path: Path) -> None:
    (corpus / "own_annotator.py").write_text(OWN_ANNOTATOR)
    (corpus / "own_tags.py").write_text(
        'def known(word):\n    return "animal" if word == "fox" else "other"\n'
    )
    letter = tmp_path / "letter.txt"
    letter.write_text("a fox came by")
    import_files(corpus, [letter], format="text")
    recipe(corpus, {"step": "index", "annotator": "own_annotator:tag"})
    engine = LocalEngine(1)
    try:
        process(corpus, engine)
    finally:
        engine.close()
    assert thresher.open(corpus).search('[tag="animal"]').count() == 41
    recipe(corpus, {"step": "index", "annotator": "own_annotator:no_such_function"})
    with pytest.raises(
        UsageError, match=r"corpus\.toml: process 1, index: the annotator 'own_annotator:no_such_function'"
    ):
        process(corpus, Here())


def test_an_index_that_was_rebuilt_by_another_command_is_updated_again(corpus: Path) -> None:
    """Its manifest may be the same, to the byte."""
    process(corpus, Here())
    update(corpus, annotator="plain", processes=1, lowercase=False, rebuild=True)
    assert "lc" not in thresher.open(corpus).index_reader.attributes
    assert made(process(corpus, Here())) == {"index": 1}
    assert "lc" in thresher.open(corpus).index_reader.attributes
    assert made(process(corpus, Here())) == {}


def test_equal_documents_are_all_indexed(corpus: Path) -> None:
    recipe(corpus, {"step": "support.batch_steps:doubled"}, PLAIN)
    process(corpus, Here())
    assert thresher.open(corpus).index_reader.documents == 10
    recipe(corpus, {"step": "support.batch_steps:doubled"}, {"step": "exact_duplicates"}, PLAIN)
    process(corpus, Here())
    assert thresher.open(corpus).index_reader.documents == 5
