"""A corpus is processed in steps, and only what changed is done again."""

from __future__ import annotations

import contextlib
import io
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import batch_steps
import thresher
from thresher.batch import records, shards
from thresher.batch.collect import collect
from thresher.batch.dry import dry_run
from thresher.batch.near.paragraphs import drop
from thresher.batch.pieces import Pieces
from thresher.batch.records import Run
from thresher.batch.results import processed
from thresher.batch.run import Poisoned, locked, process
from thresher.batch.steps import STEPS
from thresher.cli import main
from thresher.config import ConfigError
from thresher.engine.calls import Call, Ended, perform
from thresher.engine.processes import Processes
from thresher.page import Block, LanguageShare, Page, Reply, Verdict
from thresher.query.update import update
from thresher.store.corpus import CorpusError
from thresher.store.segments import Segments, seal, segment_path
from thresher.store.tables import DOCS, document_row

TEXTS = [["one", "two", "three"], ["four", "two", "five"], ["six", "one", "seven"]]


class Here:
    """An engine that does everything here and now, in order or backwards, and counts it."""

    def __init__(self, *, backwards: bool = False) -> None:
        self.calls: list[Call] = []
        self._step = -1 if backwards else 1

    def run(self, calls: list[Call]) -> Iterator[Ended]:
        for number, call in list(enumerate(calls))[:: self._step]:
            self.calls.append(call)
            yield perform(number, call)

    def close(self) -> None:
        pass


def write_shard(directory: Path, number: int, texts: list[str], *, is_sealed: bool = True) -> None:
    """A segment of the table of documents with these texts."""
    work = directory / f"work-{number}" / "docs"
    docs = Segments(work, DOCS, {}, 1 << 40)
    for place, text in enumerate(texts):
        url = f"http://h{place}.example.cz/{number}/{place}"
        reply = Reply(url, 200, b"", b"", 1_790_000_000.0 + place, 0.0, "192.0.2.7")
        page = Page(
            url, "html", title="T", text=text, blocks=(Block(text, 0.1),), badness=float(len(text)),
            languages=(LanguageShare("cs", 10, 1.0),), opt_out=("noai",) if text == "seven" else (),
        )  # fmt: skip
        docs.append(
            *document_row(reply, page, Verdict(True, "", "cs", 0.9, 10), seq=place, depth=0, raw=None)
        )
    docs.flush()
    docs.close()
    (stream,) = work.glob("*.arrows")
    target = directory / "docs"
    target.mkdir(exist_ok=True)
    if is_sealed:
        seal(stream, stream.stat().st_size, segment_path(target, number, "parquet"))
    else:
        stream.rename(segment_path(target, number, "arrows"))


def recipe(directory: Path, *steps: dict[str, Any]) -> None:
    """Write a recipe into corpus.toml."""
    lines = ['language = "cs"', "schema = 1"]
    for step in steps:
        lines.append("[[process]]")
        lines += [f"{name} = {json.dumps(value)}" for name, value in step.items()]
    (directory / "corpus.toml").write_text("\n".join(lines) + "\n")


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    for number, texts in enumerate(TEXTS):
        write_shard(tmp_path, number, texts)
    recipe(tmp_path)
    return tmp_path


def made(run: Run) -> dict[str, int]:
    """How many pieces were made, by step, where some were."""
    return {step.name: count for step in run.steps if (count := step.count("made"))}


def texts(directory: Path, run: Run) -> list[list[str]]:
    """The texts that came out at the end, by shard."""
    pieces = Pieces(directory / "runs")
    by_digest = {piece.digest: piece.key for step in run.steps for piece in step.pieces}
    return [
        [
            text
            for batch in shards.batches(pieces.path(by_digest[digest]), ["text"])
            for text in batch.column(0).to_pylist()
        ]
        for digest in run.steps[-1].outputs
    ]


@pytest.mark.parametrize("name", STEPS)
def test_every_step_keeps_the_contract(corpus: Path, name: str) -> None:
    assert STEPS[name].summary.endswith(".") and STEPS[name].version >= 1
    recipe(corpus, {"step": name})
    first = process(corpus, Here())
    assert first.state == "done" and first.steps[-1].done
    engine = Here()
    again = process(corpus, engine)
    assert engine.calls == [] and again.steps[-1].outputs == first.steps[-1].outputs
    # The same work elsewhere, in another order, gives the same bytes.
    other = corpus / "other"
    other.mkdir()
    for number, some in enumerate(TEXTS):
        write_shard(other, number, some)
    recipe(other, {"step": name})
    second = process(other, Here(backwards=True))
    assert [step.outputs for step in second.steps] == [step.outputs for step in first.steps]


