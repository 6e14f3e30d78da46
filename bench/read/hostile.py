"""Hostile pages at growing size: processor time, memory, and how both grow.

python -m bench.hostile [--only links,nesting] [--raised]

Each page is read at a quarter, half and all of its size, by `thresher.reader.read` in a process of its own under
the memory limit and the deadline of a crawl's readers. A size is read three times; the fastest counts. The exponent
is the slope of time over size on logarithmic scales: 1 is linear, 2 quadratic.

By default a crawl's limits hold: 32 MiB and 10,000 links. --raised lifts them, so that the whole page is read.
"""

from __future__ import annotations

import argparse
import json
import math
import resource
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import msgspec

from bench.measure import Failed, emit, run, say, table
from thresher.config import GIB, MIB, ReadSettings
from thresher.reader import read
from thresher.records import Reply

HEADERS = b"HTTP/1.1 200 OK\r\nContent-Type: text/html%s\r\n"
PARTS_OF_SIZE = (4, 2, 1)
TIMES = 3
RAISED = ReadSettings(max_decoded_bytes=256 * MIB, max_links=2_000_000, memory=4 * GIB)
COLUMNS = ("page", "mbytes", "cpu_s", "growth_mb", "exponent", "outcome", "blocks", "links")

Maker = Callable[[int], bytes]


def _numbered(pattern: bytes, count: int) -> bytes:
    return b"".join(pattern % number for number in range(count))


