"""Formats that a corpus is exported to: a function and a row in FORMATS for each."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

from msgspec import Struct

from thresher.config import ConfigError
from thresher.export.choice import Choice
from thresher.export.conllu import write_conllu
from thresher.export.dataset import write_dataset
from thresher.export.output import folder, opened
from thresher.export.selection import Selection
from thresher.export.tables import write_jsonl, write_parquet, write_text
from thresher.export.tei import write_tei
from thresher.export.vertical import write_vertical
from thresher.export.wacz import write_wacz
from thresher.store.corpus import Corpus, CorpusError


class Format(Struct, frozen=True):
    """How documents are written; `write` is given an open file, or an empty folder, and returns their number."""

    summary: str
    suffix: str  # nothing: it is a folder
    write: Callable[[Selection, Any], int]
    tokens: bool = False  # text is annotated for it


class Exported(Struct, frozen=True):
    """What an export amounts to."""

    documents: int
    left_out: dict[str, int]  # documents, by reason
    attributes: tuple[str, ...] = ()  # of tokens, where the format has some


def export(
    corpus: Corpus,
    format_name: str,
    output: BinaryIO | Path,
    choice: Choice | None = None,
    *,
    annotator: str = "",
    processes: int = 0,
) -> Exported:
    """Write the documents of a corpus that are chosen; by default, all that nobody opted out.

    A path that ends in .gz or .zst is packed. The same corpus gives the same bytes, however many processes there
    are that annotate.

    >>> export(thresher.open("czech"), "vertical", Path("czech.vert.gz"))  # doctest: +SKIP
    Exported(documents=8211, left_out={'opted out': 14}, attributes=('word', 'lemma'))
    """
    if format_name not in FORMATS:
        raise CorpusError(f"there is no format {format_name!r}; there are {', '.join(FORMATS)}")
    form = FORMATS[format_name]
    if annotator and not form.tokens:
        with_tokens = ", ".join(name for name, other in FORMATS.items() if other.tokens)
        raise ConfigError(f"--annotator is for formats with tokens: {with_tokens}; {format_name} has none")
    selection = Selection(corpus, choice or Choice(), annotator=annotator, processes=processes)
    if not form.suffix:
        if not isinstance(output, Path):
            raise ConfigError(f"{format_name} is a folder of files; name it with -o FOLDER")
        with folder(output) as new:
            count = form.write(selection, new)
    elif isinstance(output, Path):
        with opened(output) as out:
            count = form.write(selection, out)
    else:
        count = form.write(selection, output)
    left_out = {reason: number for reason, number in sorted(selection.left_out.items()) if number}
    return Exported(count, left_out, selection.attributes if form.tokens else ())


FORMATS: dict[str, Format] = {
    "jsonl": Format("one JSON object per line, with every column", ".jsonl", write_jsonl),
    "parquet": Format("the table of documents as one file", ".parquet", write_parquet),
    "txt": Format("one paragraph per line, a blank line between documents", ".txt", write_text),
    "vertical": Format("one token per line, for Sketch Engine and CWB", ".vert", write_vertical, tokens=True),
    "conllu": Format(
        "ten columns per token, for tools of Universal Dependencies", ".conllu", write_conllu, tokens=True
    ),
    "tei": Format("XML of the Text Encoding Initiative, P5", ".xml", write_tei, tokens=True),
    "huggingface": Format("a dataset folder: Parquet files and a card", "", write_dataset),
    "wacz": Format("raw pages for web archive players", ".wacz", write_wacz),
}
