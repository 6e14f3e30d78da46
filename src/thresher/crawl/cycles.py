"""A crawl in rounds, and what each of them brought.

Generation cycles (N4): the best URLs that wait are chosen, visited, and what they lead to waits in the stash; when
the frontier has run empty the cycle is over and the next is chosen. So the frontier holds the URLs of one cycle and
nothing else, they came there in one commit, and what may be visited in a cycle is the same after any crash.

Cyclic selection (H13): a phase is a crawl like any other until so many pages are fetched. Then the frontier is
emptied, and the next phase begins with the best URLs harvested in good places of good pages. The others are given
up: they stay seen, so no phase visits them.
"""

from __future__ import annotations

from collections import deque
from typing import Any

import msgspec
import numpy as np
from msgspec import Struct
from numpy.typing import ArrayLike, NDArray

from thresher.config import Cycles as Terms
from thresher.crawl.ledger import Figures
from thresher.crawl.stash import Stash, portions
from thresher.crawl.state import State, after
from thresher.page import Candidate, Page
from thresher.url import key

PROGRESS = b"m/cycles"
CYCLE = b"c/"  # c/ number -> Account
HARVESTED = b"g"  # g hash of the URL -> nothing; of this phase
SHOWN = 100  # cycles that status tells

_encode = msgspec.msgpack.Encoder().encode


class Account(Struct, frozen=True, array_like=True):
    """What a crawl or a part of it amounts to."""

    fetched: int
    kept: int
    ours: int  # pages in the language of the corpus
    downloaded: int
    text_bytes: int

    @property
    def accuracy(self) -> float:
        """Of what was fetched, the share in the language of the corpus (N7)."""
        return self.ours / self.fetched if self.fetched else 0.0

    @property
    def rate(self) -> float:
        """The yield (S1)."""
        return self.text_bytes / self.downloaded if self.downloaded else 0.0


def account(figures: Figures) -> Account:
    """The whole crawl so far."""
    kept = figures.outcomes.get("kept", 0)
    return Account(figures.fetched, kept, figures.ours, figures.downloaded, figures.text_bytes)


def good_places(
    badness: float | None, boilerplate: ArrayLike, max_badness: float, max_boilerplate: float
) -> NDArray[np.intp]:
    """Where on a page links stand that are worth beginning anew from, by the scores of their blocks (H13).

    A language without a model has no Badness (None), and then it says nothing against a page.
    """
    if badness is not None and not badness <= max_badness:
        return np.empty(0, np.intp)
    return np.flatnonzero(np.asarray(boilerplate, np.float64) < max_boilerplate)


class Progress(Struct, array_like=True):
    """Where a crawl in cycles stands."""

    number: int = 0  # of cycles that have begun
    begun: Account | None = None  # the crawl when the present cycle began; None: between two cycles
    emptying: bool = False  # the frontier is being emptied and must not be opened


class Cycles:
    """Which cycle it is, what it brought, and where its URLs come from."""

    def __init__(self, state: State, terms: Terms, stash: Stash) -> None:
        """Opens before the frontier: a turn of the cycle that was cut short is brought to its end."""
        self._state = state
        self._terms = terms
        self._stash = stash
        self._progress = msgspec.msgpack.decode(state.get(PROGRESS) or _encode(Progress()), type=Progress)
        first = CYCLE + max(0, self._progress.number - SHOWN).to_bytes(4, "big")
        self._ended: deque[tuple[int, Account]] = deque(
            (
                (int.from_bytes(name[len(CYCLE) :], "big"), msgspec.msgpack.decode(value, type=Account))
                for name, value in state.committed(first, after(CYCLE))
            ),
            maxlen=SHOWN,
        )
        if self._progress.emptying:
            self.empty()

    @property
    def hold_back(self) -> bool:
        """Whether what is found waits for the next cycle."""
        return self._terms.pages > 0 and not self._terms.selection

    @property
    def under_way(self) -> bool:
        return self._progress.begun is not None

    @property
    def are_enough(self) -> bool:
        """Whether as many cycles as were asked for have begun."""
        return 0 < self._terms.count <= self._progress.number

    def is_full(self, fetched: int) -> bool:
        """Whether a phase has all its pages, with so many fetched in the whole crawl."""
        begun = self._progress.begun
        return self._terms.selection and begun is not None and fetched - begun.fetched >= self._terms.pages

    # from one to the next

    def end(self, figures: Figures, *, emptying: bool) -> None:
        """The present cycle, if there is one, is over; the frontier is to be emptied before it is opened again."""
        progress = self._progress
        if progress.begun is not None:
            brought = _between(progress.begun, account(figures))
            self._ended.append((progress.number, brought))
            self._state.put(CYCLE + progress.number.to_bytes(4, "big"), _encode(brought))
        progress.begun, progress.emptying = None, emptying

    def empty(self) -> None:
        """Take everything out of a frontier that nobody has open."""
        self._stash.withdraw(self._is_wanted)
        self._progress.emptying = False
        self.flush()
        self._state.commit()

    def _is_wanted(self, candidate: Candidate) -> bool:
        return not self._terms.selection or HARVESTED + key(candidate.url) in self._state

    def begin(self, figures: Figures) -> None:
        self._progress.number += 1
        self._progress.begun = account(figures)

    # selection

    def harvest(self, page: Page) -> None:
        """Remember which links of a page the next phase may begin from, also if they were seen before."""
        if not self._terms.selection or page.kind != "html":
            return
        scores = [link.boilerplate for link in page.links]
        terms = self._terms
        for place in good_places(page.badness, scores, terms.max_badness, terms.max_boilerplate):
            self._state.put(HARVESTED + key(page.links[place].url), b"")

    def forget_harvest(self) -> None:
        """What was harvested in one phase is of no use after the next has begun."""
        for portion in portions(self._state, HARVESTED):
            for name, _ in portion:
                self._state.delete(name)
            self._state.commit()

    # figures

    def table(self, figures: Figures) -> list[dict[str, Any]]:
        """The last cycles, the present one included."""
        rows = list(self._ended)
        if self._progress.begun is not None:
            rows.append((self._progress.number, _between(self._progress.begun, account(figures))))
        return [_row(*row) for row in rows[-SHOWN:]]

    def flush(self) -> None:
        """Hand all of this to the state's next commit."""
        self._state.put(PROGRESS, _encode(self._progress))
        self._stash.flush()


def _between(first: Account, last: Account) -> Account:
    then, now = msgspec.structs.astuple(first), msgspec.structs.astuple(last)
    return Account(*(new - old for old, new in zip(then, now, strict=True)))


def _row(number: int, brought: Account) -> dict[str, Any]:
    return {
        "cycle": number,
        **msgspec.structs.asdict(brought),
        "accuracy": brought.accuracy,
        "yield": brought.rate,
    }
