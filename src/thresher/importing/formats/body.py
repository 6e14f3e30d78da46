"""The builder of a document's lines from tags and tokens."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import NamedTuple

from thresher.importing.formats.document import MAX_DOCUMENT_BYTES, SourceDocument
from thresher.store import token_lines


class OpenStructure(NamedTuple):
    """An open structure, or one to be opened."""

    name: str
    start: bytes  # the line that opens it, after a line feed
    end: bytes  # the line that closes it, after a line feed
    bare: bool  # without attributes
    inside: int = 0  # ignored structures of the same name that are open within it


def structure(name: str, attributes: Mapping[str, str]) -> OpenStructure:
    """Return a structure with these attributes, to be opened."""
    bare = _bare(name)
    if not attributes:
        return bare
    return bare._replace(start=b"\n" + token_lines.opening(name, attributes)[:-1], bare=False)


@lru_cache(1_000)
def _bare(name: str) -> OpenStructure:
    start, end = token_lines.opening(name, {}), token_lines.closing(name)
    return OpenStructure(name, b"\n" + start[:-1], b"\n" + end[:-1], True)


class BodyBuilder:
    """A builder of the lines of one document.

    Structures that stay empty, or that are within a structure of the same name, are left out; structures that stay
    open are closed. Lines have their line feed in front, so that a range of tokens between two tags can be taken
    from a file as it is.
    """

    def __init__(self, meta: dict[str, str]) -> None:
        self.meta = meta
        self.chunks: list[bytes] = []
        self.tags = 0  # lines of structures among the chunks
        self.size = 0  # bytes of tokens
        self.opened: tuple[OpenStructure, ...] = ()
        self.waiting = 0  # the last open structures without a token, whose tags are not written yet
        self.part = 1

    @property
    def full(self) -> bool:
        """True if the document is long enough to be cut."""
        return self.size >= MAX_DOCUMENT_BYTES

    def open(self, new: OpenStructure) -> bool:
        """Open a structure; return False if one of that name is open, in which case the new one is ignored."""
        place = self._place(new.name)
        if place is not None:
            known = self.opened[place]
            self._change(place, known._replace(inside=known.inside + 1))
            return False
        self.opened = (*self.opened, new)
        self.waiting += 1
        return True

    def close(self, name: str) -> bool:
        """Close a structure; return False if none of that name is open."""
        place = self._place(name)
        if place is None:
            return False
        known = self.opened[place]
        if known.inside:
            self._change(place, known._replace(inside=known.inside - 1))
            return True
        if place >= len(self.opened) - self.waiting:
            self.waiting -= 1
        else:
            self._write(known.end)
        self._change(place)
        return True

    def add(self, tokens: bytes) -> None:
        """Add lines of tokens."""
        if not tokens:
            return
        for known in self.opened[len(self.opened) - self.waiting :]:
            self._write(known.start)
        self.waiting = 0
        self.chunks.append(tokens)
        self.size += len(tokens)

    def cut(self) -> Iterator[SourceDocument]:
        """Yield the lines so far as a part of the document; open structures continue in the next part."""
        opened = self.opened
        yield from self.finish()
        self.opened, self.waiting = opened, len(opened)
        self.part += 1

    def finish(self) -> Iterator[SourceDocument]:
        """Yield the document, or its last part; nothing if there are no tokens."""
        for known in reversed(self.opened[: len(self.opened) - self.waiting]):
            self._write(known.end)
        chunks, tags = self.chunks, self.tags
        self.chunks, self.tags, self.size = [], 0, 0
        self.opened, self.waiting = (), 0
        if chunks:
            chunks[0] = chunks[0][1:]  # its line feed is added at the end
            body = b"".join([*chunks, b"\n"])
            chunks.clear()
            yield SourceDocument(self.meta, body, token_lines.count_ends(body) - tags, part=self.part)

    def _place(self, name: str) -> int | None:
        for place, known in enumerate(self.opened):
            if known.name == name:
                return place
        return None

    def _change(self, place: int, *new: OpenStructure) -> None:
        self.opened = (*self.opened[:place], *new, *self.opened[place + 1 :])

    def _write(self, line: bytes) -> None:
        self.chunks.append(line)
        self.tags += 1
