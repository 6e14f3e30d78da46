"""Options for logs, which all commands share that work on a corpus for long."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from thresher.files.log_files import LogFormat, log_to_files


@Parameter(name="*")
@dataclass(frozen=True)
class LogOptions:
    """Options for the log of a command."""

    verbose: Annotated[
        bool,
        Parameter(
            name=["--verbose", "-v"], negative=(), help="Write the log to stderr as well as to DIR/logs."
        ),
    ] = False
    log_format: Annotated[
        LogFormat, Parameter(help="Format of the log: text, or json with an object per line.")
    ] = "text"

    def writing(self, directory: Path, name: str) -> AbstractContextManager[None]:
        """Write DIR/logs/NAME.log while the context lasts."""
        return log_to_files(directory, name, verbose=self.verbose, log_format=self.log_format)


DEFAULT_LOG = LogOptions()
