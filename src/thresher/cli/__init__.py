"""The command line: one thin command per verb.

Results go to stdout, as tables or as JSON; progress, remarks and errors go to stderr.
"""

from __future__ import annotations

import os
import sys
import warnings

from thresher.cli import interrupts, standard_streams

with interrupts.while_loading():  # the imports take half a second
    from thresher.cli.app import app, group_commands, leave, say_warning
    from thresher.cli.commands import (  # noqa: F401 - each module adds its commands to the app
        configuration,
        crawling,
        experiment,
        exporting,
        forgetting,
        importing,
        lab,
        languages,
        processing,
        reading,
        sample,
        searching,
        seeds,
    )
    from thresher.cli.exit_codes import DONE, exit_code

    group_commands()


def main() -> None:
    """Run the command line; an error ends in one message and its exit code."""
    standard_streams.prepare()
    interrupts.install()
    warnings.showwarning = say_warning
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # numpy would start threads that are never used
    try:
        try:
            app(sys.argv[1:])
        finally:
            sys.stdout.flush()  # here a full disk still gets its message
    except BrokenPipeError:  # `thresher export … | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(DONE)
    except (Exception, KeyboardInterrupt) as error:
        code = exit_code(error)
        if code is None:
            raise
        leave(_message(error), code)


def _message(error: BaseException) -> str:
    if isinstance(error, KeyboardInterrupt):
        return "interrupted"
    if isinstance(error, OSError):
        return f"{error.filename or 'input or output'}: {error.strerror or error}"
    return str(error)
