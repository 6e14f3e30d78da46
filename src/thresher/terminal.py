"""What people see: progress while a crawl runs, figures afterwards, text from the web made harmless."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TextIO

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:  # numpy and the store are of no use to a progress line
    from thresher.crawl.explain import Explanation
    from thresher.crawl.hosts import Host
    from thresher.lab.comparison import Row

SHOWN_CYCLES = 10
SHOWN_SHARDS = 16
MOST_OF_A_LINE = 0.5  # that a match may take in a concordance
PLAIN_EVERY = 10.0  # seconds between lines when nobody watches a terminal

Status = dict[str, Any]


def harmless(text: str, width: int = 0) -> str:
    """Text from the web for a terminal or a log: no control, format or line characters, cut to a width.

    >>> harmless("\\x1b[31mred\\u202e")
    '�[31mred�'
    """
    clean = "".join(c if c.isprintable() else " " if c.isspace() else "�" for c in text)
    return clean if not width or len(clean) <= width else clean[: width - 1] + "…"


def amount(count: float) -> str:
    """Bytes as people say them: 1.4 MB."""
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:.1f} TB"


def span(seconds: float) -> str:
    """Seconds as people say them: 2 h 05 min."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"


class Pace:
    """Pages per second and time left, from one status to the next."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._last: tuple[float, int] | None = None
        self.rate = 0.0

    def update(self, status: Status) -> None:
        now, fetched = self._clock(), status["pages"]["fetched"]
        if self._last and now > self._last[0]:
            current = (fetched - self._last[1]) / (now - self._last[0])
            self.rate = 0.7 * self.rate + 0.3 * current if self.rate else current
        self._last = (now, fetched)

    def left(self, status: Status) -> float | None:
        """Seconds until the first budget is spent at the present pace; None without a budget."""
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


def line(status: Status, pace: Pace) -> str:
    """One plain line of progress."""
    pages, bytes_, hosts = status["pages"], status["bytes"], status["hosts"]
    left = pace.left(status)
    return (
        f"{pages['fetched']:,} pages ({pace.rate:,.0f}/s), {pages['kept']:,} kept, "
        f"{amount(bytes_['downloaded'])} down, {amount(bytes_['text'])} text, "
        f"yield {status['yield']['bytes']:.3f}, {hosts['open']:,} hosts open, {status['queue']:,} queued"
        + (f", widened to {stage}" if (stage := status.get("widening", {}).get("name")) else "")
        + (f", {span(left)} left" if left is not None else "")
    )


@contextmanager
def progress(out: TextIO | None = None) -> Iterator[Callable[[Status], None]]:
    """A function to be told the status: live on a terminal, a plain line now and then otherwise."""
    console = Console(file=out or sys.stderr)
    pace = Pace()
    if console.is_terminal:
        with Live(console=console, refresh_per_second=4, transient=True) as live:

            def show(status: Status) -> None:
                pace.update(status)
                live.update(figures(status, pace))

            yield show
        return
    last = 0.0

    def tell(status: Status) -> None:
        nonlocal last
        pace.update(status)
        if time.monotonic() - last >= PLAIN_EVERY:
            last = time.monotonic()
            print(line(status, pace), file=console.file, flush=True)

    yield tell


def figures(status: Status, pace: Pace | None = None) -> Group:
    """The figures of a crawl as tables."""
    pages, bytes_, hosts, times = status["pages"], status["bytes"], status["hosts"], status["time"]
    rejected = sum(pages["rejected"].values())
    table = Table.grid(padding=(0, 2))
    rows = [
        ("pages", f"{pages['fetched']:,} fetched, {pages['kept']:,} kept, {rejected:,} rejected"),
        (
            "",
            f"{pages['failed']:,} failed, {pages['redirect']:,} redirects, {pages['disallowed']:,} disallowed",
        ),
        ("bytes", f"{amount(bytes_['downloaded'])} downloaded, {amount(bytes_['text'])} of text kept"),
        (
            "yield",
            f"{status['yield']['bytes']:.4f} by bytes, {status['yield']['documents']:.3f} by documents",
        ),
        ("hosts", f"{hosts['open']:,} open, {hosts['closed']:,} closed, {status['queue']:,} URLs queued"),
        ("time", f"{span(times['wall_s'])} ({span(times['cpu_s'])} of processor)"),
    ]
    if (widening := status.get("widening", {})).get("stage"):
        rows += [
            ("widened", f"to {widening['name']}"),
            ("", f"{widening['found']:,} URLs found so, {widening['kept']:,} pages kept since"),
            ("", f"yield {widening['lately']:.4f} lately; the floor is {widening['floor']:g}"),
        ]
    if weight := status.get("waiting_for"):
        waits = f"free connections wait for hosts that promise {weight:.2f} bytes of text for each downloaded"
        rows.append(("patience", waits))
    if pace is not None:
        left = pace.left(status)
        rows.append(
            ("pace", f"{pace.rate:,.0f} pages/s" + (f", {span(left)} left" if left is not None else ""))
        )
    for name, value in rows:
        table.add_row(Text(name, style="bold"), Text(value))
    reasons = sorted(pages["rejected"].items(), key=lambda item: -item[1])
    why = ", ".join(f"{harmless(reason)} {count:,}" for reason, count in reasons[:8])
    table.add_row(Text("rejected", style="bold"), Text(why or "nothing"))
    return Group(
        table, *_hosts(hosts), *_cycles(status.get("cycles", [])), *_shards(status.get("shards", []))
    )


def _cycles(cycles: Sequence[Status]) -> list[Table]:
    """The last cycles of a crawl that has any."""
    if not cycles:
        return []
    table = Table(box=None, padding=(0, 2), header_style="bold")
    for name in ("cycle", "fetched", "in language", "kept", "downloaded", "text", "yield"):
        table.add_column(name, justify="right", no_wrap=True)
    for cycle in cycles[-SHOWN_CYCLES:]:
        table.add_row(
            f"{cycle['cycle']:,}",
            f"{cycle['fetched']:,}",
            f"{cycle['accuracy']:.1%}",
            f"{cycle['kept']:,}",
            amount(cycle["downloaded"]),
            amount(cycle["text_bytes"]),
            f"{cycle['yield']:.3f}",
        )
    return [table]


def _shards(shards: Sequence[Status]) -> list[Table | Text]:
    """The first shards of a crawl that has any."""
    if not shards:
        return []
    names = ("shard", "fetched", "kept", "queue")
    table = Table(box=None, padding=(0, 2), header_style="bold")
    for name in names:
        table.add_column("queued" if name == "queue" else name, justify="right", no_wrap=True)
    for shard in shards[:SHOWN_SHARDS]:
        table.add_row(*(f"{shard[name]:,}" for name in names))
    others = len(shards) - SHOWN_SHARDS
    return [table, Text(f"  and {others:,} more")] if others > 0 else [table]


def _hosts(hosts: Status) -> list[Table]:
    """The best and the worst hosts side by side."""
    if not hosts.get("best"):
        return []
    table = Table(box=None, padding=(0, 2), header_style="bold")
    for name in ("best hosts", "yield", "pages", "worst hosts", "yield", "pages"):
        table.add_column(name, justify="left" if "hosts" in name else "right")
    worst = hosts["worst"] + [None] * (len(hosts["best"]) - len(hosts["worst"]))
    for pair in zip(hosts["best"], worst, strict=True):
        cells: list[Text] = []
        for host in pair:
            values = (
                (harmless(host["host"], 32), f"{host['yield']:.3f}", f"{host['pages']:,}")
                if host
                else ("",) * 3
            )
            cells += map(Text, values)
        table.add_row(*cells)
    return [table]


def harvests(rows: Sequence[Row]) -> Table:
    """Policies side by side; where they ran more than once, with the range of their areas."""
    table = Table(box=None, padding=(0, 1), header_style="bold")
    varied = any(row.runs > 1 for row in rows)
    columns = ["policy", "pages", "download", "text", "of all", "90 % after", "area", "closed"]
    if varied:
        columns.insert(columns.index("area") + 1, "range")
    for name in columns:
        table.add_column(name, justify="left" if name == "policy" else "right", no_wrap=True)
    for row in rows:
        most = amount(row.downloaded_for_most) if row.downloaded_for_most is not None else "never"
        table.add_row(
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


def host_table(hosts: Sequence[Host]) -> Table:
    """Hosts with what they gave, and their state."""
    table = Table(box=None, padding=(0, 1), header_style="bold")
    for name in ("host", "yield", "pages", "text", "queued", "state"):
        table.add_column(name, justify="left" if name in ("host", "state") else "right", no_wrap=True)
    for host in hosts:
        table.add_row(
            harmless(host.host, 24),
            f"{host.rate:.3f}",
            f"{host.pages:,}",
            amount(host.text_bytes),
            f"{host.queued:,}",
            harmless(f"{host.state} {host.reason}".strip(), 24),
        )
    return table


def explanation(found: Explanation) -> Group:
    """Why a URL has its weight."""
    lines = [Text(harmless(found.url), style="bold"), Text(harmless(f"{found.state}: {found.detail}"))]
    behind = f", and {found.behind:.2f} behind it" if found.behind is not None else ""
    lines.append(
        Text(
            f"weight {found.weight:.3f} under policy {found.policy}: "
            f"{found.expected:.3f} bytes of text for each byte downloaded{behind}"
        )
    )
    table = Table(box=None, padding=(0, 1), header_style="bold")
    for name in ("what is known of", "pages", "yield", "in the language", "without it"):
        table.add_column(name, justify="left" if name == "what is known of" else "right")
    for clue in found.clues:
        numbers = (clue.rate, clue.ours, clue.without)
        table.add_row(
            clue.name, f"{clue.pages:,.0f}", *("" if one is None else f"{one:.3f}" for one in numbers)
        )
    return Group(*lines, Text(), table)


def concordance(rows: Sequence[Mapping[str, Any]], width: int) -> Group:
    """Lines with their hits below each other; what is too long is cut where it is farthest from the hit."""
    longest = max((len(row["match"]) for row in rows), default=0)
    middle = min(longest, int(width * MOST_OF_A_LINE))
    side = max((width - middle - 4) // 2, 0)
    return Group(*(_line(row, side, middle) for row in rows))


def _line(row: Mapping[str, Any], side: int, middle: int) -> Text:
    left, right = harmless(row["left"]), harmless(row["right"])
    cut = left if len(left) <= side else "…" + left[len(left) - side + 1 :]
    match = harmless(row["match"], middle)
    padding = " " * (middle - len(match))
    return Text.assemble(
        cut.rjust(side), "  ", (match, "bold"), padding, "  ", harmless(right, side), no_wrap=True
    )
