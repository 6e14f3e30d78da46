"""Plot of simulated crawls: text by bytes downloaded, yield along the way, and text in time."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from thresher.report.plot import Axis, Chart, Series, draw
from thresher.simulation.simulate import Harvest

PORTIONS = 40  # of a crawl, each with a point of the yield


def harvest_plot(harvests: Sequence[tuple[str, Harvest]], best: Harvest) -> str:
    """Draw named harvests and the ideal as SVG: text against bytes downloaded, yields, and text against time.

    A harvest without times, such as the oracle's, is left out of the last chart.
    """
    text = Axis("text kept", "bytes", reach=(0.0,))
    timed = [(name, harvest) for name, harvest in harvests if harvest.seconds[-1:].sum() > 0]
    furthest = max((float(harvest.downloaded[-1:].sum()) for _, harvest in harvests), default=0.0)
    charts = [
        Chart(
            "Text for bytes downloaded",
            Axis("downloaded", "bytes", reach=(0.0,)),
            text,
            [_by_bytes(name, harvest) for name, harvest in harvests] + [_ideal(best, furthest)],
        ),
    ]
    if furthest:
        charts.append(
            Chart(
                "Yield along the way",
                Axis("downloaded", "bytes", reach=(0.0,)),
                Axis("text kept per byte downloaded", reach=(0.0,)),
                [_yields(name, harvest) for name, harvest in harvests],
            )
        )
    if timed:
        charts.append(
            Chart(
                "Text in time",
                Axis("time of the crawl", "seconds", reach=(0.0,)),
                text,
                [
                    Series(name, np.append(0.0, harvest.seconds), np.append(0, harvest.text))
                    for name, harvest in timed
                ],
            )
        )
    return draw(charts)


def _by_bytes(name: str, harvest: Harvest) -> Series:
    return Series(name, np.append(0, harvest.downloaded), np.append(0, harvest.text))


def _yields(name: str, harvest: Harvest) -> Series:
    """Return the yield of each of many equal portions of the download, at its middle."""
    line = _by_bytes(name, harvest)
    bounds = np.linspace(0.0, float(harvest.downloaded[-1:].sum()), PORTIONS + 1)
    if not bounds[-1]:
        return Series(name, [], [])
    text = np.interp(bounds, np.asarray(line.x, np.float64), np.asarray(line.y, np.float64))
    return Series(name, (bounds[1:] + bounds[:-1]) / 2, np.diff(text) / np.diff(bounds))


def _ideal(best: Harvest, furthest: float) -> Series:
    """Return the ideal harvest; after its last page it stays level, as far as the other harvests go."""
    end = max(furthest, float(best.downloaded[-1:].sum()))
    return Series(
        "ideal",
        np.concatenate([[0], best.downloaded, [end]]),
        np.concatenate([[0], best.text, [best.text[-1:].sum()]]),
        "dashes",
    )
