"""An index holds all documents that were added in any way, also after crashes."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.corpora.token_documents import Documents, documents, found, plain, sources
from support.killing import is_killed
from thresher.search.encoding.lexicon import texts
from thresher.search.encoding.token_column import unpack
from thresher.search.index import writer as index
from thresher.search.index.manifest import FOLDER, CorpusIndexError, Manifest, ManifestWriter, read, writing
from thresher.search.index.segment import DOCUMENT, Segment
from thresher.search.index.segment_builder import INPUT, IndexDocument
from thresher.search.searcher import Index

FEW = settings(max_examples=30)


def words(segment: Segment) -> list[str]:
    """Return all tokens of a segment."""
    values = texts(segment.attributes["word"].lexicon.values)
    numbers = segment.attributes["word"].values[unpack(segment.column, 0, segment.size)]
    return [values[number] for number in numbers.tolist()]


def content(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@FEW
@given(corpus=documents, run=st.integers(1, 60))
def test_segments_merged_are_the_segment_of_all_documents(
    corpus: Documents, run: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    one, several = tmp_path_factory.mktemp("one"), tmp_path_factory.mktemp("several")
    index.build(one, sources(corpus))
    with writing(several) as writer, pytest.MonkeyPatch.context() as patch:
        patch.setattr("thresher.search.index.merge.TOKENS_IN_MEMORY", 16)  # tokens are kept in a file, too
        patch.setattr("thresher.search.index.segment_builder.STRUCTURES_AT_A_TIME", 3)
        index.add(writer, sources(corpus), run_tokens=run)
        index.tidy(writer, all_of_them=True)
    (first,), (second,) = Index(one).segments, Index(several).segments
    assert content(first.folder) == content(second.folder)
    assert words(first) == plain(corpus).columns["word"]


@FEW
@given(
    corpus=documents,
    qualities=st.lists(st.sampled_from([0.1, 0.5, 0.9]), min_size=4, max_size=4),
    run=st.integers(1, 60),
)
def test_the_best_documents_come_first(
    corpus: Documents, qualities: list[float], run: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    directory = tmp_path_factory.mktemp("sorted")
    given_qualities = dict(enumerate(qualities))
    ranked = [
        IndexDocument(one.key, one.lines, one.attributes, one.meta, {"quality": given_qualities[one.key]})
        for one in sources(corpus)
    ]
    with writing(directory) as writer:
        writer.start("quality")
        index.add(writer, ranked, run_tokens=run)
        index.tidy(writer, all_of_them=True)
    (segment,) = Index(directory).segments
    found_ids = segment.values(DOCUMENT, "id")
    order = [texts(found_ids.values)[number] for number in found_ids.numbers.tolist()]
    assert order == [f"d{one.key}" for one in sorted(ranked, key=lambda one: -one.dimensions["quality"])]
    # Each document has the tokens and structures that it had.
    reference = plain([corpus[int(name[1:])] for name in order])
    assert words(segment) == reference.columns["word"]
    for name in ("s", "p"):
        assert segment.structures[name].firsts.tolist() == [one.first for one in reference.structures[name]]
        assert (segment.structures[name].nexts - 1).tolist() == [
            one.last for one in reference.structures[name]
        ]


@FEW
@given(corpus=documents, gone=st.sets(st.integers(0, 3)), run=st.integers(1, 60))
def test_deleted_documents_are_not_found_and_leave_nothing(
    corpus: Documents, gone: set[int], run: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    directory, without = tmp_path_factory.mktemp("all"), tmp_path_factory.mktemp("without")
    kept = [one for one in sources(corpus) if one.key not in gone]
    with writing(directory) as writer:
        index.add(writer, sources(corpus), run_tokens=run)
        assert index.delete(writer, gone) == len(corpus) - len(kept)
        assert index.delete(writer, gone) == 0
    at_once = Index(directory)
    counts = {
        query: at_once.search(query).count() for query in ("[]", '"a"', '[] "a"', '[]{2} "b" within doc')
    }
    assert at_once.documents == len(kept)
    with writing(directory) as writer:
        index.tidy(writer, all_of_them=True)
        assert index.known_keys(writer) == {one.key for one in kept}
    if not kept:
        assert counts["[]"] == 0
        assert not Index(directory).segments
        return
    index.build(without, kept)
    for query in ("[]", '"a"', '[]{2} "b" within doc'):  # across documents, a gap was left for a while
        assert counts[query] == Index(without).search(query).count() == Index(directory).search(query).count()
    mine, other = Index(directory).segments[0], Index(without).segments[0]
    assert content(mine.folder).keys() == content(other.folder).keys()
    assert words(mine) == words(other)
    assert texts(mine.attributes["word"].lexicon.values) == texts(other.attributes["word"].lexicon.values)


def a_document(key: int, *lines: str, attributes: tuple[str, ...] = ("word",), **meta: str) -> IndexDocument:
    return IndexDocument(key, "".join(f"{line}\n" for line in lines).encode(), attributes, meta)


def test_segments_complete_the_attributes_of_each_other(tmp_path: Path) -> None:
    with writing(tmp_path) as writer:
        index.add(
            writer,
            [
                a_document(1, "a", "b"),
                a_document(2, "\x02s\tn=1", "a\tN", "\x03s", attributes=("word", "pos")),
            ],
        )
    both = Index(tmp_path)
    assert len(both.segments) == 2
    assert both.search('[word="a" & pos="N"]').count() == 1
    assert both.search('[word="a" & pos=""]').count() == 1
    assert both.search('<s> "a"').count() == 1
    assert both.search('[_.s_n="1"]').count() == 1
    with writing(tmp_path) as writer:
        index.tidy(writer, all_of_them=True)
    merged = Index(tmp_path)
    assert len(merged.segments) == 1
    assert merged.search('[word="a" & pos=""]').count() == 1
    assert merged.search('[_.s_n="1"]').count() == 1


def test_many_small_segments_become_few(tmp_path: Path) -> None:
    with writing(tmp_path) as writer:
        for key in range(40):
            index.add(writer, [a_document(key, *["x"] * (key + 1))])
            index.tidy(writer)
            sizes = sorted(entry.tokens for entry in writer.manifest.segments)
            assert all(after > 2 * sum(sizes[:place]) for place, after in enumerate(sizes))
    assert Index(tmp_path).search('"x"').count() == 40 * 41 // 2


def test_a_worn_segment_is_cleaned(tmp_path: Path) -> None:
    with writing(tmp_path) as writer:
        index.add(writer, [a_document(key, "x", "y") for key in range(10)])
        index.delete(writer, [1])
        index.tidy(writer)
        assert [entry.deleted for entry in writer.manifest.segments] == [1]
        index.delete(writer, [2, 3])
        index.tidy(writer)
        assert [entry.deleted for entry in writer.manifest.segments] == [0]
    assert Index(tmp_path).search('"x"').count() == 7


def test_readers_keep_the_segments_that_they_opened(tmp_path: Path) -> None:
    index.build(tmp_path, [a_document(1, "a"), a_document(2, "b")])
    before = Index(tmp_path)
    index.build(tmp_path, [a_document(3, "c")])
    assert before.search('"a"').count() == 1
    assert Index(tmp_path).search('"a"').count() == 0


def test_one_writer_at_a_time(tmp_path: Path) -> None:
    with writing(tmp_path), pytest.raises(CorpusIndexError, match="another process"), writing(tmp_path):
        pass


def test_a_missing_or_foreign_index_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(CorpusIndexError, match="has no index yet"):
        Index(tmp_path)
    index.build(tmp_path, [a_document(1, "a")])
    manifest = tmp_path / FOLDER / "manifest.json"
    manifest.write_text('{"version": 999}')
    with pytest.raises(CorpusIndexError, match="another version"):
        Index(tmp_path)
    manifest.write_text("{")
    with pytest.raises(CorpusIndexError, match="cannot be read"):
        Index(tmp_path)


def test_a_damaged_segment_is_an_error(tmp_path: Path) -> None:
    index.build(tmp_path, [a_document(1, "a")])
    path = Index(tmp_path).segments[0].folder / "tokens"
    whole = path.read_bytes()
    for damaged in (b"", whole[:-5], whole[: len(whole) // 2]):
        path.write_bytes(damaged)
        with pytest.raises(Exception, match="is damaged"):
            Index(tmp_path)


KILLED = """
import sys
from pathlib import Path
from search.index.test_index import a_document
from support.killing import kill_after
from thresher.search.index import manifest, writer as index