def test_of_equal_texts_the_first_in_the_corpus_stays(corpus: Path) -> None:
    recipe(corpus, {"step": "exact_duplicates", "partitions": 3})
    run = process(corpus, Here())
    assert texts(corpus, run) == [["one", "two", "three"], ["four", "five"], ["six", "seven"]]
    assert run.steps[-1].report == {"documents": 7, "duplicates": 2}


def test_paragraphs_that_were_seen_before_are_dropped_as_by_hand(tmp_path: Path) -> None:
    tales = [
        " ".join(f"{animal} {number} went over hill and dale" for number in range(20))
        for animal in ("the fox", "the hare", "the owl", "the newt")
    ]
    documents = [
        [f"{tales[0]}\n{tales[1]}", f"Heading\n{tales[1]} and more"],
        [f"{tales[2]}\n{tales[0]}", tales[3], f"{tales[3]} again"],
    ]
    for number, texts_of_shard in enumerate(documents):
        write_shard(tmp_path, number, texts_of_shard)
    recipe(tmp_path, {"step": "near_duplicates", "memory": 1 << 20})
    run = process(tmp_path, Here())
    assert texts(tmp_path, run) == [[documents[0][0]], [tales[2], tales[3]]]
    flags = drop([text.split("\n") for shard in documents for text in shard])
    assert list(flags) == [[False, False], [True, True], [False, True], [False], [True]]
    report = run.steps[-1].report
    assert (report["documents"], report["emptied"], report["dropped_paragraphs"]) == (3, 2, 4)


def test_of_documents_that_are_nearly_the_same_the_first_stays(tmp_path: Path) -> None:
    words = [f"word{number}" for number in range(300)]
    nearly = [*words[:150], "another", *words[151:]]
    documents = [[" ".join(words), "short"], [" ".join(words[::-1]), " ".join(nearly)], [" ".join(words)]]
    for number, some in enumerate(documents):
        write_shard(tmp_path, number, some)
    recipe(tmp_path, {"step": "similar_documents"})
    run = process(tmp_path, Here())
    assert texts(tmp_path, run) == [documents[0], documents[1][:1], []]
    assert run.steps[-1].report == {"documents": 3, "similar": 2}


def test_documents_are_filtered_and_each_reason_is_counted(corpus: Path) -> None:
    recipe(corpus, {"step": "filter", "max_badness": 4, "opted_out": False, "not_hosts": ["h1.*"]})
    run = process(corpus, Here())
    assert texts(corpus, run) == [["one"], ["four", "five"], ["six"]]
    assert run.steps[-1].report == {"documents": 4, "dropped": {"badness": 2, "host": 3}}


def test_figures_are_those_of_all_shards(corpus: Path) -> None:
    recipe(corpus, {"step": "statistics", "most": 1})
    run = process(corpus, Here())
    report = run.steps[-1].report
    assert (report["documents"], report["words"], report["hosts"]) == (9, 9, 3)
    told = json.loads(
        (Pieces(corpus / "runs").path(run.steps[-1].pieces[-1].key) / "statistics.json").read_bytes()
    )
    assert told["host"] == {"h0.example.cz": 3}
    assert told["year"] == {"2026": 9}


def test_what_is_left_is_indexed_and_the_index_follows(corpus: Path) -> None:
    recipe(corpus, {"step": "exact_duplicates"}, {"step": "index", "annotator": "plain"})
    assert made(process(corpus, Here()))["index"] == 4
    assert (thresher.open(corpus).search('"one"').count(), thresher.open(corpus).index.documents) == (1, 6)
    assert made(process(corpus, Here())) == {}
    # One more document, one less; what others do to the index is put right.
    write_shard(corpus, 3, ["one more"])
    recipe(corpus, {"step": "filter", "not_hosts": ["h2.*"]}, {"step": "index", "annotator": "plain"})
    process(corpus, Here())
    assert (thresher.open(corpus).search('"one"').count(), thresher.open(corpus).index.documents) == (3, 7)
    update(corpus, annotator="plain", processes=1)
    assert thresher.open(corpus).index.documents == 9
    assert [one.step for one in dry_run(corpus)] == ["index"]
    assert made(process(corpus, Here())) == {"index": 1}
    assert thresher.open(corpus).index.documents == 7


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


