"""A corpus is processed in steps, and only tasks whose inputs changed run again."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from support import TESTS, batch_steps
from support.command_line import run as command
from support.corpora.batch_corpora import TEXTS, Here, made, recipe, small_corpus, texts, write_shard
from thresher.pipeline.artifacts import ArtifactStore
from thresher.pipeline.runs import run_log
from thresher.pipeline.runs.collect import collect
from thresher.pipeline.runs.dry import dry_run
from thresher.pipeline.runs.results import processed
from thresher.pipeline.runs.run import PoisonedTask, process
from thresher.pipeline.runs.run_log import locked
from thresher.search.index.manifest import writing
from thresher.store.corpus_files import CorpusError
from thresher.workers.local_engine import LocalEngine


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    return small_corpus(tmp_path)


def test_only_tasks_with_changed_inputs_run_again(corpus: Path) -> None:
    steps = [
        {"step": "filter", "opted_out": True, "max_badness": 4},
        {"step": "support.batch_steps:shout"},
        {"step": "statistics"},
    ]
    recipe(corpus, *steps)
    assert made(process(corpus, Here())) == {"filter": 3, "support.batch_steps:shout": 3, "statistics": 4}
    assert made(process(corpus, Here())) == {}
    # A change that lets the same documents through changes nothing for later steps.
    recipe(corpus, {"step": "filter", "opted_out": True, "max_badness": 4.5}, *steps[1:])
    assert made(process(corpus, Here())) == {"filter": 3}
    # A change of one shard affects only the artifacts that build on it.
    recipe(
        corpus, {"step": "filter", "opted_out": True, "max_badness": 4.5, "not_hosts": ["h2.*"]}, *steps[1:]
    )
    assert made(process(corpus, Here())) == {"filter": 3, "support.batch_steps:shout": 1, "statistics": 2}
    # The artifacts of the first recipe still exist.
    recipe(corpus, *steps)
    assert made(process(corpus, Here())) == {}


def test_a_step_with_a_new_version_runs_again(corpus: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recipe(corpus, {"step": "support.batch_steps:same"}, {"step": "statistics"})
    process(corpus, Here())
    monkeypatch.setattr(batch_steps.same, "version", 2)
    assert dry_run(corpus)[0].why == "version 1 became 2"
    assert made(process(corpus, Here())) == {"support.batch_steps:same": 3}


def test_new_documents_make_new_artifacts_and_no_others(corpus: Path) -> None:
    recipe(corpus, {"step": "support.batch_steps:shout"})
    process(corpus, Here())
    write_shard(corpus, 3, ["eight"])
    run = process(corpus, Here())
    assert made(run) == {"support.batch_steps:shout": 1}
    assert texts(corpus, run)[-1] == ["EIGHT!"]


def test_documents_of_an_open_segment_are_processed(corpus: Path) -> None:
    recipe(corpus, {"step": "support.batch_steps:shout"})
    process(corpus, Here())
    write_shard(corpus, 3, ["eight"], is_sealed=False)
    run = process(corpus, Here())
    assert made(run) == {"source": 1, "support.batch_steps:shout": 1}
    assert texts(corpus, run)[-1] == ["EIGHT!"]
    assert made(process(corpus, Here())) == {}


def test_a_run_can_end_after_a_step(corpus: Path) -> None:
    recipe(corpus, {"step": "filter", "opted_out": True}, {"step": "statistics"})
    assert made(process(corpus, Here(), last_step="filter")) == {"filter": 3}
    with pytest.raises(CorpusError, match="the recipe has no step 'x'; it has filter, statistics"):
        process(corpus, Here(), last_step="x")


def test_a_task_that_fails_in_every_attempt_is_given_up_until_a_retry_is_requested(corpus: Path) -> None:
    repaired = corpus / "repaired"
    recipe(
        corpus,
        {"step": "support.batch_steps:poison", "word": "five", "repaired": str(repaired)},
        {"step": "statistics"},
    )
    engine = Here()
    with pytest.raises(
        PoisonedTask, match=r"1 task of support\.batch_steps:poison failed in every attempt"
    ) as raised:
        process(corpus, engine)
    assert len(engine.calls) == 5, "the others are made, and the failing one is tried three times"
    (failure,) = raised.value.failures
    assert failure.fault == "ValueError: five cannot be processed"
    assert "it is the word five" in failure.attempts[0].log
    assert run_log.runs(corpus)[-1].state == "failed"
    engine = Here()
    with pytest.raises(PoisonedTask):
        process(corpus, engine)
    assert engine.calls == []
    repaired.touch()
    run = process(corpus, Here(), retry_failed=True)
    assert made(run) == {"support.batch_steps:poison": 1, "statistics": 4}
    assert not list((corpus / "runs" / "failed").iterdir())


def test_a_process_that_dies_costs_one_attempt(corpus: Path) -> None:
    recipe(corpus, {"step": "support.batch_steps:deadly_once", "mark": str(corpus / "mark")})
    engine = LocalEngine(2)
    try:
        run = process(corpus, engine)
    finally:
        engine.close()
    assert sorted(artifact.attempts for artifact in run.steps[-1].artifacts) == [1, 1, 2]
    assert texts(corpus, run) == TEXTS
    (failed,) = [artifact for artifact in run.steps[-1].artifacts if artifact.attempts == 2]
    assert failed.log == "", "it is the log of the successful attempt"


def test_the_number_of_processes_makes_no_difference(
    corpus: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    steps = [
        {"step": "filter", "opted_out": True, "max_badness": 4},
        {"step": "exact_duplicates"},
        {"step": "statistics"},
    ]
    recipe(corpus, *steps)
    expected = [step.outputs for step in process(corpus, Here()).steps]
    for count in (1, 2):
        other = tmp_path_factory.mktemp("other")
        for number, some in enumerate(TEXTS):
            write_shard(other, number, some)
        recipe(other, *steps)
        engine = LocalEngine(count)
        try:
            assert [step.outputs for step in process(other, engine).steps] == expected
        finally:
            engine.close()


KILLED = """
import os, signal, sys
from pathlib import Path
steps = int(sys.argv[2])

