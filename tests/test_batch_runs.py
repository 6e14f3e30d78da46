"""A corpus is processed in steps, and only what changed is done again."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import batch_steps
from batch_corpora import TEXTS, Here, made, recipe, small_corpus, texts, told, write_shard
from thresher.batch import records
from thresher.batch.collect import collect
from thresher.batch.dry import dry_run
from thresher.batch.pieces import Pieces
from thresher.batch.records import locked
from thresher.batch.results import processed
from thresher.batch.run import Poisoned, process
from thresher.engine.processes import Processes
from thresher.query.manifest import writing
from thresher.store.corpus import CorpusError


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    return small_corpus(tmp_path)


def test_only_what_changed_is_done_again(corpus: Path) -> None:
    steps = [{"step": "filter", "max_badness": 4}, {"step": "batch_steps:shout"}, {"step": "statistics"}]
    recipe(corpus, *steps)
    assert made(process(corpus, Here())) == {"filter": 3, "batch_steps:shout": 3, "statistics": 4}
    assert made(process(corpus, Here())) == {}
    # A change that lets no other document through changes nothing for the steps behind it.
    recipe(corpus, {"step": "filter", "max_badness": 4.5}, *steps[1:])
    assert made(process(corpus, Here())) == {"filter": 3}
    # One that changes a single shard changes what builds on that shard.
    recipe(corpus, {"step": "filter", "max_badness": 4.5, "not_hosts": ["h2.*"]}, *steps[1:])
    assert made(process(corpus, Here())) == {"filter": 3, "batch_steps:shout": 1, "statistics": 2}
    # What was made for the first recipe is still there.
    recipe(corpus, *steps)
    assert made(process(corpus, Here())) == {}


def test_another_version_of_a_step_is_run_anew(corpus: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recipe(corpus, {"step": "batch_steps:same"}, {"step": "statistics"})
    process(corpus, Here())
    monkeypatch.setattr(batch_steps.same, "version", 2)
    assert dry_run(corpus)[0].why == "version 1 became 2"
    assert made(process(corpus, Here())) == {"batch_steps:same": 3}


def test_new_documents_make_new_pieces_and_no_others(corpus: Path) -> None:
    recipe(corpus, {"step": "batch_steps:shout"})
    process(corpus, Here())
    write_shard(corpus, 3, ["eight"])
    run = process(corpus, Here())
    assert made(run) == {"batch_steps:shout": 1}
    assert texts(corpus, run)[-1] == ["EIGHT!"]


def test_documents_of_an_open_segment_are_processed_too(corpus: Path) -> None:
    recipe(corpus, {"step": "batch_steps:shout"})
    process(corpus, Here())
    write_shard(corpus, 3, ["eight"], is_sealed=False)
    run = process(corpus, Here())
    assert made(run) == {"source": 1, "batch_steps:shout": 1}
    assert texts(corpus, run)[-1] == ["EIGHT!"]
    assert made(process(corpus, Here())) == {}


def test_steps_can_be_run_up_to_one(corpus: Path) -> None:
    recipe(corpus, {"step": "filter"}, {"step": "statistics"})
    assert made(process(corpus, Here(), last_step="filter")) == {"filter": 3}
    with pytest.raises(CorpusError, match="the recipe has no step 'x'; it has filter, statistics"):
        process(corpus, Here(), last_step="x")


def test_a_piece_that_fails_each_time_is_named_and_left_alone_until_it_is_asked_for(corpus: Path) -> None:
    cured = corpus / "cured"
    recipe(
        corpus, {"step": "batch_steps:poison", "word": "five", "cured": str(cured)}, {"step": "statistics"}
    )
    engine = Here()
    with pytest.raises(Poisoned, match="1 piece of batch_steps:poison failed each time") as told:
        process(corpus, engine)
    assert len(engine.calls) == 5, "the others are made, and the one is tried three times"
    (failure,) = told.value.failures
    assert failure.fault == "ValueError: five cannot be processed"
    assert "it is the word five" in failure.attempts[0].log
    assert records.runs(corpus)[-1].state == "failed"
    engine = Here()
    with pytest.raises(Poisoned):
        process(corpus, engine)
    assert engine.calls == []
    cured.touch()
    run = process(corpus, Here(), retry_failed=True)
    assert made(run) == {"batch_steps:poison": 1, "statistics": 4}
    assert not list((corpus / "runs" / "failed").iterdir())


def test_a_process_that_dies_costs_one_attempt(corpus: Path) -> None:
    recipe(corpus, {"step": "batch_steps:deadly_once", "mark": str(corpus / "mark")})
    engine = Processes(2)
    try:
        run = process(corpus, engine)
    finally:
        engine.close()
    assert sorted(piece.attempts for piece in run.steps[-1].pieces) == [1, 1, 2]
    assert texts(corpus, run) == TEXTS
    (failed,) = [piece for piece in run.steps[-1].pieces if piece.attempts == 2]
    assert failed.log == "", "it is that of the attempt that ended well"


def test_processes_and_their_number_make_no_difference(
    corpus: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    steps = [{"step": "filter", "max_badness": 4}, {"step": "exact_duplicates"}, {"step": "statistics"}]
    recipe(corpus, *steps)
    expected = [step.outputs for step in process(corpus, Here()).steps]
    for count in (1, 2):
        other = tmp_path_factory.mktemp("other")
        for number, some in enumerate(TEXTS):
            write_shard(other, number, some)
        recipe(other, *steps)
        engine = Processes(count)
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
from batch_corpora import Here
from thresher.batch.run import process
process(Path(sys.argv[1]), Here())
"""


