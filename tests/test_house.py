"""The structure and the prose of the source stay as ARCHITECTURE.md and CONTRIBUTING.md describe them."""

from __future__ import annotations

import ast
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Literal, NamedTuple

import pytest

from thresher import reasons

ROOT = Path(__file__).parent.parent
PACKAGES = ("thresher", "thresher_lab")

MAX_MODULES = 16  # of a directory, __init__.py counted
MAX_MODULE_LINES = 450
MAX_TEST_LINES = 500

# Words that make riddles of contracts, and the number of them that 1,000 words of prose may hold.
AVOIDED = frozenset(
    ["what", "who", "whose", "whoever", "whatever", "somebody", "nobody", "told", "anew", "those"]
)
MAX_AVOIDED_PER_1000 = 2
QUESTIONS = frozenset(["what", "who", "where", "whether", "how"])

Definition = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
Kind = Literal["docstring", "comment", "remark", "message", "name"]

# Strings and comments in the order of the source. This takes a tenth of the time of a tokenizer.
PROSE = re.compile(
    r'''(?P<long>"""(?:[^"\\]|\\.|"(?!""))*""")'''
    r"""|(?P<short>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')"""
    r"|(?P<comment>#[^\n]*)|def (?P<name>test_\w+)",
    re.DOTALL,
)


class Prose(NamedTuple):
    """A text for readers of the source or users of the program, and its place."""

    kind: Kind  # a remark stands behind code, a comment on a line of its own
    place: str
    words: list[str]


def modules() -> list[Path]:
    return [path for package in PACKAGES for path in sorted((ROOT / "src" / package).rglob("*.py"))]


TREES = {path.relative_to(ROOT): ast.parse(path.read_text(encoding="utf-8")) for path in modules()}
OTHERS = [
    path.relative_to(ROOT)
    for folder in ("tests", "bench")
    for path in sorted((ROOT / folder).rglob("*.py"))
    if ".cache" not in path.parts  # environments of other contenders
]


def room(path: Path) -> str:
    """Return the top-level package of a module; modules of `thresher` itself are one, too."""
    top, *inner = path.parts
    if top != "src":
        return top
    package, *inner = inner
    return f"{package}/{inner[0]}" if package == "thresher" and len(inner) > 1 else package


@cache
def prose(path: Path) -> list[Prose]:
    """Return docstrings and comments of a module, messages in `src`, and names of tests."""
    return list(_prose(path, (ROOT / path).read_text(encoding="utf-8")))


def _prose(path: Path, source: str) -> Iterator[Prose]:
    block, block_end = "", -1  # comment lines that follow each other, and the line after them
    line = end = 0
    for match in PROSE.finditer(source):
        line += source.count("\n", end, match.start())
        end = match.start()
        begin = source.rfind("\n", 0, end) + 1
        is_alone = not source[begin:end].strip()
        kind, text = match.lastgroup, match[0]
        if block and (kind != "comment" or not is_alone or line != block_end):
            yield _text("comment", path, block_end, block)
            block = ""
        if kind == "comment" and is_alone:
            block, block_end = f"{block} {text}", line + 1
        elif kind == "comment":
            yield _text("remark", path, line + 1, text)
        elif kind == "name":
            yield _text("name", path, line + 1, match["name"].replace("_", " "))
        elif kind == "long" and is_alone and _follows_a_heading(source, begin):
            yield _text("docstring", path, line + 1, text)
        elif " " in text and path.parts[0] == "src":
            yield _text("message", path, line + 1, re.sub(r"\{[^{}]*\}", "", text))
    if block:
        yield _text("comment", path, block_end, block)


def _follows_a_heading(source: str, begin: int) -> bool:
    """Return whether a line is the first, or the first below `class …:` or `def …:`."""
    previous = source[:begin].rstrip().rpartition("\n")[2].partition("  #")[0]
    return previous.endswith(":") or not previous


def _text(kind: Kind, path: Path, line: int, text: str) -> Prose:
    return Prose(kind, f"{path}:{line}", re.findall(r"[a-z']+", text.lower()))


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
    assert {name: each for name, each in places.items() if len(each) > 1} == {}


def test_every_public_function_has_a_docstring() -> None:
    bare = [
        f"{path}:{node.lineno}"
        for path, tree in TREES.items()
        for node in public_definitions(tree)
        if not isinstance(node, ast.ClassDef) and not ast.get_docstring(node)
    ]
    assert bare == []


@pytest.mark.parametrize("name", sorted({room(path) for path in (*TREES, *OTHERS)}))
def test_prose_states_contracts_and_asks_no_riddles(name: str) -> None:
    texts = [text for path in (*TREES, *OTHERS) if name == room(path) for text in prose(path)]
    avoided = [(text.kind, text.place, word) for text in texts for word in text.words if word in AVOIDED]
    count = sum(len(text.words) for text in texts)
    assert len(avoided) <= max(1, MAX_AVOIDED_PER_1000 * count / 1000), (
        f"{len(avoided)} of {count} words are avoided ones: {avoided}"
    )


def test_no_docstring_begins_with_a_question_word() -> None:
    assert questions("docstring", QUESTIONS) == {}


def test_no_comment_begins_with_a_question_word() -> None:
    found = questions("comment", QUESTIONS)
    # Behind a field, "how often it was read" and "where it begins" describe its value.
    for name, places in questions("remark", frozenset(["what", "who"])).items():
        found[name] += places
    assert found == {}


def questions(kind: Kind, words: frozenset[str]) -> defaultdict[str, list[str]]:
    """Return the places of texts of a kind that begin with one of some words, by package."""
    places = defaultdict(list)
    for path in (*TREES, *OTHERS):
        for text in prose(path):
            if text.kind == kind and {*text.words[:1]} & words:
                places[room(path)].append(text.place)
    return places


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


def test_modules_and_test_files_stay_short() -> None:
    limits = dict.fromkeys(modules(), MAX_MODULE_LINES)
    limits |= dict.fromkeys(sorted((ROOT / "tests").rglob("*.py")), MAX_TEST_LINES)
    lengths = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in limits}
    assert {
        str(path.relative_to(ROOT)): lengths[path] for path in limits if lengths[path] > limits[path]
    } == {}
