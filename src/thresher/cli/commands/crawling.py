"""Commands that crawl, and that report on a crawl."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from thresher.cli.app import AsJson, Directory, Many, app, print_json, read_status, say, show
from thresher.cli.exit_codes import BUDGET, DONE, INTERRUPTED
from thresher.cli.log_options import DEFAULT_LOG, LogOptions
from thresher.config import PolicyName, duration, load, size
from thresher.wording import counted


@app.command
def crawl(
    directory: Directory,
    *,
    lang: str = "",
    seeds: Annotated[list[str] | None, Many] = None,
    tld: Annotated[list[str] | None, Many, Parameter(name=["--tld", "--tlds"])] = None,
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
    processes: int | None = None,
    readers: Annotated[int | None, Parameter(show=False)] = None,
    contact: Annotated[str | None, Parameter(env_var="THRESHER_CONTACT")] = None,
    connect_to: str = "",
    shards: int | None = None,
    scratch: str | None = None,
    engine: str = "local",
    log: LogOptions = DEFAULT_LOG,
    json: AsJson = False,
) -> None:
    """Start a crawl, or continue where it stopped.

    Example: thresher crawl czech --lang cs --seeds seeds.txt --tld cz --max-pages 10000

    Settings given here are kept in DIR/corpus.toml, which has more of them: thresher config DIR. Ctrl-C stops;
    the same command with the directory alone continues. Exit code 3: stopped by a budget.

    Parameters
    ----------
    lang
        Language of the corpus: cs, tr, ur …
    seeds
        Files with one URL per line, or URLs.
    tld
        Only hosts under these top-level domains.
    policy
        learned: links go first that resemble links that gave text; focus: links on pages in the language, and hosts
        with many hits, go first; spiderling: breadth first, and domains that yield little text are closed;
        host-yield: hosts that gave most text per byte go first; heidix: links in good text on good pages go first;
        bfs: breadth first; random: any host, any page.
    floor
        Stop a crawl that has run dry and looked for more everywhere when it gives less text than this for each byte
        downloaded; 0: continue to the last URL. For learned, focus, host-yield and heidix.
    max_pages
        Stop after this many pages.
    max_bytes
        Stop after this many bytes downloaded: 500M, 20GB.
    max_time
        Stop after this long: 90, 15m, 2h.
    cycles
        Stop after this many cycles.
    cycle_pages
        Crawl in cycles of this many URLs, the best ones; links found wait for the next cycle. 0: no cycles.
    cycle_domain_pages
        Most URLs of one registered domain in a cycle.
    delay
        Seconds between two requests to a host.
    connections
        Connections open at once.
    processes
        Reader processes; by default one less than there are processors.
    contact
        E-mail address or URL for webmasters; sent with every request.
    connect_to
        ADDR:PORT that every connection goes to, in plain HTTP, for tests and replays. Private addresses are
        reached in no other way. It is remembered; none leads the corpus to the web.
    shards
        Crawl in this many shards, each with hosts, connections and a process of its own: for machines with many
        processors, and for clusters. Fixed when the corpus is made.
    scratch
        Folder on a disk of each machine in which shards work; it is copied into the corpus every minute. Without it
        they work in the corpus, on a disk that all machines share. For Ray the whole path: /scratch/czech.
    engine
        Where shards run: local, on this machine; ray or ray:HOST:PORT, on a Ray cluster.
    """
    from thresher.cli.views.terminal import progress, status_tables
    from thresher.crawler.api import crawl as start

    if readers is not None:
        say("--readers is --processes now; the old name will be removed by the next release")
        processes = readers if processes is None else processes
    settings: dict[str, dict[str, Any]] = {
        "scope": {"tlds": tld},
        "policy": {"name": policy, "floor": floor},
        "budget": {
            "max_pages": max_pages,
            "max_bytes": size(max_bytes) if max_bytes else None,
            "max_time": duration(max_time) if max_time else None,
        },
        "cycles": {"count": cycles, "pages": cycle_pages, "domain_pages": cycle_domain_pages},
        "polite": {"delay": delay, "contact": contact or _contact(directory, connect_to)},
        "fetch": {"connections": connections},
        "read": {"processes": processes},
        "shards": {"count": shards, "scratch": scratch},
    }
    chosen = {
        name: {key: value for key, value in section.items() if value is not None}
        for name, section in settings.items()
    }
    if scratch and engine == "local":
        # A command in another working directory would mean another folder.
        chosen["shards"]["scratch"] = str(Path(scratch).absolute())
    with log.writing(directory, "crawl"), progress() as report:
        ending = start(
            directory,
            lang,
            seeds or (),
            settings=chosen,
            connect_to=connect_to,
            engine=engine,
            progress=report,
            remark=say,
        )
    status = _status_so_far(directory) if ending.reason == "interrupted" else read_status(directory)
    if json:
        print_json({"ending": ending.reason, **status})
    elif status:
        show(status_tables({**status, "waiting": None}))
    say(f"{ENDINGS.get(ending.reason, f'stopped: the {ending.reason} is spent')} {ending.detail}".strip())
    codes = {"done": DONE, "dry": DONE, "waiting": DONE, "interrupted": INTERRUPTED}
    sys.exit(codes.get(ending.reason, BUDGET))


ENDINGS = {
    "done": "done: nothing is left to fetch.",
    "dry": "the crawl has run dry:",
    "waiting": "done for now:",
    "interrupted": "stopped; everything fetched is safe. Run the same command to resume.",
}


def _status_so_far(directory: Path) -> dict[str, Any]:
    """Return the status of a crawl, empty if it was stopped before its first commit."""
    from thresher.store.corpus_files import CorpusError

    try:
        return read_status(directory)
    except CorpusError:
        return {}


def _contact(directory: Path, connect_to: str) -> str | None:
    """Return the contact that the user types, if none is known and there is a terminal to ask on."""
    if (directory / "corpus.toml").exists():
        known = load(directory)
        connect_to = connect_to or known.fetch.fixed_address
        if known.polite.contact:
            return None
    if connect_to not in ("", "none") or not sys.stdin.isatty():
        return None
    print("Webmasters must be able to reach you.", file=sys.stderr)
    print("Your e-mail address, or a page about your project: ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip() or None


@app.command
def status(directory: Directory, *, json: AsJson = False) -> None:
    """Show the status of a corpus, also while it is being crawled.

    Example: thresher status czech --json
    """
    from thresher.cli.views.terminal import status_tables
    from thresher.store.corpus_files import CorpusError

    try:
        figures = read_status(directory)
    except CorpusError:
        if not (imported := _imported_documents(directory)):
            raise
        _show_imported(directory, imported, json)
        return
    if json:
        print_json(figures)
        return
    show(status_tables(figures if _is_running(directory) else {**figures, "waiting": None}))
    if hint := _trained_language_hint(directory, figures):
        say(hint)


def _is_running(directory: Path) -> bool:
    """Return whether a crawl is writing the corpus; after its end, no host is waited for."""
    from thresher.files.durable_files import is_locked

    try:
        return is_locked(directory / "lock")
    except OSError:  # a medium that cannot be written to
        return False


def _imported_documents(directory: Path) -> int:
    """Return the number of documents of a corpus without a crawl, 0 if it does not exist."""
    from thresher.search.index.coverage import rows
    from thresher.store import corpus_files

    return rows(corpus_files.open(directory)) if (directory / "corpus.toml").exists() else 0


def _show_imported(directory: Path, documents: int, json: bool) -> None:
    """Show the status of a corpus that was imported and never crawled."""
    from thresher.search.index import manifest

    index = manifest.read(directory)
    if json:
        print_json({"documents": documents, "indexed": index.documents if index else None})
        return
    in_index = f", {counted(index.documents, 'document')} in the index" if index else ""
    show(f"{counted(documents, 'document')} imported{in_index}, no crawl")
    say(
        f"search it: thresher search {directory} WORD"
        if index
        else f"make an index: thresher index {directory}"
    )


def _trained_language_hint(directory: Path, status: dict[str, Any]) -> str:
    """Return a hint if a language that the user trained takes most pages of another corpus, otherwise ""."""
    from thresher.reader.language.custom_models import trained_languages

    trained = set(trained_languages()) - {status["language"]}
    rejected = status["pages"]["rejected"].get("language", 0)
    if not trained or rejected <= status["pages"]["fetched"] / 2:
        return ""
    from collections import Counter

    import thresher

    counts: Counter[str | None] = Counter()
    for batch in thresher.open(directory).batches("outcomes", ["reason", "language"]):
        rows = zip(batch.column("reason").to_pylist(), batch.column("language").to_pylist(), strict=True)
        counts.update(language for reason, language in rows if reason == "language")
    language, pages = max(counts.items(), key=lambda count: count[1], default=(None, 0))
    if language not in trained or pages <= rejected / 2:
        return ""
    return (
        f"most pages were rejected as {language}, a language you trained; its sample may be in "
        f"{status['language']}. Take it out of read.trained_languages in corpus.toml, or delete it: "
        f"thresher language forget {language}"
    )


@app.command
def explain(directory: Directory, url: str, *, json: AsJson = False) -> None:
    """Explain the weight of a URL: the yield of URLs like it, and the effect of each feature.

    Example: thresher explain czech https://example.cz/clanek

    Parameters
    ----------
    url
        Any URL; an unseen one is weighed as if it were found now.
    """
    from thresher.cli.views.terminal import explanation
    from thresher.crawler.explain import explain as find

    found = find(directory, url)
    if json:
        print_json(found)
    else:
        show(explanation(found))


@app.command
def hosts(directory: Directory, *, count: int = 20, json: AsJson = False) -> None:
    """List the hosts of a corpus by yield, with their text, queued URLs and the reason if they are closed.

    Example: thresher hosts czech --count 50

    Parameters
    ----------
    count
        Number of hosts to show; --json lists all.
    """
    import time

    from thresher.cli.views.terminal import host_table
    from thresher.crawler.host_report import hosts as every

    found = every(directory, time.time())
    if json:
        for host in found:
            print_json(host)
    else:
        show(host_table(found[:count]))
        if len(found) > count:
            say(f"and {len(found) - count:,} more: thresher hosts {directory} --count {len(found)}")
