"""Cost of one contender: wall clock, processor time of all its processes, memory."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
CACHE = ROOT / "bench" / ".cache"
# Sets of annotated pages.
GOLD = Path(os.environ.get("THRESHER_GOLD", ROOT.parent / "shared" / "gold"))
PEERS = (
    "scrapy",
    "trafilatura",
    "lxml_html_clean",
    "aiohttp",
    "uvloop",
    "readability-lxml",
    "justext",
    "resiliparse",
    "tantivy",
    "zstandard",
    "datasketch",
)
TICK_SECONDS = 0.1  # between two looks at a contender's memory
SHOWN_ERROR = 4_000  # characters from the end of a failed contender's output

_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")


class Failed(Exception):
    """A contender did not do its work; the message has the end of its output."""


@dataclass(frozen=True)
class Usage:
    """Resources of one process and its children, from start to end."""

    output: str
    wall_s: float
    cpu_s: float  # of all processes
    main_cpu_s: float  # of the first one alone
    rss_mb: float  # highest sum over all processes that was seen; shared pages count in each

    @property
    def children_cpu_s(self) -> float:
        return self.cpu_s - self.main_cpu_s


def run(
    command: Sequence[object],
    *,
    accept: Iterable[int] = (0,),
    environment: Mapping[str, str] | None = None,
    look: Callable[[], None] = lambda: None,
) -> Usage:
    """Run a contender to its end; `look` is called every tenth of a second meanwhile."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as errors:
        started = time.perf_counter()
        child = subprocess.Popen(
            [str(part) for part in command],
            stdout=out,
            stderr=errors,
            cwd=ROOT,
            env={**os.environ, **(environment or {})},
        )
        highest = 0.0
        seen: dict[int, float] = {}  # processor time of each process below the contender, as last seen
        try:
            while not os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT):
                processes = below(child.pid)
                for pid in processes:
                    seen[pid] = max(own_cpu_seconds(pid), seen.get(pid, 0.0))
                highest = max(highest, sum(map(_own_resident_mb, (child.pid, *processes))))
                look()
                time.sleep(TICK_SECONDS)
        except BaseException:
            child.terminate()
            child.wait()
            raise
        wall = time.perf_counter() - started
        main = own_cpu_seconds(child.pid)  # a zombie still has its statistics
        _, status, used = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        if child.returncode not in accept:
            errors.seek(0)
            said = errors.read().decode("utf-8", "replace")[-SHOWN_ERROR:]
            raise Failed(f"{' '.join(map(str, command))}: exit code {child.returncode}\n{said}")
        # The system counts only processes that their parents have waited for. The fork server does not wait for its
        # readers, so their time is the one that was seen, a tenth of a second at most before their end.
        cpu = max(used.ru_utime + used.ru_stime, main + sum(seen.values()))
        return Usage(out.read().decode(), wall, cpu, main, highest)


def below(pid: int) -> list[int]:
    """Return all processes below one."""
    try:
        tasks = list(Path(f"/proc/{pid}/task").iterdir())
        children = [int(child) for task in tasks for child in (task / "children").read_text().split()]
    except OSError:
        return []
    return [each for child in children for each in (child, *below(child))]


def own_cpu_seconds(pid: int) -> float:
    """Return the processor time of one process without its children; 0 when it has ended."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / _TICKS


def _own_resident_mb(pid: int) -> float:
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * _PAGE / 1e6
    except (OSError, IndexError):
        return 0.0


def peers_python() -> Path:
    """Return the Python of the virtual environment with the other contenders, made on first use."""
    home = CACHE / "peers"
    python = home / "bin" / "python"
    mark = home / "installed"
    wanted = " ".join(PEERS)
    if not mark.exists() or mark.read_text() != wanted:
        say(f"installing into {home}: {wanted}")
        pip = (str(python), "-m", "pip", "install", "--quiet")
        subprocess.run([sys.executable, "-m", "venv", str(home)], check=True)
        subprocess.run([*pip, "--upgrade", "pip"], check=True, stdout=sys.stderr)
        subprocess.run([*pip, *PEERS], check=True, stdout=sys.stderr)
        mark.write_text(wanted)
    return python


def say(message: str) -> None:
    """Print progress to standard error."""
    print(message, file=sys.stderr, flush=True)


def emit(figures: Mapping[str, Any]) -> None:
    """Print one line of JSON to standard output."""
    print(json.dumps(_rounded(figures), ensure_ascii=False), flush=True)


def _rounded(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _rounded(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_rounded(part) for part in value]
    return float(f"{value:.4g}") if isinstance(value, float) and abs(value) < 1e4 else value


def table(rows: Sequence[Mapping[str, Any]], columns: Sequence[str]) -> None:
    """Print some of the figures side by side to standard error."""
    cells = [[_cell(row.get(column)) for column in columns] for row in rows]
    widths = [max(map(len, column)) for column in zip(columns, *cells, strict=True)]
    say("")
    for line in (columns, *cells):
        say("  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)))
    say("")


def _cell(value: Any) -> str:
    if value is None:
        return "–"
    return f"{value:,.4g}" if isinstance(value, float) and abs(value) < 1e4 else str(value)
