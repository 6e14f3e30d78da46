"""Formats of exports: a function and a row in FORMATS for each."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

from msgspec import Struct

from thresher.errors import UsageError
from thresher.exporting.documents import ExportSelection
from thresher.exporting.formats.conllu import write_conllu
from thresher.exporting.formats.hf_dataset import write_dataset
from thresher.exporting.formats.tables import write_jsonl, write_parquet, write_text
from thresher.exporting.formats.tei import write_tei
from thresher.exporting.formats.vertical import write_vertical
from thresher.exporting.formats.wacz import write_wacz
from thresher.exporting.output import PACKED, folder, opened
from thresher.selection import DocumentFilter
from thresher.store.corpus_files import CorpusFiles
from thresher.wording import ReportView


class ExportFormat(Struct, frozen=True):
    """A format, and the function that writes documents in it to an open file, or to an empty folder."""

    summary: str
    suffixes: tuple[str, ...]  # of its files, without .gz or .zst; none: it is a folder
    write: Callable[[ExportSelection, Any], int]  # returns the number of documents
    tokens: bool = False  # text is annotated for it

    @property
    def suffix(self) -> str:
        """The usual suffix of its files, "" if it is a folder."""
        return self.suffixes[0] if self.suffixes else ""


class ExportReport(ReportView, Struct, frozen=True):
    """The result of an export."""

    documents: int
    left_out: dict[str, int]  # documents, by reason
    attributes: tuple[str, ...] = ()  # of tokens; empty if the format has none


def format_of(output: BinaryIO | Path, format_name: str | None = None) -> str:
    """Return the format of an export: `format_name`, or else the format that belongs to the file name's suffix.

    >>> format_of(Path("czech.vert.gz")), format_of(Path("czech.txt"), "jsonl")
    ('vertical', 'jsonl')
    """
    if format_name:
        return format_name
    suffixes = {suffix: name for name, form in FORMATS.items() for suffix in form.suffixes}
    choice = f"--format, one of {', '.join(FORMATS)}"
    if not isinstance(output, Path):
        raise UsageError(f"output without a file name has no format; give {choice}")
    name = output.with_suffix("") if output.suffix.lower() in PACKED else output
    if name.suffix.lower() not in suffixes:
        raise UsageError(f"{output} has no suffix that names a format ({', '.join(suffixes)}); give {choice}")
    return suffixes[name.suffix.lower()]


def export(
    corpus: CorpusFiles,
    format_name: str,
    output: BinaryIO | Path,
    where: DocumentFilter | None = None,
    *,
    annotator: str = "",
    processes: int = 0,
) -> ExportReport:
    """Write the selected documents of a corpus, by default all without an opt-out from text mining.

    A file with a name in .gz or .zst is packed. The same corpus gives the same bytes with any number of
    annotating processes.

    >>> export(thresher.open("czech"), "vertical", Path("czech.vert.gz"))  # doctest: +SKIP
    ExportReport(documents=8211, left_out={'opted out': 14}, attributes=('word', 'lemma'))
    """
    if format_name not in FORMATS:
        raise UsageError(f"unknown format {format_name!r}; choose one of {', '.join(FORMATS)}")
    form = FORMATS[format_name]
    if annotator and not form.tokens:
        with_tokens = ", ".join(name for name, other in FORMATS.items() if other.tokens)
        raise UsageError(
            f"--annotator is for formats with tokens ({with_tokens}); leave it out for {format_name}"
        )
    selection = ExportSelection(corpus, where or DocumentFilter(), annotator=annotator, processes=processes)
    if not form.suffix:
        if not isinstance(output, Path):
            raise UsageError(f"{format_name} is a folder of files; name it with -o FOLDER")
        with folder(output) as new:
            count = form.write(selection, new)
    elif isinstance(output, Path):
        with opened(output) as out:
            count = form.write(selection, out)
    else:
        count = form.write(selection, output)
    left_out = {reason: number for reason, number in sorted(selection.left_out.items()) if number}
    return ExportReport(count, left_out, selection.attributes if form.tokens else ())


FORMATS: dict[str, ExportFormat] = {
    "jsonl": ExportFormat("one JSON object per line, with every column", (".jsonl", ".ndjson"), write_jsonl),
    "parquet": ExportFormat("the table of documents as one file", (".parquet",), write_parquet),
    "txt": ExportFormat(
        "title, URL and one paragraph per line, a blank line between documents", (".txt",), write_text
    ),
    "vertical": ExportFormat(
        "one token per line, for Sketch Engine and CWB",
        (".vert", ".vrt", ".vertical"),
        write_vertical,
        tokens=True,
    ),
    "conllu": ExportFormat(
        "ten columns per token, for tools of Universal Dependencies", (".conllu",), write_conllu, tokens=True
    ),
    "tei": ExportFormat("XML of the Text Encoding Initiative, P5", (".xml", ".tei"), write_tei, tokens=True),
    "huggingface": ExportFormat("a dataset folder: Parquet files and a card", (), write_dataset),
    "wacz": ExportFormat("raw pages for web archive players", (".wacz",), write_wacz),
}
