"""The formats of imported corpora: a function and a row in FORMATS for each."""

from __future__ import annotations

import re
from pathlib import Path

from thresher.errors import UsageError
from thresher.importing.formats.conllu import read_conllu
from thresher.importing.formats.document import Importer, ImportOptions
from thresher.importing.formats.source import STDIN, packing
from thresher.importing.formats.tei import read_tei
from thresher.importing.formats.texts import read_jsonl, read_parquet, read_text
from thresher.importing.formats.vertical import read_vertical

FORMATS: dict[str, Importer] = {
    "vertical": read_vertical,
    "text": read_text,
    "conllu": read_conllu,
    "tei": read_tei,
    "jsonl": read_jsonl,
    "parquet": read_parquet,
}

PAGES = ("warc", "html")  # formats of pages, which importing.run handles

SUFFIXES = {
    ".vert": "vertical",
    ".vrt": "vertical",
    ".txt": "text",
    ".conllu": "conllu",
    ".xml": "tei",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".parquet": "parquet",
}

# The formats that each option applies to.
OPTIONS = {
    "attributes": {"vertical"},
    "document": {"vertical"},
    "entities": {"vertical"},
    "text_column": {"jsonl", "parquet"},
    "split": {"text"},
}

_ATTRIBUTE = re.compile(r"[A-Za-z_]\w*", re.ASCII)


def format_of(path: Path, given: str | None) -> str:
    """Return the given format, or else the one that follows from the name of the file.

    Raise UsageError for an unknown format and for a file that does not exist.
    """
    if given is not None and given not in FORMATS:
        raise UsageError(f"unknown format {given!r}; choose one of {', '.join(FORMATS)}")
    if str(path) != STDIN:
        if path.is_dir():
            raise UsageError(f"{path} is a directory; give the files in it: {path}/*")
        if not path.exists():
            raise UsageError(f"{path} does not exist; give files to import, or - for standard input")
    if given is not None:
        return given
    plain = path.with_suffix("") if packing(path) else path
    found = SUFFIXES.get(plain.suffix.lower())
    if found is None:
        raise UsageError(
            f"{path}: the format does not follow from the name; choose one: --format {'|'.join([*FORMATS, *PAGES])}"
        )
    return found


def check(options: ImportOptions, formats: set[str]) -> None:
    """Raise UsageError for options that cannot be used with these formats, or at all."""
    for option, its_formats in OPTIONS.items():
        name = option.replace("_", "-")
        if getattr(options, option) != getattr(ImportOptions(), option) and not formats & its_formats:
            raise UsageError(
                f"--{name} applies to {' and '.join(sorted(its_formats))}; no file has that format"
            )
    for attribute in options.attributes:
        if not _ATTRIBUTE.fullmatch(attribute):
            raise UsageError(f"--attributes: {attribute!r} is not a name; use letters, digits and _")
    if options.attributes and options.attributes[0] != "word":
        raise UsageError(
            f"--attributes: the first column must be the word; try word,{','.join(options.attributes)}"
        )
    if len(set(options.attributes)) < len(options.attributes):
        raise UsageError(f"--attributes {','.join(options.attributes)}: each name may occur once")
