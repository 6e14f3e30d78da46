"""Formats that can be imported: a function and a row in FORMATS for each."""

from __future__ import annotations

import re
from pathlib import Path

from thresher.config import ConfigError
from thresher.store.importers.conllu import read_conllu
from thresher.store.importers.document import Choices, Importer
from thresher.store.importers.source import STDIN, packing
from thresher.store.importers.tei import read_tei
from thresher.store.importers.texts import read_jsonl, read_parquet, read_text
from thresher.store.importers.vertical import read_vertical

FORMATS: dict[str, Importer] = {
    "vertical": read_vertical,
    "text": read_text,
    "conllu": read_conllu,
    "tei": read_tei,
    "jsonl": read_jsonl,
    "parquet": read_parquet,
}

PAGES = (
    "warc",
    "html",
)  # formats of pages, which are read and judged as in a crawl, in a room above this one

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

# Options that only some formats have.
OPTIONS = {
    "attributes": {"vertical"},
    "document": {"vertical"},
    "entities": {"vertical"},
    "text_column": {"jsonl", "parquet"},
    "split": {"text"},
}

_ATTRIBUTE = re.compile(r"[A-Za-z_]\w*", re.ASCII)


def format_of(path: Path, asked: str | None) -> str:
    """The format of a file, by its name unless it is told; ConfigError if that cannot be, or there is no file."""
    if asked is not None and asked not in FORMATS:
        raise ConfigError(f"there is no format {asked!r}; there are {', '.join(FORMATS)}")
    if str(path) != STDIN:
        if path.is_dir():
            raise ConfigError(f"{path} is a directory; give the files in it: {path}/*")
        if not path.exists():
            raise ConfigError(f"{path} does not exist; give files to import, or - for standard input")
    if asked is not None:
        return asked
    plain = path.with_suffix("") if packing(path) else path
    found = SUFFIXES.get(plain.suffix.lower())
    if found is None:
        raise ConfigError(
            f"{path}: its name does not tell the format; say which: --format {'|'.join([*FORMATS, *PAGES])}"
        )
    return found


def check(choices: Choices, formats: set[str]) -> None:
    """Options that make no sense are a mistake."""
    for option, its_formats in OPTIONS.items():
        name = option.replace("_", "-")
        if getattr(choices, option) != getattr(Choices(), option) and not formats & its_formats:
            raise ConfigError(f"--{name} is for {' and '.join(sorted(its_formats))}; there is no such file")
    for attribute in choices.attributes:
        if not _ATTRIBUTE.fullmatch(attribute):
            raise ConfigError(f"--attributes: {attribute!r} is no name; use letters, digits and _")
    if choices.attributes and choices.attributes[0] != "word":
        raise ConfigError(
            f"--attributes: the first column is the word; try word,{','.join(choices.attributes)}"
        )
    if len(set(choices.attributes)) < len(choices.attributes):
        raise ConfigError(f"--attributes {','.join(choices.attributes)}: each name may stand there once")
