"""An imported document as exports take it: what was said of it as text, or as a row of the table of documents."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

import msgspec
import pyarrow as pa

from thresher import url
from thresher.export.choice import objections_of
from thresher.page import LanguageShare
from thresher.store.imports import ImportFile
from thresher.store.tables import DOCS

# Columns that tell where something is in the corpus that a text was in before, or are told by the text itself.
NOT_SAID = frozenset(
    ("paragraphs", "text", "text_bytes", "warc_file", "warc_offset", "raw_hash", "depth", "seq")
)
OTHER_NAMES = {"published": "date", "license": "licence"}  # under which others say the same


def meta_of(values: Mapping[str, Any], file: ImportFile) -> dict[str, str]:
    """What is known of an imported document, as text."""
    known = dict(values["meta"] or ())
    found = {"id": values["id"], "source": values["source"], "language": file.language, **known}
    if "opt_out" in found:
        found["opt_out"] = " ".join(objections_of(found["opt_out"]))
    return {name: value for name, value in found.items() if value}


def row_of(values: Mapping[str, Any], file: ImportFile) -> dict[str, Any]:
    """An imported text as a row of DOCS: what was said of it under the names of columns; the rest is null."""
    meta = meta_of(values, file)
    address = meta.get("url") or (meta["id"] if url.host_in(meta["id"]) else None)
    host = url.host_told(meta["host"]) if meta.get("host") else url.host_in(address or "") or None
    said = {
        field.name: _value(meta.get(field.name) or meta.get(OTHER_NAMES.get(field.name, "")), field.type)
        for field in DOCS
        if field.name not in NOT_SAID
    }
    return {
        **dict.fromkeys(DOCS.names),
        **said,
        "url": address or meta["id"],
        "host": host,
        "domain": url.domain(host) if host else None,
        "text": values["text"],
        "text_bytes": len(values["text"].encode()),
    }


def _value(text: str | None, kind: pa.DataType) -> Any:
    """A text as a value of a column; None where it is none."""
    if not text:
        return None
    for is_kind, read in _READERS:
        if is_kind(kind):
            try:
                return read(text, kind)
            except (ValueError, OverflowError, msgspec.MsgspecError):
                return None
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
        return objections_of(text)
    shares = msgspec.json.decode(text, type=list[dict[str, Any]])
    return [msgspec.structs.asdict(_share(each)) for each in shares]


def _share(said: dict[str, Any]) -> LanguageShare:
    names = LanguageShare.__struct_fields__
    return msgspec.convert([said.get(name) for name in names], LanguageShare)


_READERS: tuple[tuple[Callable[[pa.DataType], bool], Callable[[str, pa.DataType], Any]], ...] = (
    (pa.types.is_string, lambda text, _: text),
    (pa.types.is_floating, _number),
    (pa.types.is_integer, _integer),
    (pa.types.is_timestamp, _moment),
    (pa.types.is_list, _list),
)
