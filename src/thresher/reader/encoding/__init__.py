"""Decoding: from the bytes of a reply to Unicode text."""
