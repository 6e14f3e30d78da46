"""`thresher simulate`: policies repeated with other chance, and a picture of their harvests."""

from __future__ import annotations

import json
from pathlib import Path
from statistics import fmean
from typing import Any
from xml.etree import ElementTree

import pytest

from thresher.cli import app
from thresher.config import ConfigError, Policy
from thresher.lab.comparison import repeated
from thresher.lab.record import Record
from thresher.lab.simulate import Terms, area, ideal, simulate
from thresher.lab.toyrecord import record_of
from thresher.lab.toyweb import ToyWeb, seeds

WEB = ToyWeb.papers(hosts=40, pages_per_host=(5, 15))
TOY = ("simulate", "--toyweb", "12", "--policy", "bfs,random")


@pytest.fixture(scope="module")
def record() -> Record:
    return record_of(WEB)


@pytest.fixture(scope="module")
def start(record: Record) -> list[int]:
    return record.find(seeds(WEB)[WEB.target])


def words(svg: Path) -> list[str]:
    return [text for text in ElementTree.fromstring(svg.read_text("utf-8")).itertext() if text.strip()]


def called(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[list[dict[str, Any]], str]:
    app(list(arguments), result_action="return_value")
    out, err = capsys.readouterr()
    return [json.loads(line) for line in out.splitlines()], err


def test_policies_are_told_in_their_order_and_then_the_oracle_and_the_ideal(
    record: Record, start: list[int]
) -> None:
    policies, terms = ["bfs", "spiderling", "host-yield"], Terms(bytes=2_000_000)
    rows = [result.row for result in repeated(record, policies, start, terms)]
    assert [row.policy for row in rows] == [*policies, "oracle", "ideal"]
    assert all(row.runs == 1 and row.area_min == row.area == row.area_max for row in rows)


def test_what_is_repeated_is_the_mean_and_the_range_of_runs_with_other_chance(
    record: Record, start: list[int]
) -> None:
    terms = Terms(bytes=1_000_000, seed=7)
    row, harvest = next(repeated(record, ["random"], start, terms, 3))
    random = Policy(name="random")
    runs = [simulate(record, random, start, terms._replace(seed=seed)) for seed in (7, 8, 9)]
    areas = [area(run, ideal(record)) for run in runs]
    assert len(set(areas)) == 3
    assert (row.runs, row.area_min, row.area_max) == (3, min(areas), max(areas))
    assert row.area == pytest.approx(fmean(areas))
    assert row.text_bytes == pytest.approx(fmean(run.text[-1] for run in runs), abs=1)
    assert harvest.visited.tolist() == runs[0].visited.tolist()


def test_chance_has_no_part_in_what_is_breadth_first(record: Record, start: list[int]) -> None:
    row = next(repeated(record, ["bfs"], start, Terms(bytes=1_000_000), 3)).row
    assert row.area_min == row.area_max == pytest.approx(row.area)


def test_nine_tenths_were_had_only_if_every_run_had_them(record: Record, start: list[int]) -> None:
    random, total = Policy(name="random"), ideal(record).text[-1]
    runs = [simulate(record, random, start, Terms(seed=seed)) for seed in (1, 2)]
    there = [int(run.downloaded[(run.text >= 0.9 * total).argmax()]) for run in runs]
    terms = Terms(bytes=min(there))
    assert max(there) > min(there)
    assert next(repeated(record, ["random"], start, terms, 2)).row.downloaded_for_most is None
    free = next(repeated(record, ["random"], start, Terms(), 2)).row.downloaded_for_most
    assert free == pytest.approx(fmean(there), abs=1)


@pytest.mark.parametrize("times", [0, -1, 10**9])
def test_a_number_of_runs_that_is_none_is_refused(record: Record, start: list[int], times: int) -> None:
    with pytest.raises(ConfigError, match="--repeat"):
        next(repeated(record, ["bfs"], start, Terms(), times))


def test_a_policy_that_is_not_there_is_told_before_any_crawl(record: Record, start: list[int]) -> None:
    with pytest.raises(ConfigError, match="choose from"):
        next(repeated(record, ["bfs", "best"], start, Terms()))


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
    with pytest.raises(ConfigError, match="is not a size"):
        app([*TOY, "--budget", "much"], result_action="return_value")


def test_the_command_draws_harvests_by_bytes_and_with_rests_by_time(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    picture = tmp_path / "harvest.svg"
    _, said = called(capsys, *TOY, "--plot", str(picture), "--json")
    assert str(picture) in said.replace("\n", "")
    assert {"bfs", "random", "oracle", "ideal", "Text for bytes downloaded"} <= set(words(picture))
    assert "Text in time" not in words(picture)
    called(capsys, *TOY, "--plot", str(picture), "--delay", "1", "--connections", "4", "--json")
    assert "Text in time" in words(picture)


def test_a_picture_that_has_no_place_is_told_before_the_crawls(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no directory"):
        app([*TOY, "--plot", str(tmp_path / "nowhere" / "x.svg")], result_action="return_value")
