"""Steps of a recipe: the documents they keep, change and drop."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

import thresher
from support.command_line import run as command
from support.corpora.batch_corpora import TEXTS, Here, made, recipe, small_corpus, texts, write_shard
from thresher.errors import UsageError
from thresher.pipeline import document_shards
from thresher.pipeline.artifacts import ArtifactStore
from thresher.pipeline.dedup.paragraphs import drop
from thresher.pipeline.recipe import DEFAULT_RECIPE
from thresher.pipeline.runs.dry import dry_run
from thresher.pipeline.runs.run import PoisonedTask, process
from thresher.pipeline.runs.run_log import StepRun, runs
from thresher.pipeline.steps import STEPS
from thresher.reader.quality.fingerprint import text_hash
from thresher.search.index.update import update
from thresher.workers.local_engine import LocalEngine


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    return small_corpus(tmp_path)


def tale(*animals: str) -> str:
    """Return paragraphs of many runs of seven words, each with animals of its own."""
    return "\n".join(
        " ".join(f"the {animal} {number} went over hill and dale" for number in range(20))
        for animal in animals
    )


# Beside words that are no run of seven: paragraphs that others have, too, and documents that are nearly the same.
WITH_TALES = [
    [*TEXTS[0], tale("fox", "hare"), tale("owl", "newt", "crow", "toad", "mole")],
    [*TEXTS[1], tale("hare", "boar"), tale("owl", "newt", "crow", "toad", "mole") + " again"],
    [*TEXTS[2], tale("boar", "fox", "lynx"), tale("fox", "hare")],
]


@pytest.fixture
def tales(tmp_path: Path) -> Path:
    return filled(tmp_path / "tales")


def filled(directory: Path) -> Path:
    directory.mkdir()
    for number, some in enumerate(WITH_TALES):
        write_shard(directory, number, some)
    return directory


@pytest.mark.parametrize("name", STEPS)
def test_every_step_keeps_the_contract(tales: Path, name: str) -> None:
    assert STEPS[name].summary.endswith(".") and STEPS[name].version >= 1
    recipe(tales, {"step": name})
    first = process(tales, Here())
    assert first.state == "done" and first.steps[-1].done
    engine = Here()
    again = process(tales, engine)
    assert engine.calls == [] and again.steps[-1].outputs == first.steps[-1].outputs
    # The same work elsewhere, in another order, gives the same bytes.
    other = filled(tales / "other")
    recipe(other, {"step": name})
    second = process(other, Here(backwards=True))
    assert [step.outputs for step in second.steps] == [step.outputs for step in first.steps]


def test_several_processes_find_the_same_near_duplicates(tales: Path) -> None:
    steps = [{"step": "similar_documents"}, {"step": "near_duplicates", "memory": 1 << 20}]
    recipe(tales, *steps)
    here = process(tales, Here())
    other = filled(tales / "other")
    recipe(other, *steps)
    engine = LocalEngine(2)
    try:
        there = process(other, engine)
    finally:
        engine.close()
    similar, near = here.steps[1].report, here.steps[2].report
    assert (similar["similar"], near["dropped_paragraphs"]) == (2, 3), "or nothing would be compared"
    assert [step.outputs for step in there.steps] == [step.outputs for step in here.steps]


def test_old_shards_are_written_again_only_if_other_documents_are_dropped(tales: Path) -> None:
    steps = [*DEFAULT_RECIPE[:-1], {"step": "similar_documents"}, DEFAULT_RECIPE[-1]]
    recipe(tales, *steps)
    process(tales, Here())
    write_shard(tales, 3, ["eight", "one", tale("newt", "wolf"), f"{WITH_TALES[2][-2]} and more"])
    run = process(tales, Here())
    assert {step.name: written(step) for step in run.steps[1:-1]} == {
        "exact_duplicates": ["found", "found", "found", "made"],
        "near_duplicates": ["found", "found", "found", "made"],
        "similar_documents": ["found", "found", "found", "made"],
    }
    assert [step.report["documents"] for step in run.steps[1:-1]] == [15, 13, 13]
    # Earlier documents matter, though: the first of two equal ones stays.
    files = sorted((tales / "docs").iterdir())
    files[3].rename(files[3].with_name("moved"))
    for path in reversed(files[:3]):
        path.rename(path.with_name(f"docs-{int(path.stem[-5:]) + 1:05d}.parquet"))
    files[3].with_name("moved").rename(files[0])
    run = process(tales, Here())
    assert written(run.steps[1]) == ["made", "made", "found", "found"]


def written(step: StepRun) -> list[str]:
    """Return the states of the artifacts that hold documents, by shard."""
    return [artifact.state for artifact in step.artifacts if artifact.function.endswith(":drop")]


def test_the_first_of_equal_texts_stays(corpus: Path) -> None:
    recipe(corpus, {"step": "exact_duplicates", "partitions": 3})
    run = process(corpus, Here())
    assert texts(corpus, run) == [["one", "two", "three"], ["four", "five"], ["six", "seven"]]
    assert run.steps[-1].report == {"documents": 7, "duplicates": 2}


def test_paragraphs_that_were_seen_before_are_dropped(tmp_path: Path) -> None:
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


def test_the_first_of_near_identical_documents_stays(tmp_path: Path) -> None:
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
    recipe(corpus, {"step": "filter", "max_badness": 4, "not_hosts": ["h1.*"]})
    run = process(corpus, Here())
    assert texts(corpus, run) == [["one"], ["four", "five"], ["six"]]
    assert run.steps[-1].report == {"documents": 4, "dropped": {"badness": 1, "host": 3, "opted out": 1}}


@pytest.mark.parametrize("step", ["filter", "paragraph_language"])
def test_languages_may_have_the_codes_that_a_crawl_takes(corpus: Path, step: str) -> None:
    keep = {"opted_out": True} if step == "filter" else {}
    recipe(corpus, {"step": step, "languages": ["ces"], **keep})
    run = process(corpus, Here())
    assert (run.steps[-1].parameters["languages"], run.steps[-1].report["documents"]) == (["cs"], 9)


def test_counts_are_the_sums_of_all_shards(corpus: Path) -> None:
    recipe(corpus, {"step": "statistics", "most": 1})
    run = process(corpus, Here())
    report = run.steps[-1].report
    assert (report["documents"], report["words"], report["hosts"]) == (9, 9, 3)
    figures = json.loads(
        (
            ArtifactStore(corpus / "runs").path(run.steps[-1].artifacts[-1].key) / "statistics.json"
        ).read_bytes()
    )
    assert figures["host"] == {"h0.example.cz": 3}
    assert figures["year"] == {"": 9}, "the year of the download is not that of publication"


def test_the_index_holds_the_documents_that_earlier_steps_left(corpus: Path) -> None:
    recipe(corpus, {"step": "exact_duplicates"}, {"step": "index", "annotator": "plain"})
    assert made(process(corpus, Here()))["index"] == 4
    assert (thresher.open(corpus).search('"one"').count(), thresher.open(corpus).index_reader.documents) == (
        1,
        6,
    )
    assert made(process(corpus, Here())) == {}
    # One document more and one less; changes by other commands are undone.
    write_shard(corpus, 3, ["one more"])
    recipe(corpus, {"step": "filter", "not_hosts": ["h2.*"]}, {"step": "index", "annotator": "plain"})
    process(corpus, Here())
    assert (thresher.open(corpus).search('"one"').count(), thresher.open(corpus).index_reader.documents) == (
        3,
        7,
    )
    update(corpus, annotator="plain", processes=1)
    assert thresher.open(corpus).index_reader.documents == 9
    assert [one.step for one in dry_run(corpus)] == ["index"]
    assert made(process(corpus, Here())) == {"index": 1}
    assert thresher.open(corpus).index_reader.documents == 7


def test_documents_with_little_text_of_their_own_are_of_lower_quality(tmp_path: Path) -> None:
    tales = [
        " ".join(f"the {animal} {number} went over hill and dale" for number in range(20))
        for animal in ("fox", "cat", "owl", "dog", "cow")
    ]
    texts = [f"{tales[0]}\n{tales[1]}", f"{tales[2]}\n{tales[0]}", f"{tales[3]}\n{tales[4]}"]
    plain, sifted = tmp_path / "plain", tmp_path / "sifted"
    for directory, steps in ((plain, []), (sifted, [{"step": "near_duplicates"}])):
        directory.mkdir()
        write_shard(directory, 0, texts)
        recipe(directory, *steps, {"step": "index", "annotator": "plain"})
    process(plain, Here())
    assert animals(plain) == ["fox", "owl", "dog"], "all of one quality, in the order in which they came"
    (left,) = process(sifted, Here()).result
    assert animals(sifted) == ["fox", "dog", "owl"]
    (batch,) = document_shards.batches(sifted / left, ["repeated"])
    half = len(tales[0]) / len(tales[0] + tales[2])
    assert batch.column(0).to_pylist() == [0.0, pytest.approx(half), 0.0]


def animals(directory: Path) -> list[str]:
    """Return the second word of every document, in the order of the index."""
    lines = thresher.open(directory).search("<doc> [] []").concordance(context=0).records()
    return [str(line["match"]).split()[1] for line in lines]


def test_a_step_of_a_user_takes_parameters(corpus: Path) -> None:
    recipe(corpus, {"step": "support.batch_steps:shout", "sign": "?"})
    assert texts(corpus, process(corpus, Here()))[0] == ["ONE?", "TWO?", "THREE?"]


def test_text_columns_are_recomputed_after_a_step_of_a_user(tmp_path: Path) -> None:
    full = [
        " ".join([f"word{number}"] * 20) for number in range(2)
    ]  # such a paragraph makes the others not count
    write_shard(tmp_path, 0, [f"One\n{full[0]}", f"Two\n{full[0]} and more"])
    recipe(tmp_path, {"step": "support.batch_steps:cut", "length": 120})
    (left,) = process(tmp_path, Here()).result
    (batch,) = document_shards.batches(tmp_path / left, ["text", "text_bytes", "text_hash"])
    for row in batch.to_pylist():
        assert row["text_bytes"] == len(row["text"].encode())
        assert row["text_hash"] == text_hash(row["text"].split("\n")).hex()


@pytest.mark.parametrize(
    ("step", "left"),
    [
        ({"step": "support.batch_steps:split"}, ["one", "uno", "duo"]),
        ({"step": "support.batch_steps:cut", "length": 3}, ["one"]),
        ({"step": "support.batch_steps:backwards"}, ["one\nduo", "one\nuno"]),
    ],
)
def test_exact_duplicates_are_found_after_a_step_that_changes_texts(
    tmp_path: Path, step: dict[str, Any], left: list[str]
) -> None:
    write_shard(tmp_path, 0, ["one\nuno", "one\nduo", "one\nuno"])
    # From now on the hashes of texts are on record.
    recipe(tmp_path, {"step": "support.batch_steps:hashed"}, step, {"step": "exact_duplicates"})
    ((*found,),) = texts(tmp_path, process(tmp_path, Here()))
    assert sorted(found) == sorted(left)


@pytest.mark.parametrize(
    ("step", "message"),
    [
        ({"step": "filtre"}, "unknown step 'filtre'; did you mean filter?"),
        ({"max_badness": 3}, 'has no step; write step = "NAME"'),
        ({"step": "filter", "max_badnes": 3}, "unknown field.*its parameters are languages"),
        (
            {"step": "filter", "min_language_share": 3},
            "filter: min_language_share must be between 0 and 1, got 3",
        ),
        (
            {"step": "filter", "languages": ["cs", "czech"]},
            r"filter: unknown language 'czech'; did you mean cs",
        ),
        (
            {"step": "paragraph_language", "languages": ["czech"]},
            "1, paragraph_language: unknown language 'czech'",
        ),
        (
            {"step": "index", "order": "qualty"},
            "unknown order 'qualty'; choose one of quality, authority, recency",
        ),
        (
            {"step": "index", "annotator": "plian"},
            "index: unknown annotator 'plian'; choose one of plain",
        ),
        ({"step": "no_such_module:at_all"}, "cannot be imported"),
        ({"step": "support.batch_steps:at_all"}, "cannot be imported"),
        ({"step": "support.batch_steps:unversioned"}, r"has no version; write unversioned\.version = 1"),
        ({"step": "support.batch_steps:TEXT"}, "is not a function; name one: module:function"),
        ({"step": ".batch_steps:shout"}, "cannot be imported: .*relative import"),
        (
            {"step": "support.batch_steps:cut", "lenght": 5},
            r"'support.batch_steps:cut' .*'length'; its parameters are .*length",
        ),
        (
            {"step": "support.batch_steps:shout", "sing": "?"},
            "unexpected .*'sing'; its parameters are .*sign: 'str' = '!'",
        ),
        (
            {"step": "support.batch_steps:shout", "documents": "?"},
            "'support.batch_steps:shout' multiple values .*'documents'",
        ),
        ({"step": "support.batch_steps:cut", "length": "long"}, "cannot use length = 'long': Expected `int`"),
    ],
)
def test_a_mistake_in_a_recipe_is_refused_before_the_run(
    corpus: Path, step: dict[str, Any], message: str
) -> None:
    recipe(corpus, step)
    with pytest.raises(UsageError, match=message):
        process(corpus, Here())
    assert not (corpus / "runs").exists()


OWN = """
import pyarrow as pa
from helper_of_mine import END

