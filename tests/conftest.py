"""Settings of property tests, data of other projects where it is present, and a store of trained languages."""

from __future__ import annotations

import os
import re
import tarfile
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import settings

from support import ROOT

# Examples have no deadline, since kernels may have to be compiled and machines may be busy. They are the same each
# time, so that a change is judged by itself; others are tried with: pytest --hypothesis-profile random
settings.register_profile("random", deadline=None)
settings.register_profile("usual", deadline=None, derandomize=True)
settings.load_profile("usual")


LONGER = ("faults", "ray", "growth")  # markers of tests that are slow, too


@pytest.hookimpl(tryfirst=True)  # before tests are selected by their markers
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests of `make test-slow` as slow, and run files with slow tests first.

    A file that is begun last and takes long would run on one processor alone.
    """
    for item in items:
        if any(item.get_closest_marker(name) for name in LONGER):
            item.add_marker("slow")
    slow_files = {item.path for item in items if item.get_closest_marker("slow")}
    items.sort(key=lambda item: item.path not in slow_files)


@pytest.fixture(scope="session")
def suites() -> Path:
    """Return the folder of other projects' conformance suites; skip the test where there is none."""
    folder = Path(os.environ.get("THRESHER_SUITES", ROOT.parent / "shared" / "suites"))
    if not folder.is_dir():
        pytest.skip(f"no conformance suites in {folder}; set THRESHER_SUITES")
    return folder


@pytest.fixture(scope="session")
def declarations() -> dict[str, list[str]]:
    """Return the paragraphs of the Universal Declaration of Human Rights by key; skip where they are missing."""
    gold = Path(os.environ.get("THRESHER_GOLD", ROOT.parent / "shared" / "gold"))
    if not (gold / "udhr.tar.gz").is_file():
        pytest.skip(f"no udhr.tar.gz in {gold}; set THRESHER_GOLD")
    found = {}
    with tarfile.open(gold / "udhr.tar.gz") as files:
        for member in files:
            name = re.search(r"udhr_(\w+)\.xml$", member.name)
            file = files.extractfile(member) if name else None
            if name and file:
                paragraphs = ElementTree.parse(file).getroot().iter("{http://efele.net/udhr}para")
                found[name[1]] = [" ".join("".join(each.itertext()).split()) for each in paragraphs]
    return found


@pytest.fixture
def own_languages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Use an empty directory of trained languages, shared neither with other tests nor with the user."""
    from thresher.reader.language import custom_models

    monkeypatch.setenv("THRESHER_LANGUAGES", str(tmp_path / "languages"))
    custom_models.clear_cache()
    yield tmp_path / "languages"
    custom_models.clear_cache()
