"""Import modules of users that lie beside a corpus or in the current directory."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

# Modules imported from folders of users, with the folders that were searched for them.
_searched: dict[str, tuple[str, ...]] = {}


def folders_of(directory: Path) -> tuple[str, ...]:
    """Return the folders in which modules named by a corpus are searched, after Python's own path."""
    return tuple(dict.fromkeys([str(directory.resolve()), str(Path.cwd())]))


@contextmanager
def importable_from(folders: Sequence[str]) -> Iterator[None]:
    """Let `import` find modules in folders, after all others.

    A module of the same name that was imported for another corpus is imported again.
    """
    for name in [name for name, searched in _searched.items() if searched != tuple(folders)]:
        del _searched[name]
        sys.modules.pop(name, None)
    importlib.invalidate_caches()  # the module may have been written a moment ago
    path, modules = list(sys.path), set(sys.modules)
    added = [folder for folder in folders if folder not in path]
    sys.path += added
    try:
        yield
    finally:
        sys.path[:] = path
        new = sys.modules.keys() - modules
        _searched.update({name: tuple(folders) for name in new if _home(name) in added})


def _home(name: str) -> str:
    """Return the folder in which a module, or its package, was found."""
    file = getattr(sys.modules.get(name.partition(".")[0]), "__file__", None) or ""
    parent = Path(file).parent
    return str(parent.parent if Path(file).stem == "__init__" else parent)
