"""A folder that Hugging Face's datasets can load: Parquet files of about one size, and a dataset card."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from thresher._version import __version__
from thresher.exporting.documents import ExportSelection, regrouped
from thresher.exporting.output import write_durably
from thresher.store.schemas import DOCS

SHARD_BYTES = 500 << 20  # of a file, about, as the hub advises
ROW_GROUP_BYTES = 32 << 20  # of text
SHOWN_LICENCES = 50
MOST_LICENCES = 10_000  # that are counted apart; pages may invent any number of them
FIELDS = {
    "url": "address of the page, or id of an imported document",
    "host": "host of the page",
    "domain": "registered domain of the host",
    "fetched": "when the page was downloaded; null: unknown",
    "language": "code of its main language",
    "language_share": "share of the text that is in the language of the corpus",
    "badness": "distance of its frequent words from usual text of the language; 0 is as expected, above 10 is poor",
    "title": "title of the page",
    "text": "main text without boilerplate; a line is a paragraph",
    "license": "licence that the page links to as its own",
    "opt_out": "how the publisher objects to its use for machine learning, if so",
    "text_hash": "hash of the text",
    "author": "author, as the page says",
    "published": "date of publication, as the page says",
    "modified": "date of the last change, as the page says",
    "site_name": "name of the site, as the page says",
}
# Descriptions of the origins of documents.
CRAWLED = "Crawled, with robots.txt obeyed and boilerplate removed"
ARCHIVED = "Pages from archives of other crawlers, with boilerplate removed"
TEXTS = "Imported texts, unchanged"
SCHEMA = pa.schema([DOCS.field(name) for name in FIELDS])
SIZES = ("n<1K", "1K<n<10K", "10K<n<100K", "100K<n<1M", "1M<n<10M", "10M<n<100M", "100M<n<1B", "1B<n<10B",
         "10B<n<100B", "100B<n<1T", "n>1T")  # fmt: skip
_CREATIVE_COMMONS = re.compile(
    r"https?://(?:www\.)?creativecommons\.org/(?:licenses/([a-z-]+)/(\d\.\d)|publicdomain/(zero|mark))",
    re.IGNORECASE,
)


class _Tally:
    """Counts over all documents, for the card."""

    def __init__(self) -> None:
        self.rows = 0
        self.text_bytes = 0
        self.languages: Counter[str] = Counter()
        self.licences: Counter[str] = Counter()
        self.first: datetime | None = None
        self.last: datetime | None = None
        self.dated = 0  # documents with a known time of download
        self.origins: Counter[str] = Counter()

    def add(self, table: pa.Table) -> None:
        """Count the rows of a table of documents."""
        self.origins.update(map(_origin, table.column("seq").to_pylist()))
        self.rows += table.num_rows
        self.text_bytes += sum(len((text or "").encode()) for text in table.column("text").to_pylist())
        self.languages.update(code for code in table.column("language").to_pylist() if code)
        for licence in table.column("license").to_pylist():
            known = licence in self.licences or len(self.licences) < MOST_LICENCES
            self.licences[(licence or "") if known else "others"] += 1
        times = [time for time in table.column("fetched").to_pylist() if time]
        self.dated += len(times)
        if times:
            self.first = min([*times, *([self.first] if self.first else [])])
            self.last = max([*times, *([self.last] if self.last else [])])


def write_dataset(selection: ExportSelection, folder: Path) -> int:
    """Write Parquet files and README.md into an empty folder; return the number of documents."""
    data = folder / "data"
    data.mkdir()
    tally = _Tally()
    shards = _write_shards(selection, data, tally)
    for number, path in enumerate(shards):
        path.rename(data / f"train-{number:05d}-of-{len(shards):05d}.parquet")
    write_durably(folder / "README.md", card(selection, tally).encode())
    return tally.rows


def _write_shards(selection: ExportSelection, data: Path, tally: _Tally) -> list[Path]:
    """Write numbered files, at least one; their names do not hold their total number yet."""
    shards: list[Path] = []
    groups = regrouped(selection.rows(), ROW_GROUP_BYTES)
    more = True
    while more:
        shards.append(data / f"{len(shards):05d}")
        with shards[-1].open("wb") as out:
            with pq.ParquetWriter(out, SCHEMA, compression="zstd") as writer:
                more = _fill(writer, groups, out, tally)
            out.flush()
            os.fsync(out.fileno())
    return shards


def _fill(writer: pq.ParquetWriter, groups: Iterator[pa.Table], out: Any, tally: _Tally) -> bool:
    """Write row groups until the file is full; return False when there are no more."""
    for group in groups:
        tally.add(group)
        table = group.select(list(FIELDS))
        writer.write_table(table, row_group_size=table.num_rows)
        if out.tell() >= SHARD_BYTES:
            return True
    return False


def card(selection: ExportSelection, tally: _Tally) -> str:
    """Return the card: YAML for machines, then text for people."""
    config = selection.corpus.config
    languages = sorted(tally.languages) or [config.language]
    licences = sorted({_licence_id(name) for name in tally.licences}) or ["unknown"]
    name = f"Web corpus: {', '.join(languages)}"
    front = [
        "---",
        *_yaml_list("language", languages),
        *_yaml_list("license", licences),
        f"pretty_name: {_quoted(name)}",
        *_yaml_list("size_categories", [_size(tally.rows)]),
        *_yaml_list("task_categories", ["text-generation"]),
        "configs:",
        "- config_name: default",
        "  data_files:",
        "  - split: train",
        "    path: data/train-*",
        "---",
    ]
    fields = [
        f"| `{field}` | {DOCS.field(field).type} | {description} |" for field, description in FIELDS.items()
    ]
    body = [
        f"# {name}",
        f"{tally.rows:,} documents with {tally.text_bytes:,} bytes of text.{_period(tally)}",
        "## How it was made",
        f"Written by thresher {__version__}, for texts in `{config.language}`. {_origins(tally)} "
        f"{_choices(selection)}".rstrip(),
        *_left_out(selection),
        "## Languages",
        "\n".join([f"- `{code}`: {count:,} documents" for code, count in _most(tally.languages)]) or "None.",
        "## Licences",
        "The texts are the work of their authors. The pages link to these licences:",
        "\n".join([f"- {_one_line(name) or 'nothing'}: {count:,} documents"
                   for name, count in _most(tally.licences)[:SHOWN_LICENCES]]) or "None.",
        "## Fields",
        "\n".join(["| field | type | description |", "| --- | --- | --- |", *fields]),
    ]  # fmt: skip
    return "\n".join(front) + "\n\n" + "\n\n".join(body) + "\n"


def _origin(number: int | None) -> str:
    """Return the origin of a document: pages of archives have negative numbers, imported texts have none."""
    return TEXTS if number is None else ARCHIVED if number < 0 else CRAWLED


def _origins(tally: _Tally) -> str:
    """Return the numbers of documents by origin, as sentences."""
    return " ".join(
        [f"{of}: {tally.origins[of]:,}." for of in (CRAWLED, ARCHIVED, TEXTS) if tally.origins[of]]
    )


def _choices(selection: ExportSelection) -> str:
    """Return a sentence with the conditions of the export, or "" if there are none."""
    conditions = [f"{name} = {_shown(value)}" for name, value in selection.where.conditions().items()]
    return f"Conditions of the selection: {_one_line('; '.join(conditions))}." if conditions else ""


def _shown(value: Any) -> str:
    return ", ".join(value) if isinstance(value, tuple) else str(value)


def _left_out(selection: ExportSelection) -> list[str]:
    reasons = [f"- {reason}: {count:,}" for reason, count in _most(selection.left_out)]
    return ["Documents that were left out, by reason:", "\n".join(reasons)] if reasons else []


def _period(tally: _Tally) -> str:
    if not tally.first or not tally.last:
        return ""
    unknown = f"; the time of {tally.rows - tally.dated:,} is unknown" if tally.dated < tally.rows else ""
    return f" They were downloaded between {tally.first.date()} and {tally.last.date()}{unknown}."


def _most(counts: Counter[str]) -> list[tuple[str, int]]:
    """Return counts in descending order, equal ones by name, so that the order is always the same."""
    return sorted(
        ((name, count) for name, count in counts.items() if count), key=lambda one: (-one[1], one[0])
    )


def _licence_id(name: str) -> str:
    """Return the name of a licence on the hub."""
    found = _CREATIVE_COMMONS.match(name)
    if not found:
        return "other" if name else "unknown"
    if found[3]:
        return "cc0-1.0" if found[3].lower() == "zero" else "other"
    return f"cc-{found[1].lower()}-{found[2]}"


def _size(rows: int) -> str:
    """Return the name of a size category on the hub.

    >>> _size(999), _size(1_000), _size(10**14)
    ('n<1K', '1K<n<10K', 'n>1T')
    """
    return SIZES[min(max(len(str(rows)) - 3, 0), len(SIZES) - 1)]


def _yaml_list(name: str, values: list[str]) -> list[str]:
    return [f"{name}:", *(f"- {_quoted(value)}" for value in values)]


def _quoted(text: str) -> str:
    """Return a text as a JSON string, which is valid YAML; unquoted, `no` would mean false, not Norwegian."""
    return msgspec.json.encode(text).decode()


def _one_line(text: str) -> str:
    return " ".join(text.split())[:300]
