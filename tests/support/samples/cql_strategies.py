"""Hypothesis strategies for queries in CQL over the documents of `token_documents`."""

from __future__ import annotations

from hypothesis import strategies as st

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
