"""A crawl in shards: which of them has a host, and where each of them stands on disk.

    DIR/shards/03/e000007/      a corpus of its own: warc, docs, links, outcomes, state, status.json

A shard that is started again works in a folder of its own, its *epoch*, made of what its forerunner had committed;
of these folders, the one with the highest number counts. So whoever was thought dead and wakes writes where nobody
looks.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import TypeVar

import msgspec
import xxhash
from msgspec import Struct

from thresher.config import Config
from thresher.store.files import StoreError
from thresher.url import domain as domain_of

EPOCH = re.compile(r"e(\d{6,})")
STATE = "state"
LOOKS = 10  # what is looked at may give way to something newer meanwhile

T = TypeVar("T")


class Shard(Struct, frozen=True):
    """One of so many shards; a crawl without shards is its only one."""

    number: int = 0
    count: int = 1

    def owns(self, host: str) -> bool:
        return self.count == 1 or owner(host, self.count) == self.number

    def seq(self, index: int) -> int:
        """A number that no other shard gives, for the outcome that is the shard's own of that index."""
        return index * self.count + self.number

    def next_file(self, last: int) -> int:
        """The number of the file after one, or after none (0); no other shard has a file of that number."""
        return last + self.count if last else self.number + 1


ALONE = Shard()


@lru_cache(maxsize=200_000)
def owner(host: str, count: int) -> int:
    """The shard that has a host: all hosts of a registered domain are of one shard."""
    return xxhash.xxh3_64_intdigest(domain_of(host).encode()) % count


def home(directory: Path, number: int) -> Path:
    """Where a shard has its epochs."""
    return directory / "shards" / f"{number:02d}"


def epoch_folder(home: Path, epoch: int) -> Path:
    return home / f"e{epoch:06d}"


def epochs(home: Path) -> dict[int, Path]:
    """The epochs of a shard that are on disk, the oldest first."""
    found = [(match, path) for path in home.glob("e*") if (match := EPOCH.fullmatch(path.name))]
    return dict(sorted((int(match[1]), path) for match, path in found))


def newest(home: Path) -> Path | None:
    """The folder of a shard that counts; None before its first commit."""
    return next(reversed(epochs(home).values()), None)


def parts(directory: Path, config: Config) -> list[Path]:
    """The folders that hold what was crawled: the corpus itself, or one of each shard that has begun."""
    if not config.shards.count:
        return [directory]
    found = (newest(home(directory, number)) for number in range(config.shards.count))
    return [path for path in found if path is not None]


def shard_of(part: Path, config: Config) -> Shard:
    """Whose folder a part is."""
    return Shard(int(part.parent.name), config.shards.count) if config.shards.count else ALONE


class _Told(Struct):
    """What status.json says of the state."""

    state: str = STATE


def state_folder(part: Path) -> Path:
    """Where a part has its state; what is copied from elsewhere comes under ever new names."""
    try:
        told = msgspec.json.decode((part / "status.json").read_bytes(), type=_Told)
    except (OSError, msgspec.DecodeError):
        told = _Told()
    return part / Path(told.state).name


# reading while epochs come and go


def looked(directory: Path, config: Config, look: Callable[[list[Path]], T]) -> T:
    """What is found in the parts of a corpus, as they are while it is looked for.

    An epoch is deleted only after a newer one is there; so where all parts are the same afterwards, none was gone.
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
    """Where a file of a part is by now: where it was, or, its epoch gone, in the newest one of its shard."""
    match path.parts:
        case (*_, "shards", _, epoch, folder, name) if EPOCH.fullmatch(epoch) and not path.exists():
            part = newest(path.parents[2])
            return part / folder / name if part else path
    return path


def followed(path: Path, use: Callable[[Path], T]) -> T:
    """Use a file of a part that may have gone to a newer epoch since its path was told."""
    try:
        return use(path)
    except FileNotFoundError:
        now = standing(path)
        if now == path:
            raise
        return use(now)


def sweep(directory: Path, config: Config) -> None:
    """Delete what counts no longer: older epochs, and states that others took the place of."""
    for part in parts(directory, config) if config.shards.count else []:
        counting = state_folder(part)
        older = [path for path in epochs(part.parent).values() if path != part]
        older += [path for path in part.glob(f"{STATE}*") if path.is_dir() and path != counting]
        for path in older:
            shutil.rmtree(path, ignore_errors=True)
            if path.exists():
                raise StoreError(f"{path} cannot be deleted; end whoever writes there, then try again")
