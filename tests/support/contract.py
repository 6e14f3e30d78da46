"""Names of the stable contract: a corpus goes through the commands, and the names in their output are collected.

The names in tests/data/contract/names.json were recorded by running this module with Thresher 0.1.0.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import thresher
from support import TESTS
from support.command_line import run

Names = dict[str, Any]

# Keys of these objects are data, such as reasons of rejections; their values share one shape.
OPEN_OBJECTS = frozenset({"left_out", "rejected", "seeds"})

_SENTENCES = (
    "Ráno jsme se vydali na procházku k řece, protože bylo hezky a nikdo z nás nechtěl zůstat doma.",
    "Cestou jsme potkali sousedku, která nám řekla, že na trhu mají čerstvé ryby a levné brambory.",
    "Když jsme došli k mostu, začalo pršet, a tak jsme se schovali v malé kavárně na rohu náměstí.",
    "Majitel kavárny nám vyprávěl o tom, jak jeho děda před mnoha lety stavěl zdejší školu.",
    "Odpoledne se počasí zlepšilo a my jsme pokračovali lesem až na kopec, odkud je vidět celé město.",
    "Večer jsme se vrátili unavení, ale spokojení, a slíbili jsme si, že příště půjdeme ještě dál.",
)
_ENGLISH = "This page is in English, and so it is not what the corpus has been made for at all. " * 20


def _page(title: str, paragraphs: list[str], links: list[str]) -> bytes:
    anchors = "".join(f'<p><a href="{link}">{link}</a></p>' for link in links)
    body = "".join(f"<p>{paragraph}</p>" for paragraph in paragraphs)
    head = f'<meta charset="utf-8"><title>{title}</title><meta name="author" content="Jana Nová">'
    date = '<meta property="article:published_time" content="2024-05-31">'
    return f'<html lang="cs"><head>{head}{date}</head><body><h1>{title}</h1>{body}{anchors}</body></html>'.encode()


def _text(number: int) -> list[str]:
    """Return paragraphs that no other page has, enough of them for the judge."""
    return [
        f"{' '.join(_SENTENCES[place:] + _SENTENCES[:place])} Bylo to {number}. dne po {place}. hodině."
        for place in range(len(_SENTENCES))
    ]


PAGES = {
    "/": _page("Začátek", _text(0), ["/a", "/b", "/english", "/gone", "/moved", "/forbidden/x"]),
    "/a": _page("Druhá", _text(1), ["/", "/b", "http://www.jinde.cz/"]),
    "/b": _page("Třetí", _text(2), ["/c"]),
    "/c": _page("Čtvrtá", _text(3), []),
    "/english": _page("English", [_ENGLISH], []),
}


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        """Answer with a page, a redirect, robots.txt or 404."""
        body = PAGES.get(self.path, b"")
        status = 200 if body else 404
        if self.path == "/robots.txt":
            status, body = 200, b"User-agent: *\nDisallow: /forbidden/\n"
        self.send_response(301 if self.path == "/moved" else status)
        if self.path == "/moved":
            self.send_header("Location", "/a")
        self.send_header("Content-Type", "text/plain" if self.path == "/robots.txt" else "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Write no log."""


class _SilentHandler(_Handler):
    """Accepts requests and does not answer them while the test lasts."""

    asked = threading.Event()
    over = threading.Event()

    def do_GET(self) -> None:
        """Wait for the end of the test."""
        self.asked.set()
        self.over.wait()
        self.close_connection = True


@contextmanager
def _served(handler: type[BaseHTTPRequestHandler]) -> Iterator[str]:
    """Serve on loopback and yield the address for --connect-to."""
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


def shape(value: Any) -> Any:
    """Return the names and types of a JSON value: an object of shapes, a list of one shape, or a type.

    >>> shape({"pages": 3, "hosts": [{"name": "a.cz"}, {"name": "b.cz", "yield": 0.5}]})
    {'pages': 'number', 'hosts': [{'name': 'string', 'yield': 'number'}]}
    """
    if isinstance(value, dict):
        return {
            name: {"*": _merged([shape(item) for item in part.values()])}
            if name in OPEN_OBJECTS and isinstance(part, dict) and part
            else shape(part)
            for name, part in value.items()
        }
    if isinstance(value, list):
        return [_merged([shape(item) for item in value])] if value else []
    names = {bool: "boolean", int: "number", float: "number", str: "string", type(None): "null"}
    return names[type(value)]


def _merged(shapes: list[Any]) -> Any:
    """Return one shape that covers all."""
    if all(isinstance(one, dict) for one in shapes):
        names = dict.fromkeys(name for one in shapes for name in one)
        return {name: _merged([one[name] for one in shapes if name in one]) for name in names}
    known = [one for one in shapes if one not in ("null", [])]
    return known[0] if known else shapes[0]


