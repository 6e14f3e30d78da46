"""CoNLL-U: ten columns a token, of which those that nobody knows are _; comments tell documents and sentences."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import BinaryIO

from thresher.export.selection import Event, Item, Selection, Word
from thresher.export.values import form, symbol
from thresher.store.lines import Open, clean, clean_name

UNKNOWN = "_"
MOST_TOKENS = 10_000  # of a sentence; some imports know no sentences, and a longer one would fill the memory
REMEMBERED = 1 << 16  # tokens whose columns are put together once: most of a text is the same words
# Universal parts of speech; other tags have a column of their own.
_UNIVERSAL = "ADJ ADP ADV AUX CCONJ DET INTJ NOUN NUM PART PRON PROPN PUNCT SCONJ SYM VERB X"
UNIVERSAL = frozenset(_UNIVERSAL.split())
# The columns of a format that are ours to fill, and the attributes that may tell them, the best first.
LEMMA, TAG, FEATURES = ("lemma",), ("xpos", "tag"), ("feats",)
PART_OF_SPEECH = ("upos", "pos")
_OUR_OWN = frozenset({"text", "sent_id", "id", "newdoc", "newpar"})
_FEATURES = re.compile(r"[^=|\s]+=[^=|\s]+(?:\|[^=|\s]+=[^=|\s]+)*")


def write_conllu(selection: Selection, out: BinaryIO) -> int:
    """Sentences of tokens; a document without any has no place here."""
    count = 0
    for document in selection.rendered(render):
        if document:
            out.write(document)
            count += 1
        else:
            selection.left_out["no text"] += 1
    return count


def render(item: Item, events: Iterable[Event], attributes: tuple[str, ...]) -> bytes:
    """A document as CoNLL-U; nothing if it has no tokens."""
    document = _Document(item, attributes)
    for event in events:
        if isinstance(event, Word):
            document.word(event)
        elif event.name == "s":
            document.end_sentence()
            document.about = event.attributes if isinstance(event, Open) else {}
        elif event.name == "p":
            document.end_sentence()
            document.fresh_paragraph |= isinstance(event, Open)
    document.end_sentence()
    return b"".join(document.sentences)


class _Document:
    """A document as it is written, sentence by sentence."""

    def __init__(self, item: Item, attributes: tuple[str, ...]) -> None:
        self.sentences: list[bytes] = []
        self.fresh_paragraph = False
        self.about: dict[str, str] = {}  # the sentence at hand
        self._item = item
        self._places = tuple(
            next((attributes.index(name) for name in names if name in attributes), None)
            for names in (LEMMA, PART_OF_SPEECH, TAG, FEATURES)
        )
        self._words: list[Word] = []

    def word(self, word: Word) -> None:
        if len(self._words) >= MOST_TOKENS:
            self.end_sentence()
        self._words.append(word)

    def end_sentence(self) -> None:
        """Write the sentence, if there is one. A word that is glued to the one before says so of that one."""
        if not self._words:
            return
        words = self._words
        self._words = []
        if words[0].glued and self.sentences:
            self.sentences[-1] = self.sentences[-1].removesuffix(b"\t_\n\n") + b"\tSpaceAfter=No\n\n"
        lines = self._comments(words)
        for number, word in enumerate(words, 1):
            spaced = number == len(words) or not words[number].glued
            lines.append(
                f"{number}\t{_columns(word.values, self._places)}\t{'_' if spaced else 'SpaceAfter=No'}\n"
            )
        self.sentences.append("".join([*lines, "\n"]).encode())

    def _comments(self, words: list[Word]) -> list[str]:
        comments = []
        if not self.sentences:
            told = {name: value for name, value in self._item.meta.items() if name != "id"}
            comments.append(f"# newdoc id = {clean(self._item.meta.get('id', str(self._item.number)))}\n")
            comments += [f"# meta::{clean_name(name)} = {clean(value)}\n" for name, value in told.items()]
        if self.fresh_paragraph:
            comments.append("# newpar\n")
            self.fresh_paragraph = False
        comments.append(f"# sent_id = d{self._item.number}-s{len(self.sentences) + 1}\n")
        text = "".join([form(word.values[0]) if word.glued else f" {form(word.values[0])}" for word in words])
        comments.append(f"# text = {text.removeprefix(' ')}\n")
        comments += [
            f"# {name} = {clean(value)}\n"
            for key, value in self.about.items()
            if (name := clean_name(key)) not in _OUR_OWN
        ]
        return comments


@lru_cache(REMEMBERED)
def _columns(values: tuple[str, ...], places: tuple[int | None, ...]) -> str:
    """All columns between the number of a word and what else is said of it."""
    lemma, pos, tag, features = ("" if place is None else values[place] for place in places)
    lemma, pos, tag = form(lemma), symbol(pos) or UNKNOWN, symbol(tag) or UNKNOWN
    if pos not in UNIVERSAL:
        pos, tag = UNKNOWN, pos if tag == UNKNOWN else tag
    if not _FEATURES.fullmatch(features):
        features = UNKNOWN
    return "\t".join([form(values[0]), lemma, pos, tag, features, *[UNKNOWN] * 3])
