"""Lines get numbers as they come, the same for the same line."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from thresher.search.index.interner import Interner
from thresher.store.token_lines import CLOSES, OPENS

# Lengths round eight, sixteen …: so many bytes are looked at together.
LINES = st.one_of(
    st.text("ab", min_size=1, max_size=26),
    st.sampled_from([f"{OPENS}s", f"{OPENS}s\tn=1", f"{CLOSES}s", "é", "a\tb\tc", "\u0a0a", "x" * 5000]),
    st.integers(0, 3000).map(str),
)


@given(st.lists(st.lists(LINES, max_size=60), max_size=4))
def test_every_line_has_the_number_of_its_first_like(texts: list[list[str]]) -> None:
    interner = Interner()
    known: dict[str, int] = {}
    for lines in texts:
        found = interner.add("".join(f"{line}\n" for line in lines).encode())
        tokens, events, places = [], [], []
        for line in lines:
            number = known.setdefault(line, len(known))
            if line[0] in (OPENS, CLOSES):
                events.append(number)
                places.append(len(tokens))
            else:
                tokens.append(number)
        assert found.tokens.tolist() == tokens
        assert (found.events.tolist(), found.places.tolist()) == (events, places)
    assert interner.lines().to_pylist() == list(known)


def test_so_many_lines_that_room_must_be_made_again_and_again() -> None:
    lines = [f"{number}\tN\t{number % 7}" for number in range(50_000)]
    interner = Interner()
    assert interner.add("".join(f"{line}\n" for line in lines * 2).encode()).tokens.tolist() == [
        *range(50_000),
        *range(50_000),
    ]
    assert interner.lines().to_pylist() == lines
