"""An index to be searched, and searches under way: the first hits at once, all of them after."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from thresher.query import tree
from thresher.query.answers import Answers, Part
from thresher.query.columns import pick
from thresher.query.conditions import Conditions
from thresher.query.cql import STRATEGIES, parse
from thresher.query.manifest import open_segments
from thresher.query.match import Stopped
from thresher.query.packing import Starts
from thresher.query.pieces import CqlError
from thresher.query.search import Finder, Hits, Watch, some_hits
from thresher.query.segment import Segment

SECONDS = 60.0  # that a search may take


class Values(NamedTuple):
    """The values of an attribute at some positions; what has none is -1."""

    numbers: NDArray[np.int64]
    values: pa.StringArray  # by number


class Index:
    """The index of a corpus as of one moment; what is added later is not seen."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.manifest, self.segments = open_segments(directory)
        for segment in self.segments:
            segment.complete(self.attributes, self.structures)
        self.bases = np.cumsum([0, *(segment.size for segment in self.segments)]).tolist()
        self.conditions = [Conditions(segment) for segment in self.segments]

    @property
    def tokens(self) -> int:
        """How many tokens there are, without those of deleted documents."""
        return sum(alive_tokens(segment) for segment in self.segments)

    @property
    def documents(self) -> int:
        return sum(segment.documents for segment in self.segments)

    @property
    def attributes(self) -> list[str]:
        """What tokens have a value of."""
        return list(dict.fromkeys(name for segment in self.segments for name in segment.attributes))

    @property
    def structures(self) -> dict[str, list[str]]:
        """What tokens stand in, and the attributes of that."""
        found: dict[str, list[str]] = {}
        for segment in self.segments:
            for name, structure in segment.structures.items():
                found.setdefault(name, [])
                found[name] += [one for one in structure.attributes if one not in found[name]]
        return found

    def search(
        self,
        query: str,
        *,
        strategy: tree.Strategy = "standard",
        any_case: bool = False,
        seconds: float | None = SECONDS,
        is_cancelled: Callable[[], bool] = lambda: False,
    ) -> Search:
        """Search for what a query in CQL describes; a fault in it is told at once.

        With `any_case`, strings match whatever their case. A search that takes longer than so many seconds is
        stopped, and says so.
        """
        if strategy not in STRATEGIES:
            raise CqlError(f"{strategy} is no strategy; there are {', '.join(STRATEGIES)}")
        return Search(self, parse(query, any_case=any_case), strategy, Watch(seconds, is_cancelled))

    def value(self, name: str, segment: Segment, positions: Starts) -> Values:
        """An attribute at positions of a segment: of tokens, or of the structures round them (`doc_year`)."""
        if name in segment.attributes:
            attribute = segment.attributes[name]
            types = pick(segment.column, positions.astype(np.uint32))
            return Values(attribute.values[types].astype(np.int64), attribute.lexicon.values)
        structure, _, attribute_name = name.partition("_")
        if attribute_name not in self.structures.get(structure, []):
            known = [*self.attributes, *(f"{s}_{a}" for s, names in self.structures.items() for a in names)]
            raise CqlError(f"there is no attribute {name}; there are {', '.join(known)}")
        numbers = segment.structures[structure].around(positions)
        told = segment.values(structure, attribute_name)
        return Values(np.append(told.numbers, -1)[numbers].astype(np.int64), told.values)


def alive_tokens(segment: Segment) -> int:
    if segment.alive is None:
        return segment.size
    return int((segment.alive.nexts.astype(np.int64) - segment.alive.firsts).sum())


class Search:
    """A search under way. Hits come in the order of the corpus, segment by segment."""

    def __init__(
        self, index: Index, statements: Sequence[tree.Statement], strategy: tree.Strategy, watch: Watch
    ) -> None:
        self.index = index
        self.stopped = ""  # why it ended before it was through, if it did
        self._statements, self._strategy, self._watch = statements, strategy, watch
        self._begin()

    def _begin(self) -> None:
        self._answers = Answers(self.index.conditions, self._strategy, self._watch)
        self._coming: Iterator[Part] = self._answers.parts(self._statements)
        self._parts: list[Part] = []
        self._is_through = False
        self._passed = 0  # hits that were streamed
        self._pull()  # what is wrong with a query comes out now

    def _begin_again(self) -> None:
        """Hits that were streamed are found anew for those who ask again, with as much time as before."""
        if self._passed:
            self._watch = self._watch.again()
            self.stopped = ""
            self._begin()

    @property
    def is_whole(self) -> bool:
        """Whether all hits were found."""
        return self._is_through and not self.stopped

    def _pull(self) -> bool:
        try:
            part = next(self._coming, None)
        except Stopped as reason:
            self.stopped, part = str(reason), None
        if part is None:
            self._is_through = True
            return False
        if len(part.hits):
            self._parts.append(part)
        return True

    def first(self, count: int) -> list[Part]:
        """At least so many hits, if there are, as soon as they are found."""
        self._begin_again()
        while sum(len(part.hits) for part in self._parts) < count and self._pull():
            pass
        return list(self._parts)

    def stream(self) -> Iterator[Part]:
        """All hits as they are found, each just once: they are not kept, so any number of them fits into memory."""
        self._begin_again()
        while self._parts or self._pull():
            while self._parts:
                part = self._parts.pop(0)
                self._passed += len(part.hits)
                yield part

    def hits(self) -> list[Hits]:
        """All hits, by segment; as far as they were found, if the search was stopped."""
        self._begin_again()
        while self._pull():
            pass
        by_segment: list[list[Hits]] = [[] for _ in self.index.segments]
        for part in self._parts:
            by_segment[part.segment].append(part.hits)
        return [some_hits(parts) for parts in by_segment]

    def count(self) -> int:
        """How many hits there are; as far as they were found, if the search was stopped."""
        find = self._statements[-1].search
        is_plain = (
            len(self._statements) == 1
            and isinstance(find, tree.Find)
            and not (find.nested or find.expand)
            and find.cut is None
        )
        if self._is_through:
            return self._passed + sum(len(part.hits) for part in self._parts)
        if not is_plain:
            return sum(map(len, self.hits()))
        assert isinstance(find, tree.Find)
        try:
            return sum(
                (self._answers.finders.get(number) or Finder(conditions, find, self._strategy)).count(
                    self._watch
                )
                for number, conditions in enumerate(self.index.conditions)
            )
        except Stopped as reason:
            self.stopped = str(reason)
            return sum(len(part.hits) for part in self._parts)

    def spans(self) -> Iterator[tuple[int, int]]:
        """The first and last position of every hit, among all tokens of the index."""
        for base, hits in zip(self.index.bases, self.hits(), strict=False):
            yield from zip((hits.firsts + base).tolist(), (hits.lasts + base).tolist(), strict=True)