def test_a_kill_at_any_moment_loses_nothing(corpus: Path) -> None:
    recipe(corpus, {"step": "filter", "max_badness": 4}, {"step": "exact_duplicates", "partitions": 2})
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), *sys.path])}
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


def test_what_would_be_run_is_told_with_the_reason(corpus: Path) -> None:
    recipe(corpus, {"step": "filter"}, {"step": "statistics"})
    (first,) = dry_run(corpus)
    assert (first.step, first.missing, first.total, first.why) == ("filter", 3, 3, "it was never run")
    process(corpus, Here())
    assert dry_run(corpus) == []
    recipe(corpus, {"step": "filter", "min_chars": 4}, {"step": "statistics"})
    assert dry_run(corpus)[0].why == "other parameters: min_chars"
    recipe(corpus, {"step": "filter"}, {"step": "statistics"})
    write_shard(corpus, 3, ["eight"])
    (new,) = dry_run(corpus)
    assert (new.missing, new.total, new.why) == (1, 4, "other inputs")


def test_runs_are_on_record_and_can_be_compared(corpus: Path) -> None:
    recipe(corpus, {"step": "filter", "min_chars": 4})
    process(corpus, Here())
    recipe(corpus, {"step": "filter", "min_chars": 3}, {"step": "statistics"})
    write_shard(corpus, 3, ["eight"])
    process(corpus, Here())
    first, second = records.runs(corpus)
    assert first.inputs.keys() == {f"docs-{number:05d}.parquet" for number in range(3)}
    told = {(one.what, one.name): (one.before, one.after) for one in records.changes(first, second)}
    assert told["input", "docs-00003.parquet"][0] == ""
    assert told["parameter", "filter.min_chars"] == ("4", "3")
    assert told["figure", "filter.documents"] == ("4", "10")
    assert told["step", "statistics"] == ("", "there")
    assert ("output", "filter") in told
    assert records.changes(second, second) == []


def test_old_results_stay_until_they_are_collected(corpus: Path) -> None:
    recipe(corpus, {"step": "batch_steps:shout"})
    process(corpus, Here())
    recipe(corpus, {"step": "batch_steps:shout", "sign": "?"})
    process(corpus, Here())
    assert collect(corpus, runs=2).pieces == 0
    planned = collect(corpus, dry_run=True)
    assert (planned.pieces, planned.kept) == (3, 3)
    assert collect(corpus) == planned
    assert made(process(corpus, Here())) == {}
    recipe(corpus, {"step": "batch_steps:shout"})
    assert made(process(corpus, Here())) == {"batch_steps:shout": 3}


