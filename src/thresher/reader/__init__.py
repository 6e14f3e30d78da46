"""Reader: from the bytes of a reply to a page with blocks, scores, languages, links and fingerprints."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from thresher.reader.extract import read as read

__all__ = ["read"]


def __getattr__(name: str) -> Any:
    # The crawler needs some of these rooms, but not the kernels: they take half a second to load.
    if name == "read":
        from thresher.reader.extract import read

        return read
    raise AttributeError(f"module 'thresher.reader' has no attribute {name!r}")
