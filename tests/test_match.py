"""Fast matching finds what slow and obvious matching finds, in any corpus, for any query."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from slow_matcher import Corpus, Matcher, Region, filtered
from thresher.query import tree
from thresher.query.answers import Answers
from thresher.query.build import Gatherer, Source, write_segment
from thresher.query.conditions import Conditions
from thresher.query.cql import parse
from thresher.query.match import Stopped
from thresher.query.pieces import CqlError
from thresher.query.search import Finder, Hits, Watch, some_hits
from thresher.query.segment import Segment

WORDS, TAGS = ("a", "b", "c", "ab", "Á"), ("N", "V", "D")
STRATEGIES: tuple[tree.Strategy, ...] = ("traditional", "shortest", "standard", "longest")


# corpora: documents of paragraphs of sentences of tokens

tokens = st.tuples(st.sampled_from(WORDS), st.sampled_from(TAGS))
sentences = st.lists(tokens, min_size=1, max_size=6)
paragraphs = st.lists(sentences, min_size=1, max_size=3)
documents = st.lists(
    st.tuples(st.sampled_from(["1999", "2005", "x"]), st.lists(paragraphs, min_size=1, max_size=3)),
    min_size=1,
    max_size=4,
)
Documents = list[tuple[str, list[list[list[tuple[str, str]]]]]]


def is_marked(place: int, sentence: list[tuple[str, str]]) -> bool:
    return place == 0 or len(sentence) != 3


def sources(corpus: Documents) -> list[Source]:
    found = []
    for key, (year, parts) in enumerate(corpus):
        lines = b""
        for number, part in enumerate(parts):
            lines += f"\x02p\tn={number}\n".encode()
            for place, sentence in enumerate(part):
                # Some sentences are not marked as such: structures need not cover everything.
                marked = is_marked(place, sentence)
                lines += b"\x02s\n" if marked else b""
                lines += b"".join(f"{word}\t{tag}\n".encode() for word, tag in sentence)
                lines += b"\x03s\n" if marked else b""
            lines += b"\x03p\n"
        found.append(Source(key, lines, ("word", "pos"), {"year": year, "id": f"d{key}"}))
    return found


def plain(corpus: Documents) -> Corpus:
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
                if is_marked(place, sentence):
                    structures["s"].append(Region(first, len(columns["word"]) - 1))
            structures["p"].append(Region(paragraph, len(columns["word"]) - 1, {"n": str(number)}))
        structures["doc"].append(Region(document, len(columns["word"]) - 1, {"year": year, "id": f"d{key}"}))
    return Corpus(columns, structures)


def segment_of(corpus: Documents, folder: Path) -> Segment:
    gatherer = Gatherer(("word", "pos"))
    for source in sources(corpus):
        gatherer.add(source)
    write_segment(folder, gatherer.gathered())
    return Segment(folder)


# queries

texts = st.sampled_from(
    ['"a"', '"a|b"', '".*b"', '"A" %c', '"a" %d', '"á" %cd', '"x"', '"(?=.*b)a.*"', '"."', '"." %l']
)
plain_conditions = st.one_of(
    texts.map(lambda text: f"word={text}"),
    texts.map(lambda text: f"word!={text}"),
    st.sampled_from(['pos="N"', 'pos!="V"', 'pos="N|D"', "word=pos", "f(word) > 3", "strlen(word) = 1"]),
    st.sampled_from(
        ['_.doc_year="2005"', "int(_.doc_year) > 2000", "lbound(s)", "rbound(p)", "s", '_.p_n="1"']
    ),
)


def combined(parts: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.one_of(
        st.tuples(parts, parts).map(" & ".join),
        st.tuples(parts, parts).map(lambda pair: f"({pair[0]} | {pair[1]})"),
        parts.map(lambda part: f"!({part})"),
        st.tuples(parts, parts).map(lambda pair: f"({pair[0]} -> {pair[1]})"),
    )


conditions = st.recursive(plain_conditions, combined, max_leaves=3)
token = st.one_of(
    st.just("[]"), conditions.map(lambda condition: f"[{condition}]"), st.sampled_from(['"a"', '"b"'])
)
zero_width = st.sampled_from(
    [
        "<s>",
        "</s>",
        "<p>",
        "</p>",
        '<doc_year="2005">',
        '<p n="0">',
        "</doc>",
        '[: pos="N" :]',
        '[: word!="a" :]',
    ]
)
times = st.sampled_from(["?", "*", "+", "{2}", "{1,3}", "{0,2}", "{2,}", "{,2}"])


def patterns_of(parts: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.one_of(
        st.lists(parts, min_size=2, max_size=3).map(" ".join),
        st.tuples(parts, parts).map(lambda pair: f"({pair[0]} | {pair[1]})"),
        st.tuples(parts, times).map(lambda pair: f"({pair[0]}){pair[1]}"),
    )


patterns = st.recursive(
    st.one_of(token, token, token, zero_width, st.just("<s/>")), patterns_of, max_leaves=6
)
endings = st.sampled_from(
    ["", "", " within s", " within p", " within doc", " within 2 s", " within 3", " within 0"]
)


def spans_of(hits: Hits) -> list[tuple[int, int]]:
    return list(zip(hits.firsts.tolist(), hits.lasts.tolist(), strict=True))


def found(
    segment: Segment, query: str, strategy: tree.Strategy, gently: bool = True
) -> list[tuple[int, int]]:
    parts = Answers([Conditions(segment)], strategy, Watch()).parts(parse(query), gently=gently)
    return spans_of(some_hits([part.hits for part in parts]))


def matched(segment: Segment, query: str, strategy: tree.Strategy) -> list[tuple[int, int]]:
    """The matches of a query, if it is one that can be answered."""
    try:
        return found(segment, query, strategy)
    except CqlError as fault:
        assume("can match nothing" not in str(fault))
        raise


def expected(corpus: Corpus, query: str, strategy: tree.Strategy) -> list[tuple[int, int]]:
    find = parse(query)[0].search
    assert isinstance(find, tree.Find)
    return Matcher(corpus).spans(find, strategy)


SLOW = settings(
    # kernels may have to be compiled
    suppress_health_check=[
        HealthCheck.too_slow,
        HealthCheck.filter_too_much,
        HealthCheck.function_scoped_fixture,
    ],
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("segments")


@pytest.fixture(autouse=True)
def short_stretches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small corpora are searched in several stretches, too."""
    monkeypatch.setattr("thresher.query.search.STRETCHES", (64, 128))
    monkeypatch.setattr("thresher.query.kinds.FEW", 0)  # so that first stretches know some types alone


