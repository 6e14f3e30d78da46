"""Functions of a user's own, named by their places: found, or told what is wrong with them and where."""

from __future__ import annotations

import importlib
import inspect
import sys
import traceback
import types
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from thresher.batch.code import HOUSE
from thresher.config import ConfigError
from thresher.engine.calls import function_at

# Kinds of values whose types are looked at; what else a function may take is its own affair.
PLAIN = (int, float, str, bool, types.NoneType)
LISTS = (list, tuple)
UNIONS = (typing.Union, types.UnionType)
PYTHON = Path(inspect.__file__).parent

_loaded: dict[str, tuple[str, ...]] = {}  # modules of users, and in which folders they were looked for


def folders_of(directory: Path) -> tuple[str, ...]:
    """Where modules of a corpus are looked for, besides where Python does."""
    return tuple(dict.fromkeys([str(directory.resolve()), str(Path.cwd())]))


@contextmanager
def looking_in(folders: Sequence[str]) -> Iterator[None]:
    """Let modules in folders be found, behind all others; those of other corpora are not taken for them."""
    for name in [name for name, searched in _loaded.items() if searched != tuple(folders)]:
        del _loaded[name]
        sys.modules.pop(name, None)
    importlib.invalidate_caches()  # a module may have been written a moment ago
    path, modules = list(sys.path), set(sys.modules)
    added = [folder for folder in folders if folder not in path]
    sys.path += added
    try:
        yield
    finally:
        sys.path[:] = path
        new = sys.modules.keys() - modules
        _loaded.update({name: tuple(folders) for name in new if _home(name) in added})


def _home(name: str) -> str:
    """The folder in which a module, or the package that it belongs to, was found."""
    file = getattr(sys.modules.get(name.partition(".")[0]), "__file__", None) or ""
    parent = Path(file).parent
    return str(parent.parent if Path(file).stem == "__init__" else parent)


def function_of(place: str, folders: Sequence[str]) -> Callable[..., Any]:
    """A function by its place, with a version."""
    try:
        with looking_in(folders):
            function = function_at(place)
    except AssertionError:
        raise ConfigError(f"the step {place!r} is no function; name one: module:function") from None
    except (Exception, SystemExit) as fault:  # the edge: whatever a module of somebody else does
        where = ", ".join(folders)
        raise ConfigError(
            f"the step {place!r} cannot be imported: {_told(fault)}; it must be a function, "
            f"module:function, and its module in {where} or where Python looks for modules"
        ) from None
    if not isinstance(getattr(function, "version", None), int):
        name = place.partition(":")[2]
        raise ConfigError(f"the step {place!r} has no version; write {name}.version = 1 below it")
    return function


def _told(fault: BaseException) -> str:
    """What went wrong in a module, with file and line where there is one."""
    kind, message = type(fault).__name__, str(fault)
    if isinstance(fault, SyntaxError) and fault.filename:
        return f"{kind} in {fault.filename}, line {fault.lineno}: {fault.msg}"
    frames = [frame for frame in traceback.extract_tb(fault.__traceback__) if _is_of_a_user(frame.filename)]
    if frames:
        return f"{kind} in {frames[-1].filename}, line {frames[-1].lineno}: {message}"
    return message if isinstance(fault, ImportError | AttributeError) else f"{kind}: {message}"


def _is_of_a_user(file: str) -> bool:
    path = Path(file)
    return not (file.startswith("<") or "site-packages" in path.parts or {HOUSE, PYTHON} & set(path.parents))


def typed(place: str, function: Callable[..., Any], parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters of a step in the types that its function asks for; ConfigError if it does not take them."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # one that is not written in Python need not tell
        return dict(parameters)
    try:
        signature.bind(None, **parameters)
    except TypeError as fault:
        raise ConfigError(f"the step {place!r} {fault}; {_known(signature)}") from None
    hints = _hints(function)
    found = {}
    for name, value in parameters.items():
        try:
            found[name] = msgspec.convert(value, hints[name]) if _is_plain(hints.get(name)) else value
        except msgspec.ValidationError as fault:
            known = _known(signature)
            raise ConfigError(f"the step {place!r} cannot use {name} = {value!r}: {fault}; {known}") from None
    return found


def _known(signature: inspect.Signature) -> str:
    """The parameters that there are, but for the documents."""
    names = [str(one) for one in signature.parameters.values()][1:]
    return f"its parameters are {', '.join(names) or 'none'}"


def _hints(function: Callable[..., Any]) -> dict[str, Any]:
    try:
        return typing.get_type_hints(function)
    except Exception:  # the edge: hints of a user's may name what is there for type checkers alone
        return {}


def _is_plain(hint: Any) -> bool:
    origin = typing.get_origin(hint)
    if origin is typing.Literal:
        return True
    if origin in LISTS or origin in UNIONS:
        return all(one is Ellipsis or _is_plain(one) for one in typing.get_args(hint))
    return hint in PLAIN or hint in LISTS
