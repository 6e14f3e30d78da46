"""Scan of a page: from its bytes to blocks, elements, links and remarks."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from thresher.jit import BYTES, NOTHING, NUMBERS, SOURCE, bare, inlined, inner, kernel
from thresher.reader.html.kernels import layout as at
from thresher.reader.html.kernels.markup import (
    BANG,
    GREATER,
    LESS,
    SLASH,
    SPACE,
    after_comment,
    declares,
    end_of_raw,
    find_byte,
    names_say,
    read_attributes,
    shows_little,
    starts_with,
    tag_at,
)
from thresher.reader.html.kernels.text import LOWER, end_line, find_key, hash_of, put_string, put_text
from thresher.reader.html.kernels.tree import (
    close_down_to,
    close_link,
    end_block,
    end_element,
    first_closed,
    level_of,
)

MIN_NOSCRIPT = 500  # bytes; some forums put the whole page there, others a line about JavaScript
MAX_JSON_BYTES = 65_536  # of a description of the page for machines
QUESTION = ord("?")


Bytes = NDArray[np.uint8]
Numbers = NDArray[np.int64]


def _word(text: str) -> Bytes:
    return np.frombuffer(text.encode(), np.uint8)


COMMENT, CDATA, CDATA_END = _word("<!--"), _word("[cdata["), _word("]]>")
DISPLAY, NONE, VISIBILITY, HIDDEN, TRUE = map(_word, ("display", "none", "visibility", "hidden", "true"))
LD_JSON = _word("application/ld+json")


@inlined
def has(number, work):
    """Return True if the tag has a non-empty attribute of this number."""
    value = at.VALUES + 2 * number
    return work[at.PRESENT] >> number & 1 and work[value + 1] > work[value]


@inner
def is_unseen(source, work):
    """Return True if an element is declared invisible."""
    present = work[at.PRESENT]
    if present >> at.HIDDEN_OF & 1:
        return True
    if present >> at.ARIA_HIDDEN & 1:
        start, end = work[at.VALUES + 2 * at.ARIA_HIDDEN], work[at.VALUES + 2 * at.ARIA_HIDDEN + 1]
        if end - start == len(TRUE) and starts_with(source, start, end, TRUE):
            return True
    if present >> at.STYLE_OF & 1:
        start, end = work[at.VALUES + 2 * at.STYLE_OF], work[at.VALUES + 2 * at.STYLE_OF + 1]
        return declares(source, start, end, DISPLAY, NONE) or declares(source, start, end, VISIBILITY, HIDDEN)
    return False


@inner
def keep(source, number, strings, work, known):
    """Append the value of an attribute to the strings ("" if absent) and return its number."""
    start = end = 0
    if work[at.PRESENT] >> number & 1:
        start, end = work[at.VALUES + 2 * number], work[at.VALUES + 2 * number + 1]
    return put_string(source, start, end, strings, work, known)


@inner
def add_note(kind, work):
    """Add a remark of a kind."""
    note = work[at.NEXT_NOTE]
    work[note + at.N_KIND] = kind
    work[note + at.N_FIRST] = work[at.STRINGS]
    work[note + at.N_START] = work[note + at.N_END] = work[at.CHARACTERS]
    work[at.NEXT_NOTE] = note + at.NOTE_ROW
    return note


@inner
def take_note(source, tag, strings, work, known):
    """Keep the values of <meta>, <base>, <link> and <html> that are of use."""
    if tag == at.META and has(at.CONTENT, work):
        name = at.NAME
        while name < at.ITEMPROP and not has(name, work):
            name += 1
        if has(name, work):
            add_note(at.N_META, work)
            keep(source, name, strings, work, known)
            keep(source, at.CONTENT, strings, work, known)
    elif tag == at.BASE and has(at.HREF, work):
        add_note(at.N_BASE, work)
        keep(source, at.HREF, strings, work, known)
    elif tag == at.LINK and has(at.HREF, work) and has(at.REL, work):
        add_note(at.N_LINK, work)
        keep(source, at.HREF, strings, work, known)
        keep(source, at.REL, strings, work, known)
        keep(source, at.HREFLANG, strings, work, known)
        keep(source, at.TYPE, strings, work, known)
    elif tag == at.HTML and has(at.LANG, work):
        add_note(at.N_LANG, work)
        keep(source, at.LANG, strings, work, known)


@inlined
def block_number(work):
    """Return the number of the block that is being gathered."""
    return (work[at.NEXT_BLOCK] - work[at.BLOCKS]) // at.BLOCK_ROW


@inner
def add_anchor(source, context, strings, work, known):
    """Add a link and return its number, or 0 if there is no room or no address."""
    anchor = work[at.NEXT_ANCHOR]
    if anchor >= work[at.LAST_ANCHOR] or context & at.IN_TEMPLATE or not work[at.PRESENT] >> at.HREF & 1:
        return 0
    if context & at.NO_TEXT:
        work[anchor + at.A_BLOCK] = at.HIDDEN
    else:
        work[anchor + at.A_BLOCK] = block_number(work)
        work[at.BLOCK_LINKS] += 1
    work[anchor + at.A_START] = work[anchor + at.A_END] = work[at.CHARACTERS]
    work[anchor + at.A_HREF] = keep(source, at.HREF, strings, work, known)
    work[anchor + at.A_REL] = keep(source, at.REL, strings, work, known) if has(at.REL, work) else -1
    work[anchor + at.A_ALT] = -1
    work[at.NEXT_ANCHOR] = anchor + at.ANCHOR_ROW
    return anchor


@inner
def picture(source, anchor, strings, work, known):
    """Use the alternative text of a picture for a link that has no other text."""
    if anchor and work[anchor + at.A_ALT] < 0 and has(at.ALT, work):
        work[anchor + at.A_ALT] = keep(source, at.ALT, strings, work, known)


@inlined
def places_of(source, tag, work, known):
    """Return the context bits that an element passes on: from its tag, class, id and role."""
    said = 0
    work[at.SIGNATURE] = tag
    present = work[at.PRESENT]
    if present >> at.CLASS & 1:
        said = names_say(source, at.CLASS, work, known)
    if present >> at.ID & 1:
        said |= names_say(source, at.ID, work, known)
    if said & at.SAYS_ANYTHING == at.SAYS_TEXT:
        said |= at.NEAR_TEXT
    if present >> at.ROLE & 1:
        value = hash_of(source, work[at.VALUES + 2 * at.ROLE], work[at.VALUES + 2 * at.ROLE + 1])
        role = find_key(known, known[at.K_ROLES], known[at.K_ROLES_SIZE], value)
        if role >= 0:
            said |= known[known[at.K_ROLE_PLACES] + role]
    return said | known[known[at.K_TAG_PLACES] + tag] if tag < at.UNKNOWN_TAGS else said


@inlined
def push(tag, flags, context, places, note, work):
    """Open an element; a block-level one is numbered and passes its context on to its children."""
    outer = work[at.TOP]
    top = outer + at.STACK_ROW
    container = work[outer + at.S_CONTAINER]
    if flags & at.BLOCK:
        if places & at.SAYS_ANYTHING:
            context &= ~at.NEAR_TEXT
        context |= places
        element = work[at.NEXT_ELEMENT]
        work[element + at.E_PARENT] = container
        work[element + at.E_PLACES] = places
        work[element + at.E_SIGNATURE] = work[at.SIGNATURE]
        work[at.NEXT_ELEMENT] = element + at.ELEMENT_ROW
        container = (element - work[at.ELEMENTS]) // at.ELEMENT_ROW
    work[top + at.S_TAG] = tag
    work[top + at.S_FLAGS] = flags
    work[top + at.S_CONTEXT] = context
    work[top + at.S_CONTAINER] = container
    work[top + at.S_NOTE] = note
    if tag < at.UNKNOWN_TAGS:
        work[at.OPENED + tag] += 1
    work[at.TOP] = top


@inner
def go_on_with_link(work):
    """Reopen a link that was cut off by the end of its block, as browsers do."""
    cut, anchor = work[at.ANCHOR], work[at.NEXT_ANCHOR]
    work[at.LINK_CUT] = 0
    context = work[work[at.TOP] + at.S_CONTEXT]
    if cut:
        work[cut + at.A_END] = work[at.CHARACTERS]
        work[at.ANCHOR] = 0
        if anchor < work[at.LAST_ANCHOR]:
            for column in range(at.ANCHOR_ROW):
                work[anchor + column] = work[cut + column]
            work[anchor + at.A_BLOCK] = at.HIDDEN if context & at.NO_TEXT else block_number(work)
            work[anchor + at.A_START] = work[at.CHARACTERS]
            work[at.NEXT_ANCHOR] = anchor + at.ANCHOR_ROW
            work[at.ANCHOR] = anchor
    push(at.A, at.FORMATTING, context, at.ZERO, at.ZERO, work)
    work[at.LINK_LEVEL] = work[at.TOP]


@inner
def break_line(out, work):
    """Write a line break: a space, two in a row end a paragraph; where lines are kept, a line end."""
    if work[work[at.TOP] + at.S_CONTEXT] & at.PREFORMATTED:
        end_line(out, work)
    elif work[at.BREAKS]:
        end_block(out, work)
    elif work[at.OUT] > work[at.BLOCK_OUT]:
        work[at.PENDING] = work[at.BREAKS] = 1


@inner
def is_note(source, name, name_end, start, end, work):
    """Return True if a <noscript> from `start` on is only a note to readers without scripts."""
    if work[at.NO_MORE_NOSCRIPT]:
        return False
    closed = end_of_raw(source, start, end, at.NOSCRIPT, name, name_end)
    if closed == end:
        work[at.NO_MORE_NOSCRIPT] = 1  # or a page full of them would be looked through again and again
        return False
    return shows_little(source, start, closed, MIN_NOSCRIPT)


@inner
def after_raw(source, name, name_end, start, end, tag, context, strings, work, known):
    """Skip an element without markup inside; keep titles and descriptions of the page for machines."""
    closed = end_of_raw(source, start, end, tag, name, name_end)
    if tag == at.TITLE and not context & at.NO_TEXT:
        add_note(at.N_TITLE, work)
        put_string(source, start, closed, strings, work, known)
    elif tag == at.SCRIPT and has(at.TYPE, work) and closed - start <= MAX_JSON_BYTES:
        value = at.VALUES + 2 * at.TYPE
        if starts_with(source, work[value], work[value + 1], LD_JSON):
            note = add_note(at.N_JSON, work)
            work[note + at.N_START] = start
            work[note + at.N_END] = closed
    return min(find_byte(source, closed, end, GREATER) + 1, end)


@inner
def after_no_tag(source, place, end, context, out, work, known, classes):
    """Skip a comment, a declaration, or a `<` that begins nothing."""
    first = source[place + 1] if place + 1 < end else SPACE
    if first == BANG and starts_with(source, place, end, COMMENT):
        return after_comment(source, place + len(COMMENT), end)
    if first == BANG and context & at.IN_FOREIGN and starts_with(source, place + 2, end, CDATA):
        while place < end and not starts_with(source, place, end, CDATA_END):
            place += 1
        return min(place + len(CDATA_END), end)
    if first == BANG or first == QUESTION or (first == SLASH and place + 2 < end):
        return min(find_byte(source, place, end, GREATER) + 1, end)
    if not context & at.NO_TEXT:
        put_text(source, place, place + 1, context & at.PREFORMATTED, out, work, known, classes)
    return place + 1


@inner
def enters_select(tag, flags, out, work):
    """Return True if a start tag inside a <select> counts; some end it."""
    top = work[at.TOP]
    if tag == at.OPTION or tag == at.OPTGROUP or tag == at.SCRIPT or tag == at.TEMPLATE:
        return True
    ends = tag == at.SELECT or tag == at.INPUT or tag == at.TEXTAREA
    if ends or ((flags & at.TABLE_PART or tag == at.TABLE) and work[at.OPENED + at.TABLE]):
        level = level_of(at.SELECT, at.ZERO, work)
        if level:
            close_down_to(level, out, work)
    return work[at.TOP] != top and tag != at.SELECT


@inlined
def enter(tag, flags, out, work):
    """Close the elements that a start tag closes; return True if the tag counts."""
    top = work[at.TOP]
    context = work[top + at.S_CONTEXT]
    if context & at.IN_FOREIGN:
        if not flags & at.BREAKS_OUT:
            return True
        while work[top - at.STACK_ROW + at.S_CONTEXT] & at.IN_FOREIGN:
            top -= at.STACK_ROW
        close_down_to(top, out, work)
    elif context & at.IN_SELECT and not enters_select(tag, flags, out, work):
        return False
    level = first_closed(tag, flags, work)
    if level and level <= work[at.TOP]:
        close_down_to(level, out, work)
    return level != 0


@inner
def open_foreign(source, tag, flags, strings, work, known):
    """Open an element inside a drawing or a formula, where the rules for HTML do not apply."""
    context = work[work[at.TOP] + at.S_CONTEXT]
    if tag == at.A:
        add_anchor(source, context, strings, work, known)
    if not work[at.SELF_CLOSED]:
        if flags & at.HTML_INSIDE:
            context &= ~at.IN_FOREIGN
        push(tag, flags & at.HTML_INSIDE, context, at.ZERO, at.ZERO, work)


@inlined
def context_inside(source, name, name_end, tag, flags, place, end, work):
    """Return the context inside a new element with a tag that ends at `place`."""
    context = work[work[at.TOP] + at.S_CONTEXT]
    if work[at.PRESENT] and not work[at.ALL_SEEN] and is_unseen(source, work):
        context |= at.UNSEEN
    if flags & at.SILENT:
        context |= at.MUTE
        if flags & at.FOREIGN:
            context |= at.IN_FOREIGN
        elif tag == at.TEMPLATE:
            context |= at.IN_TEMPLATE
        elif tag == at.SELECT:
            context |= at.IN_SELECT
    elif tag == at.NOSCRIPT and is_note(source, name, name_end, place, end, work):
        context |= at.UNSEEN
    return context


@inlined
def open_element(source, tag, flags, context, out, strings, work, known):
    """Open an element of HTML: end the block before it and keep its remarks and its address."""
    if work[at.LINK_CUT] and tag != at.A and not flags & (at.BLOCK | at.NOTED):
        go_on_with_link(work)
    if context & at.NO_TEXT:
        flags &= ~at.BLOCK
    elif flags & at.BLOCK:
        end_block(out, work)
    if tag == at.A:
        if work[at.LINK_LEVEL]:
            end_element(at.A, flags, out, work)
        work[at.ANCHOR] = add_anchor(source, context, strings, work, known)
        work[at.IN_LINK] = work[at.PRESENT] >> at.HREF & 1
        work[at.LINK_LEVEL] = work[at.TOP] + at.STACK_ROW
    elif tag == at.IMG:
        picture(source, work[at.ANCHOR], strings, work, known)
    elif tag == at.AREA:
        picture(source, add_anchor(source, context, strings, work, known), strings, work, known)
    elif tag == at.BR:
        if not context & at.NO_TEXT:
            break_line(out, work)
    elif flags & at.FORMATTING:
        work[at.EMPHASIS] += 1
    if flags & at.VOID or (flags & at.FOREIGN and work[at.SELF_CLOSED]):
        return
    places = note = 0
    if not context & at.NO_TEXT:
        places = places_of(source, tag, work, known)
        if tag == at.TIME:
            note = add_note(at.N_TIME, work)
            keep(source, at.DATETIME, strings, work, known)
        elif places & at.SAYS_AUTHOR:
            note = add_note(at.N_BYLINE, work)
    push(tag, flags, context, places, note, work)


@kernel(NOTHING, SOURCE, BYTES, BYTES, NUMBERS, NUMBERS, BYTES)
def scan(source: Bytes, out: Bytes, strings: Bytes, work: Numbers, known: Numbers, classes: Bytes) -> None:
    """Scan a page into memory of the caller, which is large enough for a page with that many tags."""
    end = len(source)
    source, out, strings = bare(source), bare(out), bare(strings)
    work, known, classes = bare(work), bare(known), bare(classes)
    place = np.int64(0)  # not a mere 0: all that is called with it would be compiled once more
    while place < end:
        context = work[work[at.TOP] + at.S_CONTEXT]
        if source[place] != LESS:
            if work[at.LINK_CUT]:
                go_on_with_link(work)
            if not context & at.NO_TEXT:
                place = put_text(source, place, end, context & at.PREFORMATTED, out, work, known, classes)
                continue
            start = place
            place = find_byte(source, start, end, LESS)
            if not context & at.MUTE:
                work[at.UNSEEN_BYTES] += place - start
            continue
        start = place + 1
        closing = start < end and source[start] == SLASH
        start += closing
        if start >= end or not 97 <= source[start] | LOWER <= 122:
            place = after_no_tag(source, place, end, context, out, work, known, classes)
            continue
        if not work[at.TAGS_LEFT]:
            break  # real markup has far fewer
        work[at.TAGS_LEFT] -= 1
        tag, name_end = tag_at(source, start, end, known)
        flags = known[known[at.K_TAG_FLAGS] + tag] if tag < at.UNKNOWN_TAGS else 0
        place = read_attributes(source, name_end, end, work, known)
        if place > end:
            break
        if closing:
            if tag == at.BR:
                break_line(out, work)
            else:
                end_element(tag, flags, out, work)
        elif tag == at.HTML or tag == at.BODY or tag == at.HEAD:
            take_note(source, tag, strings, work, known)
        elif enter(tag, flags, out, work):
            context = work[work[at.TOP] + at.S_CONTEXT]
            if context & at.IN_FOREIGN:
                open_foreign(source, tag, flags, strings, work, known)
            elif flags & at.RAW:
                place = after_raw(source, start, name_end, place, end, tag, context, strings, work, known)
            else:
                if flags & at.NOTED:
                    take_note(source, tag, strings, work, known)
                context = context_inside(source, start, name_end, tag, flags, place, end, work)
                open_element(source, tag, flags, context, out, strings, work, known)
    end_block(out, work)
    close_link(work)
