"""The command `import`: bring corpora, archives and saved pages into a corpus."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter, validators

from thresher.cli.app import AsJson, Directory, app, print_json, say
from thresher.cli.log_options import DEFAULT_LOG, LogOptions
from thresher.errors import UsageError

if TYPE_CHECKING:
    from thresher.importing.corpora import ImportReport
    from thresher.importing.progress import ImportProgress

FormatName = Literal["vertical", "text", "conllu", "tei", "jsonl", "parquet", "warc", "html"]


@app.command(name="import")
def import_corpora(
    directory: Directory,
    files: Annotated[
        list[Path],
        Parameter(
            name="FILE",
            negative=(),
            help="Files to import, compressed or not; folders of saved pages; - for standard input.",
            allow_leading_hyphen=True,
        ),
    ],
    *,
    format: FormatName | None = None,
    attributes: str = "",
    lang: str = "",
    document: str = "",
    entities: Annotated[bool, Parameter(negative=())] = False,
    text_column: str = "text",
    split: Literal["line"] | None = None,
    processes: Annotated[int | None, Parameter(validator=validators.Number(gte=1))] = None,
    log: LogOptions = DEFAULT_LOG,
    json: AsJson = False,
) -> None:
    """Bring corpora, archives of other crawlers and saved pages into a corpus.

    Example: thresher import czech old-news.vert.xz CC-MAIN-2026.warc.gz saved/ --lang cs

    Pages of archives (WARC, WET, ARC) and saved pages are read and judged as in a crawl and become documents like
    crawled pages; the readable records of a damaged archive are imported. Other corpora are taken as they are.

    Files may be compressed: .gz, .zst, .xz, .bz2, archives also .lz4. Each file is imported whole or not at all.
    Files that were imported before are skipped. Files that cannot be imported are named at the end, with exit code
    1, as are oddities that did not stop the import.

    Parameters
    ----------
    format
        Format of all files; by default it follows from their names: .vert and .vrt, .txt, .conllu, .xml (TEI),
        .jsonl and .ndjson, .parquet, .warc, .wet and .arc, .html and .htm. Archives are also recognised by content.
    attributes
        vertical: names of the columns, such as word,tag,lemma; by default word,pos,lemma for three columns, and
        word for one.
    lang
        Language of the corpus: cs, tr, ur … Required for a new corpus.
    document
        vertical: tag of documents; by default the one of doc, text and article that comes first in the file.
    entities
        vertical: decode the entities lt, gt, amp, quot and apos of XML, which thresher export writes.
    text_column
        jsonl, parquet: field or column with the text; all others become metadata of the document.
    split
        text: with line, every line is a document; by default every file is one.
    processes
        warc, html: number of processes that read pages; by default one for each processor.
    """
    from thresher.cli.views.progress_line import progress_line
    from thresher.importing.run import import_files

    for path in files:
        if str(path).startswith("--") and not path.exists():
            raise UsageError(f"unknown option {path}; thresher import --help lists all options")
    if lang:
        from thresher.reader.language.codes import language_code

        lang = language_code(lang)
    reports: list[ImportReport] = []  # one, also if a fault or Ctrl-C ends the import
    try:
        total = _total_bytes(files)
        with log.writing(directory, "import"), progress_line() as line:
            report = import_files(
                directory,
                files,
                format=format,
                attributes=[name.strip() for name in attributes.split(",")] if attributes else None,
                language=lang,
                document=document,
                text_column=text_column,
                split=split or "",
                entities=entities,
                processes=processes or 0,
                progress=lambda progress: line(import_line(progress, total)),
                report=reports.append,
            )
            reports.append(report)
    finally:
        for report in reports:
            _show(report, len(files), json)


def _show(found: ImportReport, count: int, json: bool) -> None:
    """Show the results of an import of `count` files."""
    from thresher.wording import counted

    if json:
        print_json(found)
    for remark in found.remarks:
        say(remark)
    tokens = f" with {counted(found.tokens, 'token')}" if found.tokens else ""
    refused = f"; {len(found.refused):,} refused" if found.refused else ""
    files = f"{len(found.files):,} of {counted(count, 'file')}"
    say(f"{counted(found.documents, 'document')}{tokens} imported from {files}{refused}")


def import_line(progress: ImportProgress, total: int | None) -> str:
    """Return the progress of an import on one line; `total` is the number of all bytes, None if it is unknown."""
    from thresher.cli.views.text import amount
    from thresher.wording import counted

    read = amount(progress.bytes) + (f" of {amount(total)}" if total is not None else "")
    taken = counted(progress.documents, "document")
    waiting = (
        f"readers, with {counted(progress.pages_waiting, 'page')}" if progress.pages_waiting else "input"
    )
    return f"{progress.file}: {read} read, {taken} taken; waiting for {waiting}"


def _total_bytes(files: Sequence[Path]) -> int | None:
    """Return the number of bytes of all files; None if there is a pipe or a folder among them."""
    return sum(path.stat().st_size for path in files) if all(path.is_file() for path in files) else None
