"""A change of code that a result depends on invalidates the result."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.corpora.batch_corpora import Here, made, recipe, small_corpus
from thresher.pipeline import code_digests
from thresher.pipeline.code_digests import digest_of_room, digest_with_imports
from thresher.pipeline.runs.run import process


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Copy the package to where its files can be changed, and let digests be computed of the copy."""
    copy = tmp_path / "copy" / "thresher"
    shutil.copytree(code_digests.PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(code_digests, "PACKAGE", copy)
    clear_caches()
    yield copy
    clear_caches()


def clear_caches() -> None:
    digest_of_room.cache_clear()
    digest_with_imports.cache_clear()


def change(path: Path) -> None:
    path.write_bytes(path.read_bytes() + b"\n")
    clear_caches()


@pytest.mark.parametrize("room", ["no_such_room", "no_such_module.py"])
def test_a_path_that_does_not_exist_has_no_digest(room: str) -> None:
    with pytest.raises(FileNotFoundError, match=room):
        digest_of_room(room)
    with pytest.raises(FileNotFoundError, match=room):
        digest_with_imports(room)


def test_a_changed_byte_anywhere_in_a_room_changes_its_digest(package: Path) -> None:
    before = digest_of_room("reader")
    assert before == digest_of_room("reader")
    for name in ("extract.py", "language/identify.py", "data/boilerplate.msgpack"):
        files = list((package / "reader").rglob(Path(name).name)) or list(
            (package / "reader" / "data").iterdir()
        )
        change(next(path for path in files if path.is_file()))
        assert digest_of_room("reader") != before
        before = digest_of_room("reader")


@pytest.mark.parametrize(
    ("step", "changed"),
    [
        ("reread", "reader/extract.py"),
        ("reread", "judge.py"),
        ("reread", "records.py"),
        ("paragraph_language", "reader/language/disambiguate.py"),
        ("near_duplicates", "reader/quality/shingles.py"),
        ("similar_documents", "reader/html/kernels/words.py"),
    ],
)
def test_changed_code_invalidates_the_results_of_a_step(
    package: Path, tmp_path: Path, step: str, changed: str
) -> None:
    corpus = tmp_path / "corpus"
    corpus.mkdir()
    small_corpus(corpus)
    recipe(corpus, {"step": step})
    assert step in made(process(corpus, Here()))
    assert made(process(corpus, Here())) == {}
    change(package / "simulation" / "record.py")
    assert made(process(corpus, Here())) == {}
    change(package / changed)
    assert step in made(process(corpus, Here()))
