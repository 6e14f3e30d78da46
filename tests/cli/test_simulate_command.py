"""`thresher simulate`: repeated runs of policies, and a picture of their harvests."""

from __future__ import annotations

import json
from pathlib import Path
from statistics import fmean
from typing import Any
from xml.etree import ElementTree

import pytest

from thresher.cli import app
from thresher.config import PolicySettings
from thresher.errors import UsageError
from thresher.simulation.comparison import repeated
from thresher.simulation.record import CrawlRecord
from thresher.simulation.simulate import SimulationTerms, area, ideal, simulate
from thresher_lab.toyweb import ToyWeb, seeds
from thresher_lab.toyweb.simulation_record import record_of

WEB = ToyWeb.papers(hosts=40, pages_per_host=(5, 15))
TOY = ("simulate", "--toyweb", "12", "--policy", "bfs,random")


@pytest.fixture(scope="module")
def record() -> CrawlRecord:
    return record_of(WEB)


@pytest.fixture(scope="module")
def start(record: CrawlRecord) -> list[int]:
    return record.find(seeds(WEB)[WEB.target])


def words(svg: Path) -> list[str]:
    return [text for text in ElementTree.fromstring(svg.read_text("utf-8")).itertext() if text.strip()]


def called(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[list[dict[str, Any]], str]:
    app(list(arguments), result_action="return_value")
    out, err = capsys.readouterr()
    return [json.loads(line) for line in out.splitlines() if line.startswith("{")], out + err


def test_policies_come_in_their_order_then_the_oracle_and_the_ideal(
    record: CrawlRecord, start: list[int]
) -> None:
    policies, terms = ["bfs", "spiderling", "host-yield"], SimulationTerms(bytes=2_000_000)
    rows = [result.row for result in repeated(record, policies, start, terms)]
    assert [row.policy for row in rows] == [*policies, "oracle", "ideal"]
    assert all(row.runs == 1 and row.area_min == row.area == row.area_max for row in rows)


def test_repeated_runs_give_the_mean_and_the_range_over_random_seeds(
    record: CrawlRecord, start: list[int]
) -> None:
    terms = SimulationTerms(bytes=1_000_000, seed=7)
    row, harvest = next(repeated(record, ["random"], start, terms, 3))
    random = PolicySettings(name="random")
    runs = [simulate(record, random, start, terms._replace(seed=seed)) for seed in (7, 8, 9)]
    areas = [area(run, ideal(record)) for run in runs]
    assert len(set(areas)) == 3
    assert (row.runs, row.area_min, row.area_max) == (3, min(areas), max(areas))
    assert row.area == pytest.approx(fmean(areas))
    assert row.text_bytes == pytest.approx(fmean(run.text[-1] for run in runs), abs=1)
    assert harvest.visited.tolist() == runs[0].visited.tolist()


def test_breadth_first_does_not_depend_on_random_numbers(record: CrawlRecord, start: list[int]) -> None:
    row = next(repeated(record, ["bfs"], start, SimulationTerms(bytes=1_000_000), 3)).row
    assert row.area_min == row.area_max == pytest.approx(row.area)


def test_the_download_for_nine_tenths_needs_every_run_to_reach_them(
    record: CrawlRecord, start: list[int]
) -> None:
    random, total = PolicySettings(name="random"), ideal(record).text[-1]
    runs = [simulate(record, random, start, SimulationTerms(seed=seed)) for seed in (1, 2)]
    there = [int(run.downloaded[(run.text >= 0.9 * total).argmax()]) for run in runs]
    terms = SimulationTerms(bytes=min(there))
    assert max(there) > min(there)
    assert next(repeated(record, ["random"], start, terms, 2)).row.downloaded_for_most is None
    free = next(repeated(record, ["random"], start, SimulationTerms(), 2)).row.downloaded_for_most
    assert free == pytest.approx(fmean(there), abs=1)


@pytest.mark.parametrize("times", [0, -1, 10**9])
def test_an_invalid_number_of_runs_is_refused(record: CrawlRecord, start: list[int], times: int) -> None:
    with pytest.raises(UsageError, match="--repeat"):
        next(repeated(record, ["bfs"], start, SimulationTerms(), times))


def test_an_unknown_policy_is_refused_before_any_simulation(record: CrawlRecord, start: list[int]) -> None:
    with pytest.raises(UsageError, match="choose one of"):
        next(repeated(record, ["bfs", "best"], start, SimulationTerms()))


def test_the_command_repeats(capsys: pytest.CaptureFixture[str]) -> None:
    rows, _ = called(capsys, *TOY, "--repeat", "2", "--json")
    assert [(row["policy"], row["runs"]) for row in rows] == [
        *(("bfs", 2), ("random", 2), ("oracle", 1), ("ideal", 1))
    ]
    assert rows[1]["area_min"] < rows[1]["area"] < rows[1]["area_max"]
    _, shown = called(capsys, *TOY, "--repeat", "2")
    assert f"{rows[1]['area_min']:.3f}–{rows[1]['area_max']:.3f}" in shown


def test_the_command_keeps_to_its_budget(capsys: pytest.CaptureFixture[str]) -> None:
    rows, _ = called(capsys, *TOY, "--budget", "200kB", "--json")
    largest = 100_000  # a page
    assert all(200_000 <= row["downloaded"] < 200_000 + largest for row in rows if row["policy"] != "ideal")
    with pytest.raises(UsageError, match="is not a size"):
        app([*TOY, "--budget", "much"], result_action="return_value")


def test_the_command_draws_harvests_by_bytes_and_with_delays_by_time(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    picture = tmp_path / "harvest.svg"
    _, messages = called(capsys, *TOY, "--plot", str(picture), "--json")
    assert str(picture) in messages.replace("\n", "")
    assert {"bfs", "random", "oracle", "ideal", "Text for bytes downloaded"} <= set(words(picture))
    assert "Text in time" not in words(picture)
    called(capsys, *TOY, "--plot", str(picture), "--delay", "1", "--connections", "4", "--json")
    assert "Text in time" in words(picture)


def test_a_picture_in_a_missing_directory_is_refused_before_simulations(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is not a directory; create it"):
        app([*TOY, "--plot", str(tmp_path / "nowhere" / "x.svg")], result_action="return_value")