def new_segment(corpus: Documents, folder: Path) -> Segment:
    return segment_of(corpus, folder / str(len(list(folder.iterdir()))))


def check(corpus: Documents, query: str, folder: Path) -> None:
    segment, reference = new_segment(corpus, folder), plain(corpus)
    for strategy in STRATEGIES:
        spans = matched(segment, query, strategy)
        assert spans == expected(reference, query, strategy), (query, strategy)


@SLOW
@given(corpus=documents, pattern=patterns, ending=endings)
def test_patterns_match_what_they_say(corpus: Documents, pattern: str, ending: str, folder: Path) -> None:
    check(corpus, pattern + ending, folder)


@SLOW
@given(corpus=documents, pattern=patterns, ending=endings)
def test_step_by_step_is_as_good_as_an_automaton(
    corpus: Documents, pattern: str, ending: str, folder: Path
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("thresher.query.automaton.MOST_SIGNS", 0)
        check(corpus, pattern + ending, folder)


# What it costs to ask at each candidate: nothing, so that this is done; or too much, so that all is looked up.
prices = st.sampled_from([0.0, 1e12])


@SLOW
@given(corpus=documents, pattern=patterns, ending=endings, asking=prices)
def test_all_that_is_looked_up_first_leaves_every_match(
    corpus: Documents, pattern: str, ending: str, asking: float, folder: Path
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        # Small corpora are tried at once, unless looking up seems to pay.
        patch.setattr("thresher.query.plan.Planner._expected", lambda *_: 1.0)
        patch.setattr("thresher.query.plan.TRYING", 1e12)
        patch.setattr("thresher.query.plan.ASKING", asking)
        check(corpus, pattern + ending, folder)


def test_what_a_match_needs_may_stand_in_a_later_structure_than_its_beginning(folder: Path) -> None:
    sentences = [[("a", "N")], [("a", "N"), ("a", "N")]]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("thresher.query.plan.Planner._expected", lambda *_: 1.0)
        patch.setattr("thresher.query.plan.TRYING", 1e12)
        for count in (1, 2, 3):
            check([("1999", [sentences])], f'<s/> [] "a" within {count} s', folder)


labelled = st.sampled_from(["a:[]", 'a:[word="a|b"]', 'a:[pos!="V"]', 'a:"a"'])
bound = st.sampled_from(
    [
        "[word = a.word]", "[pos = a.pos & word != a.word]", '[word="a" | pos = a.pos]', "[]", '[pos="N"]',
        "[!(word = a.word)]", "[_.doc_id = a.doc_id]", "[a & pos!=a.pos]", '[a.pos="N"]',
        "[lbound(s) & word=a.word]",
    ]
)  # fmt: skip
gaps = st.one_of(st.just(""), st.just("[]{0,2}"), st.just("[]*"), patterns)
wholes = st.sampled_from(
    [
        "", ":: a.pos = matchend.pos", ":: match.word != matchend.word", ":: int(match.doc_year) < 2001",
        ':: a.pos != "N" & a.doc_id = matchend.doc_id', ":: distance(a, matchend) <= 2",
        ":: distabs(matchend, a) > 1",
        ":: f(a.word) > 2 | a.p_n = \"1\"", ":: !(a.word = match.word)",
        ":: int(a.word) = int(matchend.word)", ":: int(a.doc_year) = int(match.doc_year)",
        ":: strlen(a.word) = strlen(match.word)",
    ]
)  # fmt: skip


@SLOW
@given(
    corpus=documents,
    parts=st.one_of(
        st.tuples(labelled, gaps, bound, gaps),
        st.tuples(gaps, labelled, bound),
        st.tuples(labelled, bound, bound),
        st.tuples(bound, labelled, bound, labelled),
    ),
    whole=wholes,
    ending=endings,
    asking=prices,
)
def test_labels_stand_where_they_were_set(
    corpus: Documents, parts: tuple[str, ...], whole: str, ending: str, asking: float, folder: Path
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("thresher.query.plan.ASKING", asking)
        check(corpus, " ".join([*parts, whole]) + ending, folder)


@SLOW
@given(corpus=documents, pattern=patterns, target=token, ending=endings)
def test_a_target_is_in_its_match(
    corpus: Documents, pattern: str, target: str, ending: str, folder: Path
) -> None:
    segment = new_segment(corpus, folder)
    query = f"{pattern} @{target}{ending}"
    parts = Answers([Conditions(segment)], "standard", Watch()).parts(parse(query))
    hits = some_hits([part.hits for part in parts])
    assert found(segment, f"{pattern} {target}{ending}", "standard") == spans_of(hits)
    assert hits.targets is not None
    assert hits.targets.tolist() == hits.lasts.tolist()


PIECES = r"""
"a" 'b' "(" [] [ ] ( ) {1,2} { } * + ? | & ! = != < > <s> </p> <s/> /region[s] :: within containing s doc word pos
a: b: @ a.word match.pos _.doc_year int( f(word) distance(a,b) lbound(s) 1 500 , ; A= A cut MU(meet union difference
%c %d -> [: :] (?longest) - \ ́ expand to
"""
pieces = st.sampled_from([*PIECES.split(), "\x00", "\n"])


@SLOW
@given(corpus=documents, query=st.lists(pieces, max_size=12).map(" ".join))
def test_any_query_is_answered_or_refused_with_a_message(corpus: Documents, query: str, folder: Path) -> None:
    segment = new_segment(corpus, folder)
    for strategy in STRATEGIES:
        try:
            spans = found(segment, query, strategy)
        except CqlError as fault:
            assert str(fault)
        else:
            assert all(0 <= first <= last < segment.size for first, last in spans)


# what is made of matches

names = st.sampled_from(["s", "p", "doc"])


@SLOW
@given(corpus=documents, one=token, other=token, third=token)
def test_results_are_joined_met_and_subtracted(
    corpus: Documents, one: str, other: str, third: str, folder: Path
) -> None:
    segment, script = new_segment(corpus, folder), f"A = {one} {other}; B = {one} {third}; "
    first, second = (
        set(found(segment, f"{one} {other}", "standard")),
        set(found(segment, f"{one} {third}", "standard")),
    )
    assert found(segment, script + "union A B", "standard") == sorted(first | second)
    assert found(segment, script + "intersection A B", "standard") == sorted(first & second)
    assert found(segment, script + "difference A B", "standard") == sorted(first - second)


@SLOW
@given(corpus=documents, pattern=patterns, region=patterns)
def test_a_search_inside_a_result_finds_what_lies_in_one_of_its_regions(
    corpus: Documents, pattern: str, region: str, folder: Path
) -> None:
    segment, reference = new_segment(corpus, folder), plain(corpus)
    regions = matched(segment, region, "longest")
    search = parse(pattern)[0].search
    assert isinstance(search, tree.Find)
    matched(segment, pattern, "standard")
    inside = found(segment, f"A = (?longest) {region}; A; {pattern}", "traditional")
    candidates = Matcher(reference).candidates(search, range(reference.size))
    expected_inside = []
    for start, ends in candidates:
        fitting = [
            state.position - 1
            for state in ends
            if any(first <= start and state.position - 1 <= last for first, last in regions)
        ]
        expected_inside += [(start, min(fitting))] if fitting else []
    assert inside == filtered(expected_inside, "traditional")


@SLOW
@given(corpus=documents, pattern=patterns, inner=patterns, negated=st.sampled_from(["", "!"]))
def test_matches_contain_others_or_lie_in_them(
    corpus: Documents, pattern: str, inner: str, negated: str, folder: Path
) -> None:
    segment = new_segment(corpus, folder)
    outside = matched(segment, pattern, "standard")
    small, large = matched(segment, inner, "shortest"), matched(segment, inner, "longest")
    assert found(segment, f"{pattern} containing {negated}({inner})", "standard") == [
        (first, last)
        for first, last in outside
        if any(first <= start and end <= last for start, end in small) != bool(negated)
    ]
    assert found(segment, f"{pattern} within {negated}({inner})", "standard") == [
        (first, last)
        for first, last in outside
        if any(start <= first and last <= end for start, end in large) != bool(negated)
    ]


@SLOW
@given(
    corpus=documents,
    one=token,
    other=token,
    structure=names,
    least=st.integers(-4, 2),
    more=st.integers(0, 4),
)
def test_tokens_meet(
    corpus: Documents, one: str, other: str, structure: str, least: int, more: int, folder: Path
) -> None:
    segment, reference = new_segment(corpus, folder), plain(corpus)
    ours = [first for first, _ in found(segment, one, "standard")]
    others = [first for first, _ in found(segment, other, "standard")]
    window = f"MU(meet {one} {other} {least} {least + more})"
    assert found(segment, window, "standard") == [
        (place, place) for place in ours if any(least <= second - place <= least + more for second in others)
    ]
    around = reference.around[structure]
    assert found(segment, f"MU(meet {one} {other} {structure})", "standard") == [
        (place, place)
        for place in ours
        if around[place] and any(around[place] == around[second] for second in others)
    ]
    assert found(segment, f"MU(union {one} {other})", "standard") == [
        (place, place) for place in sorted({*ours, *others})
    ]


@SLOW
@given(corpus=documents, pattern=patterns, structure=names, most=st.integers(0, 5))
def test_matches_are_widened_and_cut(
    corpus: Documents, pattern: str, structure: str, most: int, folder: Path
) -> None:
    segment, around = new_segment(corpus, folder), plain(corpus).around[structure]
    all_of_them = matched(segment, pattern, "standard")
    assert found(segment, f"{pattern} cut {most}", "standard") == all_of_them[:most]
    wide = {
        (left.first if (left := around[first]) else first, right.last if (right := around[last]) else last)
        for first, last in all_of_them
    }
    assert found(segment, f"{pattern} expand to {structure}", "standard") == sorted(wide)


@SLOW
@given(corpus=documents, pattern=patterns, ending=endings)
def test_a_count_is_that_of_the_matches(corpus: Documents, pattern: str, ending: str, folder: Path) -> None:
    segment = new_segment(corpus, folder)
    spans = matched(segment, pattern + ending, "standard")
    find = parse(pattern + ending)[0].search
    assert isinstance(find, tree.Find)
    assert Finder(Conditions(segment), find, "standard").count(Watch()) == len(spans)


# ends


def test_a_match_is_at_most_so_long_unless_a_structure_bounds_it(folder: Path) -> None:
    long: Documents = [("x", [[[("a", "N"), *[("b", "V")] * 600, ("c", "D"), *[("b", "V")] * 10]]])]
    segment = new_segment(long, folder)
    assert found(segment, '"a" []* "c"', "standard") == []
    assert found(segment, '"a" []* "c" within s', "standard") == [(0, 601)]
    assert found(segment, '"b" []* "c"', "traditional")[0] == (101, 601)


@pytest.mark.parametrize("query", ["[]*", '"a"?', "[]{0,3}", '("a"* | "b")', '<s> "a"?'])
def test_a_pattern_that_can_match_nothing_is_refused(query: str, folder: Path) -> None:
    with pytest.raises(CqlError, match="can match nothing"):
        found(new_segment([("x", [[[("a", "N")]]])], folder), query, "standard")


@pytest.mark.parametrize(
    ("query", "spans"),
    [
        ("<s/> <s> within 3", [(0, 3)]),
        ("[]+ </p> within p", [(0, 3), (4, 4004)]),
        ('[]+ [: word="b" :] within p', [(0, 3)]),
    ],
)
def test_what_stands_right_behind_a_match_is_seen(
    query: str, spans: list[tuple[int, int]], folder: Path
) -> None:
    # So many tokens that it pays to look up first where tags and rare words are.
    corpus: Documents = [
        ("x", [[[("a", "N")] * 4]]),
        ("x", [[[("b", "N"), *[("c", "V")] * 4000]]]),
    ]
    assert found(new_segment(corpus, folder), query, "longest") == spans


def test_a_match_that_another_excludes_stays_out_in_the_next_stretch(folder: Path) -> None:
    words = ["c"] * 100
    words[50] = words[56] = "a"  # the second match reaches beyond the first 64 positions
    words[58] = "b"  # ends where the first does
    corpus: Documents = [("x", [[[(word, "N") for word in words]]])]
    assert found(new_segment(corpus, folder), '("a" []{8} | "b")', "standard") == [(50, 58), (56, 64)]


def test_a_tag_alone_matches_nothing(folder: Path) -> None:
    assert found(new_segment([("x", [[[("a", "N")]]])], folder), "<s>", "standard") == []


@pytest.mark.parametrize(
    ("query", "complaint"),
    [
        ('[lema="a"]', "no attribute lema; they have word, pos"),
        ("<q> []", "no structure q; there are"),
        ('[_.doc_yaer="1"]', "no attribute doc_yaer; of doc there are"),
        ('[word = b.word] "a"', "no token has the label b"),
        ("[] :: shoe(match.word) = 3", "there are f\\(word\\)"),
        ('[word > "a"]', "is no"),
        ('"a" within q', "no structure q"),
        ("[word]", "alone says nothing"),
        ('"(a"', "is no expression"),
        ("A = []; difference A B", "no result B"),
        ('"a"; "b"', "has no need of a name"),
        ('"a" expand to q', "no structure q"),
        ("MU(meet [] [] q)", "no structure q"),
        ("([]{100}){300}", "too long"),
        ("(" * 60 + "[]" + ")+" * 60, "too long"),
        ('"a" ' * 30_000, "too long"),
        ("[" + "word='a' -> " * 200 + "word='b']", "depend on each other"),
    ],
)
def test_a_query_that_cannot_be_answered_says_why(query: str, complaint: str, folder: Path) -> None:
    segment = new_segment([("x", [[[("a", "N")]]])], folder)
    with pytest.raises(CqlError, match=complaint):
        found(segment, query, "standard")


def test_deep_and_long_queries_are_answered(folder: Path) -> None:
    segment = new_segment([("x", [[[("a", "N"), ("b", "V")]]])], folder)
    assert found(segment, "(" * 90 + '"a"' + ")" * 90, "standard") == [(0, 0)]
    assert found(segment, "(" * 90 + '"a"' + ")?" * 90 + ' "b"', "standard") == [(0, 1)]
    assert found(segment, " ".join(f'"w{number}"' for number in range(2_000)), "standard") == []
    deep = 'a.pos="V" | (' * 80 + 'a.pos="N"' + ")" * 80
    assert found(segment, f"a:[] [] :: {deep}", "standard") == [(0, 1)]
    assert found(segment, f"a:[] [{deep}]", "standard") == [(0, 1)]


def test_too_many_ways_are_told(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("thresher.query.match.MOST_WAYS", 50)
    segment = new_segment([("x", [[[("a", "N")] * 90]])], folder)
    with pytest.raises(CqlError, match="50 ways"):
        found(segment, "[]* a:[] []* b:[] []* [word != a.word & word = b.word]", "standard")


def test_a_search_ends_when_its_time_is_up_or_nobody_wants_it(folder: Path) -> None:
    segment = new_segment([("x", [[[("a", "N")] * 90]])], folder)
    for watch in (Watch(seconds=-1), Watch(is_cancelled=lambda: True)):
        with pytest.raises(Stopped):
            list(Answers([Conditions(segment)], "standard", watch).parts(parse('"a"')))