def test_a_step_of_a_users_own_has_parameters(corpus: Path) -> None:
    recipe(corpus, {"step": "batch_steps:shout", "sign": "?"})
    assert texts(corpus, process(corpus, Here()))[0] == ["ONE?", "TWO?", "THREE?"]


def test_steps_can_be_run_up_to_one(corpus: Path) -> None:
    recipe(corpus, {"step": "filter"}, {"step": "statistics"})
    assert made(process(corpus, Here(), last_step="filter")) == {"filter": 3}
    with pytest.raises(CorpusError, match="the recipe has no step 'x'; it has filter, statistics"):
        process(corpus, Here(), last_step="x")


@pytest.mark.parametrize(
    ("step", "message"),
    [
        ({"step": "filtre"}, "there is no step 'filtre'; did you mean filter?"),
        ({"max_badness": 3}, 'has no step; write step = "NAME"'),
        ({"step": "filter", "max_badnes": 3}, "unknown field.*its parameters are languages"),
        ({"step": "filter", "min_language_share": 3}, "filter: .*<= 1"),
        ({"step": "no_such_module:at_all"}, "cannot be imported"),
        ({"step": "batch_steps:at_all"}, "cannot be imported"),
        ({"step": "batch_steps:unversioned"}, r"has no version; write unversioned\.version = 1"),
    ],
)
def test_a_mistake_in_a_recipe_is_told_before_anything_is_done(
    corpus: Path, step: dict[str, Any], message: str
) -> None:
    recipe(corpus, step)
    with pytest.raises(ConfigError, match=message):
        process(corpus, Here())
    assert not (corpus / "runs").exists()


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


def test_a_step_that_gives_no_table_is_told(corpus: Path) -> None:
    recipe(corpus, {"step": "batch_steps:no_table"})
    with pytest.raises(Poisoned, match="a step must return a table of documents, not str"):
        process(corpus, Here())


def test_a_process_that_dies_costs_one_attempt(corpus: Path) -> None:
    recipe(corpus, {"step": "batch_steps:deadly_once", "mark": str(corpus / "mark")})
    engine = Processes(2)
    try:
        run = process(corpus, engine)
    finally:
        engine.close()
    assert sorted(piece.attempts for piece in run.steps[-1].pieces) == [1, 1, 2]
    assert texts(corpus, run) == TEXTS


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
from test_batch import Here
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
    assert left == set(Pieces(corpus / "runs").all_keys())


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


def test_two_do_not_process_a_corpus_at_once(corpus: Path) -> None:
    with locked(corpus), pytest.raises(CorpusError, match="is being processed already"):
        process(corpus, Here())


def test_a_damaged_shard_is_named(corpus: Path) -> None:
    recipe(corpus, {"step": "filter"})
    (corpus / "docs" / "docs-00001.parquet").write_bytes(b"PAR1 this is none")
    with pytest.raises(Poisoned, match=r"docs-00001\.parquet cannot be read"):
        process(corpus, Here())


def test_a_corpus_without_documents_is_processed_too(tmp_path: Path) -> None:
    recipe(tmp_path, *({"step": name} for name in STEPS))
    run = process(tmp_path, Here())
    assert run.state == "done" and run.steps[-1].outputs == []


# the command line


def told(*arguments: object) -> tuple[int, str, str]:
    out, err = io.TextIOWrapper(io.BytesIO()), io.StringIO()
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stderr(err):
        patch.setattr(sys, "argv", ["thresher", *map(str, arguments)])
        patch.setattr(sys, "stdout", out)
        try:
            main()
            code = 0
        except SystemExit as ending:
            code = int(ending.code or 0)
    out.flush()
    return code, out.buffer.getvalue().decode(), err.getvalue()  # type: ignore[attr-defined]


def test_the_commands_process_tell_and_collect(corpus: Path) -> None:
    code, out, err = told("process", corpus, "--dry-run", "--json")
    assert code == 0 and json.loads(out)[0]["step"] == "exact_duplicates"
    code, out, err = told("process", corpus, "--json", "--processes", 1)
    assert code == 0 and json.loads(out)["state"] == "done"
    assert "exact_duplicates: 14 pieces made, 0 there; documents 7, duplicates 2" in err
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


def test_a_poisoned_run_ends_with_a_fault_and_the_cure(corpus: Path) -> None:
    recipe(corpus, {"step": "batch_steps:poison", "word": "five", "cured": str(corpus / "cured")})
    code, _, err = told("process", corpus, "--processes", 1)
    assert code == 1
    assert "five cannot be processed" in err and "--retry-failed" in err
