"""Commands that crawl, and that tell how a crawl is doing."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from thresher.cli.app import (
    BUDGET,
    DONE,
    INTERRUPTED,
    AsJson,
    Directory,
    Many,
    app,
    print_json,
    read_status,
    say,
    show,
)
from thresher.config import PolicyName, duration, load, size


@app.command
def crawl(
    directory: Directory,
    *,
    lang: str = "",
    seeds: Annotated[list[str] | None, Many] = None,
    tld: Annotated[list[str] | None, Many] = None,
    policy: PolicyName | None = None,
    floor: float | None = None,
    max_pages: int | None = None,
    max_bytes: str | None = None,
    max_time: str | None = None,
    cycles: int | None = None,
    cycle_pages: int | None = None,
    cycle_domain_pages: int | None = None,
    delay: float | None = None,
    connections: int | None = None,
    readers: int | None = None,
    contact: Annotated[str | None, Parameter(env_var="THRESHER_CONTACT")] = None,
    connect_to: str = "",
    shards: int | None = None,
    scratch: str | None = None,
    engine: str = "local",
    json: AsJson = False,
) -> None:
    """Start a crawl, or continue where it stopped.

    Example: thresher crawl czech --lang cs --seeds seeds.txt --tld cz --max-pages 10000

    Settings given here are kept in DIR/corpus.toml, where there are more. Ctrl-C stops; the same command
    with the directory alone goes on. Exit code 3: stopped by a budget.

    Parameters
    ----------
    lang
        Language of the corpus: cs, tr, ur …
    seeds
        Files with one URL a line, or URLs.
    tld
        Only hosts under these top-level domains.
    policy
        learned: links like those which gave text go first; focus: links on pages in the language, and hosts
        with many hits, go first; spiderling: breadth first, and domains that yield little text are closed;
        host-yield: hosts that gave most text per byte go first; heidix: links in good text on good pages go first;
        bfs: breadth first; random: any host, any page.
    floor
        Stop where a crawl that has run dry, after looking for more everywhere it can, gives less text than this for
        each byte downloaded; 0: go on to the last URL. For learned, focus, host-yield and heidix.
    max_pages
        Stop after so many pages.
    max_bytes
        Stop after so many bytes downloaded: 500M, 20GB.
    max_time
        Stop after so long: 90, 15m, 2h.
    cycles
        Stop after so many cycles.
    cycle_pages
        Crawl in cycles of the best so many URLs; what they lead to waits for the next cycle. 0: no cycles.
    cycle_domain_pages
        At most so many URLs of one registered domain in a cycle.
    delay
        Seconds between two requests to a host.
    connections
        Connections open at once.
    readers
        Reader processes.
    contact
        E-mail address or URL for webmasters; sent with every request.
    connect_to
        ADDR:PORT that every connection goes to, in plain HTTP, for tests and replays. The one way private
        addresses are reached.
    shards
        Crawl in so many shards, each with hosts, connections and a process of its own: for machines with many
        processors, and for clusters. Fixed when the corpus is made.
    scratch
        A folder on a disk of each machine in which shards work, copied into the corpus every minute. Without it
        they work in the corpus, on a disk that all machines share. For Ray the whole path: /scratch/czech.
    engine
        Where shards run: local, on this machine; ray or ray:HOST:PORT, on a Ray cluster.
    """
    from thresher.crawl.start import crawl as start
    from thresher.terminal import figures, progress

    settings: dict[str, dict[str, Any]] = {
        "scope": {"tlds": tld},
        "policy": {"name": policy, "floor": floor},
        "budget": {
            "pages": max_pages,
            "bytes": size(max_bytes) if max_bytes else None,
            "seconds": duration(max_time) if max_time else None,
        },
        "cycles": {"count": cycles, "pages": cycle_pages, "domain_pages": cycle_domain_pages},
        "polite": {"delay": delay, "contact": contact or _contact(directory, connect_to)},
        "fetch": {"connections": connections},
        "read": {"processes": readers},
        "shards": {"count": shards, "scratch": scratch},
    }
    given = {
        name: {key: value for key, value in section.items() if value is not None}
        for name, section in settings.items()
    }
    if scratch and engine == "local":
        given["shards"]["scratch"] = str(Path(scratch).absolute())  # elsewhere it would be another folder
    if connect_to:
        say(f"every connection goes to {connect_to}, in plain HTTP, private addresses included")
    with progress() as tell:
        ending = start(
            directory,
            lang,
            seeds or (),
            settings=given,
            connect_to=connect_to,
            engine=engine,
            progress=tell,
            complain=say,
        )
    status = _figures_so_far(directory) if ending.reason == "interrupted" else read_status(directory)
    if json:
        print_json({"ending": ending.reason, **status})
    elif status:
        show(figures(status))
    say(f"{ENDINGS.get(ending.reason, f'stopped: the {ending.reason} is spent')} {ending.detail}".strip())
    codes = {"done": DONE, "dry": DONE, "waiting": DONE, "interrupted": INTERRUPTED}
    sys.exit(codes.get(ending.reason, BUDGET))


ENDINGS = {
    "done": "done: nothing is left to fetch.",
    "dry": "the crawl has run dry:",
    "waiting": "done for now:",
    "interrupted": "stopped; everything fetched is safe. Go on with the same command.",
}


def _figures_so_far(directory: Path) -> dict[str, Any]:
    """The figures of a crawl that may have been stopped before it had any."""
    from thresher.store.corpus import CorpusError

    try:
        return read_status(directory)
    except CorpusError:
        return {}


def _contact(directory: Path, connect_to: str) -> str | None:
    """The contact, asked for once where there is somebody to ask."""
    known = (directory / "corpus.toml").exists() and load(directory).polite.contact
    if known or connect_to or not sys.stdin.isatty():
        return None
    print("Webmasters must be able to reach you.", file=sys.stderr)
    print("Your e-mail address, or a page about your project: ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip() or None


@app.command
def status(directory: Directory, *, json: AsJson = False) -> None:
    """Tell the figures of a corpus, also while it is being crawled.

    Example: thresher status czech --json
    """
    from thresher.terminal import figures

    found = read_status(directory)
    if json:
        print_json(found)
    else:
        show(figures(found))


@app.command
def explain(directory: Directory, url: str, *, json: AsJson = False) -> None:
    """Tell why a URL has its weight: what is known of others like it, and what each clue makes of it.

    Example: thresher explain czech https://example.cz/clanek

    Parameters
    ----------
    url
        Any URL; one that nobody has seen yet is weighed as if it were found now.
    """
    from thresher.crawl.explain import explain as find
    from thresher.terminal import explanation

    found = find(directory, url)
    if json:
        print_json(found)
    else:
        show(explanation(found))


@app.command
def hosts(directory: Directory, *, count: int = 20, json: AsJson = False) -> None:
    """List the hosts of a corpus by their yield: what they gave, what waits there, which are closed and why.

    Example: thresher hosts czech --count 50

    Parameters
    ----------
    count
        How many are shown; --json tells all.
    """
    import time

    from thresher.crawl.hosts import hosts as every
    from thresher.terminal import host_table

    found = every(directory, time.time())
    if json:
        for host in found:
            print_json(host)
    else:
        show(host_table(found[:count]))
        if len(found) > count:
            say(f"and {len(found) - count:,} more: thresher hosts {directory} --count {len(found)}")
