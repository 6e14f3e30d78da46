"""Seeds: URLs given one by one or in files; bad lines are reported and the rest is used."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from msgspec import Struct

from thresher.config import MIB
from thresher.errors import UsageError
from thresher.urls import canonical

MAX_FILE_BYTES = 1024 * MIB
SHOWN_REMARKS = 5


class Seeds(Struct, frozen=True):
    """URLs to start from, in order and each once, and remarks about the others."""

    urls: tuple[str, ...]
    remarks: tuple[str, ...] = ()


def known_seeds(directory: Path) -> list[str]:
    """Return the seeds that a corpus was given so far."""
    try:
        return (directory / "seeds.txt").read_text("utf-8").splitlines()
    except FileNotFoundError:
        return []


def gather(given: Iterable[str]) -> Seeds:
    """Gather seeds from URLs and from files with one URL per line.

    A line may be a bare host name. Blank lines and lines that begin with # are skipped. UsageError if a file cannot
    be read or no seed is left.
    """
    urls: dict[str, None] = {}
    remarks: list[str] = []
    for item in given:
        if "://" in item:
            _take(item, item, urls, remarks)
        else:
            _take_file(Path(item), urls, remarks)
    if not urls:
        raise UsageError("no usable seeds" + "".join(f"\n  {line}" for line in remarks[:SHOWN_REMARKS]))
    return Seeds(tuple(urls), tuple(remarks))


def _take(text: str, where: str, urls: dict[str, None], remarks: list[str]) -> None:
    bare = "://" not in text and "." in text and " " not in text and ":" not in text.partition("/")[0]
    url = canonical(f"http://{text}" if bare else text)
    if url is None:
        remarks.append(f"{where}: not a web address: {text[:80]!r}")
    else:
        urls[url] = None


def _take_file(path: Path, urls: dict[str, None], remarks: list[str]) -> None:
    try:
        if path.stat().st_size > MAX_FILE_BYTES:
            raise UsageError(f"{path} is larger than {MAX_FILE_BYTES // MIB} MiB: not a seeds file?")
        data = path.read_bytes()
    except FileNotFoundError:
        raise UsageError(
            f"seeds file {str(path)!r} does not exist; give a file with one URL per line, or URLs "
            "that start with http:// or https://"
        ) from None
    except OSError as fault:
        raise UsageError(f"seeds file {str(path)!r} cannot be read: {fault.strerror}") from None
    if data.startswith(b"PAR1"):
        raise UsageError(
            f"{str(path)!r} is not a list of URLs, but perhaps an index of Common Crawl; choose seeds from it: "
            f"thresher seeds {path} --lang CODE -o seeds.txt"
        )
    if b"\0" in data:
        raise UsageError(f"seeds file {str(path)!r} is binary, not text with one URL per line")
    for number, line in enumerate(data.decode("utf-8-sig", "replace").splitlines(), 1):
        text = line.strip()
        if text and not text.startswith("#"):
            _take(text, f"{path}:{number}", urls, remarks)
