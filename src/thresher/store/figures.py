"""The figures of a crawl in shards: those of all shards as one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain
from typing import Any

from thresher.config import Budget

Status = Mapping[str, Any]

SHOWN_HOSTS = 5  # best and worst
OF_A_SHARD = ("files", "state")  # where things are, which is no figure
SUMS = ("pages", "bytes", "queue", "queue_closed", "given_up", "seen_urls", "connections")
CYCLE_SUMS = ("fetched", "kept", "ours", "downloaded", "text_bytes")


def merged(statuses: Sequence[Status | None], budget: Budget) -> dict[str, Any]:
    """The status of a crawl from those of its shards, by number; None: one that has not told any. One at least has.

    The budget is that of all together. What is asked of all alike (language, policy), and what is not known here,
    is as the first one tells.
    """
    told = [status for status in statuses if status is not None]
    sums = {name: added([status[name] for status in told]) for name in SUMS}
    pages, bytes_ = sums["pages"], sums["bytes"]
    return {
        **{name: figure for name, figure in told[0].items() if name not in OF_A_SHARD},
        **sums,
        "budget": {"pages": budget.pages, "bytes": budget.bytes, "seconds": budget.seconds},
        "yield": {
            "bytes": share(bytes_["text"], bytes_["downloaded"]),
            "documents": share(pages["kept"], pages["fetched"]),
        },
        "hosts": _hosts([status["hosts"] for status in told]),
        "waiting_for": max(status["waiting_for"] for status in told),
        "widening": _widening(told),
        "cycles": _cycles([status["cycles"] for status in told]),
        "time": {
            "wall_s": max(status["time"]["wall_s"] for status in told),
            "cpu_s": added([status["time"]["cpu_s"] for status in told]),
        },
        "shards": [_row(number, status) for number, status in enumerate(statuses) if status is not None],
    }


def added(figures: Sequence[Any]) -> Any:
    """Numbers, or tables of them, added up; what one has not is nothing.

    >>> added([{"kept": 1, "why": {"short": 2}}, {"kept": 2, "why": {"long": 3}}])
    {'kept': 3, 'why': {'short': 2, 'long': 3}}
    """
    if not isinstance(figures[0], Mapping):
        return sum(figures)
    names = dict.fromkeys(chain.from_iterable(figures))
    return {name: added([one[name] for one in figures if name in one]) for name in names}


def share(part: float, whole: float) -> float:
    """How much of a whole a part is; of nothing, nothing."""
    return part / whole if whole else 0.0


def _hosts(several: Sequence[Status]) -> dict[str, Any]:
    """Every host is of one shard, so they add up."""
    return {
        **{name: sum(hosts[name] for hosts in several) for name in ("seen", "open", "closed")},
        "best": _ranked((hosts["best"] for hosts in several), lambda host: -host["yield"]),
        "worst": _ranked((hosts["worst"] for hosts in several), lambda host: host["yield"]),
    }


def _ranked(lists: Iterable[Sequence[Status]], rank: Callable[[Status], float]) -> list[Status]:
    return sorted(chain.from_iterable(lists), key=rank)[:SHOWN_HOSTS]


def _widening(told: Sequence[Status]) -> dict[str, Any]:
    """A crawl is as wide as the shard that widened least; lately it gave what each shard did, by its downloads."""
    several = [status["widening"] for status in told]
    least = min(several, key=lambda widening: widening["stage"])
    weights = [status["bytes"]["downloaded"] for status in told]
    lately = sum(widening["lately"] * weight for widening, weight in zip(several, weights, strict=True))
    return {
        **least,
        "found": sum(widening["found"] for widening in several),
        "kept": sum(widening["kept"] for widening in several),
        "lately": share(lately, sum(weights)),
    }


def _cycles(several: Sequence[Sequence[Status]]) -> list[dict[str, Any]]:
    """Cycles by number; as many as the shard tells that tells most."""
    by_number: dict[int, list[Status]] = {}
    for row in chain.from_iterable(several):
        by_number.setdefault(row["cycle"], []).append(row)
    cycles = [_cycle(number, by_number[number]) for number in sorted(by_number)]
    return cycles[len(cycles) - max(map(len, several)) :]


def _cycle(number: int, rows: Sequence[Status]) -> dict[str, Any]:
    sums = {name: sum(row[name] for row in rows) for name in CYCLE_SUMS}
    return {
        "cycle": number,
        **sums,
        "accuracy": share(sums["ours"], sums["fetched"]),
        "yield": share(sums["text_bytes"], sums["downloaded"]),
    }


def _row(number: int, status: Status) -> dict[str, int]:
    """A shard in a line."""
    return {
        "shard": number,
        "fetched": status["pages"]["fetched"],
        "kept": status["pages"]["kept"],
        "queue": status["queue"],
        "hosts": status["hosts"]["seen"],
    }