def end(documents, *, signs: tuple[str, ...] = ("!",)):
    import late_helper_of_mine
    assert isinstance(signs, tuple), "as it asks for"
    tail = late_helper_of_mine.END + END + "".join(signs)
    longer = pa.array([text + tail for text in documents["text"].to_pylist()], pa.large_string())
    return documents.set_column(documents.schema.get_field_index("text"), "text", longer)

end.version = 1
"""


def own(folder: Path, end: str, *, body: str = OWN) -> None:
    """Return a user's module with a step, and the modules that it imports."""
    folder.mkdir(exist_ok=True)
    (folder / "mine.py").write_text(body)
    (folder / "helper_of_mine.py").write_text(f"END = {end!r}\n")
    (folder / "late_helper_of_mine.py").write_text(f"END = {end!r}\n")


def test_a_module_of_a_user_is_found_beside_the_recipe_and_in_the_current_folder(
    corpus: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    monkeypatch.chdir(elsewhere)
    path = list(sys.path)
    recipe(corpus, {"step": "mine:end", "signs": ["!", "?"]})
    with pytest.raises(
        UsageError, match=f"No module named 'mine'.*whose module is in {corpus}, {elsewhere} or on"
    ):
        process(corpus, Here())
    own(elsewhere, "there")
    code, _, err = command("process", corpus, "--processes", 1)
    assert code == 0, err
    assert texts(corpus, runs(corpus)[-1])[0][0] == "onetherethere!?"
    # The one beside the recipe comes first, and that of another corpus is not taken for it.
    other = small_corpus(tmp_path_factory.mktemp("other"))
    own(other, "other")
    for directory, end in ((other, "other"), (corpus, "there")):
        recipe(directory, {"step": "mine:end", "signs": []})
        assert texts(directory, process(directory, Here()))[0][0] == f"one{end}{end}"
    assert sys.path == path


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("def end(:", r"SyntaxError in .*mine\.py, line 1: "),
        ("\nend = begin", r"NameError in .*mine\.py, line 2: name 'begin' is not defined"),
        ("import helper_of_mine\nimport no_such_helper", r"ModuleNotFoundError in .*mine\.py, line 2: "),
        (
            "from helper_of_mine import START",
            r"ImportError in .*mine\.py, line 1: cannot import name 'START'",
        ),
        ("raise SystemExit(3)", r"SystemExit in .*mine\.py, line 1: 3"),
        ("import json\njson.loads('{')", r"JSONDecodeError in .*mine\.py, line 2: Expecting"),
    ],
)
def test_a_fault_in_a_module_of_a_user_is_reported_with_its_line(
    corpus: Path, body: str, message: str
) -> None:
    own(corpus, "", body=body)
    recipe(corpus, {"step": "mine:end"})
    with pytest.raises(UsageError, match=rf"corpus\.toml: process 1: .*{message}"):
        process(corpus, Here())
    assert command("process", corpus)[0] == 2


def test_a_step_that_returns_no_table_fails(corpus: Path) -> None:
    recipe(corpus, {"step": "support.batch_steps:no_table"})
    with pytest.raises(PoisonedTask, match="a step must return a table of documents, not str"):
        process(corpus, Here())


def test_a_damaged_shard_is_named(corpus: Path) -> None:
    recipe(corpus, {"step": "filter"})
    (corpus / "docs" / "docs-00001.parquet").write_bytes(b"PAR1 this is none")
    with pytest.raises(PoisonedTask, match=r"docs-00001\.parquet cannot be read"):
        process(corpus, Here())


def test_a_corpus_without_documents_is_processed_too(tmp_path: Path) -> None:
    recipe(tmp_path, *({"step": name} for name in STEPS))
    run = process(tmp_path, Here())
    assert run.state == "done" and run.steps[-1].outputs == []
