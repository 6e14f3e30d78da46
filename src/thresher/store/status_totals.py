"""The status of a crawl in shards, merged from the statuses of its shards."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain
from typing import Any

from thresher.config import BudgetSettings

Status = Mapping[str, Any]

SHOWN_HOSTS = 5  # best and worst
OF_A_SHARD = ("files", "state")  # places on disk, which are no statistics
SUMS = ("pages", "bytes", "queue", "queue_closed", "given_up", "seen_urls", "connections")
CYCLE_SUMS = ("fetched", "kept", "ours", "downloaded", "text_bytes")


def merged(statuses: Sequence[Status | None], budget: BudgetSettings) -> dict[str, Any]:
    """Return the status of a crawl from the statuses of its shards, by number; None for a shard that has none yet.

    At least one shard must have a status. The budget is that of all shards together. Language, policy and fields
    unknown to this module are taken from the first shard.
    """
    known = [status for status in statuses if status is not None]
    sums = {name: sum_stats([status[name] for status in known]) for name in SUMS}
    pages, bytes_ = sums["pages"], sums["bytes"]
    return {
        **{name: figure for name, figure in known[0].items() if name not in OF_A_SHARD},
        **sums,
        "budget": {"pages": budget.max_pages, "bytes": budget.max_bytes, "seconds": budget.max_time},
        "yield": {
            "bytes": share(bytes_["text"], bytes_["downloaded"]),
            "documents": share(pages["kept"], pages["fetched"]),
        },
        "hosts": _hosts([status["hosts"] for status in known]),
        "waiting_for": max(status["waiting_for"] for status in known),
        "widening": _widening(known),
        "cycles": _cycles([status["cycles"] for status in known]),
        "time": {
            "wall_s": max(status["time"]["wall_s"] for status in known),
            "cpu_s": sum_stats([status["time"]["cpu_s"] for status in known]),
        },
        "shards": [_row(number, status) for number, status in enumerate(statuses) if status is not None],
        # A shard that an older version crawled has no such field.
        **(
            {"waiting": _waiting([status.get("waiting") for status in known])}
            if "waiting" in known[0]
            else {}
        ),
    }


def sum_stats(parts: Sequence[Any]) -> Any:
    """Return the sum of numbers, or of tables of numbers, in which missing entries count as 0.

    >>> sum_stats([{"kept": 1, "why": {"short": 2}}, {"kept": 2, "why": {"long": 3}}])
    {'kept': 3, 'why': {'short': 2, 'long': 3}}
    """
    if not isinstance(parts[0], Mapping):
        return sum(parts)
    names = dict.fromkeys(chain.from_iterable(parts))
    return {name: sum_stats([one[name] for one in parts if name in one]) for name in names}


def share(part: float, whole: float) -> float:
    """Return the share of a part in a whole, 0 if the whole is 0."""
    return part / whole if whole else 0.0


def _hosts(several: Sequence[Status]) -> dict[str, Any]:
    """Return the sums over shards; every host belongs to one shard."""
    return {
        **{name: sum(hosts[name] for hosts in several) for name in ("seen", "open", "closed")},
        "best": _ranked((hosts["best"] for hosts in several), lambda host: -host["yield"]),
        "worst": _ranked((hosts["worst"] for hosts in several), lambda host: host["yield"]),
    }


def _ranked(lists: Iterable[Sequence[Status]], rank: Callable[[Status], float]) -> list[Status]:
    return sorted(chain.from_iterable(lists), key=rank)[:SHOWN_HOSTS]


def _waiting(several: Sequence[Status | None]) -> Status | None:
    """Return the commonest reason to wait, as the shard with most hosts states it; None if no shard waits."""
    known = [waiting for waiting in several if waiting]
    if not known:
        return None
    reasons = Counter(waiting["reason"] for waiting in known)
    most = max(known, key=lambda waiting: (reasons[waiting["reason"]], waiting["hosts"]))
    alike = [waiting for waiting in known if waiting["reason"] == most["reason"]]
    text = f"{most['text']} ({len(alike)} of {len(several)} shards wait like this)"
    return {**most, "hosts": sum(waiting["hosts"] for waiting in alike), "text": text}


def _widening(known: Sequence[Status]) -> dict[str, Any]:
    """Return the expansion of the shard that expanded least, with the recent yield weighted by downloads."""
    several = [status["widening"] for status in known]
    least = min(several, key=lambda widening: widening["stage"])
    weights = [status["bytes"]["downloaded"] for status in known]
    lately = sum(widening["lately"] * weight for widening, weight in zip(several, weights, strict=True))
    return {
        **least,
        "found": sum(widening["found"] for widening in several),
        "kept": sum(widening["kept"] for widening in several),
        "lately": share(lately, sum(weights)),
    }


def _cycles(several: Sequence[Sequence[Status]]) -> list[dict[str, Any]]:
    """Return cycles by number, as many as the shard with the most rows has."""
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
    """Return one shard as a row of the table of shards."""
    return {
        "shard": number,
        "fetched": status["pages"]["fetched"],
        "kept": status["pages"]["kept"],
        "queue": status["queue"],
        "hosts": status["hosts"]["seen"],
    }
