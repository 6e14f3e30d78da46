"""The lines of a document as they come together from tags and tokens."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import NamedTuple

from thresher.store import lines
from thresher.store.importers.document import LONGEST, Document


class Structure(NamedTuple):
    """A structure, open or about to be."""

    name: str
    start: bytes  # the line that opens it …
    end: bytes  # … and the one that closes it, both with the line feed in front
    bare: bool  # it has no attributes
    inside: int = 0  # structures of the same name open within it, which do not count


def structure(name: str, attributes: Mapping[str, str]) -> Structure:
    """A structure as it begins."""
    bare = _bare(name)
    if not attributes:
        return bare
    return bare._replace(start=b"\n" + lines.opening(name, attributes)[:-1], bare=False)


@lru_cache(1_000)
def _bare(name: str) -> Structure:
    start, end = lines.opening(name, {}), lines.closing(name)
    return Structure(name, b"\n" + start[:-1], b"\n" + end[:-1], True)


class Body:
    """Lines of one document: what stays empty or stands within its like is left out, what stays open is closed.

    Lines have the line feed in front of them, not behind: so a stretch of tokens between two tags can be cut out of
    a file and taken as it is.
    """

    def __init__(self, meta: dict[str, str]) -> None:
        self.meta = meta
        self.chunks: list[bytes] = []
        self.tags = 0  # lines of structures among the chunks
        self.size = 0  # bytes of tokens
        self.opened: tuple[Structure, ...] = ()
        self.waiting = 0  # of the opened ones, the last so many have no token yet, and are not in the chunks
        self.part = 1

    @property
    def full(self) -> bool:
        """Whether it is time to cut."""
        return self.size >= LONGEST

    def open(self, new: Structure) -> bool:
        """A structure begins; False if one of that name is open, which is then the only one that counts."""
        place = self._place(new.name)
        if place is not None:
            known = self.opened[place]
            self._change(place, known._replace(inside=known.inside + 1))
            return False
        self.opened = (*self.opened, new)
        self.waiting += 1
        return True

    def close(self, name: str) -> bool:
        """A structure ends; False if none of that name is open."""
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
        """Some tokens follow."""
        if not tokens:
            return
        for known in self.opened[len(self.opened) - self.waiting :]:
            self._write(known.start)
        self.waiting = 0
        self.chunks.append(tokens)
        self.size += len(tokens)

    def cut(self) -> Iterator[Document]:
        """What there is so far, as a part of the document; what is open goes on in the next part."""
        opened = self.opened
        yield from self.finish()
        self.opened, self.waiting = opened, len(opened)
        self.part += 1

    def finish(self) -> Iterator[Document]:
        """The document, or the last part of it; nothing if it has no tokens."""
        for known in reversed(self.opened[: len(self.opened) - self.waiting]):
            self._write(known.end)
        chunks, tags = self.chunks, self.tags
        self.chunks, self.tags, self.size = [], 0, 0
        self.opened, self.waiting = (), 0
        if chunks:
            chunks[0] = chunks[0][1:]  # the line feed goes from the front to the end
            body = b"".join([*chunks, b"\n"])
            chunks.clear()
            yield Document(self.meta, body, lines.count_ends(body) - tags, part=self.part)

    def _place(self, name: str) -> int | None:
        for place, known in enumerate(self.opened):
            if known.name == name:
                return place
        return None

    def _change(self, place: int, *new: Structure) -> None:
        self.opened = (*self.opened[:place], *new, *self.opened[place + 1 :])

    def _write(self, line: bytes) -> None:
        self.chunks.append(line)
        self.tags += 1
