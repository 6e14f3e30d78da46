"""The command read."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from thresher.cli.app import AsJson, app, print_json, say, show
from thresher.cli.exit_codes import DONE, FAULT


@app.command
def read(
    files: Annotated[list[Path], Parameter(name="FILE", negative=(), help="Saved HTML pages.")],
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
        Address of the page; links are relative to it.
    charset
        Encoding of the pages, as an HTTP header would declare it.
    """
    from thresher import page
    from thresher.cli.views.inspect import view
    from thresher.reader.encoding.charset import named

    if charset and not named(charset):
        say(f"the charset {charset!r} is unknown, so pages are read as without it; for example windows-1250")
    failed = False
    for path in files:
        try:
            found = page.read(path.read_bytes(), url=url, language=lang or None, charset=charset or None)
        except OSError as fault:
            say(f"{path}: {fault.strerror}")
            failed = True
            continue
        seen = {"file": str(path), **found.to_dict()}
        if json:
            print_json(seen)
        else:
            show(view(seen, lang))
    sys.exit(FAULT if failed else DONE)
