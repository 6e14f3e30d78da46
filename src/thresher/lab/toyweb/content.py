"""What an article of a toy web says, in which encoding, and what it asks of robots."""

from __future__ import annotations

from msgspec import Struct

from thresher.lab.toyweb.dice import between, roll, unit
from thresher.lab.toyweb.hosts import Host, origin
from thresher.lab.toyweb.plan import TEXT_FATES, Article, Spot, article
from thresher.lab.toyweb.web import ToyWeb
from thresher.lab.toyweb.words import LEGACY_CHARSETS, vocabulary


class Directives(Struct, frozen=True):
    """What an article asks of robots, and in which way it says so."""

    noindex: bool = False
    nofollow: bool = False
    noai: bool = False
    licensed: bool = False
    in_header: bool = False

    @property
    def words(self) -> str:
        """As in a robots meta tag: "noindex, nofollow"."""
        return ", ".join(word for word in ("noindex", "nofollow", "noai") if getattr(self, word))


class Charset(Struct, frozen=True):
    """How a page is encoded, and what it says about that."""

    codec: str
    header: str  # "" where nothing is said
    meta: str


def reprinted(web: ToyWeb, home: Host, page: Article) -> tuple[Host, Article, bool] | None:
    """Whose text an article shows instead of one of its own, and whether with words changed.

    Only odd articles take texts and only even ones give them, so that a taken text is never passed on.
    """
    if page.number % 2 == 0 or page.fate not in TEXT_FATES or home.kind == "spam":
        return None
    chance = unit(web.seed, "reprint", home.number, page.number) / 2  # half of the articles cannot
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


class Recipe(Struct, frozen=True):
    """What the text of an article is made from."""

    key: int
    characters: int  # about as many
    stuffed: bool
    edit: float
    editor: int


def recipe(web: ToyWeb, home: Host, page: Article) -> Recipe:
    """What the text of an article is made from, its own or taken from another."""
    taken = reprinted(web, home, page)
    giver, given, edited = taken or (home, page, False)
    key = roll(web.seed, "text", giver.number, given.number)
    return Recipe(
        key=key,
        characters=between(web.text_chars if page.fate in TEXT_FATES else web.thin_chars, key / 2**64),
        stuffed=home.kind == "spam",
        edit=web.edited_words if edited else 0.0,
        editor=roll(web.seed, "editor", home.number, page.number),
    )


def paragraphs(web: ToyWeb, home: Host, page: Article) -> list[str]:
    """The text of an article."""
    how = recipe(web, home, page)
    return vocabulary(page.language).paragraphs(
        how.key, how.characters, stuffed=how.stuffed, edit=how.edit, editor=how.editor
    )


def openings(web: ToyWeb, home: Host, page: Article, most: int) -> list[str]:
    """The words near the beginning of each of its first paragraphs that can be made a link."""
    how = recipe(web, home, page)
    return vocabulary(page.language).openings(
        how.key, how.characters, most, stuffed=how.stuffed, edit=how.edit, editor=how.editor
    )


def directives(web: ToyWeb, home: Host, page: Article) -> Directives:
    """What an article asks of robots."""

    def is_so(what: str, share: float) -> bool:
        return unit(web.seed, what, home.number, page.number) < share

    return Directives(
        noindex=is_so("noindex", web.noindex),
        nofollow=is_so("nofollow", web.nofollow),
        noai=is_so("noai", web.noai),
        licensed=is_so("licence", web.licensed),
        in_header=is_so("in header", 0.5),
    )


def charset(web: ToyWeb, spot: Spot, language: str) -> Charset:
    """The encoding of a page, declared in header, page or both, wrongly or not at all."""
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


def archived(web: ToyWeb, home: Host) -> Article | None:
    """The article that a host shows again in its ever deeper archive."""
    for number in range(2, home.pages + 1, 2):
        found = article(web, home.number, number)
        if found.fate in TEXT_FATES and not found.area:
            return found
    return None
