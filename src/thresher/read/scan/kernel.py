"""How kernels are made: Python that numba compiles to machine code, once for good."""

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

Function = TypeVar("Function", bound=Callable[..., Any])

SOURCE = types.Array(types.uint8, 1, "C", readonly=True)  # what a `bytes` object lends
BYTES = types.Array(types.uint8, 1, "C")
NUMBERS = types.Array(types.int64, 1, "C")
TABLE = types.Array(types.int64, 2, "C")
FLOATS = types.Array(types.float64, 1, "C")
GRID = types.Array(types.float64, 2, "C")
NUMBER = types.int64
NOTHING = types.void

_HERE = Path(__file__).parent

# Nobody calls a kernel from C, nor a part of one from Python: ways in would only have to be compiled.
_WHOLE: dict[str, Any] = {"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True}
_PART = {**_WHOLE, "no_cpython_wrapper": True}


def kernel(result: types.Type, *arguments: types.Type) -> Callable[[Function], Function]:
    """Compile a function for these types, or load it as it was compiled before."""

    def compiled(function: Function) -> Function:
        function.__qualname__ = f"{function.__name__}_{_state(Path(function.__code__.co_filename).parent)}"
        made: Any = numba.njit(cache=True, **_WHOLE)(function)
        with nullcontext() if _is_kept(made) else _one_process_at_a_time(Path(made.stats.cache_path)):
            if not _is_kept(made):
                _announce()
            made.compile(result(*arguments))
        made.disable_compile()  # for other types: that would go unseen, and take its time in every process
        return cast(Function, made)

    return compiled


@cache
def _state(folder: Path) -> str:
    """A name that changes with any source of kernels, for compiled code to be kept under.

    numba itself looks only at the file that holds a function, and would keep code made with constants of another.
    """
    sources = sorted({*_HERE.glob("*.py"), *folder.glob("*.py")})
    return xxhash.xxh3_64_hexdigest(b"".join(path.read_bytes() for path in sources))


def inlined(function: Function) -> Function:
    """A part of kernels that is copied to where it is called: small, or called once."""
    return cast(Function, numba.njit(forceinline=True, **_PART)(function))


def inner(function: Function) -> Function:
    """A part of kernels, compiled as part of them: loading it costs nothing once they are."""
    return cast(Function, numba.njit(**_PART)(function))


def _pointer(_context: Any, array: types.Array) -> tuple[Any, Callable[..., Any]]:
    """How numba is told of a function: its type, and what builds its code."""

    def first_item(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        return context.make_array(signature.args[0])(context, builder, values[0]).data

    return types.CPointer(array.dtype)(array), first_item  # type: ignore[no-untyped-call]


def _itself(array: Any) -> Any:
    return array


# An array as C has it, known by where it begins alone. Of a whole array, numba hands over all it knows with every
# call, and it looks at each index for being negative: that took nearly half the time of a scan. Where it is told
# to check indices (NUMBA_BOUNDSCHECK=1) arrays stay whole, so that what reaches beyond them is found.
bare: Any = inlined(_itself) if config.BOUNDSCHECK else intrinsic(_pointer)  # type: ignore[attr-defined]


@cache
def _announce() -> None:
    print("thresher: compiling, once for good; about 20 seconds …", file=sys.stderr)


def _is_kept(made: Any) -> bool:
    """Whether code of this function is where numba keeps it."""
    return any(Path(made.stats.cache_path).glob(f"*{made.py_func.__qualname__}*.nbi"))


@contextmanager
def _one_process_at_a_time(folder: Path) -> Iterator[None]:
    """Readers that start together wait for the one that compiles."""
    folder.mkdir(parents=True, exist_ok=True)
    lock = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)
