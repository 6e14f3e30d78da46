"""The command that reads saved pages."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from thresher.cli.app import DONE, FAULT, AsJson, app, print_json, say, show


@app.command
def read(
    files: Annotated[list[Path], Parameter(name="FILE", help="Saved HTML pages.")],
    *,
    lang: str = "",
    url: str = "http://localhost/",
    charset: str = "",
    json: AsJson = False,
) -> None:
    """Read saved pages as the crawler would: blocks, scores, languages, links, verdict.

    Example: thresher read page.html --lang cs --url https://example.cz/clanek

    Parameters
    ----------
    lang
        Language of the corpus that the page is judged for.
    url
        Where the page was: links are relative to it.
    charset
        As an HTTP header would declare it.
    """
    from thresher.inspect import look, view

    failed = False
    for path in files:
        try:
            seen = look(path, lang, url, charset)
        except OSError as fault:
            say(f"{path}: {fault.strerror}")
            failed = True
            continue
        if json:
            print_json(seen)
        else:
            show(view(seen))
    sys.exit(FAULT if failed else DONE)
