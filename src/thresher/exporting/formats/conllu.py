"""CoNLL-U: ten columns per token, _ for unknown values; comments describe documents and sentences."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import BinaryIO

from thresher.exporting.documents import Event, ExportDocument, ExportSelection, ExportToken
from thresher.exporting.formats.values import form, symbol
from thresher.store.token_lines import OpenTag, clean, clean_name

UNKNOWN = "_"
MOST_TOKENS = 10_000  # in a sentence; some imports have no sentences, and longer ones would fill the memory
REMEMBERED = 1 << 16  # tokens whose columns are cached: most of a text repeats the same words
# Universal parts of speech; other tags have a column of their own.
_UNIVERSAL = "ADJ ADP ADV AUX CCONJ DET INTJ NOUN NUM PART PRON PROPN PUNCT SCONJ SYM VERB X"
UNIVERSAL = frozenset(_UNIVERSAL.split())
# Attributes that fill the columns LEMMA, UPOS, XPOS and FEATS, the best first.
LEMMA, TAG, FEATURES = ("lemma",), ("xpos", "tag"), ("feats",)
PART_OF_SPEECH = ("upos", "pos")
_OUR_OWN = frozenset({"text", "sent_id", "id", "newdoc", "newpar"})
_FEATURES = re.compile(r"[^=|\s]+=[^=|\s]+(?:\|[^=|\s]+=[^=|\s]+)*")


def write_conllu(selection: ExportSelection, out: BinaryIO) -> int:
    """Write sentences of tokens; documents without any are left out. Return the number of documents."""
    count = 0
    for document in selection.rendered(render):
        if document:
            out.write(document)
            count += 1
        else:
            selection.left_out["no text"] += 1
    return count


def render(item: ExportDocument, events: Iterable[Event], attributes: tuple[str, ...]) -> bytes:
    """Return a document as CoNLL-U, b"" if it has no tokens."""
    document = _Document(item, attributes)
    for event in events:
        if isinstance(event, ExportToken):
            document.word(event)
        elif event.name == "s":
            document.end_sentence()
            document.about = event.attributes if isinstance(event, OpenTag) else {}
        elif event.name == "p":
            document.end_sentence()
            document.new_paragraph |= isinstance(event, OpenTag)
    document.end_sentence()
    return b"".join(document.sentences)


class _Document:
    """A document that is written sentence by sentence."""

    def __init__(self, item: ExportDocument, attributes: tuple[str, ...]) -> None:
        self.sentences: list[bytes] = []
        self.new_paragraph = False
        self.about: dict[str, str] = {}  # attributes of the current sentence
        self._item = item
        self._places = tuple(
            next((attributes.index(name) for name in names if name in attributes), None)
            for names in (LEMMA, PART_OF_SPEECH, TAG, FEATURES)
        )
        self._words: list[ExportToken] = []

    def word(self, word: ExportToken) -> None:
        if len(self._words) >= MOST_TOKENS:
            self.end_sentence()
        self._words.append(word)

    def end_sentence(self) -> None:
        """Write the sentence, if there is one. SpaceAfter=No stands on the word before a glued one."""
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

    def _comments(self, words: list[ExportToken]) -> list[str]:
        comments = []
        if not self.sentences:
            known = {name: value for name, value in self._item.meta.items() if name != "id"}
            comments.append(f"# newdoc id = {clean(self._item.meta.get('id', str(self._item.number)))}\n")
            comments += [f"# meta::{clean_name(name)} = {clean(value)}\n" for name, value in known.items()]
        if self.new_paragraph:
            comments.append("# newpar\n")
            self.new_paragraph = False
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
    """Return the columns from FORM to DEPS of a word."""
    lemma, pos, tag, features = ("" if place is None else values[place] for place in places)
    lemma, pos, tag = form(lemma), symbol(pos) or UNKNOWN, symbol(tag) or UNKNOWN
    if pos not in UNIVERSAL:
        pos, tag = UNKNOWN, pos if tag == UNKNOWN else tag
    if not _FEATURES.fullmatch(features):
        features = UNKNOWN
    return "\t".join([form(values[0]), lemma, pos, tag, features, *[UNKNOWN] * 3])
