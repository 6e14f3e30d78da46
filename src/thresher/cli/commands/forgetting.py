"""The command forget."""

from __future__ import annotations

from typing import Annotated

import msgspec
from cyclopts import Parameter

from thresher.cli.app import AsJson, Directory, Many, app, print_json, say

WORDS = {
    "documents": "documents",
    "raw": "raw pages",
    "outcomes": "outcomes",
    "links": "links",
    "waiting": "queued URLs",
    "imports": "imported documents",
    "index": "documents of the index",
    "seeds": "seeds",
}


@app.command
def forget(
    directory: Directory,
    *,
    url: Annotated[list[str] | None, Many] = None,
    host: Annotated[list[str] | None, Many] = None,
    domain: Annotated[list[str] | None, Many] = None,
    dry_run: Annotated[bool, Parameter(negative=())] = False,
    json: AsJson = False,
) -> None:
    """Remove documents from a corpus permanently: raw pages, text, links, queues, imports and index.

    Example: thresher forget czech --url https://example.cz/diary --dry-run

    They are not fetched or imported again: the request is kept in forgotten.jsonl. If the command is interrupted,
    give it again.

    Parameters
    ----------
    url
        Pages, by their URLs; imported documents also by their ids.
    host
        All pages of these hosts.
    domain
        All pages of these domains, with all hosts under them.
    dry_run
        Only count the documents.
    """
    from thresher.erasure import forget as remove
    from thresher.erasure import ids_of_nothing
    from thresher.store.erasure_log import erasure_request

    asked = erasure_request(urls=url or (), hosts=host or (), domains=domain or ())
    unknown = ids_of_nothing(directory, asked)
    found = remove(directory, asked, dry_run=dry_run)
    counts = msgspec.structs.asdict(found)
    if json:
        print_json({**counts, "dry_run": dry_run})
    for name in unknown:
        say(
            f"--url {name!r} has no https:// and is not the id of an imported document; for a page, give "
            f"--url https://{name}"
        )
    removed = [f"{count:,} {WORDS[name]}" for name, count in counts.items() if count]
    say(
        f"{'to be forgotten' if dry_run else 'forgotten'}: {', '.join(removed) or 'nothing: no such documents'}"
    )
