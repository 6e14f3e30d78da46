"""What several tests need: where the project is, and data of other projects where it is present."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import settings

ROOT = Path(__file__).parent.parent

# No test is timed: kernels may have to be compiled, and machines may be busy. Examples are the same each time, so
# that a change is judged by itself; others are tried with: pytest --hypothesis-profile random
settings.register_profile("random", deadline=None)
settings.register_profile("usual", deadline=None, derandomize=True)
settings.load_profile("usual")


# Files whose tests are few and long come first: else one process has them to itself while the others are done.
LONG = ("sharded_crawl", "faults", "readme", "start", "cli", "forget", "shards", "batch_cluster")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    names = [f"test_{name}" for name in LONG]
    items.sort(key=lambda item: names.index(item.path.stem) if item.path.stem in names else len(names))


@pytest.fixture(scope="session")
def suites() -> Path:
    """Conformance data written by other people; the tests that need it are skipped where it is not."""
    folder = Path(os.environ.get("THRESHER_SUITES", ROOT.parent / "shared" / "suites"))
    if not folder.is_dir():
        pytest.skip(f"no conformance suites in {folder}; set THRESHER_SUITES")
    return folder
