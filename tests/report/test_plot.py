"""Charts as SVG: well-formed for any numbers and names, with readable ticks."""

from __future__ import annotations

import math
import re
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from thresher.report.harvest_plot import harvest_plot
from thresher.report.plot import COLOURS, Axis, Chart, Series, draw
from thresher.simulation.simulate import Harvest

SVG = "{http://www.w3.org/2000/svg}"

numbers = st.floats(allow_nan=True, allow_infinity=True)
texts = st.text(max_size=80)
axes = st.builds(
    Axis,
    label=texts,
    unit=st.sampled_from(["", "bytes", "seconds", "share"]),
    log=st.booleans(),
    reach=st.sampled_from([(), (0.0,), (0.0, 1.0)]),
)


@st.composite
def some_series(drawn: st.DrawFn) -> Series:
    points = drawn(st.lists(st.tuples(numbers, numbers), max_size=12))
    shape = drawn(st.sampled_from(["line", "dashes", "points", "rule"]))
    return Series(drawn(texts), [x for x, _ in points], [y for _, y in points], shape)


charts = st.builds(Chart, title=texts, x=axes, y=axes, series=st.lists(some_series(), max_size=10))


def parse(svg: str) -> ElementTree.Element:
    return ElementTree.fromstring(svg)


def words(svg: str) -> list[str]:
    return [text.text or "" for text in parse(svg).iter(f"{SVG}text")]


def paths(svg: str) -> list[str]:
    return [path.attrib["d"] for path in parse(svg).iter(f"{SVG}path")]


def chart(series: list[Series], x: Axis = Axis(), y: Axis = Axis(), title: str = "") -> str:  # noqa: B008
    return draw([Chart(title, x, y, series)])


def one(x: list[float], y: list[float], axis: Axis) -> list[str]:
    return words(chart([Series("a", x, y)], axis, Axis(unit="share")))


@settings(max_examples=120)
@given(st.lists(charts, max_size=3))
@example([Chart("\x00\ud800\ufffe", Axis(), Axis(), [Series("]]>&<\x1b", [1.0], [2.0])])])
@example([Chart("", Axis(), Axis(), [Series("", [5e-324, 0.0], [1e-310, 1.7e308])])])
@example([Chart("", Axis(), Axis(), [Series("", [1.0, 1.0 + 2e-16], [-1e100, 1e100])])])
@example([Chart("", Axis(log=True), Axis(log=True), [Series("", [1e-100, 1e100], [1e-100, 1e100])])])
def test_any_numbers_and_names_give_a_picture(drawn_charts: list[Chart]) -> None:
    svg = draw(drawn_charts)
    parse(svg)
    for path in paths(svg):
        places = [float(number) for number in re.findall(r"-?[\d.]+(?:e[+-]?\d+)?", path)]
        assert places and all(math.isfinite(place) for place in places)
        assert not re.search("nan|inf", path)
    assert len(svg) < 200_000


def test_names_and_titles_are_text_and_never_markup() -> None:
    nasty = '<script>alert("x")</script> & ]]>'
    svg = chart([Series(nasty, [1], [1]), Series("b", [2], [2])], Axis(nasty), Axis(nasty), nasty)
    assert words(svg).count(nasty) == 4
    assert not list(parse(svg).iter(f"{SVG}script"))


@pytest.mark.parametrize(
    ("axis", "x", "ticks"),
    [
        (Axis(unit="bytes"), [0, 30e6], ["0 B", "10 MB", "20 MB", "30 MB"]),
        (Axis(unit="bytes"), [0, 2_000_000], ["0 B", "500 kB", "1 MB", "1.5 MB", "2 MB"]),
        (Axis(unit="seconds"), [0, 5 * 3600], ["0 h", "1 h", "2 h", "3 h", "4 h", "5 h"]),
        (Axis(unit="share"), [0, 0.06], ["0 %", "2 %", "4 %", "6 %"]),
        (Axis(), [0, 6_000], ["0", "2,000", "4,000", "6,000"]),
        (Axis(), [0, 60_000], ["0", "20 k", "40 k", "60 k"]),
        (Axis(), [-0.002, 0.002], ["-0.002", "-0.001", "0", "0.001", "0.002"]),
        (
            Axis(unit="bytes", log=True),
            [1e3, 1e9],
            ["1 kB", "10 kB", "100 kB", "1 MB", "10 MB", "100 MB", "1 GB"],
        ),
        (Axis(log=True), [1, 10], ["1", "2", "5", "10"]),
    ],
)
def test_ticks_are_round_numbers_in_view(axis: Axis, x: list[float], ticks: list[str]) -> None:
    shown = one(x, [0, 1], axis)
    assert shown[2 : 2 + len(ticks)] == ticks  # after the title and the label of the other axis
    assert len(ticks) < 9


