"""An index that lacks documents of its corpus says so when it is searched."""

from __future__ import annotations

from pathlib import Path

import pytest

import thresher
from search.test_searcher import PAGES, VERTICAL, crawled
from support.command_line import run
from support.corpora.exports import TEXTS, make
from thresher.errors import ThresherWarning
from thresher.importing.corpora import import_files
from thresher.search.index.coverage import rows, shortfall
from thresher.search.index.manifest import writing
from thresher.search.index.update import update
from thresher.search.index.writer import delete_where
from thresher.store import corpus_files


def test_a_complete_index_lacks_nothing(tmp_path: Path) -> None:
    crawled(tmp_path, {**PAGES, "http://empty.org/": ""})
    update(tmp_path, annotator="plain", processes=1)
    assert rows(corpus_files.open(tmp_path)) == 3
    assert shortfall(tmp_path) is None, "a document without tokens is not missing"


def test_documents_that_came_later_are_counted(tmp_path: Path) -> None:
    crawled(tmp_path, PAGES)
    update(tmp_path, annotator="plain", processes=1)
    (tmp_path / "small.vert").write_text(VERTICAL)
    import_files(tmp_path, [tmp_path / "small.vert"])
    assert str(shortfall(tmp_path)) == (f"the index holds 2 of 3 documents; run: thresher index {tmp_path}")
    found = run("search", tmp_path, "page", "--count")
    assert found.stdout == "2 hits\n" and "the index holds 2 of 3 documents" in found.stderr
    with pytest.warns(ThresherWarning, match="holds 2 of 3 documents"):
        assert thresher.open(tmp_path).search("page").count() == 2
    update(tmp_path, annotator="plain", processes=1)
    assert shortfall(tmp_path) is None


def test_documents_that_were_left_out_on_purpose_are_not_missing(tmp_path: Path) -> None:
    make(tmp_path, TEXTS)
    changes = update(tmp_path, annotator="plain", processes=1)
    assert changes.added < rows(corpus_files.open(tmp_path))
    assert shortfall(tmp_path) is None


def test_erased_documents_are_not_missing(tmp_path: Path) -> None:
    crawled(tmp_path, PAGES)
    update(tmp_path, annotator="plain", processes=1)
    for path in (tmp_path / "docs").iterdir():
        path.unlink()
    crawled(tmp_path, dict(list(PAGES.items())[:1]))
    with writing(tmp_path) as writer:
        delete_where(writer, ["host"], lambda host: host == "b.org")
    assert shortfall(tmp_path) is None


def test_an_update_that_was_interrupted_leaves_an_incomplete_index(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    crawled(tmp_path, {f"http://a.org/{number}": f"Page {number}." for number in range(6)})
    monkeypatch.setattr("thresher.search.index.writer.RUN_TOKENS", 4)

    def interrupt(tokens: int) -> None:
        if tokens > 14:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        update(tmp_path, annotator="plain", processes=1, progress=interrupt)
    lacking = shortfall(tmp_path)
    assert lacking
    assert (lacking.documents, 0 < lacking.indexed < 6) == (6, True)


def test_the_index_of_a_recipe_is_made_by_its_recipe(tmp_path: Path) -> None:
    class NoDocuments:
        def keys(self) -> set[int]:
            return set()

        def new(self, _: object) -> list[object]:
            return []

    crawled(tmp_path, PAGES)
    update(tmp_path, documents=NoDocuments())  # type: ignore[arg-type]
    assert shortfall(tmp_path) is None, "the recipe kept no documents"
    (tmp_path / "small.vert").write_text(VERTICAL)
    import_files(tmp_path, [tmp_path / "small.vert"])
    assert str(shortfall(tmp_path)).endswith(f"thresher process {tmp_path}")
