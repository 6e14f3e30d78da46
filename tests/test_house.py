"""The structure and the prose of the source stay as ARCHITECTURE.md and CONTRIBUTING.md describe them."""

from __future__ import annotations

import ast
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from thresher import reasons

ROOT = Path(__file__).parent.parent
PACKAGES = ("thresher", "thresher_lab")

MAX_MODULES = 16  # of a directory, __init__.py counted
MAX_MODULE_LINES = 450
MAX_TEST_LINES = 500
DOCUMENTED_FUNCTIONS = 1_910  # public ones with a docstring, as of the last count; raise it now and then

# Words of riddles rather than of contracts, and how many of them 1,000 words of docstrings may hold.
AVOIDED = frozenset(
    ["what", "who", "whose", "whoever", "whatever", "somebody", "nobody", "told", "anew", "those"]
)
MAX_AVOIDED_PER_1000 = 5
QUESTIONS = frozenset(["what", "who", "where", "whether", "how"])

Definition = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


class Docstring(NamedTuple):
    """A docstring and the place of its definition."""

    place: str
    words: list[str]


def modules() -> list[Path]:
    return [path for package in PACKAGES for path in sorted((ROOT / "src" / package).rglob("*.py"))]


TREES = {path.relative_to(ROOT): ast.parse(path.read_text(encoding="utf-8")) for path in modules()}


def room(path: Path) -> str:
    """Return the top-level package of a module; modules of `thresher` itself are one, too."""
    package, *inner = path.relative_to("src").parts
    return f"{package}/{inner[0]}" if package == "thresher" and len(inner) > 1 else package


def docstrings(path: Path) -> Iterator[Docstring]:
    for node in ast.walk(TREES[path]):
        if isinstance(node, ast.Module | Definition) and (text := ast.get_docstring(node)):
            line = 1 if isinstance(node, ast.Module) else node.lineno
            yield Docstring(f"{path}:{line}", re.findall(r"[a-z']+", text.lower()))


def public_definitions(node: ast.Module | ast.ClassDef) -> Iterator[Definition]:
    """Yield public functions and classes, and the public methods of public classes."""
    for inner in node.body:
        if isinstance(inner, Definition) and not inner.name.startswith("_"):
            yield inner
            if isinstance(inner, ast.ClassDef):
                yield from public_definitions(inner)


def test_no_directory_holds_more_modules_than_fit_a_screen() -> None:
    counts = Counter(path.parent for path in TREES)
    assert {str(folder): count for folder, count in counts.items() if count > MAX_MODULES} == {}


def test_a_public_class_name_stands_for_one_thing() -> None:
    places = defaultdict(list)
    for path, tree in TREES.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(f"{path}:{node.lineno}")
    assert {name: found for name, found in places.items() if len(found) > 1} == {}


def test_documented_public_functions_do_not_become_fewer() -> None:
    documented = [
        node
        for tree in TREES.values()
        for node in public_definitions(tree)
        if not isinstance(node, ast.ClassDef) and ast.get_docstring(node)
    ]
    assert len(documented) >= DOCUMENTED_FUNCTIONS, (
        f"{len(documented)} public functions have a docstring, {DOCUMENTED_FUNCTIONS} had one; "
        "write docstrings, or lower DOCUMENTED_FUNCTIONS if functions were removed"
    )


@pytest.mark.parametrize("name", [*sorted({room(path) for path in TREES}), "the whole"])
def test_docstrings_state_contracts_and_ask_no_riddles(name: str) -> None:
    found = [each for path in TREES if name in (room(path), "the whole") for each in docstrings(path)]
    avoided = [(each.place, word) for each in found for word in each.words if word in AVOIDED]
    count = sum(len(each.words) for each in found)
    assert len(avoided) <= max(1, MAX_AVOIDED_PER_1000 * count / 1000), (
        f"{len(avoided)} of {count} words are avoided ones: {avoided}"
    )


def test_no_docstring_begins_with_a_question_word() -> None:
    begun = [each.place for path in TREES for each in docstrings(path) if {*each.words[:1]} & QUESTIONS]
    assert begun == []


RENAMING = {
    "src/thresher/files/durable_files.py",
    "src/thresher/files/log_files.py",  # rotates
    "src/thresher/exporting/formats/hf_dataset.py",  # in a folder that is not published yet
}


def test_only_durable_files_renames_what_is_published() -> None:
    found = set()
    for path, tree in TREES.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and not node.keywords:
                # A str is replaced with two arguments, a path with one.
                is_rename = node.func.attr == "rename" or (
                    node.func.attr == "replace" and len(node.args) == 1
                )
                if is_rename or node.func.attr in ("mkstemp", "renames"):
                    found.add(str(path))
    assert found - RENAMING == set()


def test_reasons_of_several_words_stand_in_one_module() -> None:
    values = [value for value in vars(reasons).values() if isinstance(value, str)]
    stored = {value for value in values if re.fullmatch("[a-z]+( [a-z]+)+", value)}
    assert "too short" in stored
    found = [
        f"{path}:{node.lineno}: {node.value}"
        for path, tree in TREES.items()
        if path.parts[1] == "thresher" and path.name != "reasons.py"
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value in stored
    ]
    assert found == []


FOREIGN_CONSTANTS = {"CURLE_TOO_LARGE", "POLL_IN", "POLL_OUT", "NUMBA_BOUNDSCHECK"}


def test_constants_that_docstrings_name_exist() -> None:
    known = set(FOREIGN_CONSTANTS)
    named = []
    for path, tree in TREES.items():
        for node in ast.walk(tree):
            match node:
                case ast.Name(id=name) | ast.Attribute(attr=name) | ast.alias(name=name):
                    known.add(name)
                case ast.Module() | ast.ClassDef() | ast.FunctionDef() | ast.AsyncFunctionDef():
                    text = ast.get_docstring(node) or ""
                    named += [
                        (str(path), name)
                        for name in re.findall(r"(?<![$\w.])[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+\b", text)
                    ]
    assert [(path, name) for path, name in named if name not in known] == []


# Rooms whose comments were revised; add the others when theirs are.
PLAIN_ROOMS = ("exporting", "files", "importing", "pipeline", "reader", "store")


def test_no_comment_begins_with_a_question_word_nor_uses_an_avoided_one() -> None:
    found = []
    for path in TREES:
        if room(path).rpartition("/")[2] not in (*PLAIN_ROOMS, "thresher"):
            continue
        for number, line in enumerate((ROOT / path).read_text(encoding="utf-8").splitlines(), 1):
            comment = re.search(r"(?:^|\s)# (.*)", line)
            words = re.findall(r"[a-z']+", comment[1].lower()) if comment else []
            starts = line.lstrip().startswith("#") and {*words[:1]} & {"what", "who", "how"}
            if starts or {"those", "told", "whoever", "whatever", "anew", "cure"} & {*words}:
                found.append(f"{path}:{number}: {line.strip()}")
    assert found == []


def test_modules_and_test_files_stay_short() -> None:
    limits = dict.fromkeys(modules(), MAX_MODULE_LINES)
    limits |= dict.fromkeys(sorted((ROOT / "tests").rglob("*.py")), MAX_TEST_LINES)
    lengths = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in limits}
    assert {
        str(path.relative_to(ROOT)): lengths[path] for path in limits if lengths[path] > limits[path]
    } == {}
