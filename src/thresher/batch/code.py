"""What code and models are: digests by which results are known to be of today's."""

from __future__ import annotations

import socket
import unicodedata
from collections.abc import Sequence
from functools import cache
from importlib.metadata import version
from pathlib import Path

import msgspec
import xxhash

import thresher
from thresher.batch.pieces import digest_of
from thresher.config import ConfigError

HOUSE = Path(thresher.__file__).parent
LANGUAGES = ("pycld2",)  # the library that tells languages
PAGES = (
    *LANGUAGES,
    "ada-url",
    "chardetng-py",
    "publicsuffixlist",
)  # … and those that also decide what a page is

TRAINED = "trained languages"
UNICODE = "Unicode"
READER = "reader"


@cache
def digest_of_room(name: str) -> str:
    """A digest of all code and data of a room, as `read`, or of a module, as `judge.py`."""
    place = HOUSE / name
    files = (
        [place]
        if place.is_file()
        else sorted(path for path in place.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    )
    return _digest_of_files(files, HOUSE)


def means(libraries: Sequence[str]) -> str:
    """All that decides how this machine reads: code, libraries, and the languages that somebody trained here."""
    from thresher.read import trained  # with the detector: it takes a while to load

    found = {READER: digest_of_room("read"), UNICODE: unicodedata.unidata_version}
    found |= {name: version(name) for name in libraries}
    languages = sorted(trained.home().glob(f"*{trained.SUFFIX}"))
    found[TRAINED] = _digest_of_files(languages, trained.home()) if languages else "none"
    return msgspec.json.encode(found).decode()


def must_be_able(expected: str) -> None:
    """ConfigError if this machine reads otherwise than the one that told its means."""
    from thresher.read import trained

    theirs = msgspec.json.decode(expected, type=dict[str, str])
    ours = msgspec.json.decode(
        means([name for name in theirs if name not in (READER, UNICODE, TRAINED)]), type=dict[str, str]
    )
    others = ", ".join(name for name in theirs if theirs[name] != ours[name])
    if others:
        raise ConfigError(
            f"{socket.gethostname()} reads otherwise than the machine that began the run: it has other {others}; "
            f"install the same version of Thresher and its libraries there, and give it the same trained languages "
            f"(here they are looked for in {trained.home()}, or where $THRESHER_LANGUAGES says)"
        )
    trained.look_again()  # this process may have looked before one of them came


def _digest_of_files(files: Sequence[Path], home: Path) -> str:
    told = "".join(f"{path.relative_to(home)}\0{digest_of(path)}\n" for path in files)
    return xxhash.xxh3_128_hexdigest(told.encode())
