"""Where a block of text stands on its page, as bits: inside which elements, and what their names speak of."""

from __future__ import annotations

import re

# Where a block stands: one bit each, handed down from an element to all inside it.
NAV, FOOTER, HEADER, ASIDE, FORM, MAIN, ARTICLE = (1 << n for n in range(7))
HEADING, ITEM, QUOTE, PARAGRAPH, PRE, FIGURE = (1 << n for n in range(7, 13))
# What the class or id of an element around it speaks of.
SAYS_MENU, SAYS_FOOT, SAYS_SIDE, SAYS_SHARE = (1 << n for n in range(13, 17))
SAYS_NOTICE, SAYS_OTHER, SAYS_TEXT = (1 << n for n in range(17, 20))
NEAR_TEXT = 1 << 20  # the nearest element that says anything speaks of text alone
SAYS_ANYTHING = SAYS_MENU | SAYS_FOOT | SAYS_SIDE | SAYS_SHARE | SAYS_NOTICE | SAYS_OTHER | SAYS_TEXT

TAG_BITS = {
    "nav": NAV,
    "menu": NAV,
    "footer": FOOTER,
    "header": HEADER,
    "aside": ASIDE,
    "form": FORM,
    "fieldset": FORM,
    "main": MAIN,
    "article": ARTICLE,
    "li": ITEM,
    "blockquote": QUOTE,
    "p": PARAGRAPH,
    "pre": PRE,
    "figure": FIGURE,
} | dict.fromkeys(("h1", "h2", "h3", "h4", "h5", "h6"), HEADING)

_SAYS = re.compile(
    r"(?P<menu>nav|menu|breadcrumb|pagina|pager|toolbar|tabs?\b|toc\b|skip)"
    r"|(?P<foot>foot|copyright|legal|disclaimer|colophon)"
    r"|(?P<side>side|widget|related|recommend|popular|latest|recent|more-|trending|teaser|promo|see-?also)"
    r"|(?P<share>share|sharing|social|follow|subscri|newsletter|rss|print|like-)"
    r"|(?P<notice>cookie|consent|gdpr|banner|popup|modal|overlay|alert|notice|login|signup|register|search)"
    r"|(?P<other>comment|disqus|discuss|repl(?:y|ies)|respond|thread|advert|sponsor|(?<![a-z])adv?s?(?![a-z])"
    r"|byline|author|(?:date|tags?|meta)(?![a-z])|time|category|credit|caption|rating)"
    r"|(?P<text>article|content|post|entry|story|text|body|main|blog|prose|markdown|document)"
)
_SAYS_BITS = {
    "menu": SAYS_MENU,
    "foot": SAYS_FOOT,
    "side": SAYS_SIDE,
    "share": SAYS_SHARE,
    "notice": SAYS_NOTICE,
    "other": SAYS_OTHER,
    "text": SAYS_TEXT,
}


def places(tag: str, names: str) -> int:
    """The bits that an element adds by its tag, and by its class and id."""
    said = 0
    if tag not in ("body", "html"):  # their classes describe the template, not the place
        for match in _SAYS.finditer(names.lower()):
            said |= _SAYS_BITS[match.lastgroup or ""]
    if said == SAYS_TEXT:
        said |= NEAR_TEXT
    return said | TAG_BITS.get(tag, 0)


def inside(outer: int, own: int) -> int:
    """The bits of what stands inside an element, given those of its place and those it adds."""
    return outer & ~NEAR_TEXT | own if own & SAYS_ANYTHING else outer | own
