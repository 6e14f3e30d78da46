"""What the header of a TEI document tells of it."""

from __future__ import annotations

from collections.abc import Sequence

from thresher.store import lines

# What it tells, by an element and one that it stands in; the first of these that is there counts.
FIELDS = {
    "title": (("titleStmt", "title"), ("sourceDesc", "title")),
    "author": (("titleStmt", "author"), ("sourceDesc", "author")),
    "date": (("creation", "date"), ("sourceDesc", "date"), ("publicationStmt", "date")),
    "id": (("publicationStmt", "idno"),),
    "opt_out": (("availability", "ab"),),
}
DATES = ("when", "when-iso", "from", "notBefore")  # attributes that say it better than the text
LONGEST_VALUE = 10_000  # characters


class Header:
    """The header of a document, read element by element."""

    def __init__(self, id: str) -> None:
        self._id = id
        self._found: dict[str, tuple[int, list[str]]] = {}  # field: rank of its place, values
        self._field = ""  # that is being read …
        self._rank = 0
        self._depth = 0  # … in the element at this depth
        self._said = ""  # in an attribute
        self._characters: list[str] = []

    def start(self, path: Sequence[str], attributes: dict[str, str]) -> None:
        """An element begins, the last of the path."""
        if self._field:
            self.characters(" ")
            return
        for field, places in FIELDS.items():
            for rank, (around, name) in enumerate(places):
                if name == path[-1] and around in path:
                    self._field, self._rank, self._depth = field, rank, len(path)
                    said = (attributes[date] for date in DATES if date in attributes)
                    self._said = next(said, "") if field == "date" else ""
                    self._characters = []
                    return

    def end(self, depth: int) -> None:
        """An element ends."""
        if not self._field or depth != self._depth:
            return
        value = self._said or " ".join("".join(self._characters).split())[:LONGEST_VALUE]
        rank, values = self._found.get(self._field, (len(FIELDS), []))
        if value and self._rank < rank:
            self._found[self._field] = self._rank, [value]
        elif value and self._rank == rank and self._field == "author":
            values.append(value)
        self._field = ""

    def characters(self, text: str) -> None:
        """Some text."""
        if self._field and len(self._characters) < LONGEST_VALUE:
            self._characters.append(text)

    def meta(self) -> dict[str, str]:
        """All that is known so far."""
        found = {field: "; ".join(self._found[field][1]) for field in FIELDS if field in self._found}
        if self._id:
            found["id"] = self._id
        return {field: lines.clean(value) for field, value in found.items()}
