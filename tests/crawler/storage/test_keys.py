"""The registry of keys: no key can be taken for another, and no module writes one of its own."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from thresher.crawler import erase
from thresher.crawler.storage import keys

PREFIXES = {name: value for name, value in vars(keys).items() if isinstance(value, bytes)}


def test_no_prefix_begins_with_another_one() -> None:
    pairs = [
        (name, other)
        for name, prefix in PREFIXES.items()
        for other, longer in PREFIXES.items()
        if name != other and longer.startswith(prefix)
    ]
    assert pairs == []


def test_every_key_names_a_module_that_exists() -> None:
    source = Path(keys.__file__)
    named = re.findall(r"^# (crawler/\S+\.py)$", source.read_text(), re.MULTILINE)
    package = source.parents[2]
    assert len(named) > 8
    assert [path for path in named if not (package / path).is_file()] == []


def test_a_key_is_used_by_the_module_named_with_it_alone() -> None:
    source = Path(keys.__file__)
    package = source.parents[2]
    owners, owner = {}, ""
    for line in source.read_text().splitlines():
        if named := re.fullmatch(r"# (crawler/\S+\.py)", line):
            owner = named[1]
        elif defined := re.match(r"([A-Z_]+) = b", line):
            owners[defined[1]] = owner
    used = {
        (str(path.relative_to(package)), name)
        for path in (package / "crawler").rglob("*.py")
        if path != source
        for name in imported_keys(path)
    }
    assert used == {(owner, name) for name, owner in owners.items()}


def imported_keys(path: Path) -> list[str]:
    """Return the keys that a module imports from the registry."""
    return [
        alias.name
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ImportFrom) and node.module == "thresher.crawler.storage.keys"
        for alias in node.names
        if alias.name in PREFIXES
    ]


def test_keys_stand_in_the_registry_and_in_no_other_module() -> None:
    crawler = Path(erase.__file__).parent
    literal = re.compile(r"""\b(?:put|get|delete|scan|committed|StateTable)\([^)\n]*b["']\w""")
    own = [
        f"{path.name}: {line.strip()}"
        for path in crawler.rglob("*.py")
        for line in path.read_text().splitlines()
        if literal.search(line)
    ]
    assert own == []


def test_after_is_behind_every_key_of_a_prefix() -> None:
    for prefix in PREFIXES.values():
        assert prefix + b"\xff" * 20 < keys.after(prefix)
