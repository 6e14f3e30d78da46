"""Views of a crawl: its progress while it runs, its status afterwards, its hosts, and the reasons of a weight."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TextIO

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from thresher.cli.views.tables import FigureTable
from thresher.cli.views.text import amount, harmless, span
from thresher.wording import counted

if TYPE_CHECKING:  # A progress line needs neither numpy nor the store.
    from thresher.crawler.explain import Explanation
    from thresher.crawler.host_report import HostReport
    from thresher.simulation.comparison import PolicySummary

__all__ = [
    "PLAIN_EVERY",
    "SHOWN_SHARDS",
    "CrawlPace",
    "amount",
    "counted",
    "explanation",
    "harmless",
    "harvests",
    "host_table",
    "line",
    "progress",
    "span",
    "status_tables",
]

SHOWN_CYCLES = 10
SHOWN_REASONS = 8
SHOWN_SHARDS = 16
PLAIN_EVERY = 10.0  # seconds between lines of progress where there is no terminal
PACE_MEMORY = 0.7  # share of the earlier pace in the smoothed one, with each status

Status = dict[str, Any]


class CrawlPace:
    """Pages per second and time left, from one status to the next."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._last: tuple[float, int] | None = None
        self.rate = 0.0

    def update(self, status: Status) -> None:
        """Take the next status into account."""
        now, fetched = self._clock(), status["pages"]["fetched"]
        if self._last and now > self._last[0]:
            current = (fetched - self._last[1]) / (now - self._last[0])
            self.rate = PACE_MEMORY * self.rate + (1 - PACE_MEMORY) * current if self.rate else current
        self._last = (now, fetched)

    def left(self, status: Status) -> float | None:
        """Return the seconds until the first budget is spent at the present pace; None without a budget."""
        budget, done = status["budget"], status["pages"]["fetched"]
        elapsed = status["time"]["wall_s"]
        guesses = []
        if budget["pages"] and self.rate:
            guesses.append((budget["pages"] - done) / self.rate)
        if budget["bytes"] and elapsed and status["bytes"]["downloaded"]:
            speed = status["bytes"]["downloaded"] / elapsed
            guesses.append((budget["bytes"] - status["bytes"]["downloaded"]) / speed)
        if budget["seconds"]:
            guesses.append(budget["seconds"] - elapsed)
        return max(0.0, min(guesses)) if guesses else None


def line(status: Status, pace: CrawlPace) -> str:
    """Return one plain line of progress."""
    pages, bytes_, hosts = status["pages"], status["bytes"], status["hosts"]
    left = pace.left(status)
    return (
        f"{counted(pages['fetched'], 'page')} ({pace.rate:,.0f}/s), {pages['kept']:,} kept, "
        f"{amount(bytes_['downloaded'])} down, {amount(bytes_['text'])} text, "
        f"yield {status['yield']['bytes']:.3f}, {counted(hosts['open'], 'host')} open, {status['queue']:,} queued"
        + (f", widened to {stage}" if (stage := status.get("widening", {}).get("name")) else "")
        + (f", {span(left)} left" if left is not None else "")
        + (f"; waiting for {waiting['text']}" if (waiting := status.get("waiting")) else "")
    )


@contextmanager
def progress(out: TextIO | None = None) -> Iterator[Callable[[Status], None]]:
    """Yield a function that shows a status: live on a terminal, otherwise as a plain line now and then."""
    console = Console(file=out or sys.stderr)
    pace = CrawlPace()
    if console.is_terminal:
        with Live(console=console, refresh_per_second=4, transient=True) as live:

            def show(status: Status) -> None:
                pace.update(status)
                live.update(status_tables(status, pace))

            yield show
        return
    last = 0.0

    def print_line(status: Status) -> None:
        nonlocal last
        pace.update(status)
        if time.monotonic() - last >= PLAIN_EVERY:
            last = time.monotonic()
            print(line(status, pace), file=console.file, flush=True)

    yield print_line


def status_tables(status: Status, pace: CrawlPace | None = None) -> Group:
    """Return the status of a crawl as tables."""
    pages, bytes_, hosts, times = status["pages"], status["bytes"], status["hosts"], status["time"]
    rejected = sum(pages["rejected"].values())
    table = Table.grid(padding=(0, 2))
    rows = [
        ("pages", f"{pages['fetched']:,} fetched, {pages['kept']:,} kept, {rejected:,} rejected"),
        (
            "",
            f"{pages['failed']:,} failed, {counted(pages['redirect'], 'redirect')}, "
            f"{pages['disallowed']:,} disallowed",
        ),
        ("bytes", f"{amount(bytes_['downloaded'])} downloaded, {amount(bytes_['text'])} of text kept"),
        (
            "yield",
            f"{status['yield']['bytes']:.4f} by bytes, {status['yield']['documents']:.3f} by documents",
        ),
        (
            "hosts",
            f"{hosts['open']:,} open, {hosts['closed']:,} closed, {counted(status['queue'], 'URL')} queued",
        ),
        ("time", f"{span(times['wall_s'])} ({span(times['cpu_s'])} of processor)"),
    ]
    if (widening := status.get("widening", {})).get("stage"):
        rows += [
            ("widened", f"to {widening['name']}"),
            (
                "",
                f"{counted(widening['found'], 'URL')} found so, {counted(widening['kept'], 'page')} kept since",
            ),
            ("", f"yield {widening['lately']:.4f} lately; the floor is {widening['floor']:g}"),
        ]
    if waiting := status.get("waiting"):
        rows.append(("waiting", f"for {waiting['text']}"))
    if pace is not None:
        left = pace.left(status)
        rows.append(
            ("pace", f"{pace.rate:,.0f} pages/s" + (f", {span(left)} left" if left is not None else ""))
        )
    for name, value in rows:
        table.add_row(Text(name, style="bold"), Text(value))
    reasons = sorted(pages["rejected"].items(), key=lambda item: -item[1])
    why = ", ".join(f"{harmless(reason)} {count:,}" for reason, count in reasons[:SHOWN_REASONS])
    table.add_row(Text("rejected", style="bold"), Text(why or "nothing"))
    return Group(
        table, *_hosts(hosts), *_cycles(status.get("cycles", [])), *_shards(status.get("shards", []))
    )


