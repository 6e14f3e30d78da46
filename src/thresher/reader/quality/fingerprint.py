"""Fingerprints for exact duplicates: hashes of the raw page and of its main text."""

from __future__ import annotations

from collections.abc import Sequence

import xxhash

FULL_PARAGRAPH = 100  # characters: longer than headings, bylines and dates


def raw_hash(body: bytes) -> bytes:
    """Return a hash of 16 bytes of a decompressed body."""
    return xxhash.xxh3_128_digest(body)


def text_hash(paragraphs: Sequence[str]) -> bytes:
    """Return a hash of 16 bytes of a clean text; b"" for an empty text.

    Where there are full paragraphs only these count: a reprint has its own heading and date.
    """
    full = [text for text in paragraphs if len(text) >= FULL_PARAGRAPH] or paragraphs
    return xxhash.xxh3_128_digest("\n".join(full).encode()) if full else b""
