"""View of the result of the demo: comparison with the oracle, texts, concordance, collocates, next commands."""

from __future__ import annotations

from json import dumps
from shlex import quote
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from thresher.cli.views.search import concordance
from thresher.cli.views.tables import FigureTable
from thresher.cli.views.text import harmless
from thresher.demo import ATTRIBUTE, COLLOCATES, CONCORDANCE_LINES, NODE, QUERY
from thresher.wording import counted

SAMPLE_CHARACTERS = 300


def view(found: dict[str, Any], directory: str, program: str, python: str) -> Group:
    """Return the view of `thresher.demo.findings`.

    `program` and `python` are the commands by which Thresher and its Python can be started again.
    """
    strange = counted(found["strange"], "document")
    parts: list[RenderableType] = [
        Text(f"{found['found']:,} of {counted(found['good'], 'good text')} of this web ", style="bold")
        + Text(f"are in the corpus, and {strange} that a perfect crawl would reject.")
    ]
    for sample in found["samples"]:
        text = sample["text"].removeprefix(sample["title"]).strip()
        parts += [
            Text(),
            Text(harmless(sample["title"]), style="bold"),
            Text(harmless(sample["url"]), style="dim"),
            Text(harmless(text, SAMPLE_CHARACTERS)),
        ]
    where = quote(directory)
    search = f"{program} search {where} {quote(QUERY)} --distinct doc --size {CONCORDANCE_LINES}"
    collocates = f"{program} collocates {where} {quote(NODE)} --attribute {ATTRIBUTE} --limit {COLLOCATES}"
    columns = ("word", "near it", "in all", "logDice")
    rows = [
        (row["value"], f"{row['joint']:,}", f"{row['count']:,}", f"{row['logdice']:.1f}")
        for row in found["collocates"]
    ]
    parts += [
        Text(),
        Text(search, style="bold"),
        concordance(found["concordance"], found["origins"], ()),
        Text(f"the first in each document, of {counted(found['hits'], 'hit')}", style="dim"),
        Text(),
        Text(collocates, style="bold"),
        FigureTable(columns, rows, text=("word",)),
        Text(),
        Text("Next:", style="bold"),
        *(Text(f"  {command}") for command in _next(directory, program, python)),
    ]
    return Group(*parts)


def _next(directory: str, program: str, python: str) -> list[str]:
    """Return commands to try next."""
    code = f'import thresher; print(thresher.open({dumps(directory)}).search("vlak").first(5))'
    directory = quote(directory)
    return [
        f"{program} status {directory}",
        f"{program} search {directory} vlak --sort right",
        f"{program} freq {directory} '\"na|v|do\" []' --by word@matchend",
        f"{program} distribution {directory} vlak --by doc_year",
        f"{program} process {directory}",
        f"{program} export {directory} --format vertical | head -40",
        f"{python} -c {quote(code)}",
    ]
