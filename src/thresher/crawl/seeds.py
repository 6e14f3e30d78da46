"""Seeds: URLs given one by one or in files, bad lines named and the rest used."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from msgspec import Struct

from thresher.config import MIB, ConfigError
from thresher.url import canonical

MAX_FILE_BYTES = 1024 * MIB
SHOWN = 5  # bad lines that a message names


class Seeds(Struct, frozen=True):
    """URLs to start from, in order and each once, and what was wrong with the others."""

    urls: tuple[str, ...]
    complaints: tuple[str, ...] = ()


def known_seeds(directory: Path) -> list[str]:
    """The seeds that a corpus was given so far."""
    try:
        return (directory / "seeds.txt").read_text("utf-8").splitlines()
    except FileNotFoundError:
        return []


def gather(given: Iterable[str]) -> Seeds:
    """Seeds from URLs and from files with one URL a line (blank lines and lines that start with # are skipped).

    A line may be a bare host name. ConfigError if a file cannot be used or nothing is left.
    """
    urls: dict[str, None] = {}
    complaints: list[str] = []
    for item in given:
        if "://" in item:
            _take(item, item, urls, complaints)
        else:
            _take_file(Path(item), urls, complaints)
    if not urls:
        raise ConfigError("no usable seeds" + "".join(f"\n  {line}" for line in complaints[:SHOWN]))
    return Seeds(tuple(urls), tuple(complaints))


def _take(text: str, where: str, urls: dict[str, None], complaints: list[str]) -> None:
    bare = "://" not in text and "." in text and " " not in text and ":" not in text.partition("/")[0]
    url = canonical(f"http://{text}" if bare else text)
    if url is None:
        complaints.append(f"{where}: not a web address: {text[:80]!r}")
    else:
        urls[url] = None


def _take_file(path: Path, urls: dict[str, None], complaints: list[str]) -> None:
    try:
        if path.stat().st_size > MAX_FILE_BYTES:
            raise ConfigError(f"{path} is larger than {MAX_FILE_BYTES // MIB} MiB: not a seeds file?")
        data = path.read_bytes()
    except FileNotFoundError:
        raise ConfigError(
            f"seeds file {str(path)!r} does not exist; give a file with one URL a line, or URLs "
            "that start with http:// or https://"
        ) from None
    except OSError as fault:
        raise ConfigError(f"seeds file {str(path)!r} cannot be read: {fault.strerror}") from None
    if data.startswith(b"PAR1"):
        raise ConfigError(
            f"{str(path)!r} is no list of URLs, but perhaps an index of Common Crawl; choose seeds from it: "
            f"thresher seeds {path} --lang CODE -o seeds.txt"
        )
    if b"\0" in data:
        raise ConfigError(f"seeds file {str(path)!r} is binary, not text with one URL a line")
    for number, line in enumerate(data.decode("utf-8-sig", "replace").splitlines(), 1):
        text = line.strip()
        if text and not text.startswith("#"):
            _take(text, f"{path}:{number}", urls, complaints)
