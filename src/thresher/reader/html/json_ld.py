"""Reader of JSON-LD: scripts that describe articles, pages and sites for search engines.

A page describes many other things: teasers, comments, products. Only top-level items are used. The reader is
total: any script, broken JSON included, gives a result.
"""

from __future__ import annotations

import html
import re
from collections import deque
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, TypeAlias

import msgspec
from msgspec import Struct, field
from msgspec.json import Decoder

MAX_NODES = 200  # things looked at; a page about one text has some ten of them
MAX_VALUES = 20  # of one field
MAX_STRING = 2_000  # characters of a value
MAX_TYPE = 80  # characters of the name of a type

# A key and its string, or the name of the first thing that stands there.
_PAIR = re.compile(
    r'"(@type|headline|datePublished|dateModified|author)"\s*+:\s*+(?:\[\s*+)?'
    r'(?:\{[^{}]{0,300}?"name"\s*+:\s*+)?"((?:[^"\\]|\\.){0,1000}+)',
    re.DOTALL,
)
_CONTROLS = re.compile(r"[\x00-\x1f]")
_FIELDS = ("headline", "date_published", "date_modified", "date_created", "author", "publisher")
_TEXTS = frozenset(["report", "recipe", "question", "howto", "creativework"])


class _Node(Struct, rename="camel"):
    """Item that JSON-LD describes, with the fields used here; their types are not guaranteed."""

    type: Any = field(default=None, name="@type")
    id: Any = field(default=None, name="@id")
    graph: _Nodes = field(default=None, name="@graph")
    main_entity: _Nodes = None
    main_entity_of_page: _Nodes = None
    name: Any = None
    headline: Any = None
    author: Any = None
    publisher: Any = None
    date_published: Any = None
    date_modified: Any = None
    date_created: Any = None


_Nodes: TypeAlias = _Node | list[_Node | str | None] | str | None
_DECODER: Decoder[Any] = Decoder(_Nodes)


def described(scripts: Sequence[str]) -> dict[str, list[str]]:
    """Return the description of the page by field: of its article or else of the page; and of the "site"."""
    if not scripts:
        return {}  # most pages have none
    nodes = _nodes(scripts)
    by_role: dict[str, list[_Node]] = {"text": [], "page": [], "site": [], "": []}
    for node in nodes:
        by_role[_role_of(node.type)].append(node)
    said: dict[str, list[str]] = {}
    for node in by_role["text"][:1] + by_role["page"]:
        for name in _FIELDS:
            if values := _strings(getattr(node, name), nodes):
                said.setdefault(name, values)
    for node in by_role["site"]:
        if values := _strings(node.name, nodes):
            said.setdefault("site", values)
    return said


def _nodes(scripts: Sequence[str]) -> list[_Node]:
    """Return the items described at top level; nested ones are teasers and comments."""
    todo = deque(map(_decoded, scripts))
    nodes = []
    for _ in range(MAX_NODES):
        if not todo:
            break
        value = todo.popleft()
        if isinstance(value, list):
            todo += value[:MAX_NODES]
        elif isinstance(value, _Node):
            nodes.append(value)
            todo += filter(None, (value.graph, value.main_entity, value.main_entity_of_page))
    return nodes


def _decoded(script: str) -> Any:
    """Return the value of a script, or the few fields that can be salvaged from broken JSON."""
    try:
        return _DECODER.decode(script)
    except (ValueError, RecursionError):
        return _salvaged(script)


def _salvaged(script: str) -> _Node:
    """Return the first of each wanted string in broken JSON: comments, raw line ends, stray commas."""
    found: dict[str, str] = {}
    for key, string in _PAIR.findall(script):
        if key not in found:
            found[key] = _unescaped(string)
    return msgspec.convert(found, _Node)


def _unescaped(string: str) -> str:
    try:
        return msgspec.json.decode(f'"{_CONTROLS.sub(" ", string)}"', type=str)
    except ValueError:
        return string


def _role_of(types: Any) -> str:
    """Return the role of an item of these types for the page: "text", "page", "site" or ""."""
    names = types if isinstance(types, list) else (types,)
    return next((role for name in names if isinstance(name, str) and (role := _role(name[:MAX_TYPE]))), "")


@lru_cache(maxsize=1_000)
def _role(type_name: str) -> str:
    name = type_name.rpartition("/")[2].lower()  # some write the whole address of a type
    if name.endswith(("article", "posting")) or name in _TEXTS:
        return "text"
    return "page" if name.endswith("page") else "site" if name == "website" else ""


def _strings(value: Any, nodes: Sequence[_Node]) -> list[str]:
    """Return the strings in a value or a list; of persons and organisations, given or referenced, the names."""
    found = []
    for item in value[:MAX_VALUES] if isinstance(value, list) else (value,):
        text = _name_of(item, nodes) if isinstance(item, dict) else item
        if isinstance(text, list) and text:
            text = text[0]
        if isinstance(text, str) and text:
            text = text[:MAX_STRING]
            found.append(html.unescape(text) if "&" in text else text)  # as if it were HTML: a frequent fault
    return found


def _name_of(thing: dict[str, Any], nodes: Sequence[_Node]) -> Any:
    if "name" in thing:
        return thing["name"]
    reference = thing.get("@id")
    return next((node.name for node in nodes if isinstance(reference, str) and node.id == reference), None)
