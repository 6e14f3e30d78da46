"""Make a set to learn from: pages that nobody marked, with the text that another reader finds in them.

python -m bench.teach PAGES OUT [--each 16]

PAGES has a folder for each site with its saved pages. OUT becomes a set as `thresher.lab.gold` describes it, of at
most so many pages of each site. What is learned from it are kinds of pages that no gold has; the teacher's mistakes
average out over many of them.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
from pathlib import Path

from bench.measure import ROOT, peers_python, say

SIZES = range(4_000, 300_000)  # bytes of a page that is worth a lesson
MIN_TEXT = 200  # characters that the teacher has to find


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.teach", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("pages", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--each", type=int, default=16, help="pages of a site at most")
    asked = parser.parse_args()
    if not asked.pages.is_dir():
        sys.exit(
            f"bench.teach: {asked.pages} is no folder; give one with a folder of saved pages for each site"
        )
    chosen = _chosen(asked.pages, asked.each)
    say(f"{len(chosen):,} pages")
    lines = "".join(json.dumps({"html": html}) + "\n" for _, html in chosen)
    teacher = [peers_python(), ROOT / "bench" / "peers" / "teacher.py"]
    answer = subprocess.run(teacher, input=lines, text=True, check=True, stdout=subprocess.PIPE).stdout
    for folder in ("html", "gold"):
        (asked.out / folder).mkdir(parents=True, exist_ok=True)
    known = []
    for number, ((site, html), said) in enumerate(zip(chosen, answer.splitlines(), strict=True)):
        text = json.loads(said)
        if len(text) >= MIN_TEXT:
            (asked.out / "html" / f"{number:05}.html").write_text(html, "utf-8")
            (asked.out / "gold" / f"{number:05}.txt").write_text(text, "utf-8")
            known.append(json.dumps({"id": f"{number:05}", "host": site}))
    (asked.out / "pages.jsonl").write_text("\n".join(known), "utf-8")
    say(f"{len(known):,} of them are in {asked.out}")


def _chosen(folder: Path, each: int) -> list[tuple[str, str]]:
    """Sites and pages, drawn at random but always the same."""
    dice = random.Random(5)
    found = []
    for site in sorted(path for path in folder.iterdir() if path.is_dir()):
        files = sorted(path for path in site.rglob("*") if path.is_file() and path.stat().st_size in SIZES)
        dice.shuffle(files)
        pages = (html for path in files if (html := _page(path)))
        found += [(site.name, html) for html, _ in zip(pages, range(each), strict=False)]
    return found


def _page(path: Path) -> str:
    """A page of HTML in UTF-8, or ""."""
    try:
        html = path.read_bytes().decode("utf-8")
    except UnicodeDecodeError:
        return ""
    return html if "<html" in html[:5_000].lower() else ""


if __name__ == "__main__":
    main()
