"""Log files of a corpus: DIR/logs/NAME.log, a line for each record, rotated at a bounded size.

The library logs to `logging.getLogger("thresher.…")` and configures nothing. The command line, and the processes
of shards that it starts, call `log_to_files`. Each command has a file of its own, and so has each epoch of a shard,
since shards run on several machines. If two processes of one machine share a file all the same, lines stay whole: a
record is one `write` to a file that is open for appending, and a process opens the new file when another process
has rotated the old one.

Messages hold URLs and texts of servers, so control characters are escaped: a server cannot forge a record or send
an escape sequence to a terminal. The lines of a traceback are indented, so that only records begin with a time.
"""

from __future__ import annotations

import fcntl
import logging
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

import msgspec

LogFormat = Literal["text", "json"]

LOGGER = logging.getLogger("thresher")
MAX_BYTES = 10_000_000  # of a log file, after which it is rotated
KEPT_FILES = 3  # older ones: NAME.log.1 is the newest
INDENT = "    "  # of the lines of a traceback


@contextmanager
def log_to_files(
    directory: Path, name: str, *, verbose: bool = False, log_format: LogFormat = "text"
) -> Iterator[None]:
    """Write the records of Thresher to DIR/logs/NAME.log while the context lasts; if verbose, to stderr as well."""
    formatter: logging.Formatter = JsonFormatter() if log_format == "json" else TextFormatter()
    handlers: list[logging.Handler] = [LogFile(directory / "logs" / f"{name}.log")]
    if verbose:
        handlers.append(Stderr())
    level = LOGGER.level
    for handler in handlers:
        handler.setFormatter(formatter)
        LOGGER.addHandler(handler)
    LOGGER.setLevel(logging.INFO)
    try:
        yield
    finally:
        LOGGER.setLevel(level)
        for handler in handlers:
            LOGGER.removeHandler(handler)
            handler.close()


def format_in_use() -> LogFormat | None:
    """Return the format of the log file that this process writes; None if it writes none."""
    for handler in LOGGER.handlers:
        if isinstance(handler, LogFile):
            return "json" if isinstance(handler.formatter, JsonFormatter) else "text"
    return None


def escaped(text: str) -> str:
    r"""Return a text in one line without control characters.

    >>> escaped("a\nb\x1b[31m")
    'a\\nb\\x1b[31m'
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


def _time(record: logging.LogRecord) -> str:
    return (
        datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    )


def _traceback(record: logging.LogRecord) -> list[str]:
    if not record.exc_info:
        return []
    return [escaped(line) for line in logging.Formatter().formatException(record.exc_info).splitlines()]


class TextFormatter(logging.Formatter):
    """A record as a line of text, followed by the lines of its traceback."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line: time, level, logger and message."""
        line = f"{_time(record)} {record.levelname} {record.name}: {escaped(record.getMessage())}"
        return "\n".join([line, *(INDENT + each for each in _traceback(record))])


class JsonFormatter(logging.Formatter):
    """A record as a JSON object in one line."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the object: time, level, logger, message and, if there is one, traceback."""
        fields: dict[str, str | list[str]] = {
            "time": _time(record),
            "level": record.levelname,
            "logger": record.name,
            "message": escaped(record.getMessage()),
        }
        if record.exc_info:
            fields["traceback"] = _traceback(record)
        return msgspec.json.encode(fields).decode()


class Stderr(logging.Handler):
    """Records on the stderr of the moment, which a progress display may have replaced."""

    def emit(self, record: logging.LogRecord) -> None:
        """Print a record."""
        print(self.format(record), file=sys.stderr, flush=True)


class LogFile(logging.Handler):
    """A log file that is rotated. It is opened by the first record, and only if there is a corpus by then.

    A log that cannot be written is no reason to stop a crawl: records are dropped then.
    """

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._path = path
        self._descriptor: int | None = None

    def emit(self, record: logging.LogRecord) -> None:
        """Append a record in one write."""
        line = (self.format(record) + "\n").encode("utf-8", "backslashreplace")
        with suppress(OSError):
            if (descriptor := self._opened()) is not None:
                os.write(descriptor, line)

    def _opened(self) -> int | None:
        """Return the descriptor of the present file, rotated if it is full."""
        if self._descriptor is not None and not self._is_current(self._descriptor):
            self._close_file()
        if self._descriptor is None:
            if not (self._path.parent.parent / "corpus.toml").exists():
                return None
            self._path.parent.mkdir(exist_ok=True)
            self._descriptor = self._open()
        if os.fstat(self._descriptor).st_size >= MAX_BYTES:
            self._rotate(self._descriptor)
            self._close_file()
            self._descriptor = self._open()
        return self._descriptor

    def _open(self) -> int:
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        return os.open(self._path, flags, 0o644)

    def _is_current(self, descriptor: int) -> bool:
        try:
            return os.path.samestat(self._path.stat(), os.fstat(descriptor))
        except FileNotFoundError:
            return False

    def _rotate(self, descriptor: int) -> None:
        """Rename the file to .1 and older ones onwards, unless another process has just done so."""
        fcntl.flock(descriptor, fcntl.LOCK_EX)  # released when the file is closed
        if not self._is_current(descriptor):
            return
        for number in range(KEPT_FILES, 0, -1):
            older = self._path.with_name(f"{self._path.name}.{number - 1}") if number > 1 else self._path
            with suppress(FileNotFoundError):
                older.replace(self._path.with_name(f"{self._path.name}.{number}"))

    def _close_file(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def close(self) -> None:
        """Close the file."""
        self._close_file()
        super().close()
