"""Another version of Thresher against this one: crawl, learned policy, reader and queries, side by side.

python -m bench.versions OTHER [--rounds 5] [--only crawl,learning,read,query] [--pages 3000] [--hosts 60]
                         [--tokens 3000000] [--folder /var/tmp/queries]

OTHER is a checkout with its own .venv, made there by `make test` or by `make .venv/.installed-dev`. It takes part
twice, as `other` and as `again`: the ratio between these two is the error of the measurement. In each round the
contenders take turns, and every other round goes backwards; figures are medians over the rounds, of work per
processor second of all processes, so that more is better.

crawl: pages of the toy web under bfs. learning: the same under the learned policy, when no host is closed.
read: pages of the gold sets of 30 to 80 KB. query: tokens imported and indexed, and the queries of bench.queries
as first pages and as counts, each from an index that was just opened.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from bench import webs
from bench.contenders import thresher
from bench.measure import GOLD, ROOT, emit, run, say, table
from bench.query.queries import QUERIES
from bench.query.query_corpus import write
from thresher_lab.training.gold import load

PARTS = ("crawl", "learning", "read", "query")
LANGUAGE = "cs"
READ_SETS = ("daniel.tar.gz", "wcxb.tar.gz", "dragnet.tar.gz")
READ_BYTES = range(30_000, 80_001)
READ_PAGES = 600
# Settings by names that both versions know.
BFS: dict[str, dict[str, Any]] = {"policy": {"name": "bfs"}}
LEARNED: dict[str, dict[str, Any]] = {
    "policy": {"name": "learned", "threshold": "", "patience": 0.0, "floor": 0.0},
    "polite": {"ip_delay": 0.0},
}
# The index was in the package `query` before the packages got their present names.
QUERY_SCRIPT = """
import json, sys, time
from pathlib import Path
try:
    from thresher.search.searcher import Index
except ImportError:
    from thresher.query.found import Index
corpus, queries = Path(sys.argv[1]), json.loads(sys.argv[2])
works = {"first": lambda search: search.first(20), "count": lambda search: search.count()}
spent = dict.fromkeys(works, 0.0)
for name, work in works.items():
    for query in queries:
        best = 1e9
        for turn in range(10):  # the first compiles kernels, and reads files into the page cache
            before = time.process_time()
            work(Index(corpus).search(query, seconds=None))
            best = min(best, time.process_time() - before)
        spent[name] += best
