"""A crawl in shards: which of them has a host, and where each of them stands on disk.

    DIR/shards/03/e000007/      a corpus of its own: warc, docs, links, outcomes, state, status.json

A shard that is started again works in a folder of its own, its *epoch*, made of what its forerunner had committed;
of these folders, the one with the highest number counts. So whoever was thought dead and wakes writes where nobody
looks.
"""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import xxhash
from msgspec import Struct

from thresher.config import Config
from thresher.url import domain as domain_of

EPOCH = re.compile(r"e(\d{6,})")


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


def state_folder(part: Path) -> Path:
    """Where the state of a part is: of a copy of a shard, in the folder that its status names."""
    try:
        told = msgspec.json.decode((part / "status.json").read_bytes(), type=_Told)
    except (OSError, msgspec.DecodeError):
        told = _Told()
    return part / Path(told.state).name


class _Told(Struct):
    """What status.json says of the state."""

    state: str = "state"


def parts(directory: Path, config: Config) -> list[Path]:
    """The folders that hold what was crawled: the corpus itself, or one of each shard that has begun."""
    if not config.shards.count:
        return [directory]
    found = (newest(home(directory, number)) for number in range(config.shards.count))
    return [path for path in found if path is not None]
