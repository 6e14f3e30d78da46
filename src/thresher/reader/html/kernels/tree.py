"""Kernels that follow the tree of a page without building it, by a stack of open elements.

The rules are taken from the HTML standard as far as they decide where text and links stand. Left out are rules
that move no text: the exact place of words that stand in a table outside of its cells, and the number of
times that <b> is reopened.
"""

from __future__ import annotations

from thresher.jit import inlined, inner
from thresher.reader.html.kernels import layout as at

REACH = 512 * at.STACK_ROW  # open elements that an end tag looks at for its own; deeper trees are hostile
WHITE = 32  # and below: the signs that may stand at the end of a block


@inner
def end_block(out, work):
    """End the block of text that is being gathered, if there is any."""
    work[at.PENDING] = work[at.BREAKS] = 0
    start, end = work[at.BLOCK_OUT], work[at.OUT]
    if end > start:
        while end > start and out[end - 1] <= WHITE:
            end -= 1
            work[at.CHARACTERS] -= 1
        if end > start:
            block, top = work[at.NEXT_BLOCK], work[at.TOP]
            work[block + at.B_LENGTH] = work[at.CHARACTERS] - work[at.BLOCK_CHARACTERS]
            work[block + at.B_LINKED] = work[at.LINKED]
            work[block + at.B_CONTEXT] = work[top + at.S_CONTEXT]
            work[block + at.B_CONTAINER] = work[top + at.S_CONTAINER]
            work[block + at.B_LAST] = work[at.LAST]
            work[block + at.B_BEFORE_LAST] = work[at.BEFORE_LAST]
            work[block + at.B_LINKS] = work[at.BLOCK_LINKS]
            work[block + at.B_EMPHASIS] = work[at.EMPHASIS]
            work[block + at.B_SOURCE] = work[at.SOURCE]
            for kind in range(at.CLASSES):
                work[block + at.B_COUNTS + kind] = work[at.COUNTS + kind]
                work[at.COUNTS + kind] = 0
            work[at.NEXT_BLOCK] = block + at.BLOCK_ROW
            out[end] = 0
            end += 1
            work[at.CHARACTERS] += 1
        work[at.OUT] = work[at.BLOCK_OUT] = work[at.LINE_OUT] = end
        work[at.BLOCK_CHARACTERS] = work[at.CHARACTERS]
    work[at.LINKED] = work[at.BLOCK_LINKS] = work[at.EMPHASIS] = work[at.LAST] = work[at.BEFORE_LAST] = 0


@inner
def close_link(work):
    """End the text of the open link, if there is one."""
    if work[at.ANCHOR]:
        work[work[at.ANCHOR] + at.A_END] = work[at.CHARACTERS]
    work[at.ANCHOR] = work[at.IN_LINK] = work[at.LINK_LEVEL] = work[at.LINK_CUT] = 0


@inner
def close_down_to(level, out, work):
    """Close all open elements from the top of the stack down to the one at `level`, including it."""
    top = work[at.TOP]
    flags = 0
    for row in range(level, top + 1, at.STACK_ROW):
        flags |= work[row + at.S_FLAGS]
        tag = work[row + at.S_TAG]
        if tag < at.UNKNOWN_TAGS:
            work[at.OPENED + tag] -= 1
    if flags & at.BLOCK:
        end_block(out, work)
    for row in range(level, top + 1, at.STACK_ROW):
        if work[row + at.S_NOTE]:
            work[work[row + at.S_NOTE] + at.N_END] = work[at.CHARACTERS]
        if work[row + at.S_FLAGS] & at.SCOPE and work[at.LINK_LEVEL] >= row:
            close_link(work)
    if work[at.LINK_LEVEL] >= level:
        work[at.LINK_CUT] = 1
    work[at.TOP] = level - at.STACK_ROW


@inlined
def lowest(work):
    """Return the row of the stack below the lowest one that is examined."""
    return max(work[at.STACK], work[at.TOP] - REACH)


@inner
def level_of(tag, barrier, work):
    """Return the stack row of the nearest open element of a tag, or 0; nothing beyond a barrier is seen."""
    if tag < at.UNKNOWN_TAGS and not work[at.OPENED + tag]:
        return 0
    for row in range(work[at.TOP], lowest(work), -at.STACK_ROW):
        if work[row + at.S_TAG] == tag:
            return row
        if work[row + at.S_FLAGS] & barrier:
            return 0
    return 0


