"""View of a page as the crawler reads it, for `thresher read`."""

from __future__ import annotations

from typing import Any

from rich.console import Group
from rich.table import Table
from rich.text import Text

from thresher.cli.views.tables import FigureTable
from thresher.cli.views.text import harmless

SHOWN_LINKS = 10
TEXT_SCORE = 0.5  # Blocks with higher scores are shown dim, as boilerplate.


def view(seen: dict[str, Any], language: str = "") -> Group:
    """Return the view of the output of `read --json`: all blocks, boilerplate dim, and the best links.

    Badness is measured for a language only.
    """
    languages = ", ".join(f"{found['code']} {found['share']:.0%}" for found in seen["languages"]) or "unknown"
    without = f"no model for {language}" if language else "not measured; give a language: --lang CODE"
    badness = without if seen["badness"] is None else f"{seen['badness']:.1f}"
    verdict = "keep" if seen["verdict"]["keep"] else f"reject: {seen['verdict']['reason']}"
    head = Table.grid(padding=(0, 2))
    for name, value in (
        ("file", seen["file"]),
        ("title", seen["title"]),
        ("languages", languages),
        ("badness", badness),
        ("charset", f"{seen['charset']} (declared: {seen['charset_declared'] or 'nothing'})"),
        ("verdict", verdict),
    ):
        head.add_row(Text(name, style="bold"), Text(harmless(value)))
    blocks = FigureTable(("score", "block"), folded=("block",))
    for block in seen["paragraphs"]:
        score = block["boilerplate"]
        blocks.add(f"{score:.2f}", block["text"], style="" if score < TEXT_SCORE else "dim")
    best = sorted(seen["links"], key=lambda link: float(link["boilerplate"]))[:SHOWN_LINKS]
    rows = [(f"{link['boilerplate']:.2f}", link["url"], link["anchor"]) for link in best]
    links = FigureTable(("score", "link", "anchor"), rows, text=("link", "anchor"))
    return Group(head, Text(), blocks, *((Text(), links) if rows else ()))
