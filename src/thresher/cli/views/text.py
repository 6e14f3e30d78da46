"""Text for people: harmless, in the right number, in sizes and times that can be read at a glance."""

from __future__ import annotations

from rich.cells import cell_len, set_cell_size
from rich.filesize import decimal

ELLIPSIS = "…"


def harmless(text: str, width: int = 0) -> str:
    r"""Return text from the web without control, format and line characters, cut to a width.

    >>> harmless("\x1b[31mred\u202e")
    '�[31mred�'
    """
    clean = "".join(c if c.isprintable() else " " if c.isspace() else "�" for c in text)
    return clean if not width or len(clean) <= width else clean[: width - 1] + ELLIPSIS


def shortened(text: str, width: int) -> str:
    """Return text that fits a number of terminal columns: words are cut at the end, URLs in the middle.

    >>> shortened("https://example.cz/news/2026/page.html", 20), shortened("a long title", 8)
    ('https://e…/page.html', 'a long …')
    """
    if cell_len(text) <= width:
        return text
    if " " in text:
        return set_cell_size(text, width - 1) + ELLIPSIS
    head = set_cell_size(text, (width - 1) // 2)
    tail = text[len(text) - (width - 1 - cell_len(head)) :]
    while cell_len(tail) > width - 1 - cell_len(head):
        tail = tail[1:]
    return head + ELLIPSIS + tail


def amount(count: float) -> str:
    """Return a number of bytes with its unit.

    >>> amount(1_400_000)
    '1.4 MB'
    """
    return decimal(round(count))


def span(seconds: float) -> str:
    """Return seconds in hours, minutes and seconds.

    >>> span(7_500), span(61), span(0.4)
    ('2 h 05 min', '1 min 01 s', '0 s')
    """
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"
