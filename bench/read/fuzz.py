"""Coverage-guided fuzzing of the reader with whole replies.

python -m bench.fuzz [--seconds 60] [--keep DIR]

Needs atheris. A reply is header lines, an empty one, and the body. The seeds are the inputs of html5lib's tests of
tree construction and of encodings where they are present, beside some of our own. An input that breaks the reader
is left in DIR as crash-…, one that stalls it as timeout-…; DIR also keeps the inputs that reached new branches.
"""

from __future__ import annotations

import argparse
import importlib
import os
import sys
import tempfile
from pathlib import Path

import msgspec

from bench.measure import ROOT, say
from thresher.records import ReadResult, Reply

SUITES = Path(os.environ.get("THRESHER_SUITES", ROOT.parent / "shared" / "suites"))
MAX_BYTES = 16_384  # of one input: faults of markup need few bytes, and small ones are tried more often
STALLED_SECONDS = 10
NOT_INSTALLED = "bench.fuzz: atheris is not installed; try: pip install atheris"
ENGLISH = "text/html; charset=utf-8"
OWN_SEEDS = (
    b"Content-Type: text/html\r\n\r\n<!DOCTYPE html><title>T</title><p>Some words <a href=/x rel=nofollow>here</a>",
    b"Content-Type: text/html; charset=shift_jis\r\n\r\n<p>\x82\xa2\x82\xeb\x82\xcd",
    b"Content-Type: application/rss+xml\r\n\r\n<rss><channel><item><link>http://a.cz/</link></item></channel></rss>",
    b"Content-Type: application/xml\r\n\r\n<urlset><url><loc>http://a.cz/x</loc></url></urlset>",
    b"Content-Encoding: gzip\r\n\r\n\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff\xb3)\xb0\x03\x00",
    b"X-Robots-Tag: noai, unavailable_after: 2020-01-01\r\n\r\n<meta name=robots content=none><base href=//b.cz>",
)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.fuzz", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument(
        "--keep", type=Path, help="a folder for inputs and findings; by default a temporary one"
    )
    asked = parser.parse_args()
    try:
        atheris = importlib.import_module("atheris")
    except ImportError:
        sys.exit(NOT_INSTALLED)
    folder = asked.keep or Path(tempfile.mkdtemp(prefix="thresher-fuzz-"))
    inputs = folder / "inputs"
    inputs.mkdir(parents=True, exist_ok=True)
    seeds = _seeds()
    for number, seed in enumerate(seeds):
        (inputs / f"seed-{number:05}").write_bytes(seed[:MAX_BYTES])
    say(f"{len(seeds):,} seeds; findings go to {folder}")
    # Kernels are compiled from their bytecode, which must not be instrumented; these are followed from outside.
    importlib.import_module("thresher.reader.html.scan_page")
    importlib.import_module("thresher.reader.html.boilerplate")
    with atheris.instrument_imports(include=["thresher.reader"]):
        read = importlib.import_module("thresher.reader.extract").read

    def target(data: bytes) -> None:
        check(read(reply_of(data), "en"))

    options = [f"-max_total_time={asked.seconds}", f"-max_len={MAX_BYTES}", f"-timeout={STALLED_SECONDS}"]
    options += [f"-artifact_prefix={folder}/", "-print_final_stats=1"]
    atheris.Setup([sys.argv[0], *options, str(inputs)], target)
    atheris.Fuzz()


def reply_of(data: bytes) -> Reply:
    """Return a reply of header lines up to an empty one, then the body."""
    head, _, body = data.partition(b"\r\n\r\n")
    return Reply("http://fuzz.example/page", 200, b"HTTP/1.1 200 OK\r\n" + head + b"\r\n", body, 0.0, 0.0, "")


def check(page: ReadResult) -> None:
    """Check the properties of every page: it can be serialised, and its figures are plausible."""
    msgspec.msgpack.encode(page)  # refuses lone surrogates
    assert all(0.0 <= block.boilerplate <= 1.0 for block in page.blocks)
    assert "\0" not in page.text
    assert all(link.url.startswith(("http://", "https://")) for link in page.links)
    assert sum(share.share for share in page.languages) <= 1.001


def _seeds() -> list[bytes]:
    header = f"Content-Type: {ENGLISH}\r\n\r\n".encode()
    trees = [part.partition(b"\n#errors")[0] for part in _cases("html5")]
    encodings = [part.partition(b"\n#encoding")[0] for part in _cases("encoding")]
    return [
        *OWN_SEEDS,
        *(header + tree for tree in trees),
        *(b"Content-Type: text/html\r\n\r\n" + page for page in encodings),
    ]


def _cases(suite: str) -> list[bytes]:
    files = sorted((SUITES / suite).glob("*.dat"))
    return [part for file in files for part in file.read_bytes().split(b"#data\n")[1:]]


if __name__ == "__main__":
    main()
