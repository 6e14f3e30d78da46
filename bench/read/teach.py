"""Training set from unmarked pages, with the texts that other readers find in them.

python -m bench.teach OUT PAGES… [--each 16]

PAGES have a folder for each site with its saved pages. OUT becomes a set as `thresher_lab.training.gold` describes
it, of at most so many pages of each site: gold is the text that trafilatura finds, others are its text with
comments, and the texts of readability and resiliparse. It teaches kinds of pages that no gold has; mistakes of the
teachers average out over many of them.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
from collections.abc import Iterable, Sequence
from itertools import islice
from pathlib import Path

from bench.measure import ROOT, peers_python, say
from thresher.reader.encoding.decode import decode

SIZES = range(4_000, 600_000)  # bytes of a page that is worth a lesson
MIN_TEXT = 200  # characters that the first teacher has to find


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.teach", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("pages", nargs="+", type=Path)
    parser.add_argument("--each", type=int, default=16, help="pages of a site at most")
    asked = parser.parse_args()
    for folder in asked.pages:
        if not folder.is_dir():
            sys.exit(
                f"bench.teach: {folder} is no folder; give one with a folder of saved pages for each site"
            )
    chosen = _chosen(asked.pages, asked.each)
    say(f"{len(chosen):,} pages")
    lines = "".join(json.dumps({"html": html}) + "\n" for _, html in chosen)
    teacher = [peers_python(), ROOT / "bench" / "peers" / "teacher.py"]
    answer = subprocess.run(teacher, input=lines, text=True, check=True, stdout=subprocess.PIPE).stdout
    count = _write(asked.out, chosen, map(json.loads, answer.splitlines()))
    say(f"{count:,} of them are in {asked.out}")


def _chosen(folders: Sequence[Path], each: int) -> list[tuple[str, str]]:
    """Return sites and pages, drawn at random but always the same."""
    dice = random.Random(5)
    found = []
    for site in sorted(path for folder in folders for path in folder.iterdir() if path.is_dir()):
        files = sorted(path for path in site.rglob("*") if path.is_file() and path.stat().st_size in SIZES)
        dice.shuffle(files)
        pages = (html for path in files if (html := _page(path)))
        found += [(site.name, html) for html in islice(pages, each)]
    return found


def _page(path: Path) -> str:
    """Return a page of HTML, or ""."""
    html = decode(path.read_bytes(), "", "").utf8.decode("utf-8", "replace")
    return html if "<html" in html[:5_000].lower() else ""


def _write(out: Path, chosen: Sequence[tuple[str, str]], answers: Iterable[list[str]]) -> int:
    """Write the set; return how many pages have enough text to be in it."""
    for folder in ("html", "gold", "others"):
        (out / folder).mkdir(parents=True, exist_ok=True)
    known = []
    for number, ((site, html), (text, *others)) in enumerate(zip(chosen, answers, strict=True)):
        if len(text) >= MIN_TEXT:
            (out / "html" / f"{number:05}.html").write_text(html, "utf-8")
            (out / "gold" / f"{number:05}.txt").write_text(text, "utf-8")
            for place, other in enumerate(others):
                (out / "others" / f"{number:05}.{place}.txt").write_text(other, "utf-8")
            known.append(json.dumps({"id": f"{number:05}", "host": site}))
    (out / "pages.jsonl").write_text("\n".join(known), "utf-8")
    return len(known)


if __name__ == "__main__":
    main()
