"""Layout of a crawl in shards: the owner of each host, and the folders of each shard.

    DIR/shards/03/e000007/      shaped like a corpus: warc, docs, links, outcomes, state, status.json

A shard that is started again works in a new folder, its *epoch*, which begins with a copy of everything that its
predecessor had committed. Only the epoch with the highest number is read. A process that was presumed dead and goes
on therefore writes into a folder that is never read.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import TypeVar

import xxhash
from msgspec import Struct

from thresher.config import Config
from thresher.errors import DataError
from thresher.store.checked_files import json_file
from thresher.urls import domain as domain_of

EPOCH = re.compile(r"e(\d{6,})")
STATE = "state"
LOOKS = 10  # attempts to read parts that are replaced meanwhile

T = TypeVar("T")


class Shard(Struct, frozen=True):
    """A shard by number and count; a crawl without shards is shard 0 of 1."""

    number: int = 0
    count: int = 1

    def owns(self, host: str) -> bool:
        """Return whether this shard owns a host."""
        return self.count == 1 or owner(host, self.count) == self.number

    def seq(self, index: int) -> int:
        """Return a sequence number for the shard's outcome of that index; no other shard uses it."""
        return index * self.count + self.number

    def next_file(self, last: int) -> int:
        """Return the number of the file after one, or after none (0); no other shard uses it."""
        return last + self.count if last else self.number + 1


ALONE = Shard()


@lru_cache(maxsize=200_000)
def owner(host: str, count: int) -> int:
    """Return the number of the shard that owns a host; a registered domain belongs to one shard."""
    return xxhash.xxh3_64_intdigest(domain_of(host).encode()) % count


def home(directory: Path, number: int) -> Path:
    """Return the folder of a shard, which holds its epochs."""
    return directory / "shards" / f"{number:02d}"


def epoch_folder(home: Path, epoch: int) -> Path:
    """Return the folder of an epoch."""
    return home / f"e{epoch:06d}"


def epochs(home: Path) -> dict[int, Path]:
    """Return the epochs of a shard on disk by number, the oldest first."""
    found = [(match, path) for path in home.glob("e*") if (match := EPOCH.fullmatch(path.name))]
    return dict(sorted((int(match[1]), path) for match, path in found))


def newest(home: Path) -> Path | None:
    """Return the newest epoch of a shard, the only one that is read; None before its first commit."""
    return next(reversed(epochs(home).values()), None)


def parts(directory: Path, config: Config) -> list[Path]:
    """Return the folders with crawled data: the corpus itself, or the newest epoch of each shard."""
    if not config.shards.count:
        return [directory]
    found = (newest(home(directory, number)) for number in range(config.shards.count))
    return [path for path in found if path is not None]


def shard_of(part: Path, config: Config) -> Shard:
    """Return the shard to which a part belongs."""
    return Shard(int(part.parent.name), config.shards.count) if config.shards.count else ALONE


class _StateName(Struct):
    """The field of status.json that names the folder of the state."""

    state: str = STATE


def state_folder(part: Path) -> Path:
    """Return the folder of a part's state, which has a new name whenever it was copied from elsewhere."""
    try:
        named = json_file(part / "status.json", _StateName)
    except (OSError, DataError):
        named = _StateName()
    return part / Path(named.state).name


# reading while epochs are replaced


def looked(directory: Path, config: Config, look: Callable[[list[Path]], T]) -> T:
    """Return the result of `look` for the parts of a corpus; repeat it if the parts changed meanwhile.

    An epoch is deleted only after a newer one exists. So if the parts are the same before and after, none was
    missing in between.
    """
    missing: OSError = FileNotFoundError(f"{directory} changes faster than it can be read")
    for _ in range(LOOKS):
        before = parts(directory, config)
        try:
            found = look(before)
        except OSError as fault:
            missing = fault
            continue
        if parts(directory, config) == before:
            return found
    raise missing


def standing(path: Path) -> Path:
    """Return the present path of a file: the path itself, or that in the newest epoch if its epoch is gone."""
    match path.parts:
        case (*_, "shards", _, epoch, folder, name) if EPOCH.fullmatch(epoch) and not path.exists():
            part = newest(path.parents[2])
            return part / folder / name if part else path
    return path


def followed(path: Path, use: Callable[[Path], T]) -> T:
    """Return `use(path)`, with the path in the newest epoch if the file has moved there."""
    try:
        return use(path)
    except FileNotFoundError:
        now = standing(path)
        if now == path:
            raise
        return use(now)


def sweep(directory: Path, config: Config) -> None:
    """Delete superseded epochs and superseded states."""
    for part in parts(directory, config) if config.shards.count else []:
        counting = state_folder(part)
        older = [path for path in epochs(part.parent).values() if path != part]
        older += [path for path in part.glob(f"{STATE}*") if path.is_dir() and path != counting]
        for path in older:
            shutil.rmtree(path, ignore_errors=True)
            if path.exists():
                raise DataError(
                    f"{path} cannot be deleted; end the process that writes there, then try again"
                )
