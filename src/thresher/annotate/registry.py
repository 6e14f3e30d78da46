"""The registry of annotators: a function and a row in `ANNOTATORS` for each, and the best one for a language.

A user's own annotator is named by module and function, such as `mymodule:tag`. It takes a paragraph and returns
sentences, which are lists of tuples; `tag.attributes = ("word", "lemma")` names the values of a tuple.
"""

from __future__ import annotations

import logging
import traceback
from collections.abc import Callable, Sequence
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
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
from thresher.annotate.user_modules import importable_from
from thresher.errors import UsageError

_log = logging.getLogger(__name__)

Parts = Callable[[str], tuple[str, ...] | None]

WORDS, LEMMAS, TAGS, ALL = ("word",), ("word", "lemma"), ("word", "pos"), ("word", "lemma", "pos")


class AnnotatorError(UsageError):
    """An annotator that does not exist, is not installed, fails or returns wrong values."""


class Annotator(Struct, frozen=True):
    """A way to annotate paragraphs: a row of `ANNOTATORS`."""

    name: str
    attributes: tuple[str, ...]
    # Empty if the annotator knows all languages, or the languages whose models are installed.
    languages: frozenset[str]
    make: Callable[[str], Annotate]
    # Return the libraries that a language needs, with their versions, or None if one is not installed.
    parts: Parts
    extra: str = ""  # extra of thresher that installs it
    also: str = ""  # command that installs the rest, such as a model
    extra_of: dict[str, str] = {}  # other extras, by language

    @property
    def summary(self) -> str:
        """The first line of the documentation."""
        return self.make.__doc__ or ""

    def installation(self, language: str) -> str:
        """Return the commands that install the annotator for a language."""
        name = self.extra_of.get(language, self.extra)
        extra = f"pip install 'thresher[{name}]'" if name else ""
        return ", then ".join(filter(None, [extra, self.also.replace("LANGUAGE", language)]))


class LoadedAnnotator(Struct, frozen=True):
    """An annotator with the models of a language; call it with a paragraph, a text without line breaks."""

    name: str
    attributes: tuple[str, ...]  # names of the values in the tuple of a token
    version: str  # of everything that the values depend on
    annotate: Annotate

    def __call__(self, paragraph: str) -> list[Sentence]:
        """Return the sentences of a paragraph."""
        return self.annotate(paragraph)


def annotator(language: str, name: str | None = None, *, folders: Sequence[str] = ()) -> LoadedAnnotator:
    """Load the annotator of a name for a language; without a name, the best one that is installed.

    The module of a user's own annotator is searched on Python's path, then in `folders`; without folders, in the
    current directory. Raises AnnotatorError.
    """
    if name and ":" in name:
        return _own(name, folders)
    row, code = _chosen(language, name)
    return LoadedAnnotator(row.name, row.attributes, _version(row, code), row.make(code))


def version_of(language: str, name: str | None = None, *, folders: Sequence[str] = ()) -> str:
    """Return the version of an annotator without loading its models. Arguments as for `annotator`."""
    return _own(name, folders).version if name and ":" in name else _version(*_chosen(language, name))


def attributes_of(language: str, name: str | None = None, *, folders: Sequence[str] = ()) -> tuple[str, ...]:
    """Return the attributes that an annotator gives tokens. Arguments as for `annotator`."""
    return _own(name, folders).attributes if name and ":" in name else _chosen(language, name)[0].attributes


def name_of(language: str) -> str:
    """Return the name of the best annotator that is installed for a language."""
    return _chosen(language, None)[0].name


def better_than(name: str, language: str) -> str:
    """Return the best annotator that is installed for a language if it is better than another one, or ""."""
    best, code = _chosen(language, None)
    ranked = _ranking(code)
    # Annotators outside of the ranking were chosen by name.
    return best.name if name in ranked and ranked.index(best.name) < ranked.index(name) else ""


def commands_that_add(attribute: str, language: str, directory: Path) -> list[str]:
    """Return the commands by which the tokens of a corpus get an attribute; none if no annotator gives it."""
    best, code = _chosen(language, None)
    ranked = _ranking(code)
    giving = [ANNOTATORS[name] for name in (*ranked, *MODELS) if attribute in ANNOTATORS[name].attributes]
    known = [row for row in giving if _knows(row, code)]
    installed = [row for row in known if row.parts(code) is not None]
    # Apertium has no extra: it knows some languages only, and is a package of the operating system.
    row = next(iter([*installed, *(row for row in known if row.extra)]), None)
    if row is None:
        return []
    is_chosen = row.name in ranked and ranked.index(row.name) <= ranked.index(best.name)
    option = "" if is_chosen else f" --annotator {row.name}"
    return [
        *([] if installed else [row.installation(code)]),
        f"thresher index {directory}{option} --rebuild",
    ]


