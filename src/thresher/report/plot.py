"""Line and scatter charts as SVG, with axes, readable ticks and a legend, without a plotting library.

Any numbers give a picture. Values that no chart can show (NaN, infinite, beyond 1e100, not positive on a log axis)
are left out. Colours are the palette of Okabe and Ito, which colour-blind people can distinguish, on white.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple
from xml.sax.saxutils import escape

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

# Lengths are in pixels.
WIDTH = 760
LEFT, RIGHT = 78, 26  # beside the plot, for labels of ticks
HEIGHT = 300  # of the plot alone
TITLE_HEIGHT, ROW_HEIGHT = 34, 19  # of a title, of a row of the legend
BELOW = 62  # the plot, for ticks and the label of the axis
LETTER, NARROW, WIDE = 7.2, 4.4, 10.5  # estimated widths of letters, since there is no font to measure with
MAX_NAME_CHARS = 60  # of a name in the legend
MAX_VALUE = 1e100  # larger numbers are not drawn
ROUNDED_POINTS = 5_000  # from this many points on, they are drawn on whole pixels
MAX_PIXEL = 1e5  # coordinates are clipped to this
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#4d4d4d")
DASHES = ("", "7 3", "2 3", "9 3 2 3")  # the next one is used when all colours are
INK, MUTED, GRID = "#222222", "#666666", "#e4e4e4"
FONT = "system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', sans-serif"

_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")

Reals = NDArray[np.float64]
Unit = Literal["", "bytes", "seconds", "share"]
Shape = Literal["line", "dashes", "points", "rule"]


class Axis(Struct, frozen=True):
    """An axis: its label, the unit of its numbers, and its scale."""

    label: str = ""
    unit: Unit = ""
    log: bool = False
    reach: tuple[float, ...] = ()  # numbers that are always in view


class Series(Struct, frozen=True):
    """Points with a name. A rule is a grey line for comparison, named at its end and clipped to the plot."""

    name: str
    x: Sequence[float] | NDArray[np.generic]
    y: Sequence[float] | NDArray[np.generic]
    shape: Shape = "line"


class Chart(Struct, frozen=True):
    """One plot with its axes."""

    title: str
    x: Axis
    y: Axis
    series: Sequence[Series]


def draw(charts: Sequence[Chart]) -> str:
    """Draw charts below each other as an SVG document.

    >>> draw([Chart("Growth", Axis("year"), Axis("pages"), [Series("a", [1, 2], [3, 4])])])[:5]
    '<svg '
    """
    parts: list[str] = []
    top = 8.0
    for chart in charts:
        drawn, height = _chart(chart, top)
        parts += drawn
        top += height
    title = _escaped("; ".join(chart.title for chart in charts))
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {top:.0f}" width="{WIDTH}" '
            f'height="{top:.0f}" role="img" font-family="{FONT}" font-size="12" fill="{INK}">',
            f"<title>{title}</title>",
            '<rect width="100%" height="100%" fill="#ffffff"/>',
            *parts,
            "</svg>\n",
        ]
    )


class _Scale(NamedTuple):
    """The mapping from numbers on an axis to pixels, from `start` to `end`."""

    low: float  # the logarithm on a log axis
    high: float
    log: bool
    start: float
    end: float

    def __call__(self, values: Reals) -> Reals:
        share = ((np.log10(values) if self.log else values) - self.low) / (self.high - self.low)
        places: Reals = np.clip(self.start + share * (self.end - self.start), -MAX_PIXEL, MAX_PIXEL)
        return places


def _chart(chart: Chart, top: float) -> tuple[list[str], float]:
    """Return the elements of a chart that begins at `top`, and its height."""
    points = [_shown(series, chart) for series in chart.series]
    legend, rows = _legend(chart.series, top + TITLE_HEIGHT)
    above = top + TITLE_HEIGHT + rows * ROW_HEIGHT + ROW_HEIGHT
    counted = [both for both, series in zip(points, chart.series, strict=True) if series.shape != "rule"]
    x = _scale(chart.x, [xs for xs, _ in counted], LEFT, WIDTH - RIGHT)
    y = _scale(chart.y, [ys for _, ys in counted], above + HEIGHT, above)
    marks = [
        (series, x(xs), y(ys), style)
        for series, (xs, ys), style in zip(chart.series, points, _styles(chart.series), strict=True)
        if len(xs)
    ]
    parts = [
        f'<text x="{LEFT}" y="{top + 20:.0f}" font-size="16" font-weight="600">{_escaped(chart.title)}</text>',
        *legend,
        f'<text x="{LEFT}" y="{above - 8:.0f}" fill="{MUTED}">{_escaped(chart.y.label)}</text>',
        *_grid(x, y, chart),
        # An inner svg clips its content without an id, which could clash with other pictures on a page.
        f'<svg x="{LEFT}" y="{above:.0f}" width="{WIDTH - LEFT - RIGHT}" height="{HEIGHT}" '
        f'viewBox="{LEFT} {above:.0f} {WIDTH - LEFT - RIGHT} {HEIGHT}" overflow="hidden">',
        *(_mark(*mark) for mark in marks if mark[0].shape == "rule"),
        "</svg>",
        *(_mark(*mark) for mark in marks if mark[0].shape != "rule"),
        *(_name(series.name, xs, ys, x, y) for series, xs, ys, _ in marks if series.shape == "rule"),
    ]
    if not any(len(xs) for xs, _ in counted):
        middle = (LEFT + WIDTH - RIGHT) / 2
        parts.append(
            f'<text x="{middle:.0f}" y="{above + HEIGHT / 2:.0f}" text-anchor="middle">nothing to show</text>'
        )
    return parts, above + HEIGHT + BELOW - top


def _shown(series: Series, chart: Chart) -> tuple[Reals, Reals]:
    """Return the points of a series that can be shown."""
    x, y = np.asarray(series.x, np.float64), np.asarray(series.y, np.float64)
    good = np.ones(len(x), np.bool_)
    for values, axis in ((x, chart.x), (y, chart.y)):
        good &= np.abs(values) <= MAX_VALUE
        if axis.log:
            good &= values >= 1 / MAX_VALUE
    return x[good], y[good]


def _scale(axis: Axis, columns: Sequence[Reals], start: float, end: float) -> _Scale:
    """Return a scale from the lowest to the highest number with a margin; whole decades on a log axis."""
    values = np.concatenate([*columns, np.array(axis.reach, np.float64)])
    if axis.log:
        values = np.log10(values[values > 0])
    low, high = (float(values.min()), float(values.max())) if len(values) else (0.0, 1.0)
    if axis.log:
        low, high = math.floor(low), math.ceil(high)
        return _Scale(low, max(high, low + 1), True, start, end)
    least = 1e-9 * max(abs(low), abs(high), 1e-90)  # smaller differences are not visible
    if high - low < least:
        middle = abs(low) if abs(low) > 1e-90 else 1.0
        low, high = low - middle / 2, high + middle / 2
    margin = 0.03 * (high - low)
    fixed = axis.reach
    return _Scale(
        low if low in fixed else low - margin, high if high in fixed else high + margin, False, start, end
    )


def _ticks(scale: _Scale, axis: Axis) -> Iterator[tuple[float, str]]:
    """Yield the round numbers in view with their labels."""
    if scale.log:
        yield from _decades(scale, axis)
        return
    factor, suffix = _time(scale.high) if axis.unit == "seconds" else (1.0, "")
    step = _round_step((scale.high - scale.low) / factor / 6)
    first, last = math.ceil(scale.low / factor / step), math.floor(scale.high / factor / step)
    for count in range(first, last + 1):
        value = count * step
        yield value * factor, _number(value, step, axis.unit) + suffix


def _decades(scale: _Scale, axis: Axis) -> Iterator[tuple[float, str]]:
    low, high = int(scale.low), int(scale.high)
    every = max(1, math.ceil((high - low) / 8))
    between = (1, 2, 5) if high - low == 1 else (1,)
    for exponent in range(low, high + 1, every):
        for multiple in between:
            if exponent < high or multiple == 1:
                value = multiple * 10.0**exponent
                yield value, _number(value, value, axis.unit)


def _round_step(rough: float) -> float:
    """Return the smallest of 1, 2 or 5 times a power of ten that is at least `rough`."""
    power = 10.0 ** math.floor(math.log10(rough))
    return next(step * power for step in (1, 2, 5, 10) if step * power >= rough * (1 - 1e-9))


def _time(seconds: float) -> tuple[float, str]:
    """Return the length and the label of the unit for a time."""
    for length, name in ((86_400.0, " d"), (3_600.0, " h"), (60.0, " min")):
        if seconds >= 2 * length:
            return length, name
    return 1.0, " s"


def _number(value: float, step: float, unit: Unit) -> str:
    """Format a number as exactly as the step between ticks requires: 1.5 MB, 20 k, 5 %, 0.001."""
    if unit == "share":
        return f"{_digits(100 * value, 100 * step)} %"
    kilo = 1_000.0 if unit == "bytes" else 10_000.0
    tail = "B" if unit == "bytes" else ""
    if kilo <= abs(value) < 1e18:
        power = min(int(math.log10(abs(value)) / 3 + 1e-9), 5)
        return f"{_digits(value / 1000.0**power, step / 1000.0**power)} {'kMGTP'[power - 1]}{tail}"
    return f"{_digits(value, step)} {tail}".rstrip()


def _digits(value: float, step: float) -> str:
    """Format a number with as many digits as distinguish it from its neighbours, without trailing zeros."""
    if not value:
        return "0"
    exact = math.floor(math.log10(abs(value))) - math.floor(math.log10(step) + 1e-9) + 1
    return (
        f"{value:.{min(max(exact, 1), 15)}g}"
        if abs(value) < 1e-4 or abs(value) >= 1e15
        else _fixed(value, step)
    )


def _fixed(value: float, step: float) -> str:
    decimals = min(max(-math.floor(math.log10(step) + 1e-9), 0), 15)
    text = f"{value:,.{decimals}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _grid(x: _Scale, y: _Scale, chart: Chart) -> Iterator[str]:
    """Yield lines and labels at the ticks, and the axes."""
    left, right, bottom, top = x.start, x.end, y.start, y.end
    for value, text in _ticks(x, chart.x):
        place = float(x(np.array([value]))[0])
        yield f'<path d="M{place:.1f} {top:.1f}V{bottom:.1f}" stroke="{GRID}"/>'
        yield f'<text x="{place:.1f}" y="{bottom + 18:.1f}" text-anchor="middle" fill="{MUTED}">{text}</text>'
    for value, text in _ticks(y, chart.y):
        place = float(y(np.array([value]))[0])
        yield f'<path d="M{left:.1f} {place:.1f}H{right:.1f}" stroke="{GRID}"/>'
        yield f'<text x="{left - 8:.1f}" y="{place + 4:.1f}" text-anchor="end" fill="{MUTED}">{text}</text>'
    yield f'<path d="M{left:.1f} {top:.1f}V{bottom:.1f}H{right:.1f}" fill="none" stroke="{MUTED}"/>'
    middle = (left + right) / 2
    yield (
        f'<text x="{middle:.1f}" y="{bottom + 40:.1f}" text-anchor="middle" fill="{MUTED}">'
        f"{_escaped(chart.x.label)}</text>"
    )


def _styles(series: Sequence[Series]) -> Iterator[str]:
    """Yield the style of each series: rules in grey, others in different colours."""
    place = 0
    for one in series:
        if one.shape == "rule":
            yield 'stroke="#8c8c8c" stroke-width="1.2" stroke-dasharray="4 4"'
            continue
        colour = COLOURS[place % len(COLOURS)]
        dash = "6 4" if one.shape == "dashes" else DASHES[place // len(COLOURS) % len(DASHES)]
        place += 1
        if one.shape == "points":
            yield f'stroke="{colour}" stroke-width="5" stroke-linecap="round" stroke-opacity="0.6"'
        else:
            dashed = f' stroke-dasharray="{dash}"' if dash else ""
            yield f'stroke="{colour}" stroke-width="2" stroke-linejoin="round"{dashed}'


def _mark(series: Series, x: Reals, y: Reals, style: str) -> str:
    """Return the path of a series, without points that cannot be seen."""
    if series.shape == "points":
        exact = 1 if len(x) < ROUNDED_POINTS else 0
        places = dict.fromkeys(zip(x.round(exact).tolist(), y.round(exact).tolist(), strict=True))
        path = "".join(f"M{across:g} {down:g}h0" for across, down in places)
    else:
        chosen = _visible(x, y)
        path = "M" + "L".join(
            f"{across:.1f} {down:.1f}" for across, down in zip(x[chosen], y[chosen], strict=True)
        )
        if len(chosen) == 1:
            path += "h0"  # a line of one point is drawn as a dot by its caps
            style = f'{style} stroke-linecap="round"'
    return f'<path d="{path}" fill="none" {style}/>'


def _name(name: str, across: Reals, down: Reals, x: _Scale, y: _Scale) -> str:
    """Return the label of a rule at the place where it leaves the plot."""
    inside = (across >= x.start) & (across <= x.end) & (down >= y.end) & (down <= y.start)
    if not name or not inside.any():
        return ""
    last = int(np.flatnonzero(inside)[-1])
    fits = across[last] - _text_width(name) > x.start
    place = f'x="{across[last] + (-5 if fits else 5):.1f}" y="{max(down[last] - 5, y.end + 11):.1f}"'
    anchor = "end" if fits else "start"
    halo = 'stroke="#ffffff" stroke-width="3" paint-order="stroke"'  # keeps it readable on top of lines
    style = f'text-anchor="{anchor}" font-size="11" fill="{MUTED}" {halo}'
    return f"<text {place} {style}>{_escaped(name)}</text>"


def _visible(x: Reals, y: Reals) -> NDArray[np.int64]:
    """Return the first, lowest, highest and last of the consecutive points in each column of pixels."""
    column = np.floor(x).astype(np.int64)
    starts = np.flatnonzero(np.diff(column, prepend=column[0] - 1))
    chosen: set[int] = set()
    for start, end in zip(starts.tolist(), [*starts[1:].tolist(), len(x)], strict=True):
        part = y[start:end]
        chosen |= {start, end - 1, start + int(part.argmin()), start + int(part.argmax())}
    return np.array(sorted(chosen), np.int64)


def _legend(series: Sequence[Series], top: float) -> tuple[list[str], int]:
    """Return the legend of all series but rules, and its number of rows; none for a single series."""
    if sum(line.shape != "rule" for line in series) < 2:
        return [], 0
    parts: list[str] = []
    across, row = float(LEFT), 0
    for line, style in zip(series, _styles(series), strict=True):
        if line.shape == "rule":
            continue
        name = line.name if len(line.name) <= MAX_NAME_CHARS else line.name[: MAX_NAME_CHARS - 1] + "…"
        width = 30 + _text_width(name) + 18
        if across > LEFT and across + width > WIDTH - RIGHT:
            across, row = float(LEFT), row + 1
        middle = top + row * ROW_HEIGHT + 4
        swatch = (
            f"M{across + 10:.0f} {middle:.0f}h0"
            if line.shape == "points"
            else f"M{across:.0f} {middle:.0f}h24"
        )
        parts.append(f'<path d="{swatch}" fill="none" {style}/>')
        parts.append(f'<text x="{across + 30:.0f}" y="{middle + 4:.0f}">{_escaped(name)}</text>')
        across += width
    return parts, row + 1


def _text_width(text: str) -> float:
    """Return the estimated width of a text."""
    narrow, wide = sum(c in " .,:;!'()[]|-ijlfrtI1" for c in text), sum(c in "mwMW%@…" for c in text)
    return LETTER * (len(text) - narrow - wide) + NARROW * narrow + WIDE * wide


def _escaped(text: str) -> str:
    """Escape markup, and replace characters that XML forbids."""
    return escape(_NOT_XML.sub("�", text))
