"""Functions written by users, named `module:function`: importing them, and checking their parameters."""

from __future__ import annotations

import inspect
import traceback
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from thresher.annotate.user_modules import importable_from
from thresher.errors import UsageError
from thresher.pipeline.code_digests import PACKAGE
from thresher.workers.protocol import function_at

# Types of parameters that are checked; parameters of other types are passed on unchecked.
PLAIN = (int, float, str, bool, types.NoneType)
LISTS = (list, tuple)
UNIONS = (typing.Union, types.UnionType)
PYTHON = Path(inspect.__file__).parent


def function_of(place: str, folders: Sequence[str]) -> Callable[..., Any]:
    """Import a function and check that it has a version; raise UsageError if it cannot be used."""
    try:
        with importable_from(folders):
            function = function_at(place)
    except AssertionError:
        raise UsageError(f"the step {place!r} is not a function; name one: module:function") from None
    except (Exception, SystemExit) as fault:  # the edge: a user's module may raise anything
        where = ", ".join(folders)
        raise UsageError(
            f"the step {place!r} cannot be imported: {_described(fault)}; name a function, module:function, "
            f"whose module is in {where} or on Python's path"
        ) from None
    if not isinstance(getattr(function, "version", None), int):
        name = place.partition(":")[2]
        raise UsageError(f"the step {place!r} has no version; write {name}.version = 1 below it")
    return function


def _described(fault: BaseException) -> str:
    """Return the fault of a module, with the file and line of the user's code if there is one."""
    kind, message = type(fault).__name__, str(fault)
    if isinstance(fault, SyntaxError) and fault.filename:
        return f"{kind} in {fault.filename}, line {fault.lineno}: {fault.msg}"
    frames = [frame for frame in traceback.extract_tb(fault.__traceback__) if _is_of_a_user(frame.filename)]
    if frames:
        return f"{kind} in {frames[-1].filename}, line {frames[-1].lineno}: {message}"
    return message if isinstance(fault, ImportError | AttributeError) else f"{kind}: {message}"


def _is_of_a_user(file: str) -> bool:
    path = Path(file)
    return not (
        file.startswith("<") or "site-packages" in path.parts or {PACKAGE, PYTHON} & set(path.parents)
    )


def typed(place: str, function: Callable[..., Any], parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return parameters in the types of a function's hints; raise UsageError if it does not take them."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # functions that are not written in Python may have no signature
        return dict(parameters)
    try:
        signature.bind(None, **parameters)
    except TypeError as fault:
        raise UsageError(f"the step {place!r} {fault}; {_known(signature)}") from None
    hints = _hints(function)
    found = {}
    for name, value in parameters.items():
        try:
            found[name] = msgspec.convert(value, hints[name]) if _is_plain(hints.get(name)) else value
        except msgspec.ValidationError as fault:
            known = _known(signature)
            raise UsageError(f"the step {place!r} cannot use {name} = {value!r}: {fault}; {known}") from None
    return found


def _known(signature: inspect.Signature) -> str:
    """Return the parameters of a function, without the documents, for a message."""
    names = [str(one) for one in signature.parameters.values()][1:]
    return f"its parameters are {', '.join(names) or 'none'}"


def _hints(function: Callable[..., Any]) -> dict[str, Any]:
    try:
        return typing.get_type_hints(function)
    except Exception:  # the edge: hints may name types that only type checkers see
        return {}


def _is_plain(hint: Any) -> bool:
    origin = typing.get_origin(hint)
    if origin is typing.Literal:
        return True
    if origin in LISTS or origin in UNIONS:
        return all(one is Ellipsis or _is_plain(one) for one in typing.get_args(hint))
    return hint in PLAIN or hint in LISTS
