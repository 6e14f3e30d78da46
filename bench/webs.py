"""The webs that benchmarks crawl: the toy web, and a recorded real one where it is available."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from urllib.parse import urlsplit

import zstandard

from bench.measure import CACHE, ROOT, say
from thresher_lab.toyweb import ToyWeb, seeds, serve

ADDRESS = "127.0.0.1"
# Half of the hosts are in the target language: keeping a page costs more than rejecting it.
TARGET_HOSTS = 0.5
ORDINARY_BYTES = (30_000, 80_000)  # of a page's HTML


@dataclass(frozen=True)
class Web:
    """A web being served."""

    name: str
    connect_to: str
    seeds: list[str]
    hosts: list[str]  # all there are; empty: no link leads out of this web
    log: Path | None = None  # of requests, as the server saw them


class Missing(Exception):
    """A web is not available; the message names the missing part and how to get it."""


@contextmanager
def toy(hosts: int) -> Iterator[Web]:
    """Serve pages of 30 to 80 KB in gzip with some 80 links, from one server process."""
    web = ToyWeb.benchmark(hosts=hosts, rich_hosts=TARGET_HOSTS)
    start = [url for language in seeds(web).values() for url in language]
    with serve(web) as server:
        yield Web("toy", server.connect_to, start, [])


def home() -> Path:
    """Return the directory of the real web."""
    return Path(os.environ.get("THRESHER_WEB", ROOT.parent / "shared" / "web")).resolve()


@contextmanager
def real(name: str = "real", small_hosts: int = 0) -> Iterator[Web]:
    """Serve the recorded web from nginx, with every host's front page as a seed.

    Raises Missing if it is not available. `small_hosts`: only the smallest hosts, with so many HTML files together;
    0: all hosts.
    """
    if not shutil.which("nginx"):
        raise Missing("nginx is not installed: apt-get install nginx-light")
    public = unpacked()
    port = _free_port()
    with tempfile.TemporaryDirectory(prefix="thresher-web-") as run:
        command = [sys.executable, str(public / "serve"), "--run", run, "--port", str(port)]
        command += ["--sites", str(public / "sites"), "--sites", str(public / "synthetic")]
        subprocess.run([*command, "start"], check=True, stdout=subprocess.DEVNULL)
        try:
            sites = [site for root in ("sites", "synthetic") for site in (public / root).iterdir()]
            hosts = _smallest(sites, small_hosts) if small_hosts else sorted(site.name for site in sites)
            fronts = (public / "seeds-public.txt").read_text().split()
            if small_hosts:
                fronts = [url for url in fronts if urlsplit(url).netloc in hosts]
            log = Path(run) / "access.log"
            yield Web(name, f"{ADDRESS}:{port}", fronts, hosts, log)
        finally:
            subprocess.run([*command, "stop"], check=True, stdout=subprocess.DEVNULL)


def _smallest(sites: list[Path], files: int) -> list[str]:
    """Return the smallest hosts with at most so many HTML files together, of ordinary size on average.

    Hosts that ask for a delay are left out: an obedient crawler takes hours there.
    """
    hosts = []
    for site in sites:
        sizes = [file.stat().st_size for file in site.rglob("*.htm*")]
        ordinary = sizes and ORDINARY_BYTES[0] <= sum(sizes) / len(sizes) <= ORDINARY_BYTES[1]
        if ordinary and not _asks_for_delay(site / "robots.txt"):
            hosts.append((len(sizes), site.name))
    hosts.sort()
    totals = accumulate(count for count, _ in hosts)
    return [name for (_, name), total in zip(hosts, totals, strict=True) if total <= files]


def _asks_for_delay(robots: Path) -> bool:
    return robots.exists() and b"crawl-delay" in robots.read_bytes().lower()


def unpacked() -> Path:
    """Unpack the recorded web on first use and return its directory. Raises Missing if it is not available."""
    archive = home() / "public.tar.zst"
    target = CACHE / "web"
    public = target / "public"
    if not public.exists():
        if not archive.exists():
            raise Missing(f"{archive} does not exist: set THRESHER_WEB to the directory of public.tar.zst")
        say(f"unpacking {archive} into {target}")
        partial = Path(tempfile.mkdtemp(dir=_made(CACHE)))
        with (
            archive.open("rb") as packed,
            zstandard.ZstdDecompressor().stream_reader(packed) as stream,
            tarfile.open(fileobj=stream, mode="r|") as tar,
        ):
            tar.extractall(partial, filter="data")
        partial.rename(target)
    return public


def _made(directory: Path) -> Path:
    directory.mkdir(parents=True, exist_ok=True)
    return directory


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((ADDRESS, 0))
        port: int = probe.getsockname()[1]
        return port
