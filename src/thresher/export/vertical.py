"""Vertical text: one token per line, as Sketch Engine and CWB (`cwb-encode -x`) take it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache, partial
from itertools import count
from typing import BinaryIO
from xml.sax.saxutils import escape

from thresher.export.selection import Event, Item, Selection, Word
from thresher.export.values import form
from thresher.store.lines import Open

REMEMBERED = 1 << 10  # sets of names: most tags of a kind have the same attributes
_OUR_OWN = ("doc", "g")  # tags that no structure of an import may have: they would cut documents
_NO_NAME = re.compile(r"[^\w.:-]")
_LETTER = re.compile(r"[A-Za-z_\x80-\U0010ffff]")


def write_vertical(selection: Selection, out: BinaryIO) -> int:
    """Tokens with all attributes that any of the documents has; <g/> is for no space."""
    written = 0
    for document in selection.rendered(partial(render, columns=selection.attributes)):
        out.write(document)
        written += 1
    return written


def render(
    item: Item, events: Iterable[Event], attributes: tuple[str, ...], *, columns: tuple[str, ...]
) -> bytes:
    """A document as vertical text; escaped as in XML, so that no token can be taken for a tag."""
    places = [attributes.index(name) if name in attributes else None for name in columns]
    as_they_are = places == list(range(len(attributes)))
    lines = [_tag("doc", item.meta)]
    for event in events:
        if isinstance(event, Word):
            if event.glued:
                lines.append("<g/>")
            values = event.values
            if not as_they_are:
                values = tuple("" if place is None else values[place] for place in places)
            line = "\t".join((form(values[0]), *values[1:]))
            lines.append(escape(line) if "&" in line or "<" in line or ">" in line else line)
        elif isinstance(event, Open):
            lines.append(_tag(_structure(event.name), event.attributes))
        else:
            lines.append(f"</{_structure(event.name)}>")
    lines.append("</doc>\n")
    return "\n".join(lines).encode()


def _structure(name: str) -> str:
    tag = _name(name)
    return f"{tag}_" if tag in _OUR_OWN else tag


def _tag(name: str, attributes: Mapping[str, str]) -> str:
    if not attributes:
        return f"<{name}>"
    names = _names(tuple(attributes))
    told = "".join(
        [f' {key}="{_value(value)}"' for key, value in zip(names, attributes.values(), strict=True)]
    )
    return f"<{name}{told}>"


@lru_cache(REMEMBERED)
def _names(texts: tuple[str, ...]) -> tuple[str, ...]:
    """Names that are allowed; of those that would be the same, all but the first have a number."""
    found: dict[str, None] = {}
    for text in texts:
        name = first = _name(text)
        numbers = count(2)
        while name in found:
            name = f"{first}_{next(numbers)}"
        found[name] = None
    return tuple(found)


def _name(text: str) -> str:
    tag = _NO_NAME.sub("_", text)
    return tag if _LETTER.match(tag) else f"_{tag}"


def _value(text: str) -> str:
    return escape(text, {'"': "&quot;"})
