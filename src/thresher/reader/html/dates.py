"""Parser of dates in common notations that denote a single day and are plausible for a page."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import date, datetime, timedelta

MAX_DATE = 64  # characters
EARLIEST = date(1990, 1, 1).toordinal()  # no page is older than the web
LATEST = 2  # days after the visit: zones, and articles of tomorrow's paper
WIDEST_ZONE = timedelta(hours=14)
DAY = len("2026-03-01")

MONTHS = (
    *("january", "february", "march", "april", "may", "june"),
    *("july", "august", "september", "october", "november", "december"),
)
_YEAR = r"(?P<y>\d{4})(?!\d)"
_DATES = tuple(
    re.compile(form, re.IGNORECASE)
    for form in (
        r"(?P<y>\d{4})([-/. ])(?P<m>\d\d?)\2(?P<d>\d\d?)(?!\d)",
        r"(?P<y>\d{4})(?P<m>\d\d)(?P<d>\d\d)(?=\d{6}(?!\d)|\D|$)",
        rf"(?:[a-z]{{3,9}}\.?,?\s+)?(?P<d>\d\d?)[\s-]+(?P<m>[a-z]{{3,9}})\.?,?[\s-]+{_YEAR}",
        rf"(?:[a-z]{{3,9}},\s+)?(?P<m>[a-z]{{3,9}})\.?\s+(?P<d>\d\d?)(?:st|nd|rd|th)?,?\s+{_YEAR}",
        # Of 14/3/2026 and 3/14/2026 one number must be the day, of 3/3/2026 both are the same.
        rf"(?P<d>1[3-9]|[23]\d)([-/.])(?P<m>\d\d?)\2{_YEAR}",
        rf"(?P<m>\d\d?)([-/.])(?P<d>1[3-9]|[23]\d)\2{_YEAR}",
        rf"(?P<d>(?P<m>\d\d?))([-/.])(?P=m)\3{_YEAR}",
    )
)
_CLOCK = re.compile(
    r"(?:T|,?\s+)(\d\d?):(\d\d)(?::(\d\d)(?:[.,]\d+)?)?\s*(?:(?:GMT|UTC|Z)?([+-]\d\d:?\d\d)|(?:GMT|UTC|Z)\b)",
    re.IGNORECASE,
)
_EPOCH = date(1970, 1, 1).toordinal()


def credible_date(candidates: Iterable[str], now: float) -> str:
    """Return the first date that is plausible for a page visited now, in ISO 8601, or ""."""
    latest = now / 86400 + _EPOCH + LATEST
    for text in candidates:
        moment = _moment(text[:MAX_DATE].strip())
        if moment and EARLIEST <= moment.toordinal() <= latest:
            offset = moment.utcoffset()
            if offset is None or abs(offset) > WIDEST_ZONE or offset.seconds % 60:
                return moment.date().isoformat()  # without a zone, the moment is unknown
            return moment.isoformat(timespec="seconds")
    return ""


def _moment(text: str) -> datetime | None:
    """Parse a date, with time and zone if given, in ISO 8601, RFC 2822 or another unambiguous notation."""
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        found = next((match for form in _DATES if (match := form.match(text))), None)
    if not found:
        return None
    name = found["m"].lower()
    month = next((number for number, month in enumerate(MONTHS, 1) if month.startswith(name)), name)
    day = f"{found['y']}-{month:>02}-{found['d']:>02}"
    clock = _CLOCK.match(text, found.end())
    time = f"T{clock[1]:>02}:{clock[2]}:{clock[3] or '00'}{clock[4] or '+00:00'}" if clock else ""
    for iso in (day + time, day):
        try:
            return datetime.fromisoformat(iso)
        except ValueError:
            continue
    return None
