"""Exceptions that Thresher raises on purpose. Each message names the thing, the value and the fix.

Faults of the web are values (`thresher.records.Failure`). Exceptions are for faults of the user, of stored data, of
the crawl and of worker processes. The command line maps them to exit codes in one place, `thresher.cli.exit_codes`.
"""

from __future__ import annotations

from pathlib import Path


class ThresherError(Exception):
    """Base of every exception that Thresher raises on purpose."""


class ThresherWarning(UserWarning):
    """A remark about a result that is correct but may surprise the user."""


class UsageError(ThresherError):
    """A setting, an argument or a query cannot be used."""


class DataError(ThresherError):
    """A file of a corpus or of an import cannot be read or written."""


class NoCorpusError(DataError):
    """A directory that does not exist, or that holds no corpus."""

    def __init__(self, directory: Path) -> None:
        if directory.is_dir():
            fault = "is not a corpus (it has no corpus.toml)"
        else:
            fault = "is not a directory" if directory.exists() else "does not exist"
        super().__init__(
            f"{directory} {fault}; make a corpus: thresher crawl {directory} --lang CODE --seeds FILE, "
            f"or thresher import {directory} FILE… --lang CODE"
        )


class CrawlError(ThresherError):
    """A crawl cannot continue. Everything committed before is durable."""


class EngineError(ThresherError):
    """Worker processes cannot be started or do not answer."""
