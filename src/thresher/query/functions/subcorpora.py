"""Subcorpora: documents of an index under a name, chosen by what is said of them or by what is found in them.

The keys of the documents are kept, so that a subcorpus stays the same when segments are merged. Documents that were
added later are not in it until it is defined again.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Struct

from thresher.query.expressions import ExpressionError
from thresher.query.found import SECONDS, Index, Search
from thresher.query.functions.scope import Mask, Scope, document_keys, document_numbers
from thresher.query.functions.tables import FunctionError, Table
from thresher.query.lexicon import matches
from thresher.query.manifest import FOLDER
from thresher.query.segment import DOCUMENT, Segment
from thresher.query.tree import Text
from thresher.store.files import sync_directory

SUBCORPORA = "subcorpora"
COLUMNS: dict[str, Any] = {
    "name": pa.string(),
    "documents": pa.int64(),
    "tokens": pa.int64(),
    "where": pa.string(),
    "query": pa.string(),
}

_NAME = re.compile(r"\w[\w.-]{0,99}")
_CONDITION = re.compile(r"(>=|<=|>|<|!=)?\s*(.*)", re.DOTALL)
_NUMBER = r"\A[+-]?[0-9]{1,15}(\.[0-9]+)?\z"
_COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    ">=": pc.greater_equal,
    "<=": pc.less_equal,
    ">": pc.greater,
    "<": pc.less,
}


class Definition(Struct, frozen=True):
    """What documents must have: attributes that meet conditions, and a hit of a query if there is one.

    A condition is an expression, or one that must not match (`!=forum`), or a bound (`>=2005`, `<2005-06-01`).
    """

    where: dict[str, str] = {}
    query: str = ""


class Subcorpus(Struct, frozen=True):
    """A definition, and the keys of the documents that met it, in order."""

    definition: Definition
    keys: tuple[int, ...]


def define(
    index: Index,
    name: str,
    *,
    where: Mapping[str, str] | None = None,
    query: str = "",
    seconds: float | None = SECONDS,
) -> Subcorpus:
    """Save the documents that meet all conditions under a name; what had that name is replaced."""
    definition = Definition(dict(where or {}), query)
    path = _path(index, name)
    chosen = Scope(index, [_fulfilling(index, segment, definition.where) for segment in index.segments])
    if query:
        chosen = Scope(index, _with_hits(chosen, index.search(query, seconds=seconds)))
    none = np.zeros(0, np.uint64)
    keys = [document_keys(segment)[mask] for segment, mask in zip(index.segments, chosen.masks, strict=True)]
    subcorpus = Subcorpus(definition, tuple(np.sort(np.concatenate([none, *keys])).tolist()))
    path.parent.mkdir(exist_ok=True)
    temporary = path.with_suffix(".json.tmp")
    with temporary.open("wb") as file:
        file.write(msgspec.json.encode(subcorpus))
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)
    sync_directory(path.parent)
    return subcorpus


def load(index: Index, name: str) -> Subcorpus:
    """A subcorpus by its name."""
    path = _path(index, name)
    try:
        return msgspec.json.decode(path.read_bytes(), type=Subcorpus)
    except FileNotFoundError:
        known = ", ".join(names(index)) or "none yet"
        raise FunctionError(f"there is no subcorpus {name}; there is {known}") from None
    except msgspec.DecodeError as fault:
        raise FunctionError(f"{path} cannot be read ({fault}); define the subcorpus again") from None


def delete(index: Index, name: str) -> None:
    """Forget a subcorpus; its documents stay in the index."""
    load(index, name)
    _path(index, name).unlink()


def names(index: Index) -> list[str]:
    """The names of all subcorpora."""
    return sorted(path.stem for path in (index.directory / FOLDER / SUBCORPORA).glob("*.json"))


def scope(index: Index, within: str | None) -> Scope:
    """The documents of a subcorpus; of none, all."""
    if within is None:
        return Scope(index)
    keys = np.array(load(index, within).keys, np.uint64)
    return Scope(index, [np.isin(document_keys(segment), keys) for segment in index.segments])


def subcorpora(index: Index, _: Search | None = None) -> Table:
    """All subcorpora, with what they are made of as of now."""
    rows = []
    for name in names(index):
        definition, here = load(index, name).definition, scope(index, name)
        where = msgspec.json.encode(definition.where).decode()
        rows.append((name, here.documents, here.tokens, where, definition.query))
    columns = dict(zip(COLUMNS, zip(*rows, strict=True), strict=False))
    return Table(pa.table({name: pa.array(columns.get(name, []), kind) for name, kind in COLUMNS.items()}))


def _path(index: Index, name: str) -> Path:
    if not _NAME.fullmatch(name):
        raise FunctionError(f"{name!r} is no name for a subcorpus; use letters, digits, _, - and .")
    return index.directory / FOLDER / SUBCORPORA / f"{name}.json"


def _fulfilling(index: Index, segment: Segment, where: Mapping[str, str]) -> Mask:
    """The documents of a segment that meet all conditions on their attributes."""
    mask = np.ones(len(segment.structures[DOCUMENT].firsts), np.bool_)
    for name, condition in where.items():
        structure, _, attribute = name.partition("_")
        known = index.structures[DOCUMENT]
        if structure != DOCUMENT or attribute not in known:
            told = ", ".join(f"{DOCUMENT}_{one}" for one in known) or "none"
            raise FunctionError(f"documents have no attribute {name}; there are {told}")
        if attribute in segment.structures[DOCUMENT].attributes:
            numbers, values = segment.values(DOCUMENT, attribute)
            mask &= meets(values, condition)[numbers]
        else:
            mask &= meets(pa.array([""]), condition)[0]
    return mask


def meets(values: pa.StringArray, condition: str) -> Mask:
    """Which values meet a condition; bounds that are numbers are compared as such, others by their bytes."""
    found = _CONDITION.fullmatch(condition)
    assert found
    sign, bound = found.groups()
    if sign not in _COMPARE:
        try:
            like = matches(values, Text(bound))
        except ExpressionError as fault:
            raise FunctionError(str(fault)) from None
        return ~like if sign == "!=" else like
    compare = _COMPARE[sign]
    if not re.fullmatch(_NUMBER.replace(r"\z", r"\Z"), bound):
        return np.asarray(compare(values, bound), np.bool_)
    is_number = pc.match_substring_regex(values, _NUMBER)
    told = pc.if_else(is_number, values, None).cast(pa.float64())
    return np.asarray(compare(told, float(bound)).fill_null(False), np.bool_)


def _with_hits(chosen: Scope, search: Search) -> list[Mask]:
    """The documents that a search finds something in."""
    masks = []
    for segment, hits in zip(chosen.index.segments, chosen.hits(search), strict=True):
        mask = np.zeros(len(segment.structures[DOCUMENT].firsts), np.bool_)
        mask[document_numbers(segment, hits.firsts)] = True
        masks.append(mask)
    if search.stopped:
        raise FunctionError(
            f"{search.stopped}, so the documents with a hit are not all known; allow more seconds"
        )
    return masks
