"""Vertical text: one token per line, for Sketch Engine and CWB (`cwb-encode -x`)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache, partial
from itertools import count
from typing import BinaryIO
from xml.sax.saxutils import escape

from thresher.exporting.documents import Event, ExportDocument, ExportSelection, ExportToken
from thresher.exporting.formats.values import form
from thresher.store.token_lines import OpenTag

REMEMBERED = 1 << 10  # cached sets of names: most tags of a kind have the same attributes
_OUR_OWN = ("doc", "g")  # structures of imports may not have these names, which would divide documents
_NO_NAME = re.compile(r"[^\w.:-]")
_LETTER = re.compile(r"[A-Za-z_\x80-\U0010ffff]")


def write_vertical(selection: ExportSelection, out: BinaryIO) -> int:
    """Write tokens with the attributes of all documents, and <g/> for no space; return the number of documents."""
    written = 0
    for document in selection.rendered(partial(render, columns=selection.attributes)):
        out.write(document)
        written += 1
    return written


def render(
    item: ExportDocument, events: Iterable[Event], attributes: tuple[str, ...], *, columns: tuple[str, ...]
) -> bytes:
    """Return a document as vertical text, escaped as in XML, so that no token looks like a tag."""
    places = [attributes.index(name) if name in attributes else None for name in columns]
    as_they_are = places == list(range(len(attributes)))
    lines = [_tag("doc", item.meta)]
    for event in events:
        if isinstance(event, ExportToken):
            if event.glued:
                lines.append("<g/>")
            values = event.values
            if not as_they_are:
                values = tuple("" if place is None else values[place] for place in places)
            line = "\t".join((form(values[0]), *values[1:]))
            lines.append(escape(line) if "&" in line or "<" in line or ">" in line else line)
        elif isinstance(event, OpenTag):
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
    written = "".join(
        [f' {key}="{_value(value)}"' for key, value in zip(names, attributes.values(), strict=True)]
    )
    return f"<{name}{written}>"


@lru_cache(REMEMBERED)
def _names(texts: tuple[str, ...]) -> tuple[str, ...]:
    """Return valid names; of several that become equal, all but the first get a number."""
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
