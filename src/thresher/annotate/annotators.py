"""Annotators: a function and a row in ANNOTATORS for each, and which of them is best for a language.

An annotator of your own is named by its place, as in `mymodule:tag`. It takes a paragraph and returns sentences,
which are lists of tuples; `tag.attributes = ("word", "lemma")` tells what the values of a tuple are.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from importlib.metadata import version
from typing import Any

from msgspec import Struct

from thresher._version import __version__
from thresher.annotate.analysers import (
    MODELS_OF_HANTA,
    Annotate,
    Sentence,
    fugashi,
    hanta,
    has_model_of_stanza,
    jieba,
    kiwipiepy,
    models_of_spacy,
    plain,
    pymorphy3,
    simplemma,
    spacy,
    stanza,
)
from thresher.annotate.apertium import apertium, parts_of_apertium
from thresher.annotate.segmenters import SEGMENTERS, are_installed, segmenter
from thresher.config import ConfigError

Parts = Callable[[str], tuple[str, ...] | None]

WORDS, LEMMAS, TAGS, ALL = ("word",), ("word", "lemma"), ("word", "pos"), ("word", "lemma", "pos")


class AnnotatorError(ConfigError):
    """An annotator that is not there, or does not do what it should."""


class Annotator(Struct, frozen=True):
    """One way to annotate paragraphs."""

    name: str
    attributes: tuple[str, ...]
    languages: frozenset[str]  # empty: all, or those that models are installed for
    make: Callable[[str], Annotate]
    parts: Parts  # that a language needs, with their versions; None: one of them is not installed
    extra: str = ""  # of thresher, to be installed for it
    also: str = ""  # what else is to be installed

    @property
    def summary(self) -> str:
        return self.make.__doc__ or ""


class Ready(Struct, frozen=True):
    """An annotator made for a language; call it with a paragraph, which is a text without line breaks."""

    name: str
    attributes: tuple[str, ...]  # what the values in the tuple of a token are
    version: str  # for the record: what the values depend on
    annotate: Annotate

    def __call__(self, paragraph: str) -> list[Sentence]:
        return self.annotate(paragraph)


def annotator(language: str, name: str | None = None) -> Ready:
    """The annotator of that name, made for a language; without a name, the best one that is installed."""
    if name and ":" in name:
        return _own(name)
    row, code = _chosen(language, name)
    return Ready(row.name, row.attributes, _version(row, code), row.make(code))


def version_of(language: str, name: str | None = None) -> str:
    """The version of that annotator, which need not be made to tell it."""
    return _own(name).version if name and ":" in name else _version(*_chosen(language, name))


def _chosen(language: str, name: str | None) -> tuple[Annotator, str]:
    code = language if language in SEGMENTERS else language.partition("-")[0]
    return (_named(name, code) if name else _best(code)), code


def _version(row: Annotator, code: str) -> str:
    made_of = ", ".join((f"thresher {__version__}", *(row.parts(code) or ())))
    return f"{row.name} ({made_of})"


def _best(language: str) -> Annotator:
    rows = [ANNOTATORS[name] for name in (*FIRST.get(language, ()), *THEN)]
    return next(row for row in rows if _knows(row, language) and row.parts(language) is not None)


def _named(name: str, language: str) -> Annotator:
    row = ANNOTATORS.get(name)
    if not row:
        raise AnnotatorError(f"there is no annotator {name!r}; {_cure_for_names()}")
    if not _knows(row, language):
        raise AnnotatorError(
            f"{name} does not know {language!r}; it knows {', '.join(sorted(row.languages))}"
        )
    if row.parts(language) is None:
        extra = f"pip install 'thresher[{row.extra}]'" if row.extra else ""
        cure = " and ".join(filter(None, [extra, row.also]))
        raise AnnotatorError(f"{name} is not installed for {language!r}; try: {cure}")
    return row


def _knows(row: Annotator, language: str) -> bool:
    return not row.languages or language.partition("-")[0] in row.languages


def _cure_for_names() -> str:
    return f"there are {', '.join(ANNOTATORS)}; your own is named module:function"


def _own(name: str) -> Ready:
    """A user's own annotator; what it returns is looked at, since a wrong value would spoil a corpus."""
    module, _, function = name.partition(":")
    try:
        own = getattr(import_module(module), function)
    except (ImportError, AttributeError, ValueError) as fault:
        raise AnnotatorError(f"{name!r} cannot be imported: {fault}; {_cure_for_names()}") from None
    attributes = getattr(own, "attributes", None)
    if not callable(own) or not isinstance(attributes, tuple) or attributes[:1] != WORDS:
        cure = f'try {function}.attributes = ("word", "lemma", "pos")'
        raise AnnotatorError(
            f"{name!r} is no function with attributes, of which the first is the word; {cure}"
        )

    def checked(paragraph: str) -> list[Sentence]:
        sentences: list[Sentence] = own(paragraph)
        for token in (token for sentence in sentences for token in sentence):
            if len(token) != len(attributes) or not all(map(_is_value, token)):
                raise AnnotatorError(
                    f"{name!r} gave {token!r}; try {len(attributes)} texts, each with one line"
                )
        return sentences

    return Ready(name, attributes, f"{name} ({getattr(own, 'version', 'without a version')})", checked)