def test_what_a_run_left_is_a_corpus(corpus: Path) -> None:
    with pytest.raises(CorpusError, match="has no finished run yet; make one: thresher process"):
        processed(corpus)
    recipe(corpus, {"step": "exact_duplicates"}, {"step": "statistics"})
    process(corpus, Here())
    left = ["one", "two", "three", "four", "five", "six", "seven"]
    assert processed(corpus).docs(["text"])["text"].to_pylist() == left
    assert [document.text for document in processed(corpus)] == left
    code, out, _ = told("export", corpus, "--format", "txt", "--processed", "--opted-out")
    assert (code, out.split()) == (0, left)
    recipe(corpus, {"step": "statistics"})
    process(corpus, Here())
    assert len(processed(corpus)) == 9, "of files that no step touched"
    assert len(processed(corpus, 1)) == 7
    collect(corpus)
    with pytest.raises(CorpusError, match="results of run 1 are gone"):
        processed(corpus, 1)


def test_the_order_of_the_corpus_is_kept_whatever_is_sealed_already(corpus: Path) -> None:
    recipe(corpus, {"step": "exact_duplicates"})
    write_shard(corpus, 3, ["eight"], is_sealed=False)
    write_shard(corpus, 4, ["eight", "nine"])
    assert texts(corpus, process(corpus, Here()))[3:] == [["eight"], ["nine"]]


def test_collecting_keeps_what_was_begun_and_as_many_runs_as_were_asked_for(corpus: Path) -> None:
    for sign in "!?":
        recipe(corpus, {"step": "batch_steps:shout", "sign": sign}, {"step": "statistics"})
        process(corpus, Here())
    assert collect(corpus, runs=5).pieces == 0
    recipe(corpus, {"step": "filter"}, {"step": "batch_steps:poison", "word": "five", "cured": "no/where"})
    process(corpus, Here(), last_step="filter")
    with pytest.raises(Poisoned):
        process(corpus, Here())
    assert collect(corpus).pieces == 6, "of the first run: the second one is the last that was whole"
    assert made(process(corpus, Here(), last_step="filter")) == {}


@pytest.mark.parametrize("damage", ["record", "file", "left over"])
def test_a_result_that_is_damaged_is_made_again(corpus: Path, damage: str) -> None:
    recipe(corpus, {"step": "filter"})
    run = process(corpus, Here())
    place = Pieces(corpus / "runs").path(run.steps[-1].pieces[0].key)
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


def test_what_is_no_fault_of_a_piece_stops_the_run_and_is_no_attempt(corpus: Path) -> None:
    full = corpus / "full"
    full.touch()
    recipe(corpus, {"step": "batch_steps:needs_room", "full": str(full)})
    with pytest.raises(CorpusError, match=r"No space left on device.*\n.*go on with: thresher process"):
        process(corpus, Here())
    assert records.runs(corpus)[-1].state == "stopped"
    full.unlink()
    assert made(process(corpus, Here())) == {"batch_steps:needs_room": 3}


def test_two_who_write_an_index_do_not_make_pieces_fail(corpus: Path) -> None:
    recipe(corpus, {"step": "index"})
    with writing(corpus), pytest.raises(CorpusError, match="wait for it"):
        process(corpus, Here())
    assert made(process(corpus, Here())) == {"index": 1}


def test_a_run_that_was_killed_is_told_as_stopped(corpus: Path) -> None:
    run = process(corpus, Here())
    run.state = "running"
    records.save(corpus / "runs", run)
    with locked(corpus):
        assert records.runs(corpus)[-1].state == "running"
    assert records.runs(corpus)[-1].state == "stopped"


