"""Look-up tables of the scan: tags, attributes, character references, characters, names."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping
from html.entities import html5

import numpy as np
from numpy.typing import NDArray

from thresher.reader.html.kernels import layout as at
from thresher.reader.html.kernels.text import HASH_FACTOR, HASH_MASK, HASH_SEED

Bytes = NDArray[np.uint8]
Line = NDArray[np.int64]

_STOPS = ".!?。！？｡।॥؟۔။።៕։"  # not …, with which teasers break off
_COMMAS = ",;:、，；：،؛՝၊፣–—"
# Signs that turn the direction of text, noncharacters, soft hyphens and stray marks of byte order. Joiners stay:
# Persian and Indic words are written with them.
_UNREAD = ((0xAD, 0xAD), (0x61C, 0x61C), (0x200E, 0x200F), (0x202A, 0x202E), (0x2066, 0x2069), (0xFDD0, 0xFDEF),
           (0xFEFF, 0xFEFF), (0xFFFE, 0xFFFF))  # fmt: skip

_BLOCKS = (
    "address article aside blockquote body caption center dd details dialog dir div dl dt fieldset figcaption "
    "figure footer form frameset h1 h2 h3 h4 h5 h6 header hgroup hr html legend li main menu nav noscript ol p "
    "plaintext pre search section summary table tbody td tfoot th thead tr ul listing"
)
_CLOSING_P = (
    "address article aside blockquote center details dialog dir div dl dd dt fieldset figcaption figure footer "
    "form h1 h2 h3 h4 h5 h6 header hgroup hr li listing main menu nav ol p plaintext pre search section summary "
    "table ul xmp"
)
_SCOPED_ENDS = (
    "address applet article aside blockquote button center dd details dialog dir div dl dt fieldset figcaption "
    "figure footer header hgroup listing main marquee menu nav noscript object ol pre search section select "
    "summary template ul"
)
_SPECIAL = (
    "address applet area article aside base basefont bgsound blockquote body br button caption center col colgroup "
    "dd details dir div dl dt embed fieldset figcaption figure footer form frame frameset h1 h2 h3 h4 h5 h6 head "
    "header hgroup hr html iframe img input keygen li link listing main marquee menu meta nav noembed noframes "
    "noscript object ol p param plaintext pre script search section select source style summary table tbody td "
    "template textarea tfoot th thead title tr track ul wbr xmp foreignobject desc"
)
_BREAKING_OUT = (
    "b big blockquote body br center code dd div dl dt em embed h1 h2 h3 h4 h5 h6 head hr i img li listing menu "
    "meta nobr ol p pre ruby s small span strong strike sub sup table tt u ul var"
)
_KINDS: tuple[tuple[int, str], ...] = (
    (
        at.VOID,
        "area base basefont bgsound br col embed frame hr img input keygen link meta param source track wbr",
    ),
    (at.RAW, "script style textarea title iframe noembed noframes xmp"),
    (at.BLOCK, _BLOCKS),
    (at.SPECIAL, _SPECIAL),
    (at.SILENT, "template svg math object applet canvas audio video select option optgroup datalist button"),
    (at.FORMATTING, "a b big code em font i nobr s small strike strong tt u"),
    (at.CLOSES_P, _CLOSING_P),
    (at.SCOPE, "applet caption html table td th marquee object template foreignobject desc"),
    (at.HEADING, "h1 h2 h3 h4 h5 h6"),
    (at.BREAKS_OUT, _BREAKING_OUT),
    (at.SCOPED_END, _SCOPED_ENDS),
    (at.FOREIGN, "svg math"),
    (at.HTML_INSIDE, "foreignobject desc title"),
    (at.NOTED, "meta base link html"),
    (at.ROWS, "tbody thead tfoot"),
    (at.TABLE_PART, "td th tr tbody thead tfoot caption col colgroup"),
    (at.FLOWS, "address div p"),
)
_PLACES: tuple[tuple[int, str], ...] = (
    (at.NAV, "nav menu"),
    (at.FOOTER, "footer"),
    (at.HEADER, "header"),
    (at.ASIDE, "aside"),
    (at.FORMS, "form fieldset"),
    (at.MAIN, "main"),
    (at.ARTICLE, "article"),
    (at.IN_HEADING, "h1 h2 h3 h4 h5 h6"),
    (at.ITEM, "li"),
    (at.QUOTE, "blockquote"),
    (at.PARAGRAPH, "p"),
    (at.PREFORMATTED, "pre listing"),
    (at.FIGURE, "figure"),
)
_OWN_RULES = (
    "a area base body br button dd dt form head html img input li link meta noscript optgroup option p script "
    "select table td template textarea th time title tr"
)
_ATTRIBUTES = {
    "href": at.HREF,
    "class": at.CLASS,
    "id": at.ID,
    "style": at.STYLE_OF,
    "hidden": at.HIDDEN_OF,
    "aria-hidden": at.ARIA_HIDDEN,
    "rel": at.REL,
    "alt": at.ALT,
    "name": at.NAME,
    "property": at.PROPERTY,
    "http-equiv": at.HTTP_EQUIV,
    "itemprop": at.ITEMPROP,
    "content": at.CONTENT,
    "lang": at.LANG,
    "type": at.TYPE,
    "hreflang": at.HREFLANG,
    "datetime": at.DATETIME,
    "role": at.ROLE,
}
_ROLES = {
    "navigation": at.NAV,
    "contentinfo": at.FOOTER,
    "banner": at.HEADER,
    "complementary": at.ASIDE,
    "search": at.FORMS,
    "form": at.FORMS,
    "main": at.MAIN,
    "article": at.ARTICLE,
    "dialog": at.SAYS_NOTICE,
    "alertdialog": at.SAYS_NOTICE,
    "menu": at.NAV,
    "menubar": at.NAV,
    "tablist": at.NAV,
}
# Topics of parts of classes and ids; `#` is anything but a letter.
_SPOKEN: tuple[tuple[int, str], ...] = (
    (at.SAYS_MENU, "nav menu breadcrumb pagina pager toolbar tab# tabs# toc# skip"),
    (at.SAYS_FOOT, "foot copyright legal disclaimer colophon"),
    (
        at.SAYS_SIDE,
        "side widget related recommend popular latest recent more# trending teaser promo seealso see#also",
    ),
    (at.SAYS_SHARE, "share sharing social follow subscri newsletter rss print like#"),
    (at.SAYS_NOTICE | at.SAYS_CONSENT, "cookie consent gdpr"),
    (at.SAYS_NOTICE, "banner popup modal overlay alert notice login signup register search"),
    (
        at.SAYS_OTHER,
        "comment disqus discuss reply replies respond thread advert sponsor #ad# #ads# #adv# byline author date# "
        "tag# tags# meta# time category credit caption rating",
    ),
    (at.SAYS_TEXT, "article content post entry story text body main blog prose markdown document"),
    (at.SAYS_AUTHOR, "byline #author#"),
)
# References to C1 controls stand for the characters of windows-1252 in their place.
_WINDOWS = [ord(bytes([byte]).decode("cp1252", "ignore") or chr(byte)) for byte in range(0x80, 0xA0)]


def hash_of(name: str) -> int:
    """Return the key of a name, as kernels compute it."""
    value = HASH_SEED
    for byte in name.encode():
        value = (value ^ byte) * HASH_FACTOR % (1 << 64)
    return value & HASH_MASK | 1


def character_classes() -> Bytes:
    """Return the class of every character of the basic plane."""
    kinds = {"L": at.LETTER, "M": at.LETTER, "N": at.DIGIT, "Z": at.SPACE}
    classes = np.full(0x10000, at.OTHER, np.uint8)
    for code in range(0x10000):
        category = unicodedata.category(chr(code))
        classes[code] = at.CAPITAL if category == "Lu" else kinds.get(category[0], at.OTHER)
        if category in ("Cc", "Cs"):
            classes[code] = at.UNWANTED
    classes[[ord(mark) for mark in _STOPS]] = at.STOP
    classes[[ord(mark) for mark in _COMMAS]] = at.COMMA
    classes[[code for code in range(0x100) if chr(code).isspace()]] = at.SPACE
    for first, last in _UNREAD:
        classes[first : last + 1] = at.UNWANTED
    return classes


def known() -> Line:
    """Return all tables in one array: their places and sizes first, then their contents."""
    numbers = _tag_numbers()
    references, rows = addressed(html5, range(len(html5)))
    meanings = list(html5.values())
    codes = [[ord(character) for character in f"{meanings[row]}\0"[:2]] for row in rows.tolist()]
    tags, tag_numbers = addressed(numbers, numbers.values())
    attributes, attribute_numbers = addressed(_ATTRIBUTES, _ATTRIBUTES.values())
    roles, role_places = addressed(_ROLES, _ROLES.values())
    steps, says = _automaton(_SPOKEN)
    parts = {
        at.K_REFERENCES: references,
        at.K_CODES: np.array(codes, np.int64).ravel(),
        at.K_WINDOWS: np.array(_WINDOWS),
        at.K_TAGS: tags,
        at.K_TAG_NUMBERS: tag_numbers,
        at.K_TAG_FLAGS: _by_tag(numbers, _KINDS),
        at.K_TAG_PLACES: _by_tag(numbers, _PLACES),
        at.K_ATTRIBUTES: attributes,
        at.K_ATTRIBUTE_NUMBERS: attribute_numbers,
        at.K_ROLES: roles,
        at.K_ROLE_PLACES: role_places,
        at.K_STEPS: steps,
        at.K_SAYS: says,
    }
    header = np.zeros(at.K_HEADER, np.int64)
    header[[at.K_REFERENCES_SIZE, at.K_TAGS_SIZE]] = len(references), len(tags)
    header[[at.K_ATTRIBUTES_SIZE, at.K_ROLES_SIZE]] = len(attributes), len(roles)
    place = at.K_HEADER
    for name, part in parts.items():
        header[name] = place
        place += len(part)
    return np.concatenate([header, *parts.values()])


def addressed(names: Iterable[str], numbers: Iterable[int]) -> tuple[Line, Line]:
    """Return an open-addressing table, at most a quarter full: keys of names and a number for each."""
    entries = [(hash_of(name), number) for name, number in zip(names, numbers, strict=True)]
    size = 1 << (4 * len(entries)).bit_length()
    keys, values = np.zeros(size, np.int64), np.zeros(size, np.int64)
    for key, number in entries:
        place = key % size
        while keys[place]:
            place = (place + 1) % size
        keys[place], values[place] = key, number
    return keys, values


def _tag_numbers() -> dict[str, int]:
    """Return the numbers of all known tags; tags with rules of their own come first."""
    own = {name: int(getattr(at, name.upper())) for name in _OWN_RULES.split()}
    named = {name for _, names in (*_KINDS, *_PLACES) for name in names.split()}
    return own | {name: len(own) + number for number, name in enumerate(sorted(named - own.keys()), start=1)}


def _by_tag(numbers: Mapping[str, int], table: Iterable[tuple[int, str]]) -> Line:
    """Return the bits of a table for every tag number."""
    bits = np.zeros(at.UNKNOWN_TAGS, np.int64)
    for bit, names in table:
        for name in names.split():
            bits[numbers[name]] |= bit
    return bits


def _automaton(spoken: Iterable[tuple[int, str]]) -> tuple[Line, Line]:
    """Return transitions by letter and outputs by state of an Aho-Corasick automaton."""
    steps: list[list[int]] = [[-1] * at.SYMBOLS]
    says = [0]
    for bit, words in spoken:
        for word in words.split():
            state = 0
            for letter in word:
                symbol = 0 if letter == "#" else ord(letter) - 96
                if steps[state][symbol] < 0:
                    steps[state][symbol] = len(steps)
                    steps.append([-1] * at.SYMBOLS)
                    says.append(0)
                state = steps[state][symbol]
            says[state] |= bit
    fall_back = [0] * len(steps)
    waiting = [0]
    for state in waiting:  # grows while it is gone through: nearer states first
        for symbol, following in enumerate(steps[state]):
            shorter = steps[fall_back[state]][symbol] if state else 0
            if following < 0:
                steps[state][symbol] = shorter
            else:
                fall_back[following] = shorter
                says[following] |= says[shorter]
                waiting.append(following)
    return np.array(steps, np.int64).ravel(), np.array(says, np.int64)
