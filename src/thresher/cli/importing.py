"""The command that brings corpora into a corpus that others made."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter, validators

from thresher.cli.app import AsJson, Directory, app, print_json, say
from thresher.cli.visiting import counting
from thresher.config import ConfigError

if TYPE_CHECKING:
    from thresher.store.imports import Imported

FormatName = Literal["vertical", "text", "conllu", "tei", "jsonl", "parquet", "warc", "html"]


@app.command(name="import")
def import_corpora(
    directory: Directory,
    files: Annotated[
        list[Path],
        Parameter(
            name="FILE",
            help="Files to import, packed or not; folders of saved pages; - is standard input.",
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
    json: AsJson = False,
) -> None:
    """Bring corpora, archives of other crawlers and saved pages into a corpus.

    Example: thresher import czech old-news.vert.xz CC-MAIN-2026.warc.gz saved/ --lang cs

    Pages of archives (WARC, WET, ARC) and saved pages are read and judged as in a crawl, and stand beside crawled
    ones; of a damaged archive, what can be read is. Other corpora are taken as they are.

    Files may be packed: .gz, .zst, .xz, .bz2, archives also .lz4. Each is imported whole or not at all; one that
    was imported before is skipped, and one that cannot be imported is named at the end, with exit code 1. What is
    odd but can be read is told at the end.

    Parameters
    ----------
    format
        Of all files; if left out, their names tell: .vert and .vrt, .txt, .conllu, .xml (TEI), .jsonl and .ndjson,
        .parquet, .warc, .wet and .arc, .html and .htm. Archives are known by their content, too.
    attributes
        vertical: names of the columns, such as word,tag,lemma. Left out: word,pos,lemma if there are three, word if
        there is one.
    lang
        Language of the corpus: cs, tr, ur … A new corpus needs it.
    document
        vertical: tag of documents; if left out, whichever of doc, text and article comes first in the file.
    entities
        vertical: decode the entities lt, gt, amp, quot and apos of XML, which thresher export writes.
    text_column
        jsonl, parquet: field or column that has the text; all others are kept as what is known of the document.
    split
        text: with line, every line is a document, not every file.
    processes
        warc, html: how many read pages; if left out, one less than the machine has cores.
    """
    from thresher.engine.imports import import_files

    for path in files:
        if str(path).startswith("--") and not path.exists():
            raise ConfigError(f"there is no option {path}; thresher import --help lists those there are")
    if lang:
        from thresher.crawl.start import language_code

        lang = language_code(lang)
    done: list[Imported] = []  # once: also if a fault or somebody ends it, what was imported is told
    try:
        with counting(_bytes(files), "bytes") as progress:
            found = import_files(
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
                progress=progress,
                report=done.append,
            )
            done.append(found)
    finally:
        for found in done:
            _tell(found, len(files), json)


def _tell(found: Imported, count: int, json: bool) -> None:
    """What came of so many files."""
    if json:
        print_json(found)
    for remark in found.remarks:
        say(remark)
    tokens = f" with {found.tokens:,} tokens" if found.tokens else ""
    refused = f"; {len(found.refused):,} refused" if found.refused else ""
    say(
        f"{found.documents:,} documents{tokens} imported from {len(found.files):,} of {count:,} files{refused}"
    )


def _bytes(files: Sequence[Path]) -> int | None:
    """How many bytes there are to read; None if there are pipes, of which nobody knows."""
    return sum(path.stat().st_size for path in files) if all(path.is_file() for path in files) else None
