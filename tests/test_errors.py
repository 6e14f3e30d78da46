"""The tree of exceptions, and the exit code of each."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from pathlib import Path

import pytest

import thresher
from thresher.cli.exit_codes import exit_code
from thresher.errors import (
    CrawlError,
    DataError,
    EngineError,
    NoCorpusError,
    ThresherError,
    ThresherWarning,
    UsageError,
)

OPTIONAL = ("thresher.cli.__main__",)


def exceptions() -> set[type[Exception]]:
    """Return every public exception and warning that a module of the package defines."""
    found = set()
    for module in pkgutil.walk_packages(thresher.__path__, "thresher."):
        if module.name in OPTIONAL:
            continue
        for name, value in vars(importlib.import_module(module.name)).items():
            is_exception = inspect.isclass(value) and issubclass(value, Exception)
            if is_exception and value.__module__.startswith("thresher.") and not name.startswith("_"):
                found.add(value)
    return found


def test_every_exception_hangs_below_the_root() -> None:
    found = exceptions()
    assert len(found) > 10
    assert [each for each in found if not issubclass(each, ThresherError | ThresherWarning)] == []


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (UsageError("x"), 2),
        (DataError("x"), 1),
        (NoCorpusError(Path("x")), 1),
        (CrawlError("x"), 1),
        (EngineError("x"), 1),
        (FileNotFoundError("x"), 1),
        (KeyboardInterrupt(), 130),
        (ZeroDivisionError(), None),
    ],
)
def test_each_error_has_its_exit_code(error: BaseException, code: int | None) -> None:
    assert exit_code(error) == code


def test_a_missing_corpus_is_named_with_the_command_that_makes_one(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    fix = "make a corpus: thresher crawl"
    for path, fault in [
        (tmp_path / "nowhere", "does not exist"),
        (tmp_path, "no corpus.toml"),
        (tmp_path / "file", "is not a directory"),
    ]:
        message = str(NoCorpusError(path))
        assert fault in message and f"{fix} {path}" in message
