"""Source files that a module depends on: its own file and the files of the modules that it imports."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

# A regular expression takes a fifth of the time of a parser, and kernels look for their sources whenever a process
# starts. It finds imports at the top level; with leading blanks also imports in functions and `if TYPE_CHECKING:`.
_LIST = r"\((?:[^)#]|#[^\n]*)*\)"
_STATEMENT = rf"from[ \t]+([\w.]+)[ \t]+import[ \t]+({_LIST}|[^\n]*)|import[ \t]+([^\n]*)"
_TOP_LEVEL = re.compile(f"^(?:{_STATEMENT})", re.M)
_ANYWHERE = re.compile(f"^[ \t]*(?:{_STATEMENT})", re.M)
_NAME = re.compile(r"([\w.]+)(?:[ \t]+as[ \t]+\w+)?")
_COMMENT = re.compile(r"#[^\n]*")


def import_closure(module: Path, roots: Sequence[Path], *, nested: bool = False) -> list[Path]:
    """Return a module's file and, transitively, the files of all modules that it imports, in order.

    `roots` are the directories that hold the packages to follow; imports of other packages are ignored. Constants
    depend on imports at the top level alone; the behaviour of a function depends on `nested` ones, too.
    """
    found = {module}
    waiting = [module]
    while waiting:
        for path in _imported(waiting.pop(), tuple(roots), nested):
            if path not in found:
                found.add(path)
                waiting.append(path)
    return sorted(found)


@cache
def _imported(module: Path, roots: tuple[Path, ...], nested: bool) -> tuple[Path, ...]:
    """Return the files of the modules that one imports itself."""
    names = _imported_names(module.read_text("utf-8"), _ANYWHERE if nested else _TOP_LEVEL)
    return tuple({path for name, member in names if (path := _file_of(name, member, roots))})


def _imported_names(source: str, pattern: re.Pattern[str]) -> Iterator[tuple[str, str]]:
    """Yield pairs of a module and a member that is imported from it; "" stands for the module itself."""
    for origin, members, modules in pattern.findall(source):
        names = _NAME.findall(_COMMENT.sub("", members or modules))
        yield from ((origin, name) if origin else (name, "") for name in names)


def _file_of(name: str, member: str, roots: Sequence[Path]) -> Path | None:
    """Return the file of a module, or of a member that is a module itself; None if it is below no root."""
    place = name.replace(".", "/")
    for root in roots:
        candidates = [f"{place}/{member}.py", f"{place}/{member}/__init__.py"] if member else []
        for candidate in (*candidates, f"{place}.py", f"{place}/__init__.py"):
            if (path := root / candidate).is_file():
                return path
    return None
