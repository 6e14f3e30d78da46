"""The documents and paragraphs that a step dropped can be listed and counted."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.command_line import run as command
from support.corpora.batch_corpora import Here, recipe, write_shard
from thresher.pipeline.runs.collect import collect
from thresher.pipeline.runs.dropped import Dropped, Loss, RunComparison
from thresher.pipeline.runs.run import process
from thresher.pipeline.steps.paragraphs import missing
from thresher.store.corpus_files import CorpusError

TALE = "Once upon a time there was a hedgehog who read every book of the house"
NEWS = "Nobody had ever heard of this matter before it stood in all of the papers"


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    """Process two shards; half of a document of the second stands in the first."""
    write_shard(tmp_path, 0, [TALE, "a heading"])
    write_shard(tmp_path, 1, [f"{NEWS}\n{TALE}", TALE])
    recipe(tmp_path, {"step": "filter", "min_chars": 20}, {"step": "near_duplicates"}, {"step": "statistics"})
    process(tmp_path, Here())
    return tmp_path


def test_dropped_documents_and_paragraphs_are_listed(corpus: Path) -> None:
    filtered = RunComparison(corpus, "filter")
    assert list(filtered) == [Dropped("http://h1.example.cz/0/1", "h1.example.cz", None, 2, "a heading")]
    assert (filtered.total.documents, filtered.total.gone, filtered.total.dropped) == (4, 1, 1)
    compared = RunComparison(corpus, "near_duplicates")
    assert list(compared) == [
        Dropped("http://h0.example.cz/1/0", "h0.example.cz", 1, 15, TALE),
        Dropped("http://h1.example.cz/1/1", "h1.example.cz", None, 15, TALE),
    ]
    assert compared.total == Loss(
        documents=3, gone=1, changed=1, paragraphs=4, dropped=2, words=60, dropped_words=30
    )
    assert compared.hosts["h0.example.cz"] == Loss(2, 0, 1, 3, 1, 45, 15)
    assert list(RunComparison(corpus, "statistics")) == []


@pytest.mark.parametrize("text", [f"{TALE} - - - that , by the way , was old !", "我们在一起读书。" * 9])
def test_words_are_counted_as_the_steps_of_the_run_count_them(tmp_path: Path, text: str) -> None:
    write_shard(tmp_path, 0, [text, f"{NEWS}\n{text}"])
    recipe(tmp_path, {"step": "near_duplicates"}, {"step": "statistics"})
    near, statistics = (step.report for step in process(tmp_path, Here()).steps[1:])
    total = RunComparison(tmp_path, "near_duplicates")
    assert [dropped.paragraph for dropped in total] == [1]
    assert (total.total.paragraphs, total.total.dropped) == (near["paragraphs"], near["dropped_paragraphs"])
    assert (total.total.words, total.total.dropped_words) == (near["words"], near["dropped_words"])
    assert statistics["words"] == near["words"] - near["dropped_words"]


def test_rewritten_texts_are_counted_and_order_does_not_matter(corpus: Path) -> None:
    recipe(corpus, {"step": "support.batch_steps:backwards"}, {"step": "support.batch_steps:shout"})
    process(corpus, Here())
    turned = RunComparison(corpus, "support.batch_steps:backwards")
    assert list(turned) == []
    assert (turned.total.documents, turned.total.changed) == (4, 0)
    shouted = RunComparison(corpus, "support.batch_steps:shout")
    assert list(shouted) == []
    assert (shouted.total.documents, shouted.total.changed, shouted.total.rewritten) == (4, 4, 4)


def test_any_run_can_be_compared_while_its_results_exist(corpus: Path) -> None:
    recipe(corpus, {"step": "filter", "min_chars": 4}, {"step": "filter", "min_chars": 20})
    process(corpus, Here())
    assert len(list(RunComparison(corpus, "filter", 1))) == 1
    assert list(RunComparison(corpus, "filter 1")) == []
    assert len(list(RunComparison(corpus, "filter 2", 2))) == 1
    with pytest.raises(CorpusError, match="run 2 has no step 'filter'; it has filter 1, filter 2"):
        RunComparison(corpus, "filter")
    with pytest.raises(CorpusError, match="no finished run 7; make one"):
        RunComparison(corpus, "filter", 7)
    collect(corpus)
    with pytest.raises(
        CorpusError, match="the results of run 1 were removed; make them again: thresher process"
    ):
        RunComparison(corpus, "near_duplicates", 1)


@given(st.lists(st.sampled_from("abc")), st.data())
def test_missing_paragraphs_are_exactly_the_removed_ones(before: list[str], data: st.DataObject) -> None:
    stays = data.draw(st.lists(st.booleans(), min_size=len(before), max_size=len(before)))
    after = [paragraph for paragraph, stay in zip(before, stays, strict=True) if stay]
    gone = missing(before, after)
    assert gone is not None
    assert [each for place, each in enumerate(before) if place not in gone] == after
    assert missing(before, [*after, "d"]) is None


def test_the_command_shows_losses_by_host_and_writes_all_of_them(corpus: Path, tmp_path: Path) -> None:
    out_file = tmp_path / "dropped.jsonl"
    code, out, _ = command("runs", corpus, "--dropped", "near_duplicates", "-o", out_file, "--json")
    assert code == 0
    figures = json.loads(out)
    assert (figures["run"], figures["total"]["dropped"]) == (1, 2)
    assert list(figures["hosts"]) == ["h0.example.cz", "h1.example.cz"], "the host that lost most comes first"
    lines = [json.loads(line) for line in out_file.read_text().splitlines()]
    assert [(line["paragraph"], line["text"]) for line in lines] == [(1, TALE), (None, TALE)]
    assert "h1.example.cz" in command("runs", corpus, "--dropped", "near_duplicates")[1]
    code, out, _ = command("runs", corpus, 1, "--dropped", "filter")
    assert (code, "run 1, filter" in out) == (0, True)
    code, _, err = command("runs", corpus, "-o", out_file)
    assert (code, "--dropped STEP" in err) == (2, True)
    code, _, err = command("runs", corpus, 1, 2, "--dropped", "filter")
    assert (code, "leave the second number out" in err) == (2, True)


def test_the_results_of_any_run_are_exported(corpus: Path) -> None:
    recipe(corpus, {"step": "statistics"})
    process(corpus, Here())
    counts = []
    for options in (["--processed"], ["--run", "1"], ["--run", "2"]):
        code, out, _ = command("export", corpus, "--format", "jsonl", *options)
        assert code == 0
        counts.append(len(out.splitlines()))
    assert counts == [4, 2, 4]
    code, _, err = command("export", corpus, "--format", "jsonl", "--run", 9)
    assert (code, "no finished run 9" in err) == (1, True)
