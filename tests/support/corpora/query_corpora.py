"""Small indexes of random documents in several segments, some deleted, and the same tokens as a data frame."""

from __future__ import annotations

import random
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from thresher.search.execution.segment_search import Hits
from thresher.search.index.manifest import writing
from thresher.search.index.segment_builder import IndexDocument
from thresher.search.index.writer import add, delete, keys_of
from thresher.search.searcher import Index

WORDS = [f"{letter}{ending}" for letter in "abcdeé" for ending in ("", "s", "er")] + [
    "Der",
    "SSE",
    "ße",
    "A",
    "=",
]
ATTRIBUTES = ("word", "pos", "lemma")


class Corpus(NamedTuple):
    """An index, and all its tokens that were not deleted, in the order of the index."""

    index: Index
    # Columns: place, segment, position, doc, s, p, word, pos, lemma, doc_year, doc_site, quality and others.
    tokens: pd.DataFrame

    @property
    def documents(self) -> pd.DataFrame:
        return self.tokens.groupby("doc", sort=False).first()

    def hits(self, query: str) -> list[tuple[int, int]]:
        """Return first and last place of every hit among the tokens that were not deleted."""
        return self.places(self.index.search(query).hits())

    def places(self, by_segment: list[Hits]) -> list[tuple[int, int]]:
        keys = zip(self.tokens.segment, self.tokens.position, strict=True)
        at = {key: place for place, key in enumerate(keys)}
        return [
            (at[number, first], at[number, last])
            for number, hits in enumerate(by_segment)
            for first, last in zip(hits.firsts.tolist(), hits.lasts.tolist(), strict=True)
        ]


class Document(NamedTuple):
    source: IndexDocument
    rows: list[dict[str, object]]


def document(key: int, dice: random.Random) -> Document:
    """Return a document of some paragraphs of sentences; some tokens stand in no sentence."""
    lines: list[str] = []
    rows: list[dict[str, object]] = []
    meta = {
        "year": str(dice.choice([1999, 2004, 2005, 2010])),
        "site": dice.choice(["x.org", "y.com", "ž.cz"]),
    }
    if dice.random() < 0.2:
        meta.pop("site")
    dimensions = {"quality": dice.choice([0.1, 0.5, 0.5, 0.9]), "recency": round(dice.random(), 3)}
    number = 0
    for paragraph in range(dice.randint(1, 3)):
        lines.append(f"\x02p\tkind={paragraph % 2}")
        for _ in range(dice.randint(1, 3)):
            number += 1
            has_sentence = dice.random() < 0.85
            lines += ["\x02s"] * has_sentence
            for _ in range(dice.randint(1, 7)):
                word = dice.choice(WORDS[: dice.choice([4, len(WORDS)])])
                pos, lemma = dice.choice(["N", "V"]), word.lower()[:1]
                lines.append(f"{word}\t{pos}\t{lemma}")
                rows.append(
                    {
                        "doc": key,
                        "p": (key, paragraph),
                        "p_kind": str(paragraph % 2),
                        "s": (key, number) if has_sentence else None,
                        "word": word,
                        "pos": pos,
                        "lemma": lemma,
                        "doc_year": meta["year"],
                        "doc_site": meta.get("site", ""),
                        **dimensions,
                    }
                )
            lines += ["\x03s"] * has_sentence
        lines.append("\x03p")
    text = "".join(f"{line}\n" for line in lines).encode()
    return Document(IndexDocument(key, text, ATTRIBUTES, meta, dimensions), rows)


def random_corpus(
    directory: Path,
    seed: int = 1,
    *,
    documents: int = 30,
    order: str = "input",
    run_tokens: int = 120,
    deleted: bool = True,
) -> Corpus:
    """Make a corpus of several segments, where every fifth document was deleted."""
    dice = random.Random(seed)
    made = {key: document(key, dice) for key in dice.sample(range(1, 1 << 62), documents)}
    with writing(directory) as writer:
        writer.start(order)
        add(writer, [one.source for one in made.values()], run_tokens=run_tokens)
        delete(writer, list(made)[1::5] if deleted else [])
    index = Index(directory)
    rows: list[dict[str, object]] = []
    for number, segment in enumerate(index.segments):
        gone = set(segment.deleted.tolist())
        position = 0
        for which, key in enumerate(keys_of(segment).tolist()):
            for row in made[key].rows:
                if which not in gone:
                    rows.append({"place": len(rows), "segment": number, "position": position, **row})
                position += 1
    tokens = pd.DataFrame(rows)
    assert len(index.segments) > 1 and len(tokens) == index.tokens
    return Corpus(index, tokens.astype({"place": np.int64}))
