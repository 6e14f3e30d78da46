"""Tables: figures are never cut, texts only where a terminal is too narrow."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from io import StringIO
from pathlib import Path

import pytest
from rich.cells import cell_len
from rich.console import Console

from support.command_line import in_terminal
from thresher.cli.views.tables import FigureTable
from thresher.cli.views.terminal import status_tables
from thresher.cli.views.text import shortened
from thresher.crawler.api import crawl
from thresher.wording import counted
from thresher_lab.toyweb import ToyWeb, seeds, serve

LONG_HOST = "a-host-with-a-very-long-name-indeed.free-pages.example.cz"
FIGURES = ("1,234,567", "0.123", "98.7 kB", "12,345")


def rendered(table: FigureTable, width: int) -> list[str]:
    out = StringIO()
    Console(file=out, width=width).print(table)
    return out.getvalue().splitlines()


def host_table() -> FigureTable:
    return FigureTable(("host", "pages", "yield", "text", "queued"), [(LONG_HOST, *FIGURES)], text=("host",))


@pytest.mark.parametrize("width", [20, 33, 40, 60, 80, 200])
def test_every_figure_is_whole_at_any_width_and_no_line_is_too_long(width: int) -> None:
    lines = rendered(host_table(), width)
    assert all(len(line) <= width for line in lines)
    words = " ".join(" ".join(lines).split())
    assert all(figure in words for figure in FIGURES)


def test_text_is_whole_where_there_is_room() -> None:
    assert LONG_HOST in " ".join(rendered(host_table(), 100))


def test_a_long_name_keeps_its_beginning_and_its_end() -> None:
    line = rendered(host_table(), 60)[1]
    assert line.startswith("a-host") and ".example.cz" not in line.split()[0][:10]
    assert line.split()[0].endswith("example.cz") and "…" in line.split()[0]


def test_a_table_too_wide_for_the_terminal_becomes_lines_with_names() -> None:
    lines = rendered(host_table(), 33)
    assert lines[1:] == ["  pages 1,234,567  yield 0.123", "  text 98.7 kB  queued 12,345"]


def test_folded_text_continues_below_itself() -> None:
    table = FigureTable(("score", "block"), [("0.10", "one two three four five six")], folded=("block",))
    assert rendered(table, 21) == ["score  block", " 0.10  one two three", "       four five six"]


@pytest.mark.parametrize(
    "text", ["https://example.cz/" + "clanek/" * 9, "krátký", "日本語の新聞" * 5, "two words " * 9]
)
@pytest.mark.parametrize("width", [8, 15, 30])
def test_shortened_text_fits(text: str, width: int) -> None:
    assert cell_len(shortened(text, width)) <= width


def test_one_thing_is_singular() -> None:
    assert [counted(number, "hit") for number in (0, 1, 2)] == ["0 hits", "1 hit", "2 hits"]


def test_no_host_is_both_among_the_best_and_among_the_worst() -> None:
    hosts = [{"host": name, "yield": 0.5, "pages": 3} for name in ("a.cz", "b.cz")]
    status = {
        "pages": {"fetched": 6, "kept": 1, "failed": 0, "redirect": 1, "disallowed": 0, "rejected": {}},
        "bytes": {"downloaded": 1000, "text": 500},
        "yield": {"bytes": 0.5, "documents": 0.2},
        "hosts": {"open": 2, "closed": 0, "best": hosts, "worst": hosts[::-1]},
        "time": {"wall_s": 1, "cpu_s": 1},
        "queue": 1,
    }
    out = StringIO()
    Console(file=out, width=80).print(status_tables(status))
    assert out.getvalue().count("a.cz") == 1
    assert "1 redirect," in out.getvalue() and "1 URL queued" in out.getvalue()


# Commands in processes of their own.


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a small crawl of long host names."""
    directory = tmp_path_factory.mktemp("tables") / "corpus"
    web = ToyWeb.calm(hosts=8, text="sentences", languages=("cs", "en", "de"), hosted=1.0)
    with serve(web) as server:
        crawl(
            directory,
            "cs",
            seeds(web)["cs"],
            settings={"polite": {"delay": 0.0}, "budget": {"max_pages": 60}},
            connect_to=server.connect_to,
        )
    return directory


def in_pipe(*arguments: str | Path) -> list[str]:
    """Return the lines that a command writes into a pipe; COLUMNS does not matter there."""
    command = [sys.executable, "-m", "thresher.cli", *map(str, arguments)]
    done = subprocess.run(
        command, capture_output=True, text=True, check=True, env={**os.environ, "COLUMNS": "40"}
    )
    return tables(done.stdout)


def tables(written: str) -> list[str]:
    """Return the lines of tables, without messages."""
    return [line for line in written.splitlines() if not line.startswith("thresher: ")]


def numbers(lines: list[str]) -> list[str]:
    """Return the figures with a decimal point or a thousands separator."""
    return sorted(re.findall(r"\d+[.,]\d+(?=[^\d.]|$)(?!\.)", " ".join(lines)))


@pytest.mark.slow
def test_hosts_shows_all_figures_in_a_narrow_terminal_and_all_names_in_a_pipe(corpus: Path) -> None:
    piped = in_pipe("hosts", corpus)
    assert not any("…" in line for line in piped)
    rows = [line.split() for line in piped[1:]]
    for columns in (40, 60, 80, 160):
        shown = tables(in_terminal(columns, "hosts", corpus))
        assert all(len(line) <= columns for line in shown)
        words = " ".join(shown).split()
        for _, *row in rows:
            assert set(row) <= set(words)
        if columns == 160:
            assert shown == piped


@pytest.mark.slow
def test_experiments_show_every_figure_at_eighty_columns(corpus: Path) -> None:
    piped = in_pipe("experiment", "links", corpus)
    shown = tables(in_terminal(80, "experiment", "links", corpus))
    assert all(len(line) <= 80 for line in shown)
    assert numbers(shown) == numbers(piped)
    assert numbers(piped)


@pytest.mark.slow
def test_status_shows_the_same_words_at_sixty_columns_as_in_a_pipe(corpus: Path) -> None:
    lines = [line for line in tables(in_terminal(60, "status", corpus)) if "…" not in line]
    assert numbers(lines) and set(numbers(lines)) <= set(numbers(in_pipe("status", corpus)))