def _cycles(cycles: Sequence[Status]) -> list[FigureTable]:
    """Return a table of the last cycles of a crawl that has any."""
    if not cycles:
        return []
    table = FigureTable(("cycle", "fetched", "in language", "kept", "downloaded", "text", "yield"))
    for cycle in cycles[-SHOWN_CYCLES:]:
        table.add(
            f"{cycle['cycle']:,}",
            f"{cycle['fetched']:,}",
            f"{cycle['accuracy']:.1%}",
            f"{cycle['kept']:,}",
            amount(cycle["downloaded"]),
            amount(cycle["text_bytes"]),
            f"{cycle['yield']:.3f}",
        )
    return [table]


def _shards(shards: Sequence[Status]) -> list[RenderableType]:
    """Return a table of the first shards of a crawl that has any."""
    if not shards:
        return []
    keys = ("shard", "fetched", "kept", "queue")
    table = FigureTable(("shard", "fetched", "kept", "queued"))
    for shard in shards[:SHOWN_SHARDS]:
        table.add(*(f"{shard[key]:,}" for key in keys))
    others = len(shards) - SHOWN_SHARDS
    return [table, Text(f"  and {others:,} more")] if others > 0 else [table]


def _hosts(hosts: Status) -> list[FigureTable]:
    """Return the best hosts, and beside them the worst of the others."""
    if not hosts.get("best"):
        return []
    best = hosts["best"]
    names = {host["host"] for host in best}
    worst = [host for host in hosts["worst"] if host["host"] not in names]
    titles = ["best hosts", "worst hosts"] if worst else ["best hosts"]
    table = FigureTable([name for title in titles for name in (title, "yield", "pages")], text=titles)
    for place, host in enumerate(best):
        pair = [host, worst[place] if place < len(worst) else None] if worst else [host]
        cells: list[str] = []
        for one in pair:
            cells += (one["host"], f"{one['yield']:.3f}", f"{one['pages']:,}") if one else ("", "", "")
        table.add(*cells)
    return [table]


def harvests(rows: Sequence[PolicySummary]) -> FigureTable:
    """Return policies side by side; where they ran more than once, with the range of their areas."""
    varied = any(row.runs > 1 for row in rows)
    columns = ["policy", "pages", "download", "text", "of all", "90 % after", "area", "closed"]
    if varied:
        columns.insert(columns.index("area") + 1, "range")
    table = FigureTable(columns, text=["policy"])
    for row in rows:
        most = amount(row.downloaded_for_most) if row.downloaded_for_most is not None else "never"
        table.add(
            row.policy,
            f"{row.pages:,}",
            amount(row.downloaded),
            amount(row.text_bytes),
            f"{row.share:.0%}",
            most,
            f"{row.area:.3f}",
            *([f"{row.area_min:.3f}–{row.area_max:.3f}" if row.runs > 1 else ""] if varied else []),
            f"{row.closed_hosts:,}",
        )
    return table


def host_table(hosts: Sequence[HostReport]) -> FigureTable:
    """Return hosts with their yield, the URLs that wait there, and their state."""
    table = FigureTable(("host", "yield", "pages", "text", "queued", "state"), text=("host", "state"))
    for host in hosts:
        table.add(
            host.host,
            f"{host.rate:.3f}",
            f"{host.pages:,}",
            amount(host.text_bytes),
            f"{host.queued:,}",
            f"{host.state} {host.reason}".strip(),
        )
    return table


def explanation(found: Explanation) -> Group:
    """Return the reasons for the weight of a URL."""
    lines = [Text(harmless(found.url), style="bold"), Text(harmless(f"{found.state}: {found.detail}"))]
    behind = f", and {found.behind:.2f} behind it" if found.behind is not None else ""
    lines.append(
        Text(
            f"weight {found.weight:.3f} under policy {found.policy}: "
            f"{found.expected:.3f} bytes of text for each byte downloaded{behind}"
        )
    )
    table = FigureTable(("feature", "pages", "yield", "in the language", "without it"), text=("feature",))
    for feature in found.features:
        numbers = (feature.rate, feature.ours, feature.without)
        table.add(
            feature.name, f"{feature.pages:,.0f}", *("" if one is None else f"{one:.3f}" for one in numbers)
        )
    return Group(*lines, Text(), table)
