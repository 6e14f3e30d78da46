"""Commands that read pages, and that write out what a corpus has."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from thresher.cli.app import DONE, FAULT, AsJson, Directory, Many, app, print_json, say, show


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


@app.command
def export(
    directory: Directory,
    *,
    format: str,
    output: Annotated[Path | None, Parameter(name=["--output", "-o"])] = None,
    tld: Annotated[list[str] | None, Many] = None,
    opted_out: Annotated[bool, Parameter(negative=())] = False,
    json: AsJson = False,
) -> None:
    """Write the documents of a corpus in another format.

    Example: thresher export czech --format vertical -o czech.vert.gz

    Parameters
    ----------
    format
        jsonl, txt, vertical or parquet.
    output
        File to write, .gz and .zst compress; stdout if left out.
    tld
        Only documents from hosts under these top-level domains: one sub-corpus per country.
    opted_out
        Also documents whose publishers object to their use for machine learning or data mining.
    """
    import thresher
    from thresher.store.formats import export as write

    corpus = thresher.open(directory)
    count = write(corpus, format, output or sys.stdout.buffer, tlds=tld or (), opted_out=opted_out)
    if json and output:
        print_json({"documents": count, "output": str(output)})
    say(f"{count:,} of {len(corpus):,} documents written")
    if not opted_out:
        say("documents whose publishers opted out of text mining are left out; --opted-out takes them too")
