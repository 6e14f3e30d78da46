"""An imported document for exports: its metadata as text, as facts for a filter, or as a row of the table."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

import msgspec
import pyarrow as pa

from thresher import urls
from thresher.records import LanguageShare, day_or_none
from thresher.selection import DocumentFacts, day_of
from thresher.store.imported_files import ImportFile
from thresher.store.schemas import DOCS

# Columns that point into the corpus the text came from, or that follow from the text itself: never imported.
NOT_IMPORTED = frozenset(
    ("paragraphs", "text", "text_bytes", "warc_file", "warc_offset", "raw_hash", "depth", "seq")
)
OTHER_NAMES = {"published": "date", "license": "licence"}  # that other corpora use for the same
# An opt-out taken from a header or from robots.txt: a name and a colon, then text that may hold spaces.
_NAMED_OPT_OUT = re.compile(r" ([^ ]+):(?: |\Z)")


def meta_of(values: Mapping[str, Any], file: ImportFile) -> dict[str, str]:
    """Return the metadata of an imported document as text, without empty values."""
    known = dict(values["meta"] or ())
    found = {"id": values["id"], "source": values["source"], "language": file.language, **known}
    if "opt_out" in found:
        found["opt_out"] = " ".join(opt_outs_of(found["opt_out"]))
    return {name: value for name, value in found.items() if value}


def facts_of(meta: Mapping[str, str], language: str) -> DocumentFacts:
    """Return the facts of an imported document that a filter asks about.

    `language` is that of its file; it counts where the document has none.
    """
    date = next(
        (day for name in ("published", "date", "year", "fetched") if (day := day_of(meta.get(name)))), ""
    )
    return DocumentFacts(
        language=meta.get("language") or language,
        language_share=_number_or_none(meta.get("language_share")),
        badness=_number_or_none(meta.get("badness")),
        suspicion=_number_or_none(meta.get("suspicion")),
        host=urls.host_of_metadata(meta["host"])
        if meta.get("host")
        else urls.host_in(meta.get("url") or meta.get("id", "")),
        date=date,
        license=meta.get("license") or meta.get("licence", ""),
        opted_out=bool(opt_outs_of(meta.get("opt_out", ""))),
    )


def opt_outs_of(text: str) -> list[str]:
    """Return the opt-outs that an import gives as a JSON list, or one after the other.

    >>> opt_outs_of("noai tdm-reservation content-signal: /a ai-train=no")
    ['noai', 'tdm-reservation', 'content-signal: /a ai-train=no']
    >>> opt_outs_of('["noai", "noimageai"]'), opt_outs_of("[]")
    (['noai', 'noimageai'], [])
    """
    try:
        return [name for name in msgspec.json.decode(text, type=list[str]) if name]
    except msgspec.DecodeError:
        plain, *named = _NAMED_OPT_OUT.split(" " + " ".join(text.split()))
        return [
            *plain.split(),
            *(f"{name}: {value}".strip() for name, value in zip(*[iter(named)] * 2, strict=True)),
        ]


def row_of(values: Mapping[str, Any], file: ImportFile) -> dict[str, Any]:
    """Return an imported text as a row of DOCS; columns that its metadata do not name are null."""
    meta = meta_of(values, file)
    address = meta.get("url") or (meta["id"] if urls.host_in(meta["id"]) else None)
    host = urls.host_of_metadata(meta["host"]) if meta.get("host") else urls.host_in(address or "") or None
    imported = {
        field.name: _value(meta.get(field.name) or meta.get(OTHER_NAMES.get(field.name, "")), field.type)
        for field in DOCS
        if field.name not in NOT_IMPORTED
    }
    return {
        **dict.fromkeys(DOCS.names),
        **imported,
        "url": address or meta["id"],
        "host": host,
        "domain": urls.domain(host) if host else None,
        "text": values["text"],
        "text_bytes": len(values["text"].encode()),
    }


def _value(text: str | None, kind: pa.DataType) -> Any:
    """Convert text to a value of a column; return None if it is not one."""
    if not text:
        return None
    for is_kind, read in _READERS:
        if is_kind(kind):
            try:
                return read(text, kind)
            except (ValueError, OverflowError, msgspec.MsgspecError):
                return None
    return None


def _number_or_none(text: str | None) -> float | None:
    try:
        return float(text) if text else None
    except ValueError:
        return None


def _number(text: str, _: pa.DataType) -> float | None:
    number = float(text)
    return number if math.isfinite(number) else None


def _integer(text: str, kind: pa.DataType) -> int:
    number: int = pa.scalar(int(text), kind).as_py()
    return number


def _moment(text: str, _: pa.DataType) -> datetime:
    moment = datetime.fromisoformat(text)
    return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)


def _list(text: str, kind: pa.DataType) -> list[Any]:
    assert isinstance(kind, pa.ListType)
    if pa.types.is_string(kind.value_type):
        return opt_outs_of(text)
    shares = msgspec.json.decode(text, type=list[dict[str, Any]])
    return [msgspec.structs.asdict(_share(each)) for each in shares]


def _share(fields: dict[str, Any]) -> LanguageShare:
    names = LanguageShare.__struct_fields__
    return msgspec.convert([fields.get(name) for name in names], LanguageShare)


_READERS: tuple[tuple[Callable[[pa.DataType], bool], Callable[[str, pa.DataType], Any]], ...] = (
    (pa.types.is_string, lambda text, _: text),
    (pa.types.is_floating, _number),
    (pa.types.is_integer, _integer),
    (pa.types.is_timestamp, _moment),
    (pa.types.is_date, lambda text, _: day_or_none(text)),
    (pa.types.is_list, _list),
)
