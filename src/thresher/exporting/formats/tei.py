"""TEI P5: a corpus of documents, each with a header, paragraphs, sentences, words and punctuation."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import date
from functools import lru_cache
from typing import BinaryIO
from xml.sax.saxutils import escape

from thresher._version import __version__
from thresher.exporting.documents import Event, ExportDocument, ExportSelection, ExportToken
from thresher.exporting.formats.values import form, symbol
from thresher.store.token_lines import OpenTag

NAMESPACE = "http://www.tei-c.org/ns/1.0"
_NOT_IN_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_DATE = re.compile(
    r"\d{4}(-(0[1-9]|1[0-2])(-(0[1-9]|[12]\d|3[01])"
    r"(T([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d+)?(Z|[+-](0\d|1[0-3]):[0-5]\d)?)?)?)?"
)
_ADDRESS = re.compile(r"https?://[!-~]+")
_LANGUAGE = re.compile(r"[A-Za-z]{2,8}(-[A-Za-z0-9]{1,8})*")
REMEMBERED = 1 << 16  # tokens whose elements are cached: most of a text repeats the same words
# Attributes of TEI, and the attributes of tokens that fill them, the best first.
ATTRIBUTES = {"lemma": ("lemma",), "pos": ("upos", "pos", "xpos", "tag"), "msd": ("feats",)}


def write_tei(selection: ExportSelection, out: BinaryIO) -> int:
    """Write one <teiCorpus> with all documents; return their number."""
    out.write(_start(selection.corpus.config.language).encode())
    count = 0
    for document in selection.rendered(render):
        out.write(document)
        count += 1
    if not count:  # TEI requires a text
        out.write(render(ExportDocument(0, {"title": "No document was chosen"}), (), ("word",)))
    out.write(b"</teiCorpus>\n")
    return count


def _start(language: str) -> str:
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        f'<teiCorpus xmlns="{NAMESPACE}">\n<teiHeader><fileDesc>'
        f"<titleStmt><title>A corpus of texts in {_text(language)}</title></titleStmt>"
        f"<publicationStmt><p>Written by thresher {__version__}.</p></publicationStmt>"
        "<sourceDesc><p>The header of each document names its source.</p></sourceDesc>"
        "</fileDesc></teiHeader>\n"
    )


def render(item: ExportDocument, events: Iterable[Event], attributes: tuple[str, ...]) -> bytes:
    """Return a document as a <TEI> element."""
    body = _Body(attributes)
    for event in events:
        if isinstance(event, ExportToken):
            body.word(event)
        elif event.name == "p":
            body.end_paragraph()
        elif event.name == "s":
            body.sentence(opens=isinstance(event, OpenTag))
    body.end_paragraph()
    text = "".join(body.parts) or "<p/>"
    return f"<TEI>\n{_header(item)}<text><body>\n{text}</body></text>\n</TEI>\n".encode()


class _Body:
    """Paragraphs of sentences of tokens; where structures of an import overlap, the inner one is closed first."""

    def __init__(self, attributes: tuple[str, ...]) -> None:
        self.parts: list[str] = []
        self._places = tuple(
            next((attributes.index(one) for one in names if one in attributes), None)
            for names in ATTRIBUTES.values()
        )
        self._in_sentence = self._sentence_is_open = self._paragraph_is_open = False
        self._last: ExportToken | None = None  # not written yet, since the next token may be glued to it

    def sentence(self, *, opens: bool) -> None:
        self._end_sentence()
        self._in_sentence = opens

    def end_paragraph(self) -> None:
        self._end_sentence()
        if self._paragraph_is_open:
            self.parts.append("</p>\n")
            self._paragraph_is_open = False

    def word(self, word: ExportToken) -> None:
        self._write(glue=word.glued)
        if not self._paragraph_is_open:
            self.parts.append("<p>")
            self._paragraph_is_open = True
        if self._in_sentence and not self._sentence_is_open:
            self.parts.append("<s>")
            self._sentence_is_open = True
        self._last = word

    def _end_sentence(self) -> None:
        self._write(glue=False)
        if self._sentence_is_open:
            self.parts.append("</s>\n")
            self._sentence_is_open = False

    def _write(self, *, glue: bool) -> None:
        """Write the last word; it is known now whether a space follows it."""
        if self._last is None:
            return
        values, self._last = self._last.values, None
        self.parts.append(_element(values, self._places, glue))


@lru_cache(REMEMBERED)
def _element(values: tuple[str, ...], places: tuple[int | None, ...], glue: bool) -> str:
    """Return the element of a word or a punctuation mark, with a space unless the next one is glued to it."""
    word = form(values[0])
    name = "w" if any(char.isalnum() for char in word) else "pc"
    said = {key: values[place] for key, place in zip(ATTRIBUTES, places, strict=True) if place is not None}
    if "pos" in said:
        said["pos"] = symbol(said["pos"])
    attributes = "".join(
        [f' {key}="{_value(value.strip())}"' for key, value in said.items() if value.strip()]
    )
    join, space = (' join="right"', "") if glue else ("", " ")
    return f"<{name}{attributes}{join}>{_text(word)}</{name}>{space}"


def _header(item: ExportDocument) -> str:
    """Return the header of a document: title, author, licence, source, and dates of writing and download."""
    known = item.meta.get
    title = known("title") or known("id") or str(item.number)
    author = f"<author>{_text(known('author', ''))}</author>" if known("author") else ""
    source = known("url") or known("source") or ""
    fetched = known("fetched", "")
    accessed = _date(fetched, ' type="accessed"') if fetched else ""
    written = known("published") or known("date") or known("year") or ""
    creation = f"<creation>{_date(written)}</creation>" if written else ""
    availability = _availability(known("license", ""), known("opt_out", ""))
    language = known("language", "")
    usage = f'<langUsage><language ident="{language}"/></langUsage>' if _LANGUAGE.fullmatch(language) else ""
    profile = f"<profileDesc>{creation}{usage}</profileDesc>" if creation or usage else ""
    return (
        "<teiHeader><fileDesc>"
        f"<titleStmt><title>{_text(title)}</title>{author}</titleStmt>"
        f"<publicationStmt><publisher>{_text(known('site_name') or known('host') or 'unknown')}</publisher>"
        f"<idno>{_text(known('id', str(item.number)))}</idno>{availability}</publicationStmt>"
        f"<sourceDesc><bibl>{_pointer(source)}{accessed}</bibl></sourceDesc>"
        f"</fileDesc>{profile}</teiHeader>\n"
    )


def _availability(licence: str, opt_out: str) -> str:
    """Return the licence and, in an element of its own, the opt-out of the publisher."""
    target = f' target="{_value(licence)}"' if _ADDRESS.fullmatch(licence) else ""
    element = f"<licence{target}>{_text(licence)}</licence>" if licence else ""
    if opt_out:
        return f'<availability status="restricted">{element}<ab type="opt_out">{_text(opt_out)}</ab></availability>'
    return f"<availability>{element}</availability>" if element else ""


def _pointer(source: str) -> str:
    if not source:
        return "unknown"
    return f'<ptr target="{_value(source)}"/>' if _ADDRESS.fullmatch(source) else _text(source)


def _date(text: str, attributes: str = "") -> str:
    """Return a date as an element, with the attribute `when` if it is valid for TEI."""
    if _is_date(text):
        return f'<date{attributes} when="{text}">{text}</date>'
    return f"<date{attributes}>{_text(text)}</date>"


def _is_date(text: str) -> bool:
    if not _DATE.fullmatch(text):
        return False
    try:
        date.fromisoformat(f"{text}-01-01"[:10])
    except ValueError:
        return False
    return True


def _text(text: str) -> str:
    return escape(_NOT_IN_XML.sub("\ufffd", text))


def _value(text: str) -> str:
    return escape(_NOT_IN_XML.sub("\ufffd", text), {'"': "&quot;"})
