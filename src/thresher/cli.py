"""The command line: one thin command per verb. Machines get JSON on stdout, people get stderr."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated, Any, Literal, NoReturn

import msgspec
from cyclopts import App, Parameter

from thresher._version import __version__
from thresher.config import ConfigError, PolicyName, duration, load, size

DONE, FAULT, USAGE, BUDGET, INTERRUPTED = 0, 1, 2, 3, 130

app = App(
    name="thresher",
    version=__version__,
    help="Build a clean text corpus of one language from the web, with as little downloading as possible.\n\n"
    "A first look, without a network: thresher demo",
)

Directory = Annotated[Path, Parameter(help="Directory of the corpus.")]
AsJson = Annotated[bool, Parameter(name="--json", negative=(), help="JSON on stdout, for machines.")]
Many = Parameter(consume_multiple=True, negative=())


def main() -> None:
    """Run the command line; any fault ends in one message and its exit code, never in a traceback."""
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # numpy would start threads that nobody needs
    try:
        app()
    except KeyboardInterrupt:
        _leave("interrupted", INTERRUPTED)
    except BrokenPipeError:  # `thresher export … | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(DONE)
    except ConfigError as fault:
        _leave(str(fault), USAGE)
    except OSError as fault:
        _leave(f"{fault.filename or 'input or output'}: {fault.strerror or fault}", FAULT)
    except _faults() as fault:
        _leave(str(fault), FAULT)


def _faults() -> tuple[type[Exception], ...]:
    """Faults whose message is for the user; looked up only when something went wrong."""
    from thresher.crawl.loop import CrawlFault
    from thresher.engine.local import EngineFault
    from thresher.store.corpus import CorpusError
    from thresher.store.files import StoreError

    return CrawlFault, EngineFault, CorpusError, StoreError


def _leave(message: str, code: int) -> NoReturn:
    _say(message)
    sys.exit(code)


def _say(message: str) -> None:
    from thresher.terminal import harmless

    for part in message.splitlines():
        print(f"thresher: {harmless(part)}", file=sys.stderr)


def _print_json(value: Any) -> None:
    sys.stdout.buffer.write(msgspec.json.encode(value, enc_hook=str) + b"\n")
    sys.stdout.buffer.flush()


@app.command
def crawl(
    directory: Directory,
    *,
    lang: str = "",
    seeds: Annotated[list[str] | None, Many] = None,
    tld: Annotated[list[str] | None, Many] = None,
    policy: PolicyName | None = None,
    max_pages: int | None = None,
    max_bytes: str | None = None,
    max_time: str | None = None,
    delay: float | None = None,
    connections: int | None = None,
    readers: int | None = None,
    contact: Annotated[str | None, Parameter(env_var="THRESHER_CONTACT")] = None,
    connect_to: str = "",
    engine: Literal["local"] = "local",  # noqa: ARG001 - part of the contract, with one choice so far
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
        bfs: breadth first; spiderling: also closes domains that yield little text; host-yield: hosts that gave most
        text per byte come first; heidix: links in good text on good pages come first; random: any host, any page.
    max_pages
        Stop after so many pages.
    max_bytes
        Stop after so many bytes downloaded: 500M, 20GB.
    max_time
        Stop after so long: 90, 15m, 2h.
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
    engine
        Where the work runs.
    """
    from thresher.crawl.start import crawl as start
    from thresher.terminal import figures, progress

    settings: dict[str, dict[str, Any]] = {
        "scope": {"tlds": tld},
        "policy": {"name": policy},
        "budget": {
            "pages": max_pages,
            "bytes": size(max_bytes) if max_bytes else None,
            "seconds": duration(max_time) if max_time else None,
        },
        "polite": {"delay": delay, "contact": contact or _contact(directory, connect_to)},
        "fetch": {"connections": connections},
        "read": {"processes": readers},
    }
    given = {
        name: {key: value for key, value in section.items() if value is not None}
        for name, section in settings.items()
    }
    if connect_to:
        _say(f"every connection goes to {connect_to}, in plain HTTP, private addresses included")
    with progress() as show:
        ending = start(
            directory, lang, seeds or (), settings=given, connect_to=connect_to, progress=show, complain=_say
        )
    status = _read_status(directory)
    if json:
        _print_json({"ending": ending.reason, **status})
    else:
        _show(figures(status))
    _say(f"{ENDINGS.get(ending.reason, f'stopped: the {ending.reason} is spent')} {ending.detail}".strip())
    codes = {"done": DONE, "waiting": DONE, "interrupted": INTERRUPTED}
    sys.exit(codes.get(ending.reason, BUDGET))


