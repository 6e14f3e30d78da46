"""Data that tests of erasure share."""

from __future__ import annotations

# Spellings of URLs, hosts and ids in metadata: (URL or id, metadata of the document).
SPELLINGS: list[tuple[str, dict[str, str]]] = [
    ("http://blog.example.cz?p=12", {}),
    ("http://blog.example.cz#a", {}),
    ("HTTP://blog.example.cz/x", {}),
    ("http://blog.example.cz./x", {}),
    (" https://Blog.Example.cz:443/x", {}),
    ("http://blog.example.cz/" + "x" * 3_000, {}),
    ("https://žluťoučký.cz/x", {}),
    ("https://xn--luouk-uva4it5a4g.cz/y", {}),
    ("77", {"id": "77", "host": "blog.example.cz"}),
    ("78", {"id": "78", "host": "Žluťoučký.cz."}),
    ("79", {"id": "79", "host": "http://blog.example.cz/"}),
    ("a.jsonl#4", {"url": "HTTP://blog.example.cz?p=13"}),
]
