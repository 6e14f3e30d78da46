"""Thresher builds clean, searchable web corpora in any language, with as little downloading as possible.

One page, from its HTML:

>>> import thresher
>>> thresher.extract("<title>Mills</title><article><p>" + "The mill turns slowly in the wind. " * 9 + "</article>")
'The mill turns slowly in the wind. The mill turns slowly in the wind. ...'

A corpus, from the web: `crawl` makes it and `open` opens one that is there.

>>> corpus = thresher.crawl("czech", "cs", seeds, connect_to=web, max_pages=40, progress=False, settings=fast)
>>> corpus.documents(["url", "title", "text"]).num_rows == len(corpus)
True
>>> corpus.index(annotator="plain").added == len(corpus)
True
>>> corpus.search('[word="a"]').count() > 0
True
"""

from __future__ import annotations

import logging
import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

from thresher._version import __version__

if TYPE_CHECKING:
    from thresher.corpus import Corpus as Corpus
    from thresher.corpus import open as open
    from thresher.crawling import crawl as crawl
    from thresher.errors import ThresherError as ThresherError
    from thresher.page import Page as Page
    from thresher.page import extract as extract
    from thresher.page import read as read

# Names are imported when they are first used: reader processes import this package too, and need no Arrow.
_HOMES = {
    "Corpus": "thresher.corpus",
    "Page": "thresher.page",
    "ThresherError": "thresher.errors",
    "crawl": "thresher.crawling",
    "extract": "thresher.page",
    "open": "thresher.corpus",
    "read": "thresher.page",
}
__all__ = ["Corpus", "Page", "ThresherError", "__version__", "crawl", "extract", "open", "read"]

logging.getLogger("thresher").addHandler(logging.NullHandler())


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'thresher' has no attribute {name!r}")
    found = getattr(import_module(_HOMES[name]), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return __all__


def _former_crawl(name: str) -> Any:
    """Return a name of the former module `thresher.crawl.start`; it goes with the next release."""
    if name != "crawl":
        raise AttributeError(f"module 'thresher.crawl.start' has no attribute {name!r}")
    import warnings

    from thresher.crawler.api import crawl

    warnings.warn(
        "thresher.crawl.start.crawl is deprecated; use thresher.crawl, or thresher.crawler.api.crawl with the "
        "same parameters",
        DeprecationWarning,
        stacklevel=2,
    )
    return crawl


# `thresher.crawl` was a package and is a function. The import system finds modules by their names alone, so that
# `from thresher.crawl.start import crawl` can still be answered; `import thresher.crawl.start` cannot, since it
# looks for the attributes of `thresher.crawl`.
for _name in ("thresher.crawl", "thresher.crawl.start"):
    sys.modules[_name] = ModuleType(_name, "Former name; use thresher.crawl, a function.")
sys.modules["thresher.crawl.start"].__getattr__ = _former_crawl  # type: ignore[method-assign]
del _name