directory = Path(sys.argv[1])
kill_after(int(sys.argv[2]), "/index/")
with manifest.writing(directory) as writer:
    known = index.known_keys(writer)
    documents = (a_document(key, "x", str(key)) for key in range(12) if key not in known)
    index.add(writer, documents, run_tokens=6)
    index.delete(writer, [3])
    index.tidy(writer)
    index.tidy(writer, all_of_them=True)
"""


STRIDE = 5  # steps between two deaths: every one of them is its own process


@pytest.mark.slow
@pytest.mark.faults
def test_a_kill_at_any_moment_loses_nothing(tmp_path: Path) -> None:
    deaths = 0
    for steps in range(0, 1000, STRIDE):
        killed = is_killed(KILLED, tmp_path, steps)
        if (tmp_path / FOLDER / "manifest.json").exists():
            # Any state on disk can be opened and searched, and has no document twice.
            now = Index(tmp_path)
            assert now.search('"x"').count() == now.documents <= 12
        if not killed:
            break
        deaths += 1
    assert deaths > 3
    with writing(tmp_path) as writer:
        index.add(writer, [a_document(3, "x", "3")])
        assert index.known_keys(writer) == set(range(12))
    assert not list((tmp_path / FOLDER).glob("*.new"))


def test_a_manifest_is_read_as_it_was_written(tmp_path: Path) -> None:
    index.build(tmp_path, [a_document(1, "a")], INPUT)
    manifest = read(tmp_path)
    assert isinstance(manifest, Manifest)
    assert manifest.segments[0].tokens == 1
    assert ManifestWriter(tmp_path).manifest == manifest


def test_dimensions_stand_beside_documents(tmp_path: Path) -> None:
    ranked = [IndexDocument(key, b"a\n" * (key + 1), ("word",), {}, {"quality": key / 4}) for key in range(3)]
    index.build(tmp_path, ranked, "quality")
    (segment,) = Index(tmp_path).segments
    assert segment.dimensions["quality"].tolist() == [0.5, 0.25, 0.0]
    assert segment.dimensions["length"].tolist() == [3.0, 2.0, 1.0]


def test_segments_are_merged_as_far_as_there_is_room_in_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(index, "MOST_TOKENS", 10)
    ranked = [IndexDocument(key, b"a\nb\n", ("word",), {}, {"quality": float(key)}) for key in range(12)]
    with writing(tmp_path) as writer:
        writer.start(INPUT)
        index.add(writer, ranked, run_tokens=4)
        index.delete(writer, [3])
        index.tidy(writer, order="quality")
        assert writer.manifest.order == "quality"
    whole = Index(tmp_path)
    assert [segment.size for segment in whole.segments] == [6, 8, 8]
    assert all(
        sorted(some)[::-1] == list(some) for some in (one.dimensions["quality"] for one in whole.segments)
    )
    assert whole.search('"a" "b"').count() == whole.documents == 11


def test_hits_of_all_segments_come_in_order(tmp_path: Path) -> None:
    with writing(tmp_path) as writer:
        index.add(writer, [a_document(key, "a", "b") for key in range(5)], run_tokens=3)
    whole = Index(tmp_path)
    assert len(whole.segments) > 1
    assert list(whole.search('"a" "b"').spans()) == [(2 * key, 2 * key + 1) for key in range(5)]
    assert found(whole.segments[0], '"a"', "standard") == [(0, 0), (2, 2)]
