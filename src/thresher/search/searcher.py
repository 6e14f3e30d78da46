"""The index of a corpus opened for reading, and searches in it, which yield their first hits at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from thresher.search.cql import ast
from thresher.search.cql.bare_words import quoted
from thresher.search.cql.lexer import CqlError, unknown
from thresher.search.cql.parser import STRATEGIES, parse
from thresher.search.encoding.bitpacking import Starts
from thresher.search.encoding.token_column import pick
from thresher.search.execution.conditions import Conditions
from thresher.search.execution.matcher import SearchStopped
from thresher.search.execution.segment_search import Deadline, Hits, PatternSearch, joined_hits
from thresher.search.execution.type_conditions import UnknownAttributeError
from thresher.search.index.manifest import open_segments
from thresher.search.index.segment import Segment
from thresher.search.script import NamedResult, ScriptEvaluator

SECONDS = 60.0  # time limit of a search


class AttributeValues(NamedTuple):
    """Values of an attribute at some positions, as numbers; -1 where there is no value."""

    numbers: NDArray[np.int64]
    values: pa.StringArray  # by number


class Index:
    """The index of a corpus at the moment of opening; documents added later are not seen."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.manifest, self.segments = open_segments(directory)
        for segment in self.segments:
            segment.complete(self.attributes, self.structures)
        self.bases = np.cumsum([0, *(segment.size for segment in self.segments)]).tolist()
        self.conditions = [Conditions(segment) for segment in self.segments]

    @property
    def tokens(self) -> int:
        """Number of tokens, without tokens of deleted documents."""
        return sum(live_tokens(segment) for segment in self.segments)

    @property
    def documents(self) -> int:
        """Number of documents, without deleted ones."""
        return sum(segment.documents for segment in self.segments)

    @property
    def attributes(self) -> list[str]:
        """Names of the attributes of tokens."""
        return list(dict.fromkeys(name for segment in self.segments for name in segment.attributes))

    @property
    def structures(self) -> dict[str, list[str]]:
        """Names of the structures, each with the names of its attributes."""
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
        strategy: ast.Strategy = "standard",
        any_case: bool = False,
        seconds: float | None = SECONDS,
        is_cancelled: Callable[[], bool] = lambda: False,
    ) -> RunningSearch:
        """Start a search for a query in CQL, or for plain words.

        The search runs as far as the first hits. With `any_case`, strings match in any case. After `seconds`, the
        search is stopped, and its `stopped` says so. Raises CqlError if the query has a fault.
        """
        if seconds is not None and not seconds >= 0:
            raise CqlError(f"seconds must be at least 0, got {seconds}; for example 60")
        if strategy not in STRATEGIES:
            raise CqlError(unknown("strategy", strategy, STRATEGIES))
        statements = parse(quoted(query), any_case=any_case)
        try:
            return RunningSearch(self, statements, strategy, Deadline(seconds, is_cancelled))
        except UnknownAttributeError as error:
            raise CqlError(f"{error}{self.hint(error.name)}") from None

    def value(self, name: str, segment: Segment, positions: Starts) -> AttributeValues:
        """Return the values of an attribute at positions of a segment.

        The attribute is one of tokens, or one of the structures around them, such as `doc_year`.
        """
        if name in segment.attributes:
            attribute = segment.attributes[name]
            types = pick(segment.column, positions.astype(np.uint32))
            return AttributeValues(attribute.values[types].astype(np.int64), attribute.lexicon.values)
        structure, _, attribute_name = name.partition("_")
        if attribute_name not in self.structures.get(structure, []):
            known = [*self.attributes, *(f"{s}_{a}" for s, names in self.structures.items() for a in names)]
            raise CqlError(unknown("attribute", name, known) + self.hint(name))
        numbers = segment.structures[structure].around(positions)
        found = segment.values(structure, attribute_name)
        return AttributeValues(np.append(found.numbers, -1)[numbers].astype(np.int64), found.values)

    def hint(self, attribute: str) -> str:
        """Return the end of a message that names the commands by which tokens get an attribute such as lemma.

        It is empty if no annotator gives the attribute, or if the index has only imported tokens.
        """
        from thresher.annotate.registry import commands_that_add
        from thresher.errors import ThresherError
        from thresher.store import corpus_files

        if self.manifest.annotators == {}:
            return ""
        try:
            language = corpus_files.open(self.directory).config.language
        except ThresherError:  # an index without its corpus
            return ""
        commands = commands_that_add(attribute, language, self.directory)
        return f"; to add it: {', then '.join(commands)}" if commands else ""


