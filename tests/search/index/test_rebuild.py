"""A rebuild replaces an index at once: until then, and after any failure, the old index is searched."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from search.index.test_index import a_document
from support.killing import is_killed
from thresher.annotate.registry import AnnotatorError
from thresher.search.index import writer as index
from thresher.search.index.manifest import FOLDER, Manifest, read, writing
from thresher.search.index.segment_builder import IndexDocument
from thresher.search.index.update import update
from thresher.search.searcher import Index


def words(directory: Path) -> dict[str, int]:
    """Return the number of hits of the words that tell the old index of these tests from the new one."""
    opened = Index(directory)
    return {word: opened.search(f'"{word}"').count() for word in ("old", "new")}


def index_files(directory: Path) -> set[str]:
    """Return the names of the segments and lists of deleted documents on disk."""
    return {path.name for path in (directory / FOLDER).iterdir() if path.name[0].isdigit()}


@pytest.fixture
def old_index(tmp_path: Path) -> Path:
    """Return a corpus with an index of four documents in two segments."""
    (tmp_path / "corpus.toml").write_text('schema = 1\nlanguage = "en"\n')
    with writing(tmp_path) as writer:
        index.add(writer, [a_document(key, "old") for key in range(4)], run_tokens=2)
        index.delete(writer, [3])
    return tmp_path


class Documents:
    """Documents of a new index, which may end with an error."""

    def __init__(self, error: BaseException | None = None) -> None:
        self.error = error

    def keys(self) -> set[int]:
        """Return the keys of six documents."""
        return set(range(6))

    def new(self, _: object) -> Iterator[IndexDocument]:
        """Yield documents until the error, after two segments were written."""
        for key in range(6):
            if self.error and key == 4:
                raise self.error
            yield a_document(key, "new")


def test_a_rebuild_replaces_the_old_index(old_index: Path) -> None:
    update(old_index, rebuild=True, documents=Documents())
    assert words(old_index) == {"old": 0, "new": 6}
    manifest = read(old_index)
    assert manifest
    assert index_files(old_index) == {entry.name for entry in manifest.segments}


def test_the_old_index_is_searched_while_a_new_one_is_built(old_index: Path) -> None:
    with writing(old_index, rebuild=True) as writer:
        writer.start("input")
        index.add(writer, Documents().new(()), run_tokens=2)
        index.tidy(writer)
        assert words(old_index) == {"old": 3, "new": 0}
    assert words(old_index) == {"old": 0, "new": 6}


@pytest.mark.parametrize("error", [KeyboardInterrupt(), OSError("no space left"), ValueError()])
def test_a_rebuild_that_fails_leaves_the_old_index_and_nothing_else(
    old_index: Path, error: BaseException, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(index, "RUN_TOKENS", 2)
    before = index_files(old_index)
    with pytest.raises(type(error)):
        update(old_index, rebuild=True, documents=Documents(error))
    assert words(old_index) == {"old": 3, "new": 0}
    assert index_files(old_index) == before


def test_a_mistyped_annotator_costs_no_index(old_index: Path) -> None:
    (old_index / "docs").mkdir()
    from search.test_searcher import PAGES, crawled

    crawled(old_index, PAGES)
    with pytest.raises(AnnotatorError, match="simplema"):
        update(old_index, annotator="simplema", rebuild=True)
    assert words(old_index) == {"old": 3, "new": 0}


def test_a_rebuild_keeps_the_order_of_the_old_index(old_index: Path) -> None:
    with writing(old_index) as writer:
        index.tidy(writer, order="length")
    update(old_index, rebuild=True, documents=Documents())
    assert (read(old_index) or Manifest()).order == "length"


KILLED = """
import sys
from pathlib import Path
from search.index.test_rebuild import Documents
from support.killing import kill_after
from thresher.search.index import manifest, writer as index

directory = Path(sys.argv[1])
kill_after(int(sys.argv[2]), "/index/")
with manifest.writing(directory, rebuild=True) as writer:
    writer.start("input")
    index.add(writer, Documents().new(()), run_tokens=2)
    index.tidy(writer, all_of_them=True)
"""
STRIDE = 4  # file operations between two kills; each kill takes a process of its own


@pytest.mark.slow
@pytest.mark.faults
def test_a_kill_at_any_moment_leaves_the_old_index_or_the_new_one(old_index: Path) -> None:
    kills = 0
    for steps in range(0, 1000, STRIDE):
        killed = is_killed(KILLED, old_index, steps)
        assert words(old_index) in ({"old": 3, "new": 0}, {"old": 0, "new": 6})
        if not killed:
            break
        kills += 1
    assert kills > 5
    with writing(old_index) as writer:
        left = {entry.name for entry in writer.manifest.segments}
    assert index_files(old_index) == left, "the next writer deletes files of a killed one"
