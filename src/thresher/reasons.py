"""Reasons for which a page or a document is left out, as they are stored in outcomes, records and reports.

Every package takes them from here: the judge, the document filter, and the code that chooses rejected pages by
their reason. The strings are part of the format of a corpus and do not change.
"""

from __future__ import annotations

# Reasons of the page itself. The kinds "sitemap" and "feed", and faults of reading, are reasons, too.
NOT_HTML = "not html"
NOINDEX = "noindex"
TOO_LITTLE_HTML = "too little html"
TOO_SHORT = "too short"
TOO_OLD = "too old"

# Reasons that depend on the language of the corpus.
LANGUAGE = "language"
TOO_FEW_LANGUAGE_BYTES = "too few bytes of language"
TOO_MANY_LANGUAGE_BYTES = "too many bytes of language"
LANGUAGE_SHARE = "language share"
BADNESS = "badness"

SUSPICIOUS = "suspicious"

# Reasons that compare a page with others.
RAW_DUPLICATE = "raw duplicate"
TEXT_DUPLICATE = "text duplicate"
NEAR_DUPLICATE = "near duplicate"

# Reasons of documents that a filter leaves out, or that were erased.
OPTED_OUT = "opted out"
HOST = "host"
TLD = "tld"
DATE = "date"
LICENSE = "license"
FORGOTTEN = "forgotten"

# Reasons why a page could not be read; its outcome is "quarantined".
READER_STALLED = "reader stalled"
READER_DIED = "reader died"
OUT_OF_MEMORY = "out of memory"
READER_FAULT = "reader fault"

# A page that was rejected for another reason would be rejected in any language.
LANGUAGE_REASONS = (LANGUAGE, LANGUAGE_SHARE, TOO_FEW_LANGUAGE_BYTES, TOO_MANY_LANGUAGE_BYTES, BADNESS)
DUPLICATES = (RAW_DUPLICATE, TEXT_DUPLICATE, NEAR_DUPLICATE)
# Reasons for which a page has no text to keep, though its links may be good.
TEXT_REASONS = (NOINDEX, TOO_LITTLE_HTML, TOO_SHORT, TOO_FEW_LANGUAGE_BYTES)
