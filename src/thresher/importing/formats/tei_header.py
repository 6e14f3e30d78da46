"""The metadata in the header of a TEI document."""

from __future__ import annotations

from collections.abc import Sequence

from thresher.store import token_lines

# For each field, pairs of an element around and an element; the first pair that occurs counts.
FIELDS = {
    "title": (("titleStmt", "title"), ("sourceDesc", "title")),
    "author": (("titleStmt", "author"), ("sourceDesc", "author")),
    "date": (("creation", "date"), ("sourceDesc", "date"), ("publicationStmt", "date")),
    "id": (("publicationStmt", "idno"),),
    "opt_out": (("availability", "ab"),),
}
DATES = ("when", "when-iso", "from", "notBefore")  # attributes that are preferred to the text of a date
MAX_VALUE_CHARACTERS = 10_000


class TeiHeader:
    """The header of a document, read element by element."""

    def __init__(self, id: str) -> None:
        self._id = id
        self._found: dict[str, tuple[int, list[str]]] = {}  # rank of the pair and values, by field
        self._field = ""  # that is being read
        self._rank = 0
        self._depth = 0  # of the element with the field
        self._from_attribute = ""
        self._characters: list[str] = []

    def start(self, path: Sequence[str], attributes: dict[str, str]) -> None:
        """Begin an element, which is the last of the path."""
        if self._field:
            self.characters(" ")
            return
        for field, places in FIELDS.items():
            for rank, (around, name) in enumerate(places):
                if name == path[-1] and around in path:
                    self._field, self._rank, self._depth = field, rank, len(path)
                    dates = (attributes[date] for date in DATES if date in attributes)
                    self._from_attribute = next(dates, "") if field == "date" else ""
                    self._characters = []
                    return

    def end(self, depth: int) -> None:
        """End an element."""
        if not self._field or depth != self._depth:
            return
        value = self._from_attribute or " ".join("".join(self._characters).split())[:MAX_VALUE_CHARACTERS]
        rank, values = self._found.get(self._field, (len(FIELDS), []))
        if value and self._rank < rank:
            self._found[self._field] = self._rank, [value]
        elif value and self._rank == rank and self._field == "author":
            values.append(value)
        self._field = ""

    def characters(self, text: str) -> None:
        """Add text."""
        if self._field and len(self._characters) < MAX_VALUE_CHARACTERS:
            self._characters.append(text)

    def meta(self) -> dict[str, str]:
        """Return the metadata so far."""
        found = {field: "; ".join(self._found[field][1]) for field in FIELDS if field in self._found}
        if self._id:
            found["id"] = self._id
        return {field: token_lines.clean(value) for field, value in found.items()}