def test_a_decade_is_as_wide_as_the_next_on_a_log_axis() -> None:
    svg = chart([Series("a", [1, 10, 100], [1, 2, 3])], Axis(log=True))
    line = next(path for path in paths(svg) if path.count("L") == 2)
    places = [float(point.split()[0].lstrip("M")) for point in line.split("L")]
    assert places[1] - places[0] == pytest.approx(places[2] - places[1], abs=0.2)


def test_values_that_cannot_be_drawn_are_left_out_and_an_empty_chart_is_labelled() -> None:
    assert "nothing to show" in words(chart([Series("a", [math.nan, math.inf, 1e200], [1, 1, 1])]))
    assert "nothing to show" in words(chart([Series("a", [0, -1], [1, 1])], Axis(log=True)))
    assert "nothing to show" in words(chart([]))
    assert "nothing to show" not in words(chart([Series("a", [1], [1])]))


def test_the_series_of_a_chart_have_colours_and_names_of_their_own() -> None:
    svg = chart([Series(f"name {n}", [0, 1], [n, n]) for n in range(10)])
    strokes = {
        (path.attrib["stroke"], path.attrib.get("stroke-dasharray")) for path in parse(svg).iter(f"{SVG}path")
    }
    assert len({stroke for stroke in strokes if stroke[0] in COLOURS}) == 10
    assert [word for word in words(svg) if word.startswith("name")] == [f"name {n}" for n in range(10)]


def test_a_rule_does_not_widen_the_axes_and_is_named_where_it_leaves() -> None:
    points = Series("a", [0, 10], [0, 10], "points")
    alone, ruled = (chart([points, *more]) for more in ([], [Series("limit", [0, 1e6], [5, 5], "rule")]))
    assert [word for word in words(ruled) if word != "limit"] == words(alone)
    assert "limit" in words(chart([points, Series("limit", [0, 8], [5, 5], "rule")]))


def test_a_million_points_make_no_large_picture_and_keep_their_peaks() -> None:
    x = np.arange(1_000_000)
    y = np.sin(x / 1000.0)
    y[567_890] = 9.0
    svg = chart([Series("line", x, y), Series("points", x, y, "points")])
    assert len(svg) < 1_500_000
    line, again = (chart([Series("line", x, values)]) for values in (y, np.where(y > 8, 0.0, y)))
    assert len(line) < 100_000
    assert line != again


def test_the_background_is_white() -> None:
    first = next(iter(parse(chart([])).iter(f"{SVG}rect")))
    assert first.attrib == {"width": "100%", "height": "100%", "fill": "#ffffff"}


def harvest(text: list[int], seconds: list[float]) -> Harvest:
    return Harvest(
        np.arange(len(text)), np.array(seconds), np.arange(1, len(text) + 1) * 1000, np.array(text)
    )


def test_harvests_are_drawn_by_bytes_and_by_time_beside_the_ideal() -> None:
    best = harvest([900, 1800], [0.0, 0.0])
    svg = harvest_plot(
        [("bfs", harvest([0, 900, 1800], [1.0, 2.0, 3.0])), ("oracle", harvest([900, 1800], [0.0, 0.0]))],
        best,
    )
    shown = words(svg)
    assert [shown.count(name) for name in ("bfs", "oracle", "ideal")] == [2, 2, 1]  # time: bfs alone, unnamed
    assert {"Text for bytes downloaded", "Yield along the way", "Text in time"} <= set(shown)


def test_empty_harvests_give_a_picture() -> None:
    nothing = harvest([], [])
    assert "nothing to show" not in words(harvest_plot([], nothing))  # the ideal of nothing is a point
    assert len(words(harvest_plot([("bfs", nothing)], nothing))) > 3