ENDINGS = {
    "done": "done: nothing is left to fetch.",
    "waiting": "done for now:",
    "interrupted": "stopped; everything fetched is safe. Go on with the same command.",
}


def _contact(directory: Path, connect_to: str) -> str | None:
    """The contact, asked for once where there is somebody to ask."""
    known = (directory / "corpus.toml").exists() and load(directory).polite.contact
    if known or connect_to or not sys.stdin.isatty():
        return None
    print("Webmasters must be able to reach you.", file=sys.stderr)
    print("Your e-mail address, or a page about your project: ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip() or None


def _show(*views: Any) -> None:
    from rich.console import Console

    Console(stderr=True).print(*views)


def _read_status(directory: Path) -> dict[str, Any]:
    import thresher

    return thresher.open(directory).stats()


@app.command
def status(directory: Directory, *, json: AsJson = False) -> None:
    """Tell the figures of a corpus, also while it is being crawled.

    Example: thresher status czech --json
    """
    from thresher.terminal import figures

    found = _read_status(directory)
    if json:
        _print_json(found)
    else:
        _show(figures(found))


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
            _print_json(host)
    else:
        _show(host_table(found[:count]))
        if len(found) > count:
            _say(f"and {len(found) - count:,} more: thresher hosts {directory} --count {len(found)}")


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
            _say(f"{path}: {fault.strerror}")
            failed = True
            continue
        if json:
            _print_json(seen)
        else:
            _show(view(seen))
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
        _print_json({"documents": count, "output": str(output)})
    _say(f"{count:,} of {len(corpus):,} documents written")
    if not opted_out:
        _say("documents whose publishers opted out of text mining are left out; --opted-out takes them too")


language = App(
    name="language",
    help="The languages there are, and new ones from a sample of text.\n\n"
    "Example: thresher language train hsb sorbian.txt",
)
app.command(language)


@language.command(name="train")
def train_language(
    name: str,
    sample: Path,
    *,
    replace: Annotated[bool, Parameter(negative=())] = False,
    json: AsJson = False,
) -> None:
    """Make a language that nobody has a model for from a sample of it.

    Example: thresher language train hsb sorbian.txt

    Afterwards --lang knows it by its name. It is kept in $THRESHER_LANGUAGES, or else among the data of the user.

    Parameters
    ----------
    name
        Code for it, best that of ISO 639-3: hsb, or qaa for what has none.
    sample
        Text file in UTF-8: running text from many sources, best a few hundred kilobytes.
    replace
        Also if a language of that name was trained before.
    """
    from thresher.languages import account, entry
    from thresher.read.training import train_language as train

    made = entry(train(name, sample, replace=replace))
    if json:
        _print_json(made)
    for sentence in account(made):
        _say(sentence)


@language.command(name="list")
def list_languages(*, json: AsJson = False) -> None:
    """List the languages that can be asked for: those shipped, then those trained.

    Example: thresher language list --json
    """
    from thresher.languages import all_languages, view

    found = all_languages()
    if json:
        _print_json(found)
    else:
        _show(view(found))


@language.command(name="forget")
def forget_language(name: str) -> None:
    """Delete a language that was trained; corpora made with it stay as they are.

    Example: thresher language forget hsb

    Parameters
    ----------
    name
        Name that it was trained under.
    """
    from thresher.read.trained import forget

    forget(name)
    _say(f"language {name!r} is forgotten")


@app.command
def toyweb(
    *,
    hosts: int = 60,
    seed: int = 1,
    port: int = 0,
    target: str = "cs",
    processes: int = 1,
    parameter: Annotated[dict[str, Any] | None, Parameter(name="--set", negative=())] = None,
    json: AsJson = False,
) -> None:
    """Serve a whole web on loopback, the same for everyone who asks with the same parameters.

    Example: thresher toyweb --hosts 500 --seed 7 --port 8088 --set.calendar 0.1

    Prints where to connect to and where to start, and serves until stopped. Only the crawler's --connect-to
    reaches its hosts.

    Parameters
    ----------
    hosts
        Number of hosts.
    seed
        Another number, another web.
    port
        Port to listen on; any free one if 0.
    target
        The language that a corpus is to be built of.
    processes
        Processes that serve.
    parameter
        Any other parameter of the toy web, by name.
    """
    from thresher.lab.toyweb import Server, ToyWeb, seeds, serve_forever

    try:
        table = {"hosts": hosts, "seed": seed, "target": target, **(parameter or {})}
        web = msgspec.convert(table, ToyWeb, strict=False)
    except (msgspec.ValidationError, ValueError) as fault:
        raise ConfigError(f"toyweb: {fault}") from None

    def ready(server: Server) -> None:
        start = seeds(web)
        if json:
            _print_json({"connect_to": server.connect_to, "seeds": start})
            return
        _say(f"serving {hosts:,} hosts; crawl them with:")
        _say(
            f"thresher crawl toy --lang {target} --connect-to {server.connect_to} --delay 0 "
            f"--seeds {' '.join(start[target])}"
        )

    serve_forever(web, port, processes, ready=ready)


@app.command
def simulate(
    directory: Directory,
    *,
    policy: str = "bfs,spiderling",
    lang: str = "",
    seeds: Annotated[list[str] | None, Many] = None,
    max_bytes: str | None = None,
    delay: float = 0.0,
    connections: int = 1,
    json: AsJson = False,
) -> None:
    """Crawl a recorded web again on paper, under other policies: how much text for how much downloading?

    Example: thresher simulate czech --policy bfs,spiderling --delay 1 --connections 50

    Any corpus is a record of the web it was crawled from, as far as that was crawled. Beside the policies stand an
    oracle, which knows every page but has to find a way there, and the ideal, which need not.

    Parameters
    ----------
    policy
        Policies to compare, with commas between them.
    lang
        Count text in this language, if it is not that of the corpus.
    seeds
        Files with one URL a line, or URLs; those of the corpus if left out.
    max_bytes
        Download no more than that: 500M, 20GB; three times what the ideal needs if left out.
    delay
        Seconds between two requests to a host.
    connections
        Requests under way at once.
    """
    from thresher.crawl.seeds import gather
    from thresher.crawl.start import language_code
    from thresher.lab.record import load as load_record
    from thresher.lab.simulate import FURTHER, Terms, compare, ideal
    from thresher.terminal import harvests

    record = load_record(directory, language_code(lang) if lang else "")
    urls = gather(seeds).urls if seeds else (directory / "seeds.txt").read_text("utf-8").split()
    limit = size(max_bytes) if max_bytes else FURTHER * int(ideal(record).downloaded[-1:].sum())
    terms = Terms(delay=delay, connections=connections, bytes=limit)
    rows = list(compare(record, policy.split(","), record.find(urls), terms))
    if json:
        for row in rows:
            _print_json(row)
    else:
        _show(harvests(rows))


@app.command
def demo(directory: Directory = Path("thresher-demo"), *, json: AsJson = False) -> None:
    """Crawl an embedded web into a corpus and show it: no network, under a minute.

    Example: thresher demo
    """
    from thresher.inspect import view_demo
    from thresher.lab import demo as lab
    from thresher.terminal import figures, progress

    _say(f"crawling a toy web of {lab.WEB.hosts} hosts on loopback for {lab.WEB.target!r} into {directory}")
    with progress() as show:
        ending = lab.run(directory, show)
    if ending.reason == "interrupted":
        _leave("interrupted", INTERRUPTED)
    status, found = _read_status(directory), lab.findings(directory)
    if json:
        _print_json({**status, "demo": found})
    else:
        _show(figures(status))
        _show(view_demo(found, directory))


if __name__ == "__main__":
    main()