def live_tokens(segment: Segment) -> int:
    """Return the number of tokens of a segment, without tokens of deleted documents."""
    if segment.alive is None:
        return segment.size
    return int((segment.alive.nexts.astype(np.int64) - segment.alive.firsts).sum())


class RunningSearch:
    """A search in progress. Hits come in the order of the corpus, segment by segment."""

    def __init__(
        self, index: Index, statements: Sequence[ast.Statement], strategy: ast.Strategy, deadline: Deadline
    ) -> None:
        self.index = index
        self.stopped = ""  # why the search ended before its end; "" if it did not
        self._statements, self._strategy, self._deadline = statements, strategy, deadline
        self._begin()

    def _begin(self) -> None:
        self._script = ScriptEvaluator(self.index.conditions, self._strategy, self._deadline)
        self._results: Iterator[NamedResult] = self._script.parts(self._statements)
        self._parts: list[NamedResult] = []
        self._is_exhausted = False
        self._streamed = 0  # hits that `stream` has yielded and dropped
        self._pull()  # raises the errors of the query

    def _restart(self) -> None:
        """Search again if hits were streamed, since they are not kept. The time limit begins again."""
        if self._streamed:
            self._deadline = self._deadline.again()
            self.stopped = ""
            self._begin()

    @property
    def is_whole(self) -> bool:
        """True if all hits were found."""
        return self._is_exhausted and not self.stopped

    def renew(self) -> None:
        """Begin the time limit again, from now."""
        self._deadline.renew()

    def _pull(self) -> bool:
        """Find the next part of the hits; return whether there was one."""
        try:
            part = next(self._results, None)
        except SearchStopped as reason:
            self.stopped, part = str(reason), None
        if part is None:
            self._is_exhausted = True
            return False
        if len(part.hits):
            self._parts.append(part)
        return True

    def first(self, count: int) -> list[NamedResult]:
        """Return at least `count` hits, or all if there are fewer, as soon as they are found."""
        self._restart()
        while sum(len(part.hits) for part in self._parts) < count and self._pull():
            pass
        return list(self._parts)

    def stream(self) -> Iterator[NamedResult]:
        """Yield all hits as they are found. Hits are not kept, so that memory is bounded."""
        self._restart()
        while self._parts or self._pull():
            while self._parts:
                part = self._parts.pop(0)
                self._streamed += len(part.hits)
                yield part

    def hits(self) -> list[Hits]:
        """Return all hits by segment; if the search is stopped, the hits found so far."""
        self._restart()
        while self._pull():
            pass
        by_segment: list[list[Hits]] = [[] for _ in self.index.segments]
        for part in self._parts:
            by_segment[part.segment].append(part.hits)
        return [joined_hits(parts) for parts in by_segment]

    def count(self) -> int:
        """Return the number of hits; if the search is stopped, the number found so far.

        Hits of a plain pattern are counted without being listed, which is much faster.
        """
        find = self._statements[-1].search
        is_plain = (
            len(self._statements) == 1
            and isinstance(find, ast.FindQuery)
            and not (find.nested or find.expand)
            and find.cut is None
        )
        if self._is_exhausted:
            return self._streamed + sum(len(part.hits) for part in self._parts)
        if not is_plain:
            return sum(map(len, self.hits()))
        assert isinstance(find, ast.FindQuery)
        try:
            return sum(
                (self._script.finders.get(number) or PatternSearch(conditions, find, self._strategy)).count(
                    self._deadline
                )
                for number, conditions in enumerate(self.index.conditions)
            )
        except SearchStopped as reason:
            self.stopped = str(reason)
            return sum(len(part.hits) for part in self._parts)

    def spans(self) -> Iterator[tuple[int, int]]:
        """Yield the first and the last position of every hit, counted over all tokens of the index."""
        for base, hits in zip(self.index.bases, self.hits(), strict=False):
            yield from zip((hits.firsts + base).tolist(), (hits.lasts + base).tolist(), strict=True)
