"""A corpus to query: the documentation in Debian packages, read, split and tagged, as vertical text.

    python -m bench.query_corpus /var/tmp/queries --tokens 15000000

Tags and lemmas are functions of the word form: their quality does not matter here, their frequencies do.
"""

from __future__ import annotations

import argparse
import html
import re
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import zstandard

from thresher.annotate.registry import annotator
from thresher.config import ReadSettings
from thresher.reader import read
from thresher.records import Reply
from thresher.store.token_lines import clean

PACKAGES = (
    "python3.11-doc",
    "postgresql-doc-15",
    "perl-doc",
    "git-doc",
    "sqlite3-doc",
    "octave-doc",
    "debian-handbook",
    "debian-reference-en",
    "developers-reference",
    "cmake-doc",
    "nodejs-doc",
    "python-django-doc",
    "gnuplot-doc",
    "tcl8.6-doc",
    "tk8.6-doc",
    "zsh-doc",
    "exim4-doc-html",
    "r-doc-html",
    "maxima-doc",
    "libboost1.81-doc",
    "erlang-doc",
    "lilypond-doc",
    "python-sympy-doc",
    "python-astropy-doc",
    "python-scipy-doc",
    "qtbase5-doc-html",
    "openjdk-17-doc",
    "fp-docs-3.2.2",
    "axiom-doc",
    "python-pandas-doc",
    "sagemath-doc",
    "rust-doc",
)
MAX_BYTES = 2_000_000  # of a page: longer ones are generated lists
MIN_LETTERS = 500


def pages(package: str, folder: Path) -> Iterator[Path]:
    """Yield the HTML pages of a package, unpacked."""
    where = folder / package
    if not where.exists():
        subprocess.run(["apt-get", "download", package], cwd=folder, check=True, capture_output=True)
        (archive,) = folder.glob(f"{package}_*.deb")
        subprocess.run(["dpkg-deb", "-x", archive, where], check=True)
        archive.unlink()
    yield from sorted(path for path in where.rglob("*.html") if path.is_file() and not path.is_symlink())


def texts(package: str, folder: Path) -> Iterator[tuple[str, list[str]]]:
    """Yield name and paragraphs of every page that has enough of them, no paragraph twice."""
    seen: set[str] = set()
    for path in pages(package, folder):
        if path.stat().st_size > MAX_BYTES:
            continue
        reply = Reply(f"http://{package}/{path.name}", 200, b"", path.read_bytes(), 0.0, 0.0, "")
        page = read(reply, "en", ReadSettings())
        parts = [block.text for block in page.blocks if block.boilerplate < 0.5 and block.text not in seen]
        seen.update(parts)
        if sum(map(len, parts)) >= MIN_LETTERS:
            yield path.name, parts


def tagger() -> Callable[[str], tuple[str, str]]:
    """Return tag and lemma of a word form."""
    from HanTa import HanoverTagger

    model = HanoverTagger.HanoverTagger("morphmodel_en.pgz")
    known: dict[str, tuple[str, str]] = {}

    def tag(word: str) -> tuple[str, str]:
        if word not in known:
            lemma, name = model.analyze(word)[:2] if re.search(r"\w", word) else (word, "PUN")
            known[word] = (re.sub(r"[^A-Z0-9$+-]", "", name) or "UNC", clean(lemma) or word)
        return known[word]

    return tag


def write(folder: Path, tokens: int, report: Callable[[str, int], None]) -> Path:
    """Write the corpus as vertical text of at least so many tokens, if the packages have them; once."""
    path = folder / f"corpus-{tokens}.vert.zst"
    if path.exists():
        return path
    (folder / "packages").mkdir(parents=True, exist_ok=True)
    annotate, tag, written = annotator("en", "plain"), tagger(), 0
    temporary = path.with_suffix(".tmp")
    with zstandard.ZstdCompressor(3).stream_writer(temporary.open("wb")) as out:
        for number, package in enumerate(PACKAGES):
            for name, parts in texts(package, folder / "packages"):
                year, quality = 2000 + number % 24, sum(map(ord, name)) % 100
                id = html.escape(f"{package}/{name}")
                lines = [f'<doc id="{id}" site="{package}" quality="{quality}" year="{year}">']
                for part in parts:
                    lines.append("<p>")
                    for sentence in annotate(part):
                        lines.append("<s>")
                        lines += ["\t".join((word, *tag(word))) for (word,) in sentence]
                        lines.append("</s>")
                        written += len(sentence)
                    lines.append("</p>")
                lines.append("</doc>\n")
                out.write("\n".join(lines).encode())
                if written >= tokens:
                    break
            report(package, written)
            if written >= tokens:
                break
    temporary.rename(path)
    return path


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--tokens", type=int, default=15_000_000)
    options = parser.parse_args()
    made = write(
        options.folder, options.tokens, lambda package, count: print(f"{package}: {count:,}", flush=True)
    )
    print(made)
