"""Compilation of kernels: typed Python functions that numba compiles once and keeps on disk."""

from __future__ import annotations

import fcntl
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
import xxhash
from numba import config, types
from numba.extending import intrinsic

from thresher.files.source_files import import_closure

Function = TypeVar("Function", bound=Callable[..., Any])

SOURCE = types.Array(types.uint8, 1, "C", readonly=True)  # the buffer of a `bytes` object
BYTES = types.Array(types.uint8, 1, "C")
NUMBERS = types.Array(types.int64, 1, "C")
TABLE = types.Array(types.int64, 2, "C")
FLOATS = types.Array(types.float64, 1, "C")
GRID = types.Array(types.float64, 2, "C")
NUMBER = types.int64
NOTHING = types.void

_ROOT = Path(__file__).parents[1]  # the directory that holds the package

# Kernels are not called from C, nor parts of kernels from Python; wrappers for that would only cost compile time.
_WHOLE: dict[str, Any] = {"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True}
_PART = {**_WHOLE, "no_cpython_wrapper": True}


def kernel(result: types.Type, *arguments: types.Type) -> Callable[[Function], Function]:
    """Return a decorator that compiles a function for these types, or loads it from the cache."""

    def compiled(function: Function) -> Function:
        function.__qualname__ = f"{function.__name__}_{_digest_of_sources(function)}"
        made: Any = numba.njit(cache=True, **_WHOLE)(function)
        with nullcontext() if _is_cached(made) else _one_process_at_a_time(Path(made.stats.cache_path)):
            if not _is_cached(made):
                _announce()
            made.compile(result(*arguments))
        made.disable_compile()  # A call with other types would compile again in every process, unnoticed.
        return cast(Function, made)

    return compiled


def _digest_of_sources(function: Callable[..., Any]) -> str:
    """Return a digest of all sources that a kernel may take code or constants from; it names the cached code.

    numba itself compares only the file that holds the function. It would keep code that was compiled with the
    former constants or inlined parts of another module.
    """
    file = Path(function.__code__.co_filename)
    package = file.parents[function.__module__.count(".")]
    return _digest(file, (_ROOT, package))


@cache
def _digest(file: Path, roots: tuple[Path, ...]) -> str:
    sources = (path.read_bytes() for path in import_closure(file, roots))
    checks = b"checked" if config.BOUNDSCHECK else b""  # type: ignore[attr-defined]
    return xxhash.xxh3_64_hexdigest(b"\0".join([checks, *sources]))


def inlined(function: Function) -> Function:
    """Return a part of kernels that is copied to where it is called: for small parts, or with one caller."""
    return cast(Function, numba.njit(forceinline=True, **_PART)(function))


def inner(function: Function) -> Function:
    """Return a part of kernels that is compiled with each of them; loading a cached kernel does not load it."""
    return cast(Function, numba.njit(**_PART)(function))


def _pointer(_context: Any, array: types.Array) -> tuple[Any, Callable[..., Any]]:
    """Return the type of the intrinsic `bare` and the function that generates its code."""

    def first_item(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        return context.make_array(signature.args[0])(context, builder, values[0]).data

    return types.CPointer(array.dtype)(array), first_item  # type: ignore[no-untyped-call]


def _unchanged(array: Any) -> Any:
    return array


# The pointer to the first item of an array. With a whole array, numba passes shape and strides in every call and
# checks each index for being negative, which took nearly half the time of a scan. If bounds are to be checked
# (NUMBA_BOUNDSCHECK=1), arrays stay whole, so that the checks find an index beyond the end.
bare: Any = inlined(_unchanged) if config.BOUNDSCHECK else intrinsic(_pointer)  # type: ignore[attr-defined]


@cache
def _announce() -> None:
    print("thresher: compiling kernels, only after installation; about 20 seconds …", file=sys.stderr)


def _is_cached(made: Any) -> bool:
    """Return whether numba has compiled code of this function on disk."""
    return any(Path(made.stats.cache_path).glob(f"*{made.py_func.__qualname__}*.nbi"))


@contextmanager
def _one_process_at_a_time(folder: Path) -> Iterator[None]:
    """Hold a lock, so that of several readers that start together one compiles and the others wait for it."""
    folder.mkdir(parents=True, exist_ok=True)
    lock = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)
