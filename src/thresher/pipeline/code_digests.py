"""Digests of code, libraries and models, which are parts of the keys of tasks: a change invalidates results."""

from __future__ import annotations

import socket
import unicodedata
from collections.abc import Sequence
from functools import cache
from importlib.metadata import version
from pathlib import Path

import msgspec
import xxhash

from thresher.errors import UsageError
from thresher.files.source_files import import_closure
from thresher.pipeline.artifacts import digest_of

PACKAGE = Path(__file__).parents[1]
LANGUAGES = ("pycld2",)  # libraries that identify languages
# Libraries that take part in reading a page.
PAGES = (*LANGUAGES, "ada-url", "chardetng-py", "publicsuffixlist")

TRAINED = "trained languages"
UNICODE = "Unicode"
READER = "reader"


@cache
def digest_of_room(name: str) -> str:
    """Return a digest of the code and data of a package (`reader`) or of a module (`judge.py`).

    Raise FileNotFoundError for a path that does not exist: an empty digest would never invalidate a result.
    """
    place = PACKAGE / name
    if place.is_file():
        files = [place]
    else:
        files = sorted(
            path for path in place.rglob("*") if path.is_file() and "__pycache__" not in path.parts
        )
    if not files:
        raise FileNotFoundError(f"cannot compute a digest: {place} does not exist or is empty")
    return _digest_of_files(files, PACKAGE)


@cache
def digest_with_imports(module: str) -> str:
    """Return a digest of a module (`judge.py`) and, transitively, of the modules of ours that it imports.

    Raise FileNotFoundError for a module that does not exist.
    """
    return _digest_of_files(import_closure(PACKAGE / module, [PACKAGE.parent], nested=True), PACKAGE.parent)


def reading_environment(libraries: Sequence[str]) -> str:
    """Return the versions that reading depends on, as JSON: code, libraries, Unicode and trained languages."""
    from thresher.reader.language import custom_models  # it loads CLD2, which takes a while

    found = {READER: digest_of_room("reader"), UNICODE: unicodedata.unidata_version}
    found |= {name: version(name) for name in libraries}
    languages = sorted(custom_models.home().glob(f"*{custom_models.SUFFIX}"))
    found[TRAINED] = _digest_of_files(languages, custom_models.home()) if languages else "none"
    return msgspec.json.encode(found).decode()


def check_environment(expected: str) -> None:
    """Raise UsageError if this machine reads differently from the one where the run began.

    `expected` is the `reading_environment` of that machine.
    """
    from thresher.reader.language import custom_models

    theirs = msgspec.json.decode(expected, type=dict[str, str])
    libraries = [name for name in theirs if name not in (READER, UNICODE, TRAINED)]
    ours = msgspec.json.decode(reading_environment(libraries), type=dict[str, str])
    if others := ", ".join(name for name in theirs if theirs[name] != ours[name]):
        raise UsageError(
            f"{socket.gethostname()} would read pages differently from the machine where the run began: it has "
            f"another version of {others}; install the same version of Thresher and its libraries there, and "
            f"copy the trained languages (they are looked for in $THRESHER_LANGUAGES, here {custom_models.home()})"
        )
    custom_models.clear_cache()  # This process may have cached the trained languages before one was added.


def _digest_of_files(files: Sequence[Path], home: Path) -> str:
    lines = "".join(f"{path.relative_to(home)}\0{digest_of(path)}\n" for path in files)
    return xxhash.xxh3_128_hexdigest(lines.encode())
