"""List all benchmarks, each with the first line of its documentation."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from bench import GROUPS


def benchmarks() -> Iterator[tuple[str, str]]:
    """Yield the name of each benchmark and the first line of its documentation, without importing it."""
    here = Path(__file__).parent
    files = [path for path in sorted(here.glob("*.py")) if path != Path(__file__)]
    for group in GROUPS:
        files += sorted((here / group).glob("*.py"))
    for path in files:
        source = path.read_text("utf-8")
        if '\nif __name__ == "__main__":\n' in source:
            name = path.parent.name if path.stem == "__main__" else path.stem
            yield name, (ast.get_docstring(ast.parse(source)) or "").partition("\n")[0]


if __name__ == "__main__":
    for name, summary in benchmarks():
        print(f"python -m bench.{name:<16} {summary}")