def observe(folder: Path) -> dict[str, Any]:
    """Run the commands of the contract in a folder and return the names that they show."""
    corpus = folder / "corpus"
    found: dict[str, Any] = {}
    codes: dict[str, int] = {}

    def json_of(*arguments: str | Path) -> Any:
        done = run(*arguments)
        assert done.stdout, done.stderr
        codes[str(arguments[0])] = done.returncode
        return _merged([shape(row) for row in done.rows()])

    with _served(_Handler) as address:
        start = ("--seeds", "http://www.example.cz/", "--connect-to", address, "--delay", "0", "--json")
        small = run("crawl", folder / "small", "--lang", "cs", "--max-pages", "1", *start)
        codes["crawl stopped by a budget"] = small.returncode
        found["crawl --json"] = json_of("crawl", corpus, "--lang", "cs", *start)
    found["status --json"] = json_of("status", corpus, "--json")

    page = folder / "page.html"
    page.write_bytes(PAGES["/"])
    found["read --json"] = json_of("read", page, "--lang", "cs", "--json")

    (folder / "old.vert").write_text('<doc id="o1" author="K. Č.">\n<s>\nPsi\tNN\tpes\n</s>\n</doc>\n')
    found["import --json"] = json_of("import", corpus, folder / "old.vert", "--json")
    found["export --format jsonl"] = json_of("export", corpus, "--format", "jsonl")
    found["export --format vertical"] = _vertical(run("export", corpus, "--format", "vertical").stdout)
    exported = json_of("export", corpus, "--format", "jsonl", "-o", folder / "out.jsonl", "--json")
    found["export --json"] = exported

    indexed = run("index", corpus, "--annotator", "plain", "--json")
    codes["index"] = indexed.returncode
    found["index --json"] = shape(json.loads(indexed.stdout))
    found["attributes of an index"] = {
        name: json.loads(indexed.stdout)[name] for name in ("attributes", "structures")
    }
    query = '[word="jsme"]'
    found["search --json"] = json_of("search", corpus, query, "--json")
    found["search --count --json"] = json_of("search", corpus, query, "--count", "--json")
    found["search --spans --json"] = json_of("search", corpus, query, "--spans", "--json")
    found["search --spans"] = re.sub(
        r"\d+", "N", run("search", corpus, query, "--spans").stdout.splitlines()[0]
    )
    found["search --strategy"] = [
        name
        for name in ("standard", "shortest", "longest", "traditional")
        if run("search", corpus, query, "--count", "--strategy", name).returncode == 0
    ]
    found["simulate --json"] = json_of("simulate", corpus, "--policy", "bfs,spiderling", "--json")
    found["toyweb --json"] = _toyweb()
    codes |= _exit_codes(folder, corpus)
    found["exit codes"] = codes

    opened = thresher.open(corpus)
    documents = getattr(opened, "documents", None) or opened.docs
    for name, table in (("docs", documents()), ("outcomes", opened.outcomes()), ("links", opened.links())):
        found[f"columns of {name}"] = {field.name: str(field.type) for field in table.schema}
    return found


def _vertical(text: str) -> Any:
    """Return the structures of vertical text with their attributes, and the number of columns of its tokens."""
    structures: dict[str, list[str]] = {}
    columns = 0
    for line in text.splitlines():
        if tag := re.fullmatch(r"<(\w+)((?: \w+=\"[^\"]*\")*)>", line):
            known = structures.setdefault(tag[1], [])
            known += [name for name in re.findall(r' (\w+)="', tag[2]) if name not in known]
        elif not line.startswith("<"):
            columns = max(columns, len(line.split("\t")))
    return {"structures": structures, "columns": columns}


def _exit_codes(folder: Path, corpus: Path) -> dict[str, int]:
    """Return the exit code of each kind of ending that is not shown by the commands above."""
    (folder / "damaged.warc.gz").write_text("no archive")
    commands: dict[str, tuple[str | Path, ...]] = {
        "no such corpus": ("status", folder / "none"),
        "no such page": ("read", folder / "none.html"),
        "an archive without records": ("import", folder / "new", folder / "damaged.warc.gz", "--lang", "cs"),
        "an unknown option": ("status", corpus, "--no-such-option"),
        "a query that cannot be parsed": ("search", corpus, "[word="),
        "an unknown language": ("crawl", folder / "none", "--lang", "xxxx"),
    }
    codes = {name: run(*arguments).returncode for name, arguments in commands.items()}
    with _served(_SilentHandler) as address:
        start = ("--seeds", "http://www.example.cz/", "--connect-to", address, "--delay", "0")
        with _process("crawl", folder / "stopped", "--lang", "cs", *start) as process:
            assert _SilentHandler.asked.wait(120)
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=120)
            _SilentHandler.over.set()
            codes["crawl stopped by Ctrl-C"] = process.returncode
    return codes


def _toyweb() -> Any:
    with _process("toyweb", "--hosts", "3", "--json") as process:
        assert process.stdout
        line = process.stdout.readline()
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=120)
    return shape(json.loads(line))


@contextmanager
def _process(*arguments: str | Path) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-c", "from thresher.cli import main; main()", *map(str, arguments)]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(TESTS), *sys.path])}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def missing(recorded: Any, observed: Any, path: str = "") -> list[str]:
    """Return the paths of names and values that were recorded and are not observed; names may be added.

    >>> missing({"a": "number", "b": ["string"]}, {"a": "string", "c": "null"})
    ['a: number became string', 'b: missing']
    """
    if isinstance(recorded, dict) and isinstance(observed, dict):
        return [
            fault
            for name, part in recorded.items()
            for fault in (
                missing(part, observed[name], f"{path}.{name}".lstrip("."))
                if name in observed
                else [f"{path}.{name}: missing".lstrip(".")]
            )
        ]
    if isinstance(recorded, list) and isinstance(observed, list):
        if len(recorded) > 1:  # names
            return [f"{path}.{name}: missing" for name in recorded if name not in observed]
        return [
            fault
            for place, (old, new) in enumerate(zip(recorded, observed, strict=False))
            for fault in missing(old, new, f"{path}[{place}]")
        ]
    if recorded == observed or "null" in (recorded, observed):
        return []
    return [f"{path}: {recorded} became {observed}"]


if __name__ == "__main__":
    import tempfile

    with tempfile.TemporaryDirectory() as name:
        print(json.dumps(observe(Path(name)), indent=1, ensure_ascii=False))