def test_a_directory_may_be_named_from_where_one_is(
    corpus: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = Here()
    monkeypatch.chdir(corpus.parent)
    process(Path(corpus.name), engine)
    for call in engine.calls:
        assert Path(call.arguments["target"]).is_absolute()
        assert all(Path(path).is_absolute() for path in call.arguments["inputs"])


def test_settings_of_the_corpus_are_told_where_a_step_depends_on_them(corpus: Path) -> None:
    recipe(corpus, {"step": "reread"}, {"step": "filter", "min_chars": 2}, {"step": "filter", "min_chars": 3})
    process(corpus, Here())
    with (corpus / "corpus.toml").open("a") as settings:
        settings.write("[judge]\nmax_badness = 3\n")
    assert dry_run(corpus)[0].why == "other settings: judge.max_badness"
    process(corpus, Here())
    changes = {(one.what, one.name): one.after for one in records.changes(*records.runs(corpus))}
    assert changes == {("setting", "reread.judge.max_badness"): "3.0"}


def test_what_failed_too_often_is_told_apart_from_what_would_be_run(corpus: Path) -> None:
    recipe(corpus, {"step": "filter"}, {"step": "batch_steps:poison", "word": "five", "cured": "no/where"})
    with pytest.raises(Poisoned):
        process(corpus, Here())
    (planned,) = dry_run(corpus)
    assert (planned.missing, planned.total, planned.given_up) == (1, 3, 1)
    assert "1 of them failed too often" in told("process", corpus, "--dry-run")[2]


def test_of_two_steps_of_a_name_each_is_compared_with_itself(corpus: Path) -> None:
    recipe(corpus, {"step": "filter", "max_badness": 4}, {"step": "filter", "min_chars": 2})
    process(corpus, Here())
    recipe(corpus, {"step": "filter", "max_badness": 4}, {"step": "filter", "min_chars": 3})
    (planned,) = dry_run(corpus)
    assert (planned.step, planned.why) == ("filter 2", "other parameters: min_chars")


def test_two_do_not_process_a_corpus_at_once(corpus: Path) -> None:
    with locked(corpus), pytest.raises(CorpusError, match="is being processed already"):
        process(corpus, Here())


# the command line


def test_the_commands_process_tell_and_collect(corpus: Path) -> None:
    code, out, err = told("process", corpus, "--dry-run", "--json")
    assert code == 0 and json.loads(out)[0]["step"] == "exact_duplicates"
    code, out, err = told("process", corpus, "--json", "--processes", 1)
    assert code == 0 and json.loads(out)["state"] == "done"
    assert "exact_duplicates: 17 pieces made, 0 there; documents 7, duplicates 2" in err
    code, out, err = told("process", corpus)
    assert "run 2: 0 pieces made" in err
    code, out, err = told("process", corpus, "--status", "--json")
    assert json.loads(out)["number"] == 2
    code, out, err = told("runs", corpus)
    assert "exact_duplicates, near_duplicates, statistics" in err and err.count("done") == 2
    code, out, err = told("runs", corpus, 1, 2)
    assert (code, "nothing differs" in err) == (0, True)
    code, out, err = told("runs", corpus, 9)
    assert (code, "there is no run 9; there are 1, 2" in err) == (2, True)
    code, out, err = told("gc", corpus, "--json")
    assert json.loads(out)["pieces"] == 0
    code, out, err = told("process", corpus, "--engine", "cloud")
    assert (code, "there is no engine 'cloud'" in err) == (2, True)


@pytest.mark.parametrize("command", [["runs"], ["gc"], ["process", "--status"], ["process", "--dry-run"]])
def test_commands_say_where_there_is_no_corpus(tmp_path: Path, command: list[str]) -> None:
    name, *options = command
    code, _, err = told(name, tmp_path / "nowhere", *options)
    assert (code, "nowhere is no directory" in err) == (1, True)


def test_a_poisoned_run_ends_with_a_fault_and_the_cure(corpus: Path) -> None:
    recipe(corpus, {"step": "batch_steps:poison", "word": "five", "cured": str(corpus / "cured")})
    code, _, err = told("process", corpus, "--processes", 1)
    assert code == 1
    assert "five cannot be processed" in err and "--retry-failed" in err
