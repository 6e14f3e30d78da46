"""What each step of a recipe does to a corpus."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

import thresher
from batch_corpora import TEXTS, Here, made, recipe, small_corpus, texts, told, write_shard
from thresher.batch import shards
from thresher.batch.dry import dry_run
from thresher.batch.near.paragraphs import drop
from thresher.batch.pieces import Pieces
from thresher.batch.recipe import USUAL
from thresher.batch.records import StepRun, runs
from thresher.batch.run import Poisoned, process
from thresher.batch.steps import STEPS
from thresher.config import ConfigError
from thresher.engine.processes import Processes
from thresher.query.update import update
from thresher.read.fingerprint import text_hash


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    return small_corpus(tmp_path)


def tale(*animals: str) -> str:
    """Paragraphs of many runs of seven words, each with animals of its own."""
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
    engine = Processes(2)
    try:
        there = process(other, engine)
    finally:
        engine.close()
    similar, near = here.steps[1].report, here.steps[2].report
    assert (similar["similar"], near["dropped_paragraphs"]) == (2, 3), "or nothing would be compared"
    assert [step.outputs for step in there.steps] == [step.outputs for step in here.steps]


def test_old_shards_are_only_written_anew_if_others_are_to_be_left_out_of_them(tales: Path) -> None:
    steps = [*USUAL[:-1], {"step": "similar_documents"}, USUAL[-1]]
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
    # What comes before is another matter: of two that are the same, the first stays.
    files = sorted((tales / "docs").iterdir())
    files[3].rename(files[3].with_name("moved"))
    for path in reversed(files[:3]):
        path.rename(path.with_name(f"docs-{int(path.stem[-5:]) + 1:05d}.parquet"))
    files[3].with_name("moved").rename(files[0])
    run = process(tales, Here())
    assert written(run.steps[1]) == ["made", "made", "found", "found"]


def written(step: StepRun) -> list[str]:
    """What became of the pieces that write documents, by shard."""
    return [piece.state for piece in step.pieces if piece.function.endswith(":leave_out")]


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


@pytest.mark.parametrize("step", ["filter", "paragraph_language"])
def test_languages_may_have_the_codes_that_a_crawl_takes(corpus: Path, step: str) -> None:
    recipe(corpus, {"step": step, "languages": ["ces"]})
    run = process(corpus, Here())
    assert (run.steps[-1].parameters["languages"], run.steps[-1].report["documents"]) == (["cs"], 9)


def test_figures_are_those_of_all_shards(corpus: Path) -> None:
    recipe(corpus, {"step": "statistics", "most": 1})
    run = process(corpus, Here())
    report = run.steps[-1].report
    assert (report["documents"], report["words"], report["hosts"]) == (9, 9, 3)
    figures = json.loads(
        (Pieces(corpus / "runs").path(run.steps[-1].pieces[-1].key) / "statistics.json").read_bytes()
    )
    assert figures["host"] == {"h0.example.cz": 3}
    assert figures["year"] == {"2026": 9}


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


def test_documents_that_have_less_of_their_own_are_of_lower_quality(tmp_path: Path) -> None:
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
    (batch,) = shards.batches(sifted / left, ["repeated"])
    half = len(tales[0]) / len(tales[0] + tales[2])
    assert batch.column(0).to_pylist() == [0.0, pytest.approx(half), 0.0]


def animals(directory: Path) -> list[str]:
    """The second word of every document, in the order of the index."""
    lines = thresher.open(directory).ask("kwic", "<doc> [] []", context=0).records()
    return [str(line["match"]).split()[1] for line in lines]


def test_a_step_of_a_users_own_has_parameters(corpus: Path) -> None:
    recipe(corpus, {"step": "batch_steps:shout", "sign": "?"})
    assert texts(corpus, process(corpus, Here()))[0] == ["ONE?", "TWO?", "THREE?"]


def test_what_a_step_of_a_users_own_leaves_is_known_by_its_texts(tmp_path: Path) -> None:
    full = [
        " ".join([f"word{number}"] * 20) for number in range(2)
    ]  # such a paragraph makes the others not count
    write_shard(tmp_path, 0, [f"One\n{full[0]}", f"Two\n{full[0]} and more"])
    recipe(tmp_path, {"step": "batch_steps:cut", "length": 120})
    (left,) = process(tmp_path, Here()).result
    (batch,) = shards.batches(tmp_path / left, ["text", "text_bytes", "text_hash"])
    for row in batch.to_pylist():
        assert row["text_bytes"] == len(row["text"].encode())
        assert row["text_hash"] == text_hash(row["text"].split("\n")).hex()


@pytest.mark.parametrize(
    ("step", "left"),
    [
        ({"step": "batch_steps:split"}, ["one", "uno", "duo"]),
        ({"step": "batch_steps:cut", "length": 3}, ["one"]),
        ({"step": "batch_steps:backwards"}, ["one\nduo", "one\nuno"]),
    ],
)
def test_exact_duplicates_are_known_behind_a_step_that_changes_texts(
    tmp_path: Path, step: dict[str, Any], left: list[str]
) -> None:
    write_shard(tmp_path, 0, ["one\nuno", "one\nduo", "one\nuno"])
    # From now on the hashes of texts are on record.
    recipe(tmp_path, {"step": "batch_steps:hashed"}, step, {"step": "exact_duplicates"})
    ((*found,),) = texts(tmp_path, process(tmp_path, Here()))
    assert sorted(found) == sorted(left)


@pytest.mark.parametrize(
    ("step", "message"),
    [
        ({"step": "filtre"}, "there is no step 'filtre'; did you mean filter?"),
        ({"max_badness": 3}, 'has no step; write step = "NAME"'),
        ({"step": "filter", "max_badnes": 3}, "unknown field.*its parameters are languages"),
        ({"step": "filter", "min_language_share": 3}, "filter: .*<= 1"),
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
            "order = 'qualty' is none; there are quality, authority, recency",
        ),
        (
            {"step": "index", "annotator": "plian"},
            "index: there is no annotator 'plian'; there are plain",
        ),
        ({"step": "no_such_module:at_all"}, "cannot be imported"),
        ({"step": "batch_steps:at_all"}, "cannot be imported"),
        ({"step": "batch_steps:unversioned"}, r"has no version; write unversioned\.version = 1"),
        ({"step": "batch_steps:TEXT"}, "is no function; name one: module:function"),
        ({"step": ".batch_steps:shout"}, "cannot be imported: .*relative import"),
        (
            {"step": "batch_steps:cut", "lenght": 5},
            r"'batch_steps:cut' .*'length'; its parameters are .*length",
        ),
        (
            {"step": "batch_steps:shout", "sing": "?"},
            "unexpected .*'sing'; its parameters are .*sign: 'str' = '!'",
        ),
        (
            {"step": "batch_steps:shout", "documents": "?"},
            "'batch_steps:shout' multiple values .*'documents'",
        ),
        ({"step": "batch_steps:cut", "length": "long"}, "cannot use length = 'long': Expected `int`"),
    ],
)
def test_a_mistake_in_a_recipe_is_told_before_anything_is_done(
    corpus: Path, step: dict[str, Any], message: str
) -> None:
    recipe(corpus, step)
    with pytest.raises(ConfigError, match=message):
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
    """A module of a user's with a step, and others that it needs."""
    folder.mkdir(exist_ok=True)
    (folder / "mine.py").write_text(body)
    (folder / "helper_of_mine.py").write_text(f"END = {end!r}\n")
    (folder / "late_helper_of_mine.py").write_text(f"END = {end!r}\n")


def test_a_users_own_module_is_found_beside_the_recipe_and_in_the_current_folder(
    corpus: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    monkeypatch.chdir(elsewhere)
    path = list(sys.path)
    recipe(corpus, {"step": "mine:end", "signs": ["!", "?"]})
    with pytest.raises(
        ConfigError, match=f"No module named 'mine'.*its module in {corpus}, {elsewhere} or where"
    ):
        process(corpus, Here())
    own(elsewhere, "there")
    code, _, err = told("process", corpus, "--processes", 1)
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
def test_what_is_wrong_in_a_users_own_module_is_told_with_its_line(
    corpus: Path, body: str, message: str
) -> None:
    own(corpus, "", body=body)
    recipe(corpus, {"step": "mine:end"})
    with pytest.raises(ConfigError, match=rf"corpus\.toml: process 1: .*{message}"):
        process(corpus, Here())
    assert told("process", corpus)[0] == 2


def test_a_step_that_gives_no_table_is_told(corpus: Path) -> None:
    recipe(corpus, {"step": "batch_steps:no_table"})
    with pytest.raises(Poisoned, match="a step must return a table of documents, not str"):
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
