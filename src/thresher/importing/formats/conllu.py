"""CoNLL-U: ten columns per token, comments before each sentence, and a blank line after it."""

from __future__ import annotations

import re
from collections.abc import Iterator

from thresher.importing.formats.body import BodyBuilder, structure
from thresher.importing.formats.document import (
    NO_WORD,
    NOT_UTF8,
    ImportOptions,
    ImportRemarks,
    SourceDocument,
)
from thresher.importing.formats.source import ImportFileError, SourceFile
from thresher.store import token_lines

ATTRIBUTES = ("word", "pos", "lemma", "xpos", "feats")
COLUMNS = 10
NOT_KNOWN = "_"
NOTHING_MORE = [NOT_KNOWN] * 4  # in the columns that are not kept
SPACE_AFTER = "SpaceAfter=No"
META_PREFIX = "meta::"  # of comments with metadata of the document, in some corpora
MAX_TOKENS = 10_000  # of a sentence that are gathered before they are stored; some files have no sentences

RELATIONS = "heads and relations (HEAD, DEPREL, DEPS)"
SPACES = "original texts and spaces (# text, SpaceAfter)"
MISC = "the last column (MISC)"
MULTIWORD = "surface forms of multiword tokens (1-2); their words are kept"
EMPTY = "empty nodes (1.1)"

_WORD = re.compile(r"[0-9]+")
# Multiword tokens, whose words follow, and empty nodes.
_NO_WORD = re.compile(r"[0-9]+-[0-9]+|[0-9]+\.[0-9]+")


def read_conllu(
    source: SourceFile,
    options: ImportOptions,  # noqa: ARG001
    remarks: ImportRemarks,
) -> Iterator[SourceDocument]:
    """Yield the documents of a file; a file without document comments is one document."""
    reader = _Reader(source.name, remarks)
    for number, line in source.lines():
        try:
            text = line.decode()
        except UnicodeDecodeError:
            text = line.decode("utf-8", "replace")
            remarks.add(NOT_UTF8, number)
        reader.read(text, number)
        yield from reader.done
        reader.done.clear()
    reader.end()
    yield from reader.done


class _Reader:
    """A reader of documents, line by line."""

    def __init__(self, name: str, remarks: ImportRemarks) -> None:
        self.done: list[SourceDocument] = []
        self._name = name
        self._remarks = remarks
        self._body = BodyBuilder({})
        self._attributes: dict[str, str] = {}  # of the next sentence
        self._tokens: list[bytes] = []  # of the sentence, not stored yet
        self._begun = False  # whether some of the sentence is stored

    def read(self, line: str, number: int) -> None:
        """Read a line."""
        if not line or line.isspace():
            self._end_sentence()
        elif line.startswith("#"):
            self._comment(line)
        else:
            self._token(line.split("\t", COLUMNS), number)

    def end(self) -> None:
        """End the file."""
        self._end_sentence()
        self._take(self._body.finish())

    def _comment(self, line: str) -> None:
        key, equals, value = (part.strip() for part in line[1:].partition("="))
        kind, *rest = key.split() or [""]
        attributes = {"id": token_lines.clean(value)} if rest == ["id"] else {}
        if kind == "newdoc":
            self._end_sentence()
            self._take(self._body.finish())
            self._body = BodyBuilder(attributes)
        elif kind == "newpar":
            self._end_sentence()
            self._body.close("p")
            self._body.open(structure("p", attributes))
        elif equals and key.startswith(META_PREFIX):
            name = token_lines.clean_name(key.removeprefix(META_PREFIX))
            self._body.meta.setdefault(name, token_lines.clean(value))
        elif equals and key == "text":
            self._remarks.not_kept(SPACES)
        elif equals:
            self._attributes["id" if key == "sent_id" else token_lines.clean_name(key)] = value

    def _token(self, columns: list[str], number: int) -> None:
        if len(columns) != COLUMNS:
            found = len(columns) if len(columns) <= COLUMNS else f"more than {COLUMNS}"
            raise ImportFileError(
                f"{self._name}, line {number:,} has {found} columns, but CoNLL-U has {COLUMNS}, by TAB; "
                "repair the line, or name the format of the file with --format"
            )
        place, form, lemma, upos, xpos, feats, *rest = columns
        if rest != NOTHING_MORE:
            self._leave_out(*rest)
        if _WORD.fullmatch(place):
            if not token_lines.clean(form).strip():
                self._remarks.add(NO_WORD, number)
                return
            if lemma == NOT_KNOWN and not (form == NOT_KNOWN and upos in ("PUNCT", "SYM")):
                lemma = ""
            others = ["" if value == NOT_KNOWN else value for value in (upos, xpos, feats)]
            self._tokens.append(b"\n" + token_lines.token([form, others[0], lemma, *others[1:]])[:-1])
            if len(self._tokens) >= MAX_TOKENS:
                self._store()
        elif _NO_WORD.fullmatch(place):
            self._remarks.not_kept(EMPTY if "." in place else MULTIWORD)
        else:
            raise ImportFileError(
                f"{self._name}, line {number:,} begins with {place[:20]!r}, which is not the number of a word; "
                "repair the line"
            )

    def _leave_out(self, head: str, relation: str, relations: str, misc: str) -> None:
        if {head, relation, relations} != {NOT_KNOWN}:
            self._remarks.not_kept(RELATIONS)
        items = {each for each in misc.split("|") if each != NOT_KNOWN}
        if SPACE_AFTER in items:
            self._remarks.not_kept(SPACES)
        if items - {SPACE_AFTER}:
            self._remarks.not_kept(MISC)

    def _store(self) -> None:
        """Store the tokens gathered so far; their sentence may continue."""
        if self._body.full:
            self._take(self._body.cut())
        if not self._begun:
            self._body.open(structure("s", self._attributes))
            self._begun = True
        self._body.add(b"".join(self._tokens))
        self._tokens = []

    def _end_sentence(self) -> None:
        if self._tokens:
            self._store()
        if self._begun:
            self._body.close("s")
            self._begun, self._attributes = False, {}

    def _take(self, documents: Iterator[SourceDocument]) -> None:
        self.done += (document._replace(attributes=ATTRIBUTES) for document in documents)
