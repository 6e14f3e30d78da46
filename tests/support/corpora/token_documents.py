"""Random documents of tokens, as segments and for the slow matcher, and the matches of queries in them."""

from __future__ import annotations

from pathlib import Path

from hypothesis import HealthCheck, assume, settings
from hypothesis import strategies as st

from support.slow_matcher import Corpus, Matcher, Region
from thresher.search.cql import ast
from thresher.search.cql.lexer import CqlError
from thresher.search.cql.parser import parse
from thresher.search.execution.conditions import Conditions
from thresher.search.execution.segment_search import Deadline, Hits, joined_hits
from thresher.search.index.segment import Segment
from thresher.search.index.segment_builder import IndexDocument, SegmentGatherer, write_segment
from thresher.search.script import ScriptEvaluator

WORDS, TAGS = ("a", "b", "c", "ab", "Á"), ("N", "V", "D")
STRATEGIES: tuple[ast.Strategy, ...] = ("traditional", "shortest", "standard", "longest")
SLOW = settings(
    # Kernels may have to be compiled.
    suppress_health_check=[
        HealthCheck.too_slow,
        HealthCheck.filter_too_much,
        HealthCheck.function_scoped_fixture,
    ],
)

# Documents of paragraphs of sentences of tokens.
tokens = st.tuples(st.sampled_from(WORDS), st.sampled_from(TAGS))
sentences = st.lists(tokens, min_size=1, max_size=6)
paragraphs = st.lists(sentences, min_size=1, max_size=3)
documents = st.lists(
    st.tuples(st.sampled_from(["1999", "2005", "x"]), st.lists(paragraphs, min_size=1, max_size=3)),
    min_size=1,
    max_size=4,
)
Documents = list[tuple[str, list[list[list[tuple[str, str]]]]]]


def has_tags(place: int, sentence: list[tuple[str, str]]) -> bool:
    """Return whether a sentence becomes a structure: most do."""
    return place == 0 or len(sentence) != 3


def sources(corpus: Documents) -> list[IndexDocument]:
    """Return the documents as an index takes them."""
    found = []
    for key, (year, parts) in enumerate(corpus):
        lines = b""
        for number, part in enumerate(parts):
            lines += f"\x02p\tn={number}\n".encode()
            for place, sentence in enumerate(part):
                # Structures need not cover all tokens.
                tagged = has_tags(place, sentence)
                lines += b"\x02s\n" if tagged else b""
                lines += b"".join(f"{word}\t{tag}\n".encode() for word, tag in sentence)
                lines += b"\x03s\n" if tagged else b""
            lines += b"\x03p\n"
        found.append(IndexDocument(key, lines, ("word", "pos"), {"year": year, "id": f"d{key}"}))
    return found


def plain(corpus: Documents) -> Corpus:
    """Return the documents as the slow matcher takes them."""
    columns: dict[str, list[str]] = {"word": [], "pos": []}
    structures: dict[str, list[Region]] = {"doc": [], "p": [], "s": []}
    for key, (year, parts) in enumerate(corpus):
        document = len(columns["word"])
        for number, part in enumerate(parts):
            paragraph = len(columns["word"])
            for place, sentence in enumerate(part):
                first = len(columns["word"])
                for word, tag in sentence:
                    columns["word"].append(word)
                    columns["pos"].append(tag)
                if has_tags(place, sentence):
                    structures["s"].append(Region(first, len(columns["word"]) - 1))
            structures["p"].append(Region(paragraph, len(columns["word"]) - 1, {"n": str(number)}))
        structures["doc"].append(Region(document, len(columns["word"]) - 1, {"year": year, "id": f"d{key}"}))
    return Corpus(columns, structures)


def segment_of(corpus: Documents, folder: Path) -> Segment:
    """Write the documents to a segment and open it."""
    gatherer = SegmentGatherer(("word", "pos"))
    for source in sources(corpus):
        gatherer.add(source)
    write_segment(folder, gatherer.gathered())
    return Segment(folder)


def new_segment(corpus: Documents, folder: Path) -> Segment:
    """Return a segment in a new directory of a folder."""
    return segment_of(corpus, folder / str(len(list(folder.iterdir()))))


def spans_of(hits: Hits) -> list[tuple[int, int]]:
    """Return first and last position of each hit."""
    return list(zip(hits.firsts.tolist(), hits.lasts.tolist(), strict=True))


def found(segment: Segment, query: str, strategy: ast.Strategy, gently: bool = True) -> list[tuple[int, int]]:
    """Return the matches of a query in a segment."""
    parts = ScriptEvaluator([Conditions(segment)], strategy, Deadline()).parts(parse(query), gently=gently)
    return spans_of(joined_hits([part.hits for part in parts]))


def matched(segment: Segment, query: str, strategy: ast.Strategy) -> list[tuple[int, int]]:
    """Return the matches of a query; skip the example if the query can match no token."""
    try:
        return found(segment, query, strategy)
    except CqlError as fault:
        assume("can match no token" not in str(fault))
        raise


def expected(corpus: Corpus, query: str, strategy: ast.Strategy) -> list[tuple[int, int]]:
    """Return the matches that the slow matcher finds."""
    find = parse(query)[0].search
    assert isinstance(find, ast.FindQuery)
    return Matcher(corpus).spans(find, strategy)


def check(corpus: Documents, query: str, folder: Path) -> None:
    """Compare the matches of a query under all strategies with the ones of the slow matcher."""
    segment, reference = new_segment(corpus, folder), plain(corpus)
    for strategy in STRATEGIES:
        spans = matched(segment, query, strategy)
        assert spans == expected(reference, query, strategy), (query, strategy)
