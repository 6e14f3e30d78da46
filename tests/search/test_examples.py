"""The examples in the documentation of queries run, and give the results that they show."""

from __future__ import annotations

import doctest
import importlib
import pkgutil
from pathlib import Path

import pytest

import thresher
import thresher.annotate
import thresher.search
from cli.test_search_commands import VERTICAL
from thresher.importing.corpora import import_files
from thresher.search.index.update import update

MODULES = [
    found.name
    for package in (thresher.search, thresher.annotate)
    for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> object:
    """Return the corpus of the examples."""
    directory = tmp_path_factory.mktemp("examples")
    (directory / "small.vert").write_text(VERTICAL)
    import_files(directory / "corpus", [directory / "small.vert"], language="en")
    update(directory / "corpus", order="input")
    return thresher.open(directory / "corpus")


@pytest.mark.parametrize("name", MODULES)
def test_examples_run(name: str, corpus: object, tmp_path: Path) -> None:
    module = importlib.import_module(name)
    failed, _ = doctest.testmod(module, extraglobs={"corpus": corpus})
    assert not failed
