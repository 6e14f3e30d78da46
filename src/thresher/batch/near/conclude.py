"""Conclude: which paragraphs of a shard stay, and what goes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import msgspec
import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from thresher.batch.near.files import Arrays, NearFault, writing
from thresher.batch.near.kernels.rounds import DROPPED, UNDECIDED
from thresher.batch.near.rounds import Advanced, State
from thresher.batch.near.scatter import Scattered
from thresher.read.runs import fates as with_short_ones


class Lost(Struct, frozen=True):
    """How much of something there was, and how much of it goes."""

    documents: int = 0
    emptied: int = 0  # documents of which nothing stays
    paragraphs: int = 0
    dropped: int = 0  # paragraphs
    words: int = 0
    dropped_words: int = 0

    def __add__(self, other: Lost) -> Lost:
        return Lost(
            *(
                one + another
                for one, another in zip(
                    msgspec.structs.astuple(self), msgspec.structs.astuple(other), strict=True
                )
            )
        )


class Report(Struct, frozen=True):
    """What goes, in all and of each host that loses something."""

    total: Lost = Lost()
    hosts: dict[str, Lost] = {}

    def __add__(self, other: Report) -> Report:
        hosts = dict(self.hosts)
        for host, lost in other.hosts.items():
            hosts[host] = hosts.get(host, Lost()) + lost
        return Report(self.total + other.total, hosts)


def conclude(
    scattered: Path,
    output: Path,
    state: Path,
    advanced: Path | None = None,
    *,
    first_block: int = 0,
    hosts: Sequence[str] = (),
) -> None:
    """Which paragraphs of a shard stay: those that were kept, and short ones with the next that is not short.

    `first_block` is the number of the shard's first block in the corpus. `hosts`: one for each document, or none.
    """
    with Scattered(scattered) as shard:
        counts, words = shard.array("counts", np.uint32), shard.array("words", np.uint32)
        sizes = shard.array("documents", np.uint32).astype(np.int64)
    dropped = _dropped(state, advanced, first_block)
    if not len(dropped) == len(counts) == len(words) == sizes.sum():
        raise NearFault(f"{state} belongs to another shard than {scattered}; run the steps again")
    ends = np.cumsum(sizes)
    _let_short_ones_follow(dropped, counts, ends - sizes, ends)
    write_conclusion(output, dropped, words, sizes, hosts)


def write_conclusion(
    output: Path,
    dropped: NDArray[np.bool_],
    words: NDArray[np.uint32],
    sizes: NDArray[np.int64],
    hosts: Sequence[str],
) -> None:
    """Write which paragraphs of documents, each of which has so many, are dropped, and a report."""
    if hosts and len(hosts) != len(sizes):
        raise NearFault(
            f"{output}: there are {len(sizes)} documents and {len(hosts)} hosts; give all or none"
        )
    with writing(output) as writer:
        writer.name("dropped", np.packbits(dropped))
        writer.name("documents", sizes)
        report = _report(dropped, words, sizes, hosts)
        writer.name("report", np.frombuffer(msgspec.json.encode(report, order="sorted"), np.uint8))


def _dropped(state: Path, advanced: Path | None, first_block: int) -> NDArray[np.bool_]:
    with State(state) as file, Advanced(advanced) as decided:
        fates = [
            decided.overlay(file.stretch("fates", np.uint8, block), first_block + block)
            for block in range(file.blocks)
        ]
    found = np.concatenate([np.empty(0, np.uint8), *fates])
    if (found == UNDECIDED).any():
        raise NearFault(f"not all paragraphs of {state} are decided; let the rounds come to their end")
    dropped: NDArray[np.bool_] = found == DROPPED
    return dropped


def _let_short_ones_follow(
    dropped: NDArray[np.bool_],
    counts: NDArray[np.uint32],
    begins: NDArray[np.int64],
    ends: NDArray[np.int64],
) -> None:
    """In documents that lose something, paragraphs too short to tell may go as well."""
    losing = np.unique(np.searchsorted(ends, np.flatnonzero(dropped), side="right"))
    for begin, end in zip(begins[losing].tolist(), ends[losing].tolist(), strict=True):
        stays = with_short_ones(counts[begin:end].tolist(), dropped[begin:end].tolist())
        dropped[begin:end] = ~np.array(stays)


def _report(
    dropped: NDArray[np.bool_], words: NDArray[np.uint32], sizes: NDArray[np.int64], hosts: Sequence[str]
) -> Report:
    which = np.repeat(np.arange(len(sizes)), sizes)
    many = len(sizes)
    gone = np.bincount(which[dropped], minlength=many)
    columns = (
        np.ones(many, np.int64),
        (gone == sizes) & (gone > 0),
        sizes,
        gone,
        np.bincount(which, weights=words, minlength=many),
        np.bincount(which[dropped], weights=words[dropped], minlength=many),
    )
    table = np.stack([column.astype(np.int64) for column in columns])
    total = Lost(*table.sum(axis=1).tolist())
    if not hosts:
        return Report(total)
    names, same = np.unique(np.array(hosts, object).astype(str), return_inverse=True)
    of_hosts = np.stack([np.bincount(same, weights=row, minlength=len(names)) for row in table]).astype(
        np.int64
    )
    losing = np.flatnonzero(of_hosts[3])
    return Report(total, {str(names[host]): Lost(*of_hosts[:, host].tolist()) for host in losing})


def dropped(path: Path) -> Iterator[list[bool]]:
    """Of each document of a shard that was concluded: which of its paragraphs go."""
    with Arrays(path) as file:
        sizes = file.array("documents", np.int64)
        bits = np.unpackbits(file.array("dropped", np.uint8), count=int(sizes.sum())).astype(bool)
    at = 0
    for size in sizes.tolist():
        yield bits[at : at + size].tolist()
        at += size


def report(paths: Iterable[Path]) -> Report:
    """What goes of all these shards."""
    found = Report()
    for path in paths:
        with Arrays(path) as file:
            raw = file.array("report", np.uint8).tobytes()
        try:
            found += msgspec.json.decode(raw, type=Report)
        except msgspec.DecodeError as fault:
            raise NearFault(f"{path} has no report ({fault}); delete it and run the step again") from None
    return found
