"""Hashes of the pages that a corpus has."""

from __future__ import annotations

import hashlib

import pyarrow as pa
import pytest

from thresher.store import known_pages
from thresher.store.known_pages import DocumentHashes, HashSet

DIGESTS = [hashlib.md5(bytes([n])).digest() for n in range(100)]


def test_a_set_of_hashes_holds_each_digest_it_was_given_also_after_merges(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(known_pages, "MAX_RECENT", 10)
    seen = HashSet()
    for digest in DIGESTS[:50]:
        assert digest not in seen
        seen.add(digest)
    seen.update(DIGESTS[50:75])
    assert [digest in seen for digest in DIGESTS] == [True] * 75 + [False] * 25
    seen.add(b"")
    assert b"" not in seen


def test_documents_are_known_by_their_bytes_and_by_their_text() -> None:
    known = DocumentHashes()
    columns = {"raw_hash": [DIGESTS[0].hex(), None], "text_hash": [DIGESTS[1].hex(), ""]}
    known.add_documents([pa.RecordBatch.from_pydict(columns)])
    assert known.same_body(DIGESTS[0]) and not known.same_text(DIGESTS[0])
    assert known.same_text(DIGESTS[1]) and not known.same_body(DIGESTS[1])


def test_the_text_of_a_page_that_was_not_kept_stays_unknown() -> None:
    known = DocumentHashes()
    known.add(DIGESTS[2], b"")
    assert known.same_body(DIGESTS[2])
    assert not known.same_text(b"")
