"""Records of archives, and pages that an English corpus keeps."""

from __future__ import annotations

import gzip

DATE = "2026-03-01T09:30:00Z"
SENTENCES = (
    "The old mill by the river had not been used for many years when the family bought it.",
    "They wanted to know who had built it, and why the wheel was on the wrong side of the house.",
    "Nobody in the village could tell them, but an old teacher had written down what he had heard.",
    "His notes were kept in the library of the town, where they had been found by chance in a box.",
    "It took the whole of the winter to read them, because the writing was small and the paper had faded.",
    "In the end they learnt that the river itself had been moved, and that the mill had stayed where it was.",
    "The people who did this work were paid with bread, and some of their names are still known to us.",
    "There is a small museum now, which is open on Sundays from the spring until the end of October.",
    "Children like it most when the water is let in and the great stones begin to turn with a deep sound.",
    "If you want to see it you should come early, for there is not much room and the road is narrow.",
    "What the teacher could not have known is that two more mills had stood further down the valley.",
    "They were taken away by the flood of that year, and only the walls in the garden are left of them.",
)


def paragraphs(number: int) -> list[str]:
    """Return the paragraphs of a page, slightly different for each number."""
    turn = number % len(SENTENCES)
    sentences = [*SENTENCES[turn:], *SENTENCES[:turn]]
    parts = [" ".join(sentences[at : at + 4]) for at in range(0, len(sentences), 4)]
    return [f"{parts[0]} This was in the year {1000 + number}, as far as we know.", *parts[1:]]


def page(number: int, head: str = "") -> bytes:
    """Return an English page that a corpus keeps."""
    text = "".join(f"<p>{paragraph}</p>\n" for paragraph in paragraphs(number))
    style = "<style>" + "p { margin: 1em; } " * 50 + "</style>"
    top = f"<meta charset=utf-8><title>Mill {number}</title>{head}{style}"
    return f"<!doctype html><html><head>{top}</head><body>{text}</body></html>".encode()


def record(
    kind: str, url: str, block: bytes, mime: str = "application/http; msgtype=response", **fields: str
) -> bytes:
    """Return a WARC record; `version` and `content_length` replace the correct values."""
    version = fields.pop("version", "1.1")
    length = fields.pop("content_length", str(len(block)))
    lines = [
        f"WARC/{version}",
        f"WARC-Type: {kind}",
        f"WARC-Target-URI: {url}",
        f"WARC-Date: {fields.pop('date', DATE)}",
        "WARC-Record-ID: <urn:uuid:00000000-0000-4000-8000-000000000000>",
        *(f"{name.replace('_', '-')}: {value}" for name, value in fields.items()),
        f"Content-Type: {mime}",
        f"Content-Length: {length}",
    ]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + block + b"\r\n\r\n"


def http(body: bytes, *headers: str, status: str = "200 OK", mime: str = "text/html") -> bytes:
    """Return a reply in HTTP."""
    lines = [f"HTTP/1.1 {status}", f"Content-Type: {mime}", *headers]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def response(url: str, body: bytes, *headers: str, status: str = "200 OK", **fields: str) -> bytes:
    """Return a WARC record with a reply."""
    return record("response", url, http(body, *headers, status=status), **fields)


def arc(url: str, block: bytes, length: object = None) -> bytes:
    """Return a record of an ARC file."""
    size = len(block) if length is None else length
    return f"{url} 192.0.2.7 20260301093000 text/html {size}\n".encode() + block + b"\n"


def packed(*records: bytes) -> bytes:
    """Return records, each compressed as a gzip member."""
    return b"".join(gzip.compress(each, mtime=0) for each in records)