def _chosen(language: str, name: str | None) -> tuple[Annotator, str]:
    code = language if language in SEGMENTERS else language.partition("-")[0]
    return (_named(name, code) if name else _best(code)), code


def _version(row: Annotator, code: str) -> str:
    made_of = ", ".join((f"thresher {__version__}", *(row.parts(code) or ())))
    return f"{row.name} ({made_of})"


def _ranking(language: str) -> tuple[str, ...]:
    return *FIRST.get(language, ()), *THEN


def _best(language: str) -> Annotator:
    rows = [ANNOTATORS[name] for name in _ranking(language)]
    return next(row for row in rows if _knows(row, language) and row.parts(language) is not None)


def _named(name: str, language: str) -> Annotator:
    row = ANNOTATORS.get(name)
    if not row:
        raise AnnotatorError(f"unknown annotator {name!r}; {_choices()}")
    if not _knows(row, language):
        raise AnnotatorError(
            f"{name} does not know the language {language!r}; it knows {', '.join(sorted(row.languages))}"
        )
    if row.parts(language) is None:
        raise AnnotatorError(
            f"{name} is not installed for {language!r}; install it: {row.installation(language)}"
        )
    return row


def _knows(row: Annotator, language: str) -> bool:
    return not row.languages or language.partition("-")[0] in row.languages


def _choices() -> str:
    return f"choose one of {', '.join(ANNOTATORS)}, or name your own as module:function"


def _own(name: str, folders: Sequence[str]) -> LoadedAnnotator:
    """Return a user's own annotator, which checks its values: a wrong one would spoil the corpus."""
    module, _, function = name.partition(":")
    searched = tuple(folders) or (str(Path.cwd()),)
    try:
        with importable_from(searched):
            own = getattr(import_module(module), function)
    except (ImportError, AttributeError, ValueError) as fault:
        raise AnnotatorError(
            f"the annotator {name!r} cannot be imported: {fault}; its module must lie in "
            f"{' or '.join(searched)} or on Python's path; {_choices()}"
        ) from None
    except Exception as fault:  # any, of the code of a user
        raise _failure(name, fault) from fault
    attributes = getattr(own, "attributes", None)
    if not callable(own) or not isinstance(attributes, tuple) or attributes[:1] != WORDS:
        raise AnnotatorError(
            f"{name!r} must be a function with a tuple of attributes, the first of them word; "
            f'for example: {function}.attributes = ("word", "lemma", "pos")'
        )

    def checked(paragraph: str) -> list[Sentence]:
        try:
            sentences: list[Sentence] = own(paragraph)
        except Exception as fault:  # any, of the code of a user
            raise _failure(name, fault) from fault
        for token in (token for sentence in sentences for token in sentence):
            if len(token) != len(attributes) or not all(map(_is_value, token)):
                raise AnnotatorError(
                    f"{name!r} returned {token!r} for a token; it must return {len(attributes)} texts of one line"
                )
        return sentences

    return LoadedAnnotator(
        name, attributes, f"{name} ({getattr(own, 'version', 'without a version')})", checked
    )


def _failure(name: str, fault: Exception) -> AnnotatorError:
    """Return the error for an exception of a user's own annotator, with the line that raised it."""
    _log.error("the annotator %r failed", name, exc_info=fault)
    place = traceback.extract_tb(fault.__traceback__)[-1]
    return AnnotatorError(
        f"the annotator {name!r} failed: {type(fault).__name__}: {fault}; see {place.filename}, line {place.lineno}"
    )


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


_FOR_APERTIUM = "apt-get install apertium and a package that has the language, such as apertium-eng-spa"
_FOR_STANZA = """python -c 'import stanza; stanza.download("LANGUAGE")'"""
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
        "pymorphy3",
        ALL,
        frozenset({"ru", "uk"}),
        pymorphy3,
        _parts_of_pymorphy3,
        "russian",
        extra_of={"uk": "ukrainian"},
    ),
    Annotator("apertium", ALL, frozenset(), apertium, parts_of_apertium, also=_FOR_APERTIUM),
    Annotator("spacy", ALL, frozenset(), spacy, _parts_of_spacy, "spacy", "python -m spacy download MODEL"),
    Annotator("stanza", ALL, frozenset(), stanza, _parts_of_stanza, "stanza", _FOR_STANZA),
)
ANNOTATORS: dict[str, Annotator] = {row.name: row for row in _ROWS}

# The best come first. HanTa is not listed for Dutch, since it takes many plurals for lemmas.
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
# Neural models are better than most of the others, but so slow that they are used only by name. Stanza has
# models of more languages than spaCy.
MODELS = ("stanza", "spacy")
