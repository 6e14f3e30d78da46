"""Corpus queries: the costs of building and keeping an index and of answers, and how both grow.

    python -m bench.query FOLDER [--tokens 15000000] [--only build,answers,growth,load]

FOLDER gets a corpus of documentation from Debian packages (see bench.query_corpus), its indexes, and one of the
same sentences by tantivy. Processor time is that with kernels compiled and files in the page cache; no result is
kept from one query to the next.

build: import and index as commands, with three attributes and structures, and with words alone.
answers: the first page of twenty hits and the exact count of every query in bench.queries; tantivy counts sentences
where it can.
growth: the same documents ten times over, in one index.
load: eight clients, four in each of two processes, each requesting the first page and then the count.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path
from statistics import fmean, median
from typing import Any

from bench.measure import ROOT, emit, peers_python, run, say, table
from bench.query.queries import QUERIES
from bench.query.query_corpus import write
from thresher.search.index import writer as indexing
from thresher.search.index.documents import IndexableDocuments
from thresher.search.index.manifest import writing
from thresher.search.index.segment_builder import IndexDocument
from thresher.search.searcher import Index
from thresher.store.corpus_files import open as open_corpus

# Figures of other engines for 15 M tokens on a machine of this kind.
CWB = {"cpu_ms_compressed": 246, "cpu_ms_plain": 45, "bytes_per_token": 9.3, "tokens_per_cpu_s": 910_000}
COMPARED = ("frequent word", "rare word", "prefix", "infix", "long words", "frequent pair")  # with tantivy
TIMES = 3
GROWTH = 10
CLIENTS, PROCESSES, LOAD_SECONDS = 8, 2, 20.0
PAGE = 20


def thresher(*arguments: str | Path) -> Any:
    return run([sys.executable, "-m", "thresher.cli", *arguments])


def build(folder: Path, vertical: Path) -> None:
    """Build both indexes as users do."""
    rows = []
    for name, attributes in (("full", "word,pos,lemma"), ("words", "word")):
        directory = folder / name
        shutil.rmtree(directory, ignore_errors=True)
        imported = thresher("import", directory, vertical, "--lang", "en", "--attributes", attributes)
        made = thresher("index", directory, "--order", "quality", "--no-lowercase", "--json")
        figures = json.loads(made.output)
        tokens = figures["tokens"]
        structures = sum(
            segment.structures[one].firsts.nbytes
            for segment in Index(directory).segments
            for one in ("s", "p")
        )
        rows.append(
            {
                "bench": "query build",
                "index": name,
                "tokens": tokens,
                "import_cpu_s": imported.cpu_s,
                "index_cpu_s": made.cpu_s,
                "tokens_per_cpu_s": round(tokens / (imported.cpu_s + made.cpu_s)),
                "rss_mb": max(imported.rss_mb, made.rss_mb),
                "bytes_per_token": figures["bytes"] / tokens,
                "without_s_and_p": (figures["bytes"] - structures) / tokens,
            }
        )
        emit(rows[-1])
    peer = folder / "tantivy"
    shutil.rmtree(peer, ignore_errors=True)
    used = run([peers_python(), ROOT / "bench/peers/tantivy_sentences.py", "index", peer, vertical])
    size = sum(path.stat().st_size for path in peer.iterdir())
    tokens = rows[0]["tokens"]
    rows.append(
        {
            "bench": "query build",
            "index": "tantivy, words",
            "tokens": tokens,
            "index_cpu_s": used.cpu_s,
            "tokens_per_cpu_s": round(tokens / used.cpu_s),
            "rss_mb": used.rss_mb,
            "bytes_per_token": size / tokens,
        }
    )
    emit(rows[-1])
    table(rows, ["index", "tokens_per_cpu_s", "rss_mb", "bytes_per_token", "without_s_and_p"])


def timed(directory: Path, query: str) -> dict[str, Any]:
    """Return the processor time of the first page and of the count, each from an index that was just opened."""
    first, count, hits = [], [], 0
    for _ in range(TIMES):
        index = Index(directory)
        start = time.process_time()
        index.search(query, seconds=None).first(PAGE)
        first.append(time.process_time() - start)
        index = Index(directory)
        start = time.process_time()
        hits = index.search(query, seconds=None).count()
        count.append(time.process_time() - start)
    return {"hits": hits, "first_ms": min(first) * 1e3, "count_ms": min(count) * 1e3}


def answers(folder: Path) -> None:
    """Run all queries, beside tantivy where it can answer them."""
    rows = [{"query": name, **timed(folder / "full", query)} for name, query in QUERIES.items()]
    asked = {name: QUERIES[name] for name in COMPARED}
    script = ROOT / "bench/peers/tantivy_sentences.py"
    answered = subprocess.run(
        [str(peers_python()), str(script), "answer", str(folder / "tantivy")],
        input=json.dumps(asked), text=True, capture_output=True, check=True,
    )  # fmt: skip
    for name, figures in json.loads(answered.stdout).items():
        row = next(row for row in rows if row["query"] == name)
        row |= {"tantivy_ms": figures["cpu_ms"], "tantivy_sentences": figures["sentences"]}
    for row in rows:
        emit({"bench": "query answers", **row})
    compared = [row for row in rows if "tantivy_ms" in row]
    emit(
        {
            "bench": "query answers",
            "query": "mean",
            "first_ms": fmean(row["first_ms"] for row in rows),
            "first_ms_worst": max(row["first_ms"] for row in rows),
            "count_ms": fmean(row["count_ms"] for row in rows),
            "count_ms_median": median(row["count_ms"] for row in rows),
            "compared_ms": fmean(row["count_ms"] for row in compared),
            "tantivy_ms": fmean(row["tantivy_ms"] for row in compared),
            "cwb_compressed_ms": CWB["cpu_ms_compressed"],
            "cwb_plain_ms": CWB["cpu_ms_plain"],
        }
    )
    table(rows, ["query", "hits", "first_ms", "count_ms", "tantivy_ms"])


def many(directory: Path) -> Iterator[IndexDocument]:
    """Yield the documents of a corpus repeatedly, each time under other names."""
    for copy in range(GROWTH):
        for number, one in enumerate(IndexableDocuments(open_corpus(directory)).new(set())):
            yield IndexDocument(copy << 32 | number, one.lines, one.attributes, one.meta, one.dimensions)


def growth(folder: Path) -> None:
    """Measure an index of ten times as many tokens."""
    small, large = folder / "full", folder / "grown"
    if not (large / "index" / "manifest.json").exists():
        large.mkdir(exist_ok=True)
        start = time.process_time()
        with writing(large) as writer:
            writer.start("quality")
            indexing.add(writer, many(small))
            indexing.tidy(writer, all_of_them=True)
        tokens = Index(large).tokens
        emit(
            {
                "bench": "query growth",
                "tokens": tokens,
                "tokens_per_cpu_s": round(tokens / (time.process_time() - start)),
                "rss_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3,
            }
        )
    rows = []
    for name, query in QUERIES.items():
        before, after = timed(small, query), timed(large, query)
        # Some matches go from one document to the next.
        assert after["hits"] >= 0.99 * GROWTH * before["hits"]
        rows.append(
            {
                "query": name,
                "first_ms": before["first_ms"],
                "first_ms_grown": after["first_ms"],
                "count_ms": before["count_ms"],
                "count_ms_grown": after["count_ms"],
            }
        )
        emit({"bench": "query growth", **rows[-1]})
    sums = {name: fmean(row[name] for row in rows) for name in rows[0] if name != "query"}
    emit(
        {
            "bench": "query growth",
            "query": "mean",
            "first": sums["first_ms_grown"] / sums["first_ms"],
            "count": sums["count_ms_grown"] / sums["count_ms"],
            **sums,
        }
    )
    table(rows, ["query", "first_ms", "first_ms_grown", "count_ms", "count_ms_grown"])


def _serve(directory: Path, seed: int) -> tuple[int, float]:
    """Run four clients of one process until the time is up; return the number of queries and the memory."""
    index = Index(directory)
    index.search('"the"').count()

    def ask(client: int) -> int:
        dice, answered = random.Random(client), 0
        end = time.monotonic() + LOAD_SECONDS
        while time.monotonic() < end:
            search = index.search(dice.choice(list(QUERIES.values())))
            search.first(PAGE)
            search.count()
            answered += 1
        return answered

    per_process = CLIENTS // PROCESSES
    with ThreadPoolExecutor(per_process) as clients:
        answered = sum(clients.map(ask, range(seed * per_process, (seed + 1) * per_process)))
    return answered, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3


def load(folder: Path) -> None:
    """Measure eight clients at once."""
    with ProcessPoolExecutor(PROCESSES) as pool:
        start = time.monotonic()
        served = list(pool.map(_serve, [folder / "full"] * PROCESSES, range(PROCESSES)))
        wall = time.monotonic() - start
    emit(
        {
            "bench": "query load",
            "clients": CLIENTS,
            "queries_per_s": sum(count for count, _ in served) / wall,
            "rss_mb": [memory for _, memory in served],
        }
    )


PARTS = {"build": None, "answers": answers, "growth": growth, "load": load}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--tokens", type=int, default=15_000_000)
    parser.add_argument("--only", default=",".join(PARTS))
    options = parser.parse_args()
    vertical = write(
        options.folder, options.tokens, lambda package, count: say(f"{package}: {count:,} tokens")
    )
    for name in options.only.split(","):
        if name == "build":
            build(options.folder, vertical)
        else:
            PARTS[name](options.folder)  # type: ignore[misc]


if __name__ == "__main__":
    main()