@inner
def open_paragraph(work):
    """Return the stack row of the paragraph that a new block closes, or 0. A button shields its content."""
    if not work[at.OPENED + at.P]:
        return 0
    for row in range(work[at.TOP], lowest(work), -at.STACK_ROW):
        if work[row + at.S_TAG] == at.P:
            return row
        if work[row + at.S_FLAGS] & at.SCOPE or work[row + at.S_TAG] == at.BUTTON:
            return 0
    return 0


@inner
def open_heading(work):
    """Return the stack row of the nearest open heading, or 0."""
    for row in range(work[at.TOP], lowest(work), -at.STACK_ROW):
        if work[row + at.S_FLAGS] & at.HEADING:
            return row
        if work[row + at.S_FLAGS] & at.SCOPE:
            return 0
    return 0


@inner
def open_item(tag, other, work):
    """Return the stack row of the list item that a new one in the same list closes, or 0."""
    for row in range(work[at.TOP], lowest(work), -at.STACK_ROW):
        open_tag, flags = work[row + at.S_TAG], work[row + at.S_FLAGS]
        if open_tag == tag or open_tag == other:
            return row
        if flags & at.SPECIAL and not flags & at.FLOWS:
            return 0
    return 0


@inner
def first_in_table(tag, work):
    """Return the lowest stack row that a new part of a table closes, or 0 without an open table."""
    if not work[at.OPENED + at.TABLE]:
        return 0
    is_cell = tag == at.TD or tag == at.TH
    for row in range(work[at.TOP], lowest(work), -at.STACK_ROW):
        open_tag = work[row + at.S_TAG]
        if open_tag == at.TEMPLATE:
            return 0
        holds_rows = work[row + at.S_FLAGS] & at.ROWS
        if (
            open_tag == at.TABLE
            or (open_tag == at.TR and is_cell)
            or (holds_rows and (is_cell or tag == at.TR))
        ):
            return row + at.STACK_ROW
    return 0


@inlined
def first_closed(tag, flags, work):
    """Return the lowest stack row that a start tag closes (above the top: none), or 0 if the tag is ignored."""
    top = work[at.TOP]
    level = 0
    if flags & at.TABLE_PART:
        return first_in_table(tag, work)
    if tag == at.LI:
        level = open_item(at.LI, at.LI, work)
    elif tag == at.DD or tag == at.DT:
        level = open_item(at.DD, at.DT, work)
    elif flags & at.HEADING and work[top + at.S_FLAGS] & at.HEADING:
        level = top
    elif tag == at.TABLE:
        level = level_of(at.TABLE, at.SCOPE, work)
    elif tag == at.BUTTON:
        level = level_of(at.BUTTON, at.SCOPE, work)
    elif (tag == at.OPTION or tag == at.OPTGROUP) and work[top + at.S_TAG] == at.OPTION:
        level = top
    elif tag == at.FORM and work[at.OPENED + at.FORM]:
        return 0
    if not level and flags & at.CLOSES_P:
        level = open_paragraph(work)
    return level if level else top + at.STACK_ROW


@inner
def end_formatting(tag, level, out, work):
    """End <b>, <a> or a form; blocks that began inside continue."""
    if tag == at.A and work[at.LINK_LEVEL]:
        close_link(work)
    if not level:
        return
    for row in range(level + at.STACK_ROW, work[at.TOP] + 1, at.STACK_ROW):
        if work[row + at.S_FLAGS] & at.SPECIAL:
            work[level + at.S_TAG] = work[level + at.S_FLAGS] = 0
            work[at.OPENED + tag] -= 1
            work[at.OPENED] += 1
            return
    close_down_to(level, out, work)


@inner
def end_element(tag, flags, out, work):
    """Apply an end tag, as far as an element is open that it can close."""
    level = 0
    if flags & at.FORMATTING or tag == at.FORM:
        end_formatting(tag, level_of(tag, at.SCOPE, work), out, work)
        return
    if tag == at.P:
        level = open_paragraph(work)
        if not level:
            end_block(out, work)
    elif tag == at.TABLE:
        level = level_of(tag, at.ZERO, work)
    elif flags & at.TABLE_PART:
        level = level_of(tag, at.ZERO, work)
        if level < level_of(at.TABLE, at.ZERO, work):
            level = 0
    elif flags & at.HEADING:
        level = open_heading(work)
    elif tag == at.LI:
        level = open_item(at.LI, at.LI, work)
    elif flags & at.SCOPED_END:
        level = level_of(tag, at.SCOPE, work)
    else:
        level = level_of(tag, at.SPECIAL, work)
    if level:
        close_down_to(level, out, work)