print(json.dumps(spent))
"""

Figures = dict[str, float]


@dataclass(frozen=True)
class Version:
    """A version of Thresher that takes part under a name."""

    name: str
    home: Path

    @property
    def python(self) -> Path:
        return self.home / ".venv" / "bin" / "python"


class Contest:
    """The measurements of all versions, in rounds."""

    def __init__(self, versions: Sequence[Version], rounds: int) -> None:
        self._versions = versions
        self._rounds = rounds
        self._figures: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))

    def measure(self, part: str, work: Callable[[Version, int], Figures]) -> None:
        """Let each version do the work once per round."""
        for number in range(self._rounds):
            for version in self._versions[:: -1 if number % 2 else 1]:
                found = work(version, number)
                emit({"part": part, "version": version.name, "round": number + 1, **found})
                for name, value in found.items():
                    self._figures[name][version.name].append(value)

    def rows(self) -> Iterator[dict[str, Any]]:
        """Yield medians and their ratios to `other`, a row for each figure."""
        for name, of in self._figures.items():
            medians = {version: median(values) for version, values in of.items()}
            yield {
                "name": name,
                **medians,
                "this/other": medians["this"] / medians["other"],
                "again/other": medians["again"] / medians["other"],
                "rounds": self._rounds,
            }


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m bench.versions", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("other", type=Path, help="a checkout of another version, with its own .venv")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", default=",".join(PARTS))
    parser.add_argument("--pages", type=int, default=3_000, help="requests of a crawl")
    parser.add_argument("--hosts", type=int, default=60, help="of the toy web")
    parser.add_argument("--tokens", type=int, default=3_000_000, help="of the corpus for queries")
    parser.add_argument("--folder", type=Path, default=Path("/var/tmp/queries"), help="of that corpus")
    asked = parser.parse_args()
    other = asked.other.resolve()
    versions = [Version("other", other), Version("this", ROOT), Version("again", other)]
    if missing := [version.python for version in versions if not version.python.exists()]:
        parser.error(f"{missing[0]} is missing; run there: make .venv/.installed-dev")
    contest = Contest(versions, asked.rounds)
    parts = asked.only.split(",")
    with ExitStack() as stack:
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="thresher-bench-")))
        for name, settings in (("crawl", BFS), ("learning", LEARNED)):
            if name in parts:
                with webs.toy(asked.hosts) as web:
                    contest.measure(name, _crawl(scratch, web, name, settings, asked.pages))
        if "read" in parts:
            contest.measure("read", _read(scratch))
        if "query" in parts:
            vertical = write(asked.folder, asked.tokens, lambda name, count: say(f"{name}: {count:,}"))
            contest.measure("query", _query(scratch, vertical))
    rows = list(contest.rows())
    for row in rows:
        emit(row)
    table(rows, ("name", "other", "this", "again", "this/other", "again/other", "rounds"))


def _crawl(
    scratch: Path, web: webs.Web, name: str, settings: dict[str, dict[str, Any]], pages: int
) -> Callable[[Version, int], Figures]:
    def work(version: Version, number: int) -> Figures:
        corpus = scratch / f"{name}-{version.name}-{number}"
        options = ("--max-pages", pages)
        found = thresher(corpus, web, LANGUAGE, web.seeds, settings, python=version.python, options=options)
        return {
            f"{name}: pages/CPU-s": found["pages_per_cpu_s"],
            f"{name}: pages/CPU-s of the main process": found["pages"] / found["main_cpu_s"],
            f"{name}: pages/s": found["pages_per_s"],
        }

    return work


def _read(scratch: Path) -> Callable[[Version, int], Figures]:
    gold = load(GOLD / name for name in READ_SETS)
    pages = [page for page in gold if len(page.html.encode()) in READ_BYTES][:READ_PAGES]
    path = scratch / "pages.jsonl"
    with path.open("w") as file:
        for number, page in enumerate(pages):
            key = f"{number}" if number >= READ_PAGES // 10 else ""  # without a key: for warming up
            file.write(json.dumps({"key": key, "language": "", "html": page.html}) + "\n")

    def work(version: Version, _: int) -> Figures:
        script = version.home / "bench" / "peers" / "readers.py"
        found = json.loads(run([version.python, script, "thresher", path]).output)["pages"]
        return {"read: pages/CPU-s": len(found) / sum(page["cpu_s"] for page in found.values())}

    return work


def _query(scratch: Path, vertical: Path) -> Callable[[Version, int], Figures]:
    def work(version: Version, number: int) -> Figures:
        corpus = scratch / f"query-{version.name}-{number}"
        command = [version.python, "-m", "thresher.cli"]
        attributes = ("--lang", "en", "--attributes", "word,pos,lemma")
        imported = run([*command, "import", corpus, vertical, *attributes])
        made = run([*command, "index", corpus, "--order", "quality", "--no-lowercase", "--json"])
        tokens = json.loads(made.output)["tokens"]
        asked = json.dumps(list(QUERIES.values()))
        answer = json.loads(run([version.python, "-c", QUERY_SCRIPT, corpus, asked]).output)
        return {
            "query: tokens/CPU-s built": round(tokens / (imported.cpu_s + made.cpu_s)),
            "query: first pages/CPU-s": len(QUERIES) / answer["first"],
            "query: counts/CPU-s": len(QUERIES) / answer["count"],
        }

    return work


if __name__ == "__main__":
    main()
