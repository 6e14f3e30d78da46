"""Lines: the form in which tokens travel; some open a structure, some close one, all others are tokens."""

from __future__ import annotations

OPENS, CLOSES = "\x02", "\x03"
