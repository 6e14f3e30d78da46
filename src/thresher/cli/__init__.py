"""The command line: one thin command per verb. Machines get JSON on stdout, people get stderr."""

from __future__ import annotations

import os
import signal
import sys

try:
    from thresher.cli import (  # noqa: F401 - each adds its commands to the app
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
    from thresher.cli.app import DONE, FAULT, INTERRUPTED, USAGE, app, leave
    from thresher.config import ConfigError
except KeyboardInterrupt:  # all of it takes a moment to load
    print("thresher: interrupted", file=sys.stderr)
    sys.exit(130)


def main() -> None:
    """Run the command line; any fault ends in one message and its exit code, never in a traceback."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # as Ctrl-C
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # numpy would start threads that nobody needs
    try:
        app(sys.argv[1:])
    except KeyboardInterrupt:
        leave("interrupted", INTERRUPTED)
    except BrokenPipeError:  # `thresher export … | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(DONE)
    except ConfigError as fault:
        leave(str(fault), USAGE)
    except OSError as fault:
        leave(f"{fault.filename or 'input or output'}: {fault.strerror or fault}", FAULT)
    except _faults() as fault:
        leave(str(fault), FAULT)


def _faults() -> tuple[type[Exception], ...]:
    """Faults whose message is for the user; looked up only when something went wrong."""
    from thresher.crawl.ending import CrawlFault
    from thresher.engine.local import EngineFault
    from thresher.store.corpus import CorpusError
    from thresher.store.files import StoreError

    return CrawlFault, EngineFault, CorpusError, StoreError
