"""Compiled kernels are kept on disk as long as all the sources that they depend on stay the same."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from thresher.files.source_files import import_closure

KERNEL = """
from thresher.jit import NUMBER, kernel
from scratch.tables import DOUBLED

@kernel(NUMBER, NUMBER)
def scaled(number):
    return number * DOUBLED
"""


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """Return a package with a kernel that takes a constant, computed by one module from another's."""
    files = {
        "__init__.py": "",
        "kernels/__init__.py": "",
        "kernels/scale.py": KERNEL,
        "tables.py": "from scratch import numbers\nDOUBLED = 2 * numbers.FACTOR\n",
        "numbers.py": "FACTOR = 3\n",
        "unrelated.py": "",
    }
    for name, source in files.items():
        path = tmp_path / "scratch" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(source)
    return tmp_path / "scratch"


def scaled(package: Path) -> tuple[int, bool]:
    """Run the kernel on 10 in a new process; return the result and whether it was compiled there."""
    environment = os.environ | {
        "NUMBA_CACHE_DIR": str(package.parent / "cache"),
        "PYTHONPATH": os.pathsep.join([str(package.parent), *sys.path]),
        # Bytecode is not replaced after a change within a second that leaves the length of the source as it was.
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    command = [sys.executable, "-c", "from scratch.kernels.scale import scaled; print(scaled(10))"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return int(done.stdout), "compiling" in done.stderr


@pytest.mark.slow
def test_a_changed_constant_of_an_imported_module_compiles_kernels_again(package: Path) -> None:
    assert scaled(package) == (60, True)
    assert scaled(package) == (60, False)
    (package / "numbers.py").write_text("FACTOR = 4\n")
    assert scaled(package) == (80, True)
    (package / "unrelated.py").write_text("FACTOR = 5\n")
    assert scaled(package) == (80, False)


def test_the_closure_holds_all_modules_that_are_imported_at_the_top_level(tmp_path: Path) -> None:
    sources = {
        "a/__init__.py": "",
        "a/first.py": "from a.b import (  # with (brackets)\n    second,\n    THIRD as X,\n)\nimport os, a.fifth\n",
        "a/b/__init__.py": "from a.fourth import THIRD\n",
        "a/b/second.py": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from a.unused import Y\n",
        "a/fourth.py": "import a.first as again\nTHIRD = 3\n",
        "a/fifth.py": "def late():\n    from a.unused import Y\n",
        "a/unused.py": "",
    }
    for name, source in sources.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(source)
    found = import_closure(tmp_path / "a" / "first.py", [tmp_path])
    assert [str(path.relative_to(tmp_path)) for path in found] == [
        "a/b/__init__.py",
        "a/b/second.py",
        "a/fifth.py",
        "a/first.py",
        "a/fourth.py",
    ]
    nested = import_closure(tmp_path / "a" / "first.py", [tmp_path], nested=True)
    assert set(nested) - set(found) == {tmp_path / "a" / "unused.py"}
