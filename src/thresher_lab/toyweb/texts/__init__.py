"""Sources of the texts of a toy web: words as frequent as in the language, or sentences that people can read."""

from __future__ import annotations

from typing import Protocol

from thresher_lab.toyweb.texts.grammar import grammar
from thresher_lab.toyweb.web import ToyWeb
from thresher_lab.toyweb.words import require_wordfreq, vocabulary

__all__ = ["TextSource", "require_source", "text_source"]


class TextSource(Protocol):
    """Texts in one language; each is a pure function of its key."""

    space: str  # between words

    def title(self, bits: int, /) -> tuple[str, str]:
        """Return a headline and the start of it as it would stand in a URL."""

    def paragraphs(
        self, key: int, characters: int, *, stuffed: bool = False, edit: float = 0.0, editor: int = 0
    ) -> list[str]:
        """Return about as many characters of text as asked for, in paragraphs.

        `stuffed` leaves out the function words; `edit` is the share of words that differ from the text that the
        same key gives without it, and each `editor` changes others.
        """

    def openings(
        self,
        key: int,
        characters: int,
        most: int,
        *,
        stuffed: bool = False,
        edit: float = 0.0,
        editor: int = 0,
    ) -> list[str]:
        """Return the fourth to sixth word of each of the first paragraphs that `paragraphs` gives."""

    def phrase(self, key: int, count: int) -> str:
        """Return a few words in a row, no sentence."""

    def capitalised(self, text: str) -> str:
        """Return the text with its first letter as at the start of a sentence."""


def text_source(web: ToyWeb, language: str) -> TextSource:
    """Return the source of a web's texts in one of its languages."""
    return grammar(language) if web.text == "sentences" else vocabulary(language)


def require_source(web: ToyWeb) -> None:
    """Raise a `UsageError` that names the extra if the texts of a web need wordfreq and it is not installed."""
    if web.text == "words":
        require_wordfreq()
