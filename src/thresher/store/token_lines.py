"""Token lines: the form in which tokens are passed between annotators, imports, index and exports.

They are UTF-8, and each ends in a line feed.

- A token is its values joined by TAB, the word first: `dogs TAB NNS TAB dog`.
- A structure opens with the byte 0x02, its name and its attributes, each after a TAB: `0x02 s TAB id=7`.
- It closes with the byte 0x03 and its name: `0x03 s`.

There are no other control characters (C0, DEL, C1, U+2028, U+2029), and everything is in Unicode's NFC. The tag of
the document itself is not among its lines. A structure holds at least one token and is never nested in one of its
own name; it may overlap others. Between two tokens, closing lines come before opening ones.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

OPENS, CLOSES = "\x02", "\x03"
REPLACEMENT = "\ufffd"
LINE_FEED = 10
PORTION = 1 << 20  # bytes counted together

_SPACES = re.compile(r"\r\n|[\t\n\r]")
# Lone surrogates are among them, since UTF-8 cannot hold them.
_FORBIDDEN = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
_NOT_IN_NAMES = re.compile(r"[\s=]")


class Token(NamedTuple):
    """A token: its word, then its other values."""

    values: tuple[str, ...]


class OpenTag(NamedTuple):
    """The beginning of a structure."""

    name: str
    attributes: dict[str, str]


class CloseTag(NamedTuple):
    """The end of a structure."""

    name: str


def clean(text: str) -> str:
    r"""Return a text as a value: in NFC, with spaces for TAB and line ends, and U+FFFD for other controls.

    >>> clean("a\tb\x00"), clean("e\u0301")
    ('a b�', 'é')
    """
    if text.isascii() and text.isprintable():
        return text
    if _FORBIDDEN.search(text):
        text = _FORBIDDEN.sub(REPLACEMENT, _SPACES.sub(" ", text))
    return unicodedata.normalize("NFC", text)


def clean_name(text: str) -> str:
    """Return a text as a name of a structure or attribute: clean, not empty, without spaces and equals signs.

    >>> clean_name("date of birth"), clean_name("")
    ('date_of_birth', '_')
    """
    if text.isascii() and text.isidentifier():
        return text
    return _NOT_IN_NAMES.sub("_", clean(text)) or "_"


def token(values: Sequence[str]) -> bytes:
    r"""Return the line of a token.

    >>> token(["dogs", "NNS", "dog"])
    b'dogs\tNNS\tdog\n'
    """
    line = "\t".join(values)
    text = "".join(values)
    if not text.isprintable() or not (text.isascii() or unicodedata.is_normalized("NFC", line)):
        line = "\t".join(map(clean, values))
    return f"{line}\n".encode()


def opening(name: str, attributes: Mapping[str, str]) -> bytes:
    r"""Return the line that opens a structure.

    >>> opening("s", {"id": "7"})
    b'\x02s\tid=7\n'
    """
    fields = "".join([f"\t{clean_name(key)}={clean(value)}" for key, value in attributes.items()])
    return f"{OPENS}{clean_name(name)}{fields}\n".encode()


def closing(name: str) -> bytes:
    r"""Return the line that closes a structure.

    >>> closing("s")
    b'\x03s\n'
    """
    return f"{CLOSES}{clean_name(name)}\n".encode()


def count_ends(data: bytes) -> int:
    """Return the number of line feeds; bytes.count takes six times as long if there are many."""
    array = np.frombuffer(data, np.uint8)
    portions = (array[at : at + PORTION] for at in range(0, len(array), PORTION))
    return sum(int(np.count_nonzero(portion == LINE_FEED)) for portion in portions)


def read(lines: bytes) -> Iterator[Token | OpenTag | CloseTag]:
    """Yield the lines as records, for tests and small jobs."""
    for line in lines.decode().split("\n")[:-1]:
        if line.startswith(OPENS):
            name, *fields = line[1:].split("\t")
            pairs = (field.partition("=") for field in fields)
            yield OpenTag(name, {key: value for key, _, value in pairs})
        elif line.startswith(CLOSES):
            yield CloseTag(line[1:])
        else:
            yield Token(tuple(line.split("\t")))