def step(*_):
    global steps
    steps -= 1
    if steps < 0:
        os.kill(os.getpid(), signal.SIGKILL)

sys.addaudithook(lambda event, _: step() if event in ("os.rename", "os.mkdir", "shutil.rmtree") else None)
from support.corpora.batch_corpora import Here
from thresher.pipeline.runs.run import process
process(Path(sys.argv[1]), Here())
"""


@pytest.mark.slow
@pytest.mark.faults
def test_a_kill_at_any_moment_loses_nothing(corpus: Path) -> None:
    recipe(
        corpus,
        {"step": "filter", "opted_out": True, "max_badness": 4},
        {"step": "exact_duplicates", "partitions": 2},
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(TESTS), *sys.path])}
    deaths = 0
    for steps in range(2, 200, 13):
        ended = subprocess.run(
            [sys.executable, "-c", KILLED, str(corpus), str(steps)], env=environment, check=False, timeout=60
        )
        if ended.returncode == 0:
            break
        assert ended.returncode == -signal.SIGKILL
        deaths += 1
    assert deaths >= 2
    run = process(corpus, Here())
    assert texts(corpus, run) == [["one", "two"], ["four", "five"], ["six"]]
    left = {path.name for path in (corpus / "runs" / "pieces").glob("*/*")}
    assert left == run.keys


def test_a_dry_run_lists_the_first_stage_with_the_reason(corpus: Path) -> None:
    recipe(corpus, {"step": "filter", "opted_out": True}, {"step": "statistics"})
    (first,) = dry_run(corpus)
    assert (first.step, first.missing, first.total, first.why) == ("filter", 3, 3, "it has not run before")
    process(corpus, Here())
    assert dry_run(corpus) == []
    recipe(corpus, {"step": "filter", "opted_out": True, "min_chars": 4}, {"step": "statistics"})
    assert dry_run(corpus)[0].why == "other parameters: min_chars"
    recipe(corpus, {"step": "filter", "opted_out": True}, {"step": "statistics"})
    write_shard(corpus, 3, ["eight"])
    (new,) = dry_run(corpus)
    assert (new.missing, new.total, new.why) == (1, 4, "other inputs")


def test_a_dry_run_writes_nothing_into_a_corpus_without_runs(corpus: Path) -> None:
    recipe(corpus, {"step": "statistics"})
    assert dry_run(corpus)[0].step == "statistics"
    assert not (corpus / "runs").exists()


def test_runs_are_recorded_and_can_be_compared(corpus: Path) -> None:
    recipe(corpus, {"step": "filter", "opted_out": True, "min_chars": 4})
    process(corpus, Here())
    recipe(corpus, {"step": "filter", "opted_out": True, "min_chars": 3}, {"step": "statistics"})
    write_shard(corpus, 3, ["eight"])
    process(corpus, Here())
    first, second = run_log.runs(corpus)
    assert first.inputs.keys() == {f"docs-{number:05d}.parquet" for number in range(3)}
    found = {(one.kind, one.name): (one.before, one.after) for one in run_log.changes(first, second)}
    assert found["input", "docs-00003.parquet"][0] == ""
    assert found["parameter", "filter.min_chars"] == ("4", "3")
    assert found["count", "filter.documents"] == ("4", "10")
    assert found["step", "statistics"] == ("", "there")
    assert ("output", "filter") in found
    assert run_log.changes(second, second) == []


def test_old_results_stay_until_garbage_collection(corpus: Path) -> None:
    recipe(corpus, {"step": "support.batch_steps:shout"})
    process(corpus, Here())
    recipe(corpus, {"step": "support.batch_steps:shout", "sign": "?"})
    process(corpus, Here())
    assert collect(corpus, runs=2).artifacts == 0
    planned = collect(corpus, dry_run=True)
    assert (planned.artifacts, planned.kept) == (3, 3)
    assert collect(corpus) == planned
    assert made(process(corpus, Here())) == {}
    recipe(corpus, {"step": "support.batch_steps:shout"})
    assert made(process(corpus, Here())) == {"support.batch_steps:shout": 3}


def test_the_results_of_a_run_are_a_corpus(corpus: Path) -> None:
    with pytest.raises(CorpusError, match="has no finished run; make one: thresher process"):
        processed(corpus)
    recipe(corpus, {"step": "exact_duplicates"}, {"step": "statistics"})
    process(corpus, Here())
    left = ["one", "two", "three", "four", "five", "six", "seven"]
    assert processed(corpus).documents(["text"])["text"].to_pylist() == left
    assert [document.text for document in processed(corpus)] == left
    code, out, _ = command("export", corpus, "--format", "jsonl", "--processed", "--opted-out")
    assert (code, [json.loads(line)["text"] for line in out.splitlines()]) == (0, left)
    recipe(corpus, {"step": "statistics"})
    process(corpus, Here())
    assert len(processed(corpus)) == 9, "these are files that no step has written"
    assert len(processed(corpus, 1)) == 7
    collect(corpus)
    with pytest.raises(CorpusError, match="the results of run 1 were removed"):
        processed(corpus, 1)


def test_the_order_of_the_corpus_is_kept_with_open_segments(corpus: Path) -> None:
    recipe(corpus, {"step": "exact_duplicates"})
    write_shard(corpus, 3, ["eight"], is_sealed=False)
    write_shard(corpus, 4, ["eight", "nine"])
    assert texts(corpus, process(corpus, Here()))[3:] == [["eight"], ["nine"]]


def test_collection_keeps_unfinished_runs_and_the_requested_number_of_finished_ones(corpus: Path) -> None:
    for sign in "!?":
        recipe(corpus, {"step": "support.batch_steps:shout", "sign": sign}, {"step": "statistics"})
        process(corpus, Here())
    assert collect(corpus, runs=5).artifacts == 0
    recipe(
        corpus,
        {"step": "filter", "opted_out": True},
        {"step": "support.batch_steps:poison", "word": "five", "repaired": "no/where"},
    )
    process(corpus, Here(), last_step="filter")
    with pytest.raises(PoisonedTask):
        process(corpus, Here())
    assert collect(corpus).artifacts == 6, (
        "they are of the first run: the second is the last one that finished"
    )
    assert made(process(corpus, Here(), last_step="filter")) == {}


@pytest.mark.parametrize("damage", ["record", "file", "left over"])
def test_a_damaged_artifact_is_made_again(corpus: Path, damage: str) -> None:
    recipe(corpus, {"step": "filter", "opted_out": True})
    run = process(corpus, Here())
    place = ArtifactStore(corpus / "runs").path(run.steps[-1].artifacts[0].key)
    if damage == "record":
        (place / "piece.json").write_bytes(b"")
    elif damage == "file":
        (place / "docs.parquet").write_bytes(b"cut")
    else:
        place.rename(place.with_name(f"{place.name}.0123abcd"))
    again = process(corpus, Here())
    assert made(again) == {"filter": 1}
    assert texts(corpus, again) == TEXTS
    assert not list((corpus / "runs" / "pieces").glob("*/*.*"))


def test_a_fault_of_the_machine_stops_the_run_and_is_not_an_attempt(corpus: Path) -> None:
    full = corpus / "full"
    full.touch()
    recipe(corpus, {"step": "support.batch_steps:needs_room", "full": str(full)})
    with pytest.raises(CorpusError, match=r"No space left on device.*\n.*continue with: thresher process"):
        process(corpus, Here())
    assert run_log.runs(corpus)[-1].state == "stopped"
    full.unlink()
    assert made(process(corpus, Here())) == {"support.batch_steps:needs_room": 3}


def test_a_locked_index_stops_the_run_without_failed_tasks(corpus: Path) -> None:
    recipe(corpus, {"step": "index"})
    with writing(corpus), pytest.raises(CorpusError, match="wait for it"):
        process(corpus, Here())
    assert made(process(corpus, Here())) == {"index": 1}


def test_a_killed_run_is_shown_as_stopped(corpus: Path) -> None:
    run = process(corpus, Here())
    run.state = "running"
    run_log.save(corpus / "runs", run)
    with locked(corpus):
        assert run_log.runs(corpus)[-1].state == "running"
    assert run_log.runs(corpus)[-1].state == "stopped"


def test_a_relative_directory_is_made_absolute(
    corpus: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = Here()
    monkeypatch.chdir(corpus.parent)
    process(Path(corpus.name), engine)
    for call in engine.calls:
        assert Path(call.arguments["target"]).is_absolute()
        assert all(Path(path).is_absolute() for path in call.arguments["inputs"])


def test_settings_that_a_step_depends_on_are_recorded(corpus: Path) -> None:
    recipe(
        corpus,
        {"step": "reread"},
        {"step": "filter", "opted_out": True, "min_chars": 2},
        {"step": "filter", "opted_out": True, "min_chars": 3},
    )
    process(corpus, Here())
    with (corpus / "corpus.toml").open("a") as settings:
        settings.write("[judge]\nmax_badness = 3\n")
    assert dry_run(corpus)[0].why == "other settings: judge.max_badness"
    process(corpus, Here())
    changes = {(one.kind, one.name): one.after for one in run_log.changes(*run_log.runs(corpus))}
    assert changes == {("setting", "reread.judge.max_badness"): "3.0"}


def test_a_dry_run_counts_given_up_tasks(corpus: Path) -> None:
    recipe(
        corpus,
        {"step": "filter", "opted_out": True},
        {"step": "support.batch_steps:poison", "word": "five", "repaired": "no/where"},
    )
    with pytest.raises(PoisonedTask):
        process(corpus, Here())
    (planned,) = dry_run(corpus)
    assert (planned.missing, planned.total, planned.given_up) == (1, 3, 1)
    assert "1 of them failed in every attempt" in command("process", corpus, "--dry-run")[2]


def test_two_steps_of_one_name_are_compared_by_their_numbers(corpus: Path) -> None:
    recipe(
        corpus,
        {"step": "filter", "opted_out": True, "max_badness": 4},
        {"step": "filter", "opted_out": True, "min_chars": 2},
    )
    process(corpus, Here())
    recipe(
        corpus,
        {"step": "filter", "opted_out": True, "max_badness": 4},
        {"step": "filter", "opted_out": True, "min_chars": 3},
    )
    (planned,) = dry_run(corpus)
    assert (planned.step, planned.why) == ("filter 2", "other parameters: min_chars")


def test_only_one_run_at_a_time_processes_a_corpus(corpus: Path) -> None:
    with locked(corpus), pytest.raises(CorpusError, match="is being processed by process"):
        process(corpus, Here())


# ── The command line ──


def test_the_commands_process_show_and_collect(corpus: Path) -> None:
    code, out, err = command("process", corpus, "--dry-run", "--json")
    assert code == 0 and json.loads(out)[0]["step"] == "exact_duplicates"
    code, out, err = command("process", corpus, "--json", "--processes", 1)
    assert code == 0 and json.loads(out)["state"] == "done"
    assert "exact_duplicates: artifacts made 17, found 0; documents 7, duplicates 2" in err
    code, out, err = command("process", corpus)
    assert "run 2: artifacts made 0" in err
    code, out, err = command("process", corpus, "--status", "--json")
    assert json.loads(out)["number"] == 2
    code, out, err = command("runs", corpus)
    assert "exact_duplicates, near_duplicates, statistics" in out and out.count("done") == 2
    code, out, err = command("runs", corpus, 1, 2)
    assert (code, "nothing differs" in err) == (0, True)
    code, out, err = command("runs", corpus, 9)
    assert (code, "has no run 9; choose one of 1, 2" in err) == (2, True)
    code, out, err = command("gc", corpus, "--json")
    assert json.loads(out)["pieces"] == 0
    code, out, err = command("process", corpus, "--engine", "cloud")
    assert (code, "unknown engine 'cloud'" in err) == (2, True)


@pytest.mark.parametrize("line", [["runs"], ["gc"], ["process", "--status"], ["process", "--dry-run"]])
def test_commands_report_a_missing_corpus(tmp_path: Path, line: list[str]) -> None:
    name, *options = line
    code, _, err = command(name, tmp_path / "nowhere", *options)
    assert (code, "nowhere does not exist" in err) == (1, True)


def test_a_poisoned_run_ends_with_a_fault_and_the_fix(corpus: Path) -> None:
    recipe(
        corpus, {"step": "support.batch_steps:poison", "word": "five", "repaired": str(corpus / "repaired")}
    )
    code, _, err = command("process", corpus, "--processes", 1)
    assert code == 1
    assert "five cannot be processed" in err and "--retry-failed" in err
