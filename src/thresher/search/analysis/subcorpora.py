"""Subcorpora: named sets of documents of an index, chosen by their attributes or by the hits in them.

The keys of the documents are stored, so that a subcorpus stays the same when segments are merged. Documents that
are added later are not in it until it is defined again.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Struct

from thresher.errors import DataError
from thresher.files.durable_files import replace
from thresher.search.analysis.scope import DocumentScope, Mask, document_keys, document_numbers
from thresher.search.analysis.tables import AnalysisError, ResultTable
from thresher.search.cql.ast import StringPattern
from thresher.search.cql.lexer import unknown
from thresher.search.cql.regex import ExpressionError
from thresher.search.encoding.lexicon import matches
from thresher.search.index.manifest import FOLDER
from thresher.search.index.segment import DOCUMENT, Segment
from thresher.search.searcher import SECONDS, Index, RunningSearch
from thresher.store.checked_files import json_file

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


class SubcorpusDefinition(Struct, frozen=True):
    """Conditions on the attributes of documents, and a query that must have a hit in them.

    A condition is a regular expression, one that must not match (`!=forum`), or a bound (`>=2005`, `<2005-06-01`).
    """

    where: dict[str, str] = {}
    query: str = ""


class Subcorpus(Struct, frozen=True):
    """A definition, and the sorted keys of the documents that met it."""

    definition: SubcorpusDefinition
    keys: tuple[int, ...]


def define(
    index: Index,
    name: str,
    *,
    where: Mapping[str, str] | None = None,
    query: str = "",
    seconds: float | None = SECONDS,
) -> Subcorpus:
    """Save the documents that meet all conditions under a name, in place of an older subcorpus of that name."""
    definition = SubcorpusDefinition(dict(where or {}), query)
    path = _path(index, name)
    chosen = DocumentScope(
        index, [_fulfilling(index, segment, definition.where) for segment in index.segments]
    )
    if query:
        chosen = DocumentScope(index, _with_hits(chosen, index.search(query, seconds=seconds)))
    none = np.zeros(0, np.uint64)
    keys = [document_keys(segment)[mask] for segment, mask in zip(index.segments, chosen.masks, strict=True)]
    subcorpus = Subcorpus(definition, tuple(np.sort(np.concatenate([none, *keys])).tolist()))
    path.parent.mkdir(exist_ok=True)
    replace(path, msgspec.json.encode(subcorpus))
    return subcorpus


def load(index: Index, name: str) -> Subcorpus:
    """Return the subcorpus with a name. Raises AnalysisError."""
    path = _path(index, name)
    try:
        return json_file(path, Subcorpus)
    except FileNotFoundError:
        raise AnalysisError(unknown("subcorpus", name, names(index))) from None
    except DataError as fault:
        raise AnalysisError(f"{fault}, or define the subcorpus again") from None


def delete(index: Index, name: str) -> None:
    """Delete a subcorpus; its documents stay in the index."""
    load(index, name)
    _path(index, name).unlink()


def names(index: Index) -> list[str]:
    """Return the names of all subcorpora."""
    return sorted(path.stem for path in (index.directory / FOLDER / SUBCORPORA).glob("*.json"))


def reference_of(index: Index, against: str | Path) -> tuple[Index | None, str | None]:
    """Return the reference of keywords: the index of another corpus, or the name of a subcorpus."""
    if isinstance(against, str) and against in names(index):
        return None, against
    if isinstance(against, str) and not Path(against).is_dir():
        known = ", ".join(names(index)) or "none yet"
        raise AnalysisError(
            f"{against!r} is neither a subcorpus nor the directory of a corpus; subcorpora: {known}"
        )
    return Index(Path(against)), None


def scope(index: Index, within: str | None) -> DocumentScope:
    """Return the scope of a subcorpus; of None, all documents."""
    if within is None:
        return DocumentScope(index)
    keys = np.array(load(index, within).keys, np.uint64)
    return DocumentScope(index, [np.isin(document_keys(segment), keys) for segment in index.segments])


def subcorpora(index: Index, _: RunningSearch | None = None) -> ResultTable:
    """Return all subcorpora with their definitions and their sizes now."""
    rows = []
    for name in names(index):
        definition, here = load(index, name).definition, scope(index, name)
        where = msgspec.json.encode(definition.where).decode()
        rows.append((name, here.documents, here.tokens, where, definition.query))
    columns = dict(zip(COLUMNS, zip(*rows, strict=True), strict=False))
    return ResultTable(
        pa.table({name: pa.array(columns.get(name, []), kind) for name, kind in COLUMNS.items()})
    )


def _path(index: Index, name: str) -> Path:
    if not _NAME.fullmatch(name):
        raise AnalysisError(f"invalid name of a subcorpus {name!r}; use letters, digits, _, - and .")
    return index.directory / FOLDER / SUBCORPORA / f"{name}.json"


def _fulfilling(index: Index, segment: Segment, where: Mapping[str, str]) -> Mask:
    """Return a mask of the documents of a segment whose attributes meet all conditions."""
    mask = np.ones(len(segment.structures[DOCUMENT].firsts), np.bool_)
    for name, condition in where.items():
        structure, _, attribute = name.partition("_")
        known = index.structures[DOCUMENT]
        if structure != DOCUMENT or attribute not in known:
            names_known = (f"{DOCUMENT}_{other}" for other in known)
            raise AnalysisError(unknown("attribute of documents", name, names_known))
        if attribute in segment.structures[DOCUMENT].attributes:
            numbers, values = segment.values(DOCUMENT, attribute)
            mask &= meets(values, condition)[numbers]
        else:
            mask &= meets(pa.array([""]), condition)[0]
    return mask


def meets(values: pa.StringArray, condition: str) -> Mask:
    """Return a mask of the values that meet a condition. Bounds are compared as numbers, or else by their bytes."""
    found = _CONDITION.fullmatch(condition)
    assert found
    sign, bound = found.groups()
    if sign not in _COMPARE:
        try:
            like = matches(values, StringPattern(bound))
        except ExpressionError as fault:
            raise AnalysisError(str(fault)) from None
        return ~like if sign == "!=" else like
    compare = _COMPARE[sign]
    if not re.fullmatch(_NUMBER.replace(r"\z", r"\Z"), bound):
        return np.asarray(compare(values, bound), np.bool_)
    is_number = pc.match_substring_regex(values, _NUMBER)
    numbers = pc.if_else(is_number, values, None).cast(pa.float64())
    return np.asarray(compare(numbers, float(bound)).fill_null(False), np.bool_)


def _with_hits(chosen: DocumentScope, search: RunningSearch) -> list[Mask]:
    """Return masks of the documents in which a search has a hit, by segment."""
    masks = []
    for segment, hits in zip(chosen.index.segments, chosen.hits(search), strict=True):
        mask = np.zeros(len(segment.structures[DOCUMENT].firsts), np.bool_)
        mask[document_numbers(segment, hits.firsts)] = True
        masks.append(mask)
    if search.stopped:
        raise AnalysisError(
            f"{search.stopped}, so not all documents with a hit are known; allow more seconds"
        )
    return masks