# Page: the number of its elements, the function that makes it, the charset of its header.
PAGES: dict[str, tuple[int, Maker, bytes]] = {
    "links": (1_000_000, lambda n: _numbered(b'<a href="/p/%d">page</a> ', n), b"utf-8"),
    "equal links": (1_000_000, lambda n: b'<a href="/p">page</a> ' * n, b"utf-8"),
    "nesting": (100_000, lambda n: b"<div>" * n + b"text", b"utf-8"),
    "nesting, closed": (100_000, lambda n: b"<div>" * n + b"text" + b"</div>" * n, b"utf-8"),
    "nested formatting": (100_000, lambda n: b"<b><i><a href=x>" * n + b"text", b"utf-8"),
    "nested tables": (100_000, lambda n: b"<table><tr><td>" * n + b"text", b"utf-8"),
    "stray end tags": (1_000_000, lambda n: b"<div><p>" + b"</span></b></li>" * n, b"utf-8"),
    "attributes": (50_000, lambda n: b"<p " + _numbered(b"a%d=1 ", n) + b">text</p>", b"utf-8"),
    "attribute": (50_000_000, lambda n: b'<p title="' + b"x" * n + b'">text</p>', b"utf-8"),
    "class names": (1_000_000, lambda n: b'<p class="' + b"menu " * n + b'">text</p>', b"utf-8"),
    "comment": (50_000_000, lambda n: b"<p>text</p><!--" + b"-x" * (n // 2) + b"--><p>text</p>", b"utf-8"),
    "open comments": (5_000_000, lambda n: b"<!--" * n, b"utf-8"),
    "comments": (5_000_000, lambda n: b"<!---->" * n, b"utf-8"),
    "text": (50_000_000, lambda n: b"<p>" + b"some words of a text " * (n // 21), b"utf-8"),
    "one word": (50_000_000, lambda n: b"<p>" + b"x" * n, b"utf-8"),
    "paragraphs": (1_000_000, lambda n: b"<p>a few words of text here</p>" * n, b"utf-8"),
    "less-than signs": (10_000_000, lambda n: b"<" * n, b"utf-8"),
    "open tags": (5_000_000, lambda n: b"<a " * n, b"utf-8"),
    "open quotes": (5_000_000, lambda n: b"<a b='" * n, b"utf-8"),
    "entities": (5_000_000, lambda n: b"<p>" + b"&amp;&#1;&x" * (n // 3), b"utf-8"),
    "ampersands": (10_000_000, lambda n: b"<p>" + b"&" * n, b"utf-8"),
    "open scripts": (5_000_000, lambda n: b"<script>" + b"</scrip <!--" * (n // 2), b"utf-8"),
    "open textarea": (10_000_000, lambda n: b"<textarea>" + b"</ textarea" * (n // 10), b"utf-8"),
    "cdata": (5_000_000, lambda n: b"<svg>" + b"<![CDATA[" * n, b"utf-8"),
    "titles": (1_000_000, lambda n: b"<title>t</title>" * n, b"utf-8"),
    "metas": (1_000_000, lambda n: b'<meta name=robots content="none">' * n, b"utf-8"),
    "bases": (1_000_000, lambda n: b"<base href=/x/>" * n, b"utf-8"),
    "marks above letters": (10_000_000, lambda n: b"<p>z" + "\u0301".encode() * n, b"utf-8"),
    "directions": (5_000_000, lambda n: b"<p>" + "\u202e\u200b\u200d".encode() * (n // 3), b"utf-8"),
    "zeros": (10_000_000, lambda n: b"<p>" + bytes(n), b"utf-8"),
    "broken utf-8": (10_000_000, lambda n: b"<p>" + b"\xff\xc0\xed\xa0" * (n // 4), b"utf-8"),
    "undeclared, broken": (10_000_000, lambda n: b"<p>" + b"\xe9 \xff\x81" * (n // 4), b""),
    "utf-16 unmarked": (10_000_000, lambda n: ("<p>" + "text " * (n // 10)).encode("utf-16-le"), b""),
    "escapes": (10_000_000, lambda n: b"<p>" + b"\x1b$B\x1b(B" * (n // 6), b"iso-2022-jp"),
    "charset tags": (1_000_000, lambda n: b"<meta charset=nonsense>" * n, b""),
    "hidden text": (1_000_000, lambda n: b"<p style='display:none'>hidden words</p>" * n, b"utf-8"),
    "terminal escapes": (1_000_000, lambda n: b"<title>\x1b]52;c;A\x07</title>" + b"<p>\x1b[2J" * n, b"utf-8"),
    "pdf as html": (10_000_000, lambda n: b"%PDF-1.7\n" + b"\x01\xfe stream" * (n // 9), b"utf-8"),
}  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m bench.hostile", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("--only", default="", help=f"some of the pages: {', '.join(PAGES)}")
    parser.add_argument("--raised", action="store_true", help="no limit on bytes and links")
    parser.add_argument("--page", choices=PAGES, help=argparse.SUPPRESS)
    parser.add_argument("--size", type=int, default=0, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    settings = RAISED if asked.raised else ReadSettings()
    if asked.page:
        print(json.dumps(_read_once(asked.page, asked.size, settings)))
        return
    chosen = asked.only.split(",") if asked.only else list(PAGES)
    if unknown := set(chosen).difference(PAGES):
        parser.error(f"--only {unknown.pop()}: choose from {', '.join(PAGES)}")
    rows = []
    for name in chosen:
        say(name)
        row = _growth(name, asked.raised)
        emit(row)
        rows.append(row)
    table(rows, COLUMNS)


def _growth(name: str, raised: bool) -> dict[str, Any]:
    """Return the figures of the whole page, and their growth with its size."""
    full = PAGES[name][0]
    command = [sys.executable, "-m", "bench.hostile", "--page", name, *["--raised"] * raised, "--size"]
    steps = []
    for part in PARTS_OF_SIZE:
        try:
            steps.append(json.loads(run([*command, str(full // part)]).output))
        except Failed as failure:
            return {"page": name, "of": full // part, "outcome": str(failure).splitlines()[-1][:200]}
    first, last = steps[0], steps[-1]
    times = max(last["cpu_s"], 1e-6) / max(first["cpu_s"], 1e-6)
    figures = {"page": name, "of": full, **last, "exponent": math.log(times) / math.log(PARTS_OF_SIZE[0])}
    return figures | {"cpu_s_of_sizes": [step["cpu_s"] for step in steps]}


def _read_once(name: str, size: int, settings: ReadSettings) -> dict[str, Any]:
    """Read one page under the limits of a reader process."""
    _, make, label = PAGES[name]
    body = make(size)
    headers = HEADERS % (b"; charset=" + label if label else b"")
    reply = Reply("http://hostile.example/", 200, headers, body, 0.0, 0.0, "")
    read(msgspec.structs.replace(reply, body=b"<p>word</p>" * 200), "en", settings)
    resource.setrlimit(resource.RLIMIT_AS, (settings.memory, settings.memory))
    signal.signal(signal.SIGALRM, _too_late)
    Path("/proc/self/clear_refs").write_text("5")  # forgets how much memory making the page took
    before = _highest_mb()
    seconds = []
    for _ in range(TIMES):
        signal.setitimer(signal.ITIMER_REAL, settings.deadline)
        started = time.process_time()
        page = read(reply, "en", settings)
        seconds.append(time.process_time() - started)
        signal.setitimer(signal.ITIMER_REAL, 0)
        figures = {
            "outcome": page.fault or page.kind,
            "blocks": len(page.blocks),
            "links": len(page.links),
            "text": len(page.text),
        }
        del page
    return {"mbytes": len(body) / 1e6, "cpu_s": min(seconds), "growth_mb": _highest_mb() - before, **figures}


def _highest_mb() -> float:
    """Return the peak memory of this process; it holds the page itself before the reading begins."""
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) / 1e3


def _too_late(_signal: int, _frame: FrameType | None) -> None:
    raise TimeoutError("over the deadline")


if __name__ == "__main__":
    main()
