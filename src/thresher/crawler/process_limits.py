"""Limits of the machine that every crawl process meets: open files, and the disk."""

from __future__ import annotations

import errno
import os
import resource
import socket
from pathlib import Path

from thresher import config as configuration
from thresher.crawler.fetching.fetcher import MAX_RESERVED_FILES
from thresher.errors import CrawlError

DISK_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def fault_of_disk(directory: Path, fault: OSError) -> CrawlError:
    """Return the error of a crawl for an error of its disk, with the fix."""
    if scratch := _scratch_at_fault(directory, fault):
        return CrawlError(
            f"the folder {scratch} on {socket.gethostname()}, in which shards are to work, cannot be used: "
            f"{fault.strerror}. Give one that can be written to on every machine with --scratch, or none with "
            f'--scratch "". Everything reported so far is safe'
        )
    if fault.errno in DISK_FULL:
        return CrawlError(
            f"disk_full: no space left for {directory}. Everything reported so far is safe; "
            f"make room and continue with: thresher crawl {directory}"
        )
    return CrawlError(f"{directory}: {fault}. Everything reported so far is safe")


def _scratch_at_fault(directory: Path, fault: OSError) -> str:
    """Return the scratch folder of a corpus's shards if the error happened there, otherwise ""."""
    scratch = configuration.load(directory).shards.scratch if (directory / "corpus.toml").exists() else ""
    if not scratch or not fault.filename:
        return ""
    where, folder = Path(os.fsdecode(fault.filename)).absolute(), Path(scratch)
    is_above = where in folder.parents and where not in directory.absolute().parents
    return scratch if folder == where or folder in where.parents or is_above else ""


def raise_file_limit(connections: int) -> None:
    """Raise the limit on open files to the need of the connections, as far as the system allows.

    Beyond its limit, fewer connections are opened.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = connections + MAX_RESERVED_FILES
    if hard != resource.RLIM_INFINITY:
        wanted = min(wanted, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
