"""An index has one annotator: it is kept, another one is refused, and a better one is pointed out."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

import thresher
from search.test_searcher import PAGES, crawled
from support.command_line import run
from thresher.annotate import registry
from thresher.errors import UsageError
from thresher.search.analysis import AnalysisError
from thresher.search.cql.lexer import CqlError
from thresher.search.index.manifest import FILE, FOLDER, Manifest, read
from thresher.search.index.update import update

OWN = """
def tag(paragraph):
    return [[(word, word.upper()) for word in paragraph.split()]]


tag.attributes = ("word", "loud")
"""


def without(monkeypatch: pytest.MonkeyPatch, *libraries: str) -> None:
    """Pretend that libraries are not installed."""
    really = registry.are_installed
    monkeypatch.setattr(
        registry, "are_installed", lambda names: really(names) and not set(libraries) & set(names)
    )


def attributes(directory: Path) -> list[str]:
    return thresher.open(directory).search("page")._index.attributes


def made_before_annotators_were_recorded(directory: Path) -> None:
    path = directory / FOLDER / FILE
    manifest = msgspec.json.decode(path.read_bytes())
    del manifest["annotators"], manifest["origin"]
    path.write_bytes(msgspec.json.encode(manifest))


def test_new_documents_get_the_annotator_of_the_index(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    crawled(tmp_path, PAGES)
    with monkeypatch.context() as patch:
        without(patch, "HanTa")
        update(tmp_path, processes=1)
    manifest = read(tmp_path)
    assert manifest and manifest.annotators == {"en": "simplemma"}
    for path in (tmp_path / "docs").iterdir():
        path.unlink()
    crawled(tmp_path, {**PAGES, "http://c.org/": "A third page"})
    changes = update(tmp_path, processes=1)
    assert (changes.added, changes.better_annotator) == (1, "hanta")
    assert attributes(tmp_path) == ["word", "lemma", "lc"]
    assert update(tmp_path, processes=1, rebuild=True).better_annotator == ""
    assert attributes(tmp_path) == ["word", "lemma", "pos", "lc"]


def test_the_command_names_the_better_annotator_and_its_use(tmp_path: Path) -> None:
    crawled(tmp_path, PAGES)
    update(tmp_path, annotator="plain", processes=1)
    done = run("index", tmp_path)
    assert "0 documents added" in done.stderr
    assert "hanta" in done.stderr and f"thresher index {tmp_path} --rebuild" in done.stderr


@pytest.mark.parametrize("is_recorded", [True, False])
def test_another_annotator_is_refused_without_a_rebuild(tmp_path: Path, is_recorded: bool) -> None:
    crawled(tmp_path, PAGES)
    update(tmp_path, annotator="plain", processes=1)
    if not is_recorded:
        made_before_annotators_were_recorded(tmp_path)
    update(tmp_path, annotator="plain", processes=1)
    with pytest.raises(UsageError, match="--annotator simplemma --rebuild"):
        update(tmp_path, annotator="simplemma", processes=1)
    with pytest.raises(registry.AnnotatorError, match="unknown annotator 'hnata'"):
        update(tmp_path, annotator="hnata", processes=1)
    update(tmp_path, annotator="simplemma", processes=1, rebuild=True)
    assert attributes(tmp_path) == ["word", "lemma", "lc"]


def test_an_older_index_is_compared_by_its_attributes(tmp_path: Path) -> None:
    crawled(tmp_path, PAGES)
    update(tmp_path, annotator="plain", processes=1)
    made_before_annotators_were_recorded(tmp_path)
    assert update(tmp_path, processes=1).better_annotator == "hanta"


@pytest.mark.parametrize("place", ["current directory", "corpus"])
@pytest.mark.parametrize("processes", ["1", "2"])
def test_an_annotator_lies_in_the_current_directory_or_beside_the_corpus(
    tmp_path: Path, place: str, processes: str
) -> None:
    directory = tmp_path / "corpus"
    directory.mkdir()
    crawled(directory, PAGES)
    (directory if place == "corpus" else tmp_path).joinpath("mymodule.py").write_text(OWN)
    arguments = ("index", directory, "--annotator", "mymodule:tag", "--processes", processes)
    done = run(*arguments, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert attributes(directory) == ["word", "loud", "lc"]
    again = run("index", directory, "--annotator", "mymodule:other", cwd=tmp_path)
    assert again.returncode == 2 and "--rebuild" in again.stderr


def test_a_missing_module_is_an_error_that_names_the_folders(tmp_path: Path) -> None:
    crawled(tmp_path, PAGES)
    done = run("index", tmp_path, "--annotator", "nomodule:tag")
    assert done.returncode == 2
    assert str(tmp_path) in done.stderr and "No module named 'nomodule'" in done.stderr


def test_a_missing_lemma_is_an_error_that_names_extra_and_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    crawled(tmp_path, PAGES)
    update(tmp_path, annotator="plain", processes=1)
    corpus = thresher.open(tmp_path)
    with pytest.raises(CqlError, match=f"to add it: thresher index {tmp_path} --rebuild"):
        corpus.search('[lemma="page"]')
    without(monkeypatch, "HanTa", "simplemma")
    steps = rf"pip install 'thresher\[german\]', then thresher index {tmp_path} --rebuild"
    with pytest.raises(CqlError, match=steps):
        corpus.search('[pos="N"]')
    with pytest.raises(AnalysisError, match=steps):
        corpus.words(attribute="pos")
    with pytest.raises(CqlError, match=steps):
        corpus.search("page").concordance(attributes=["pos"])
    with pytest.raises(CqlError) as caught:
        corpus.search('[colour="red"]')
    assert "to add it" not in str(caught.value), "no annotator gives colours"


@pytest.mark.parametrize(
    ("language", "attribute", "commands"),
    [
        ("ko", "lemma", ["pip install 'thresher[korean]'", "thresher index kept --rebuild"]),
        ("ru", "pos", ["pip install 'thresher[russian]'", "thresher index kept --rebuild"]),
        (
            "cs",
            "pos",
            [
                """pip install 'thresher[stanza]', then python -c 'import stanza; stanza.download("cs")'""",
                "thresher index kept --annotator stanza --rebuild",
            ],
        ),
        ("uk", "pos", ["pip install 'thresher[ukrainian]'", "thresher index kept --rebuild"]),
        ("cs", "colour", []),
    ],
)
def test_the_commands_that_add_an_attribute_fit_the_language(
    language: str, attribute: str, commands: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    without(monkeypatch, "kiwipiepy", "pymorphy3", "stanza", "spacy")
    assert registry.commands_that_add(attribute, language, Path("kept")) == commands


def test_a_recipe_decides_about_annotators_itself(tmp_path: Path) -> None:
    crawled(tmp_path, PAGES)
    update(tmp_path, annotator="plain", processes=1)

    class NoDocuments:
        def keys(self) -> set[int]:
            return set()

        def new(self, _: object) -> list[object]:
            return []

    update(tmp_path, documents=NoDocuments())  # type: ignore[arg-type]
    assert (read(tmp_path) or Manifest()).annotators == {}
    assert update(tmp_path, annotator="simplemma", processes=1).added == 2
