"""The text of an article of a toy web, its encoding, and its directives for robots."""

from __future__ import annotations

from msgspec import Struct

from thresher_lab.toyweb.dice import between, roll, unit
from thresher_lab.toyweb.hosts import ToyHost, origin
from thresher_lab.toyweb.plan import TEXT_FATES, Article, PlannedSpot, article, text_key
from thresher_lab.toyweb.texts import text_source
from thresher_lab.toyweb.web import ToyWeb
from thresher_lab.toyweb.words import LEGACY_CHARSETS


class ArticleDirectives(Struct, frozen=True):
    """The directives of an article for robots, in the page or in the header."""

    noindex: bool = False
    nofollow: bool = False
    noai: bool = False
    licensed: bool = False
    in_header: bool = False

    @property
    def words(self) -> str:
        """The directives as in a robots meta tag: "noindex, nofollow"."""
        return ", ".join(word for word in ("noindex", "nofollow", "noai") if getattr(self, word))


class Charset(Struct, frozen=True):
    """The encoding of a page, and the encodings that header and page declare."""

    codec: str
    header: str  # "": not declared
    meta: str


def reprinted(web: ToyWeb, home: ToyHost, page: Article) -> tuple[ToyHost, Article, bool] | None:
    """Return the host and the article that an article reprints and whether words are changed, or None.

    Only odd articles reprint and only even ones are reprinted, so that no reprint is reprinted again.
    """
    if page.number % 2 == 0 or page.fate not in TEXT_FATES or home.kind == "spam":
        return None
    # Half of the articles cannot be reprints.
    chance = unit(web.seed, "reprint", home.number, page.number) / 2
    if chance >= web.reprint + web.near_duplicate:
        return None
    bits = roll(web.seed, "source", home.number, page.number)
    giver = origin(web, page.language, bits)
    if giver is None or giver.pages < 2:
        return None
    given = article(web, giver.number, 2 + (bits >> 32) % (giver.pages // 2) * 2)
    if given.fate not in TEXT_FATES or given.language != page.language:
        return None
    return giver, given, chance >= web.reprint


class ArticleRecipe(Struct, frozen=True):
    """The arguments from which the text of an article is made."""

    key: int
    characters: int  # approximately
    stuffed: bool
    edit: float
    editor: int


def recipe(web: ToyWeb, home: ToyHost, page: Article) -> ArticleRecipe:
    """Return the recipe of the text of an article, its own or a reprint."""
    taken = reprinted(web, home, page)
    giver, given, edited = taken or (home, page, False)
    key = text_key(web, giver.number, given.number)
    return ArticleRecipe(
        key=key,
        characters=between(web.text_chars if page.fate in TEXT_FATES else web.thin_chars, key / 2**64),
        stuffed=home.kind == "spam",
        edit=web.edited_words if edited else 0.0,
        editor=roll(web.seed, "editor", home.number, page.number),
    )


def paragraphs(web: ToyWeb, home: ToyHost, page: Article) -> list[str]:
    """Return the text of an article."""
    how = recipe(web, home, page)
    return text_source(web, page.language).paragraphs(
        how.key, how.characters, stuffed=how.stuffed, edit=how.edit, editor=how.editor
    )


def openings(web: ToyWeb, home: ToyHost, page: Article, most: int) -> list[str]:
    """Return the words near the beginning of each of its first paragraphs that can become a link."""
    how = recipe(web, home, page)
    return text_source(web, page.language).openings(
        how.key, how.characters, most, stuffed=how.stuffed, edit=how.edit, editor=how.editor
    )


def directives(web: ToyWeb, home: ToyHost, page: Article) -> ArticleDirectives:
    """Return the directives of an article for robots."""

    def has(trait: str, share: float) -> bool:
        return unit(web.seed, trait, home.number, page.number) < share

    return ArticleDirectives(
        noindex=has("noindex", web.noindex),
        nofollow=has("nofollow", web.nofollow),
        noai=has("noai", web.noai),
        licensed=has("licence", web.licensed),
        in_header=has("in header", 0.5),
    )


def charset(web: ToyWeb, spot: PlannedSpot, language: str) -> Charset:
    """Return the encoding of a page, declared in header, page or both, rightly, wrongly or not at all."""
    home = spot.home
    old = LEGACY_CHARSETS.get(language, ())
    codec = old[home.number % len(old)] if home.legacy and old else "utf-8"
    if spot.kind == "article":
        chance = unit(web.seed, "charset", home.number, spot.number)
        if chance < web.undeclared:
            return Charset(codec, "", "")
        if chance < web.undeclared + web.mislabelled:
            return Charset(codec, "iso-8859-1" if codec == "utf-8" else "utf-8", codec)
    custom = roll(web.seed, "declares", home.number) % 3
    return Charset(codec, codec if custom != 0 else "", codec if custom != 1 else "")


def archived(web: ToyWeb, home: ToyHost) -> Article | None:
    """Return the article that a host repeats in its endless archive, or None if it has no text."""
    for number in range(2, home.pages + 1, 2):
        found = article(web, home.number, number)
        if found.fate in TEXT_FATES and not found.area:
            return found
    return None
