"""Numbers on which kernels and tables agree: tags, flags, and columns of the shared arrays."""

from __future__ import annotations

# Tags with rules of their own; all others are known by their flags alone.
(
    A, AREA, BASE, BODY, BR, BUTTON, DD, DT, FORM, HEAD, HTML, IMG, INPUT, LI, LINK, META, NOSCRIPT,
    OPTGROUP, OPTION, P, SCRIPT, SELECT, TABLE, TD, TEMPLATE, TEXTAREA, TH, TIME, TITLE, TR,
) = range(1, 31)  # fmt: skip
UNKNOWN_TAGS = 256  # and more: names not in the table, distinguished by their hashes

# Properties of tags.
(
    VOID,  # has no content
    RAW,  # its content is no markup
    BLOCK,  # begins and ends a block of text
    SPECIAL,  # an unmatched end tag does not reach beyond it
    SILENT,  # its content is not shown as text
    FORMATTING,  # <b>, <i>: closed out of turn without closing what stands inside
    CLOSES_P,  # ends a paragraph that is open
    SCOPE,  # end tags and open links do not reach beyond it
    HEADING,
    BREAKS_OUT,  # HTML, also inside a drawing
    SCOPED_END,  # its end tag closes all inside it
    FOREIGN,  # begins a drawing or a formula
    HTML_INSIDE,  # of a drawing
    NOTED,  # a remark of the page about itself
    ROWS,  # a part of a table that holds rows
    TABLE_PART,  # a cell, a row, rows, a caption, columns
    FLOWS,  # special, but a new list item closes the last one through it
) = (1 << n for n in range(17))

# Attributes that are looked at.
(
    HREF, CLASS, ID, STYLE_OF, HIDDEN_OF, ARIA_HIDDEN, REL, ALT, NAME, PROPERTY, HTTP_EQUIV, ITEMPROP, CONTENT,
    LANG, TYPE, HREFLANG, DATETIME, ROLE,
) = range(18)  # fmt: skip
ATTRIBUTES = 18

# Classes of characters, as far as they tell sentences from menus in any script.
LETTER, CAPITAL, SPACE, STOP, COMMA, DIGIT, OTHER, UNWANTED = range(8)
CLASSES = 8

# The memory of a scan is one array of integers, because every array is one thing more that is handed from function
# to function. It begins with single numbers, then come small tables, then growing tables. A row of a table is
# known by the place where it begins.
(
    OUT,  # bytes of text written
    CHARACTERS,  # characters of text written
    BLOCK_OUT,  # bytes written before the block
    BLOCK_CHARACTERS,  # characters written before the block
    LINE_OUT,  # bytes written before the line, where lines are kept
    PENDING,  # a space is due before the next character
    BREAKS,  # line breaks since the last character
    LINKED,  # characters of the block in links
    BLOCK_LINKS,  # links that began in the block
    EMPHASIS,  # elements such as <b> that began in the block
    LAST,  # class of the last character
    BEFORE_LAST,
    SOURCE,  # where in the source the block began
    CODE,  # the character a reference stands for
    SECOND_CODE,  # the one after it, or 0
    STRINGS_OUT,  # bytes of strings written
    STRINGS,  # strings written
    PRESENT,  # the attributes that a tag has, as bits
    SELF_CLOSED,  # the tag ended with />
    SIGNATURE,  # of the element: its tag and classes
    ANCHOR,  # the link that is open, or 0
    IN_LINK,  # whether text now is the text of a link
    LINK_LEVEL,  # the row of the stack where the link was opened, or 0
    LINK_CUT,  # the link was closed with the block around it, and goes on after it
    NO_MORE_NOSCRIPT,  # no end tag of it follows
    TAGS_LEFT,  # for which there is room
    UNSEEN_BYTES,  # of text in elements that are declared invisible
    ALL_SEEN,  # such declarations do not count
    STACK,  # where the tables begin, and where their next row goes
    TOP,
    ELEMENTS,
    NEXT_ELEMENT,
    BLOCKS,
    NEXT_BLOCK,
    NOTES,
    NEXT_NOTE,
    ANCHORS,
    NEXT_ANCHOR,
    LAST_ANCHOR,  # where there is no more room
    STATES,
) = range(40)
COUNTS = STATES  # of the characters of the block, by class
VALUES = COUNTS + CLASSES  # of attributes: where they begin and end
OPENED = VALUES + 2 * ATTRIBUTES  # elements that are open, by tag
MEMORY = OPENED + UNKNOWN_TAGS

# Columns of the stack of open elements.
S_TAG, S_FLAGS, S_CONTEXT, S_CONTAINER, S_NOTE, STACK_ROW = range(6)
# Columns of a block-level element.
E_PARENT, E_PLACES, E_SIGNATURE, ELEMENT_ROW = range(4)
# Columns of a block of text.
B_LENGTH, B_LINKED, B_CONTEXT, B_CONTAINER, B_LAST, B_BEFORE_LAST, B_LINKS, B_EMPHASIS, B_SOURCE, B_COUNTS = (
    range(10)
)
BLOCK_ROW = B_COUNTS + CLASSES
# Columns of a link.
A_BLOCK, A_START, A_END, A_HREF, A_REL, A_ALT, ANCHOR_ROW = range(7)
# Columns of a remark, and the kinds of remarks.
N_KIND, N_FIRST, N_START, N_END, NOTE_ROW = range(5)
N_META, N_BASE, N_LINK, N_TITLE, N_LANG, N_JSON, N_TIME, N_BYLINE = range(8)

# Constants of the scan are one array as well, which begins with the places and the sizes of its tables.
(
    K_REFERENCES, K_REFERENCES_SIZE, K_CODES, K_WINDOWS, K_TAGS, K_TAGS_SIZE, K_TAG_NUMBERS, K_TAG_FLAGS,
    K_TAG_PLACES, K_ATTRIBUTES, K_ATTRIBUTES_SIZE, K_ATTRIBUTE_NUMBERS, K_ROLES, K_ROLES_SIZE, K_ROLE_PLACES,
    K_STEPS, K_SAYS, K_HEADER,
) = range(18)  # fmt: skip
SYMBOLS = 27  # the letters, and all other characters as one

# Places of a block: one bit each, inherited by all elements inside an element.
(
    NAV, FOOTER, HEADER, ASIDE, FORMS, MAIN, ARTICLE, IN_HEADING, ITEM, QUOTE, PARAGRAPH, PREFORMATTED, FIGURE,
) = (1 << n for n in range(13))  # fmt: skip
# Topics of the class or id of an element around it.
SAYS_MENU, SAYS_FOOT, SAYS_SIDE, SAYS_SHARE, SAYS_NOTICE = (1 << n for n in range(13, 18))
NEAR_TEXT = 1 << 18  # the nearest element that says anything speaks of text alone
PLACE_BITS = 19  # all of these; the next serve other ends
SAYS_OTHER, SAYS_TEXT, SAYS_AUTHOR, SAYS_CONSENT = (1 << n for n in range(19, 23))
SAYS_ANYTHING = SAYS_MENU | SAYS_FOOT | SAYS_SIDE | SAYS_SHARE | SAYS_NOTICE | SAYS_OTHER | SAYS_TEXT
# Places that matter to the scanner itself.
UNSEEN, MUTE, IN_FOREIGN, IN_TEMPLATE, IN_SELECT = (1 << n for n in range(40, 45))
NO_TEXT = UNSEEN | MUTE

ZERO = 0  # by this name: numba compiles a function once more for a constant that is handed to it
HIDDEN = -1  # the link stands where no reader sees it
