"""The command that writes a corpus for others."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter, validators

from thresher.cli.app import AsJson, Directory, Many, app, print_json, say

if TYPE_CHECKING:
    from thresher.store.corpus import Corpus

FormatName = Literal["jsonl", "parquet", "txt", "vertical", "conllu", "tei", "huggingface", "wacz"]


@app.command
def export(
    directory: Directory,
    *,
    format: FormatName,
    output: Annotated[Path | None, Parameter(name=["--output", "-o"])] = None,
    lang: Annotated[list[str] | None, Many] = None,
    min_language_share: float = 0.0,
    max_badness: float | None = None,
    host: Annotated[list[str] | None, Many] = None,
    tld: Annotated[list[str] | None, Many] = None,
    since: Annotated[str, Parameter(name="--from")] = "",
    until: Annotated[str, Parameter(name="--to")] = "",
    license: Annotated[list[str] | None, Many] = None,
    opted_out: Annotated[bool, Parameter(negative=())] = False,
    processed: Annotated[bool, Parameter(negative=())] = False,
    run: int | None = None,
    annotator: str = "",
    processes: Annotated[int, Parameter(validator=validators.Number(gte=0))] = 0,
    json: AsJson = False,
) -> None:
    """Write the documents of a corpus in another format.

    Example: thresher export czech --format vertical -o czech.vert.gz

    Parameters
    ----------
    format
        jsonl, parquet, txt, vertical, conllu, tei, huggingface (a folder) or wacz (raw pages).
    output
        File to write, .gz and .zst compress; stdout if left out. It is there once it is whole.
    lang
        Only documents in these languages.
    min_language_share
        Only documents of which at least this share is in the language of the corpus, as 0.8.
    max_badness
        Only documents with at most this Badness; those of which it is not known are left out.
    host
        Only documents from these hosts and all under them, or from hosts like a pattern: *.example.cz.
    tld
        Only documents from hosts under these top-level domains: one sub-corpus per country.
    since
        Only documents published, or else fetched, on this date or later: 2024-05-31, 2024-05 or 2024.
    until
        Only documents published, or else fetched, on this date or earlier.
    license
        Only documents with such a licence: a part of its name or address, as by-sa, or a pattern; * is any.
    opted_out
        Also documents whose publishers object to their use for machine learning or data mining.
    processed
        Pages as the last `thresher process` left them, and no imported texts and tokens: steps do not see these.
    run
        Pages as this run of `thresher process` left them: a number that `thresher runs` tells.
    annotator
        vertical, conllu, tei: which one tells lemmas and parts of speech; the best that is installed if left out.
    processes
        vertical, conllu, tei: that annotate at once; all processors but one if left out, or 0.
    """
    import thresher
    from thresher.export.choice import choice
    from thresher.export.formats import export as write
    from thresher.export.selection import NOT_PROCESSED

    if lang:
        from thresher.crawl.start import language_code

        lang = [language_code(name) for name in lang]
    chosen = choice(
        languages=lang or (),
        min_language_share=min_language_share,
        max_badness=max_badness,
        hosts=host or (),
        tlds=tld or (),
        since=since,
        until=until,
        licenses=license or (),
        opted_out=opted_out,
    )
    if processed or run is not None:
        from thresher.batch.results import processed as result_of

        corpus: Corpus = result_of(directory, run)
    else:
        corpus = thresher.open(directory)
    done = write(
        corpus, format, output or sys.stdout.buffer, chosen, annotator=annotator, processes=processes
    )
    if json and output:
        print_json({**{name: getattr(done, name) for name in done.__struct_fields__}, "output": str(output)})
    all_of_them = done.documents + sum(done.left_out.values())
    say(f"{done.documents:,} of {all_of_them:,} documents written")
    for reason, count in done.left_out.items():
        say(f"left out: {count:,} × {reason}")
    if "opted out" in done.left_out:
        say("--opted-out takes those, too, whose publishers opted out of text mining")
    if NOT_PROCESSED in done.left_out:
        say(
            "steps work on pages alone; an export without --processed has imports, filtered by --host, --lang …"
        )
    if format == "vertical":
        names = ",".join(done.attributes)
        say(f"columns: {names}; to import them again: --entities --attributes {names}")