def _is_value(value: Any) -> bool:
    return (
        isinstance(value, str) and bool(value.strip()) and len(value.splitlines()) == 1 and "\t" not in value
    )


def _libraries(*names: str) -> Parts:
    return lambda _: tuple(f"{name} {version(name)}" for name in names) if are_installed(names) else None


def _parts_of_plain(language: str) -> tuple[str, ...]:
    library = segmenter(language)
    return tuple(f"{name} {version(name)}" for name in library.distributions) if library else ()


def _parts_of_pymorphy3(language: str) -> tuple[str, ...] | None:
    return _libraries("pymorphy3", f"pymorphy3-dicts-{language}")(language)


def _parts_of_spacy(language: str) -> tuple[str, ...] | None:
    models = models_of_spacy(language)
    return _libraries("spacy", models[0])(language) if models else None


def _parts_of_stanza(language: str) -> tuple[str, ...] | None:
    parts = _libraries("stanza")(language)
    return parts if parts and has_model_of_stanza(language) else None


_FOR_UKRAINIAN = "for Ukrainian 'thresher[ukrainian]'"
_FOR_APERTIUM = "apt-get install apertium, with a package that has the language, as apertium-eng-spa"
_OF_SIMPLEMMA = (
    "ar ast bg bs ca cnr cs cy da de el en enm eo es et fa fi fil fr ga gd gl grc gv hbs he hi hr hu hy id is it "
    "ka la lb lt lv mk ml ms nb nl nn no pl pt ro ru se sh sk sl sq sr sv sw tl tr uk"
)
_ROWS = (
    Annotator("plain", WORDS, frozenset(), plain, _parts_of_plain),
    Annotator(
        "simplemma", LEMMAS, frozenset(_OF_SIMPLEMMA.split()), simplemma, _libraries("simplemma"), "lemma"
    ),
    Annotator("hanta", ALL, frozenset(MODELS_OF_HANTA), hanta, _libraries("HanTa"), "german"),
    Annotator("fugashi", ALL, frozenset({"ja"}), fugashi, _libraries("fugashi", "unidic-lite"), "japanese"),
    Annotator("jieba", TAGS, frozenset({"zh"}), jieba, _libraries("jieba"), "chinese"),
    Annotator(
        "kiwipiepy", ALL, frozenset({"ko"}), kiwipiepy, _libraries("kiwipiepy", "kiwipiepy_model"), "korean"
    ),
    Annotator(
        "pymorphy3", ALL, frozenset({"ru", "uk"}), pymorphy3, _parts_of_pymorphy3, "russian", _FOR_UKRAINIAN
    ),
    Annotator("apertium", ALL, frozenset(), apertium, parts_of_apertium, also=_FOR_APERTIUM),
    Annotator("spacy", ALL, frozenset(), spacy, _parts_of_spacy, "spacy", "python -m spacy download MODEL"),
    Annotator("stanza", ALL, frozenset(), stanza, _parts_of_stanza, "stanza", "stanza.download, in Python"),
)
ANNOTATORS: dict[str, Annotator] = {row.name: row for row in _ROWS}

# The best come first. HanTa is not among those for Dutch: it takes many plurals for their own lemmas. The models of
# spaCy and Stanza are better than most of these, but so slow that they are for those who ask for them by name.
FIRST: dict[str, tuple[str, ...]] = {
    "de": ("hanta",),
    "en": ("hanta",),
    "ja": ("fugashi",),
    "ko": ("kiwipiepy",),
    "ru": ("pymorphy3",),
    "uk": ("pymorphy3",),
    "zh": ("jieba",),
}
THEN = ("simplemma", "apertium", "plain")
