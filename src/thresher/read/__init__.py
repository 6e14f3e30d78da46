"""Reading: from the bytes of a reply to a page with blocks, scores, languages, links and fingerprints."""

from thresher.read.reader import read

__all__ = ["read"]
