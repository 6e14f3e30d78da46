"""Exit codes of the command line, and the code of each exception. They are part of the stable contract."""

from __future__ import annotations

from thresher.errors import ThresherError, UsageError

DONE = 0
FAULT = 1  # data, disk, crawl or worker processes failed
USAGE = 2  # an argument, a setting or a query cannot be used
BUDGET = 3  # a crawl was stopped by a budget; there is more to fetch
INTERRUPTED = 130  # Ctrl-C or SIGTERM, as shells count signals

# The first row with a class that fits an exception gives its exit code.
_CODES: tuple[tuple[type[BaseException], int], ...] = (
    (KeyboardInterrupt, INTERRUPTED),
    (UsageError, USAGE),
    (ThresherError, FAULT),
    (OSError, FAULT),
)


def exit_code(error: BaseException) -> int | None:
    """Return the exit code of an exception, or None for a defect of Thresher, which shows its traceback.

    >>> exit_code(UsageError("--max-pages must be at least 0, got -3"))
    2
    """
    return next((code for kind, code in _CODES if isinstance(error, kind)), None)
