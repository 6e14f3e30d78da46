"""CoNLL-U: ten columns a token, a blank line after each sentence, what is known of it in comments before it."""

from __future__ import annotations

import re
from collections.abc import Iterator

from thresher.store import lines
from thresher.store.importers.body import Body, structure
from thresher.store.importers.document import NO_WORD, NOT_UTF8, Choices, Document, Remarks
from thresher.store.importers.source import ImportFault, Source

ATTRIBUTES = ("word", "pos", "lemma", "xpos", "feats")
COLUMNS = 10
NOT_KNOWN = "_"
NOTHING_MORE = [NOT_KNOWN] * 4  # in the columns that are not kept
SPACE_AFTER = "SpaceAfter=No"
OF_DOCUMENT = "meta::"  # begins the names of what is known of a document, as some corpora have it
MOST_TOKENS = 10_000  # of a sentence that are gathered before they are stored; some files know no sentences

RELATIONS = "heads and relations (HEAD, DEPREL, DEPS)"
SPACES = "texts and spaces as they are written (# text, SpaceAfter)"
MISC = "what is said in the last column (MISC)"
MULTIWORD = "how words look that are written as one (1-2); the words themselves are kept"
EMPTY = "words that are thought but not written (1.1)"

_WORD = re.compile(r"[0-9]+")
# What is written as one but is several words, which follow; and words that are thought but not written.
_NO_WORD = re.compile(r"[0-9]+-[0-9]+|[0-9]+\.[0-9]+")


def read_conllu(source: Source, choices: Choices, remarks: Remarks) -> Iterator[Document]:  # noqa: ARG001
    """The documents of a file; where it names none, the file is one."""
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
    """Puts documents together, line by line."""

    def __init__(self, name: str, remarks: Remarks) -> None:
        self.done: list[Document] = []
        self._name = name
        self._remarks = remarks
        self._body = Body({})
        self._about: dict[str, str] = {}  # the sentence that comes
        self._tokens: list[bytes] = []  # of the sentence, still to be stored
        self._begun = False  # some of the sentence is stored

    def read(self, line: str, number: int) -> None:
        """Take in a line."""
        if not line or line.isspace():
            self._end_sentence()
        elif line.startswith("#"):
            self._comment(line)
        else:
            self._token(line.split("\t"), number)

    def end(self) -> None:
        """Nothing comes any more."""
        self._end_sentence()
        self._take(self._body.finish())

    def _comment(self, line: str) -> None:
        key, equals, value = (part.strip() for part in line[1:].partition("="))
        what, *kind = key.split() or [""]
        about = {"id": lines.clean(value)} if kind == ["id"] else {}
        if what == "newdoc":
            self._end_sentence()
            self._take(self._body.finish())
            self._body = Body(about)
        elif what == "newpar":
            self._end_sentence()
            self._body.close("p")
            self._body.open(structure("p", about))
        elif equals and key.startswith(OF_DOCUMENT):
            name = lines.clean_name(key.removeprefix(OF_DOCUMENT))
            self._body.meta.setdefault(name, lines.clean(value))
        elif equals and key == "text":
            self._remarks.not_kept(SPACES)
        elif equals:
            self._about["id" if key == "sent_id" else lines.clean_name(key)] = value

    def _token(self, columns: list[str], number: int) -> None:
        if len(columns) != COLUMNS:
            raise ImportFault(
                f"{self._name}, line {number:,} has {len(columns)} columns, but CoNLL-U has {COLUMNS}, by TAB; "
                "mend the line, or say what the file is with --format"
            )
        place, form, lemma, upos, xpos, feats, *rest = columns
        if rest != NOTHING_MORE:
            self._leave_out(*rest)
        if _WORD.fullmatch(place):
            if not lines.clean(form).strip():
                self._remarks.add(NO_WORD, number)
                return
            if lemma == NOT_KNOWN and not (form == NOT_KNOWN and upos in ("PUNCT", "SYM")):
                lemma = ""
            others = ["" if value == NOT_KNOWN else value for value in (upos, xpos, feats)]
            self._tokens.append(b"\n" + lines.token([form, others[0], lemma, *others[1:]])[:-1])
            if len(self._tokens) >= MOST_TOKENS:
                self._store()
        elif _NO_WORD.fullmatch(place):
            self._remarks.not_kept(EMPTY if "." in place else MULTIWORD)
        else:
            raise ImportFault(
                f"{self._name}, line {number:,} begins with {place[:20]!r}, not the number of a word; mend the line"
            )

    def _leave_out(self, head: str, relation: str, relations: str, misc: str) -> None:
        if {head, relation, relations} != {NOT_KNOWN}:
            self._remarks.not_kept(RELATIONS)
        said = {each for each in misc.split("|") if each != NOT_KNOWN}
        if SPACE_AFTER in said:
            self._remarks.not_kept(SPACES)
        if said - {SPACE_AFTER}:
            self._remarks.not_kept(MISC)

    def _store(self) -> None:
        """Store the tokens gathered so far; their sentence may go on."""
        if self._body.full:
            self._take(self._body.cut())
        if not self._begun:
            self._body.open(structure("s", self._about))
            self._begun = True
        self._body.add(b"".join(self._tokens))
        self._tokens = []

    def _end_sentence(self) -> None:
        if self._tokens:
            self._store()
        if self._begun:
            self._body.close("s")
            self._begun, self._about = False, {}

    def _take(self, documents: Iterator[Document]) -> None:
        self.done += (document._replace(attributes=ATTRIBUTES) for document in documents)
