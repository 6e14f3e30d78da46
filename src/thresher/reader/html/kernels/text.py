"""Kernels that write text: characters of the source, resolved references, normalised white space."""

from __future__ import annotations

from typing import Any

from thresher.jit import inlined, inner
from thresher.reader.html.kernels import layout as at

HASH_SEED, HASH_FACTOR, HASH_MASK = 0x4BF29CE484222325, 0x100000001B3, (1 << 62) - 1  # after FNV-1a
LONGEST_REFERENCE = 33
REPLACEMENT = 0xFFFD
AMPERSAND, SEMICOLON, HASH, EQUALS, LESS, SMALL_X = (ord(sign) for sign in "&;#=<x")
SPACE, TAB, NEWLINE, RETURN = (ord(sign) for sign in " \t\n\r")
LOWER = 32  # the bit that makes a small letter of a capital
BEYOND_ASCII = 0x80


@inlined
def find_key(known: Any, table: Any, size: Any, value: Any) -> Any:
    """Return the slot of a hash in a table of open addresses, or -1. Some slots are always empty (0)."""
    key = value & HASH_MASK | 1
    mask = size - 1
    place = key & mask
    while known[table + place]:
        if known[table + place] == key:
            return place
        place = (place + 1) & mask
    return -1


@inlined
def hash_of(source, start, end):
    """Return the hash of a name in lower case."""
    value = HASH_SEED
    for place in range(start, end):
        byte = source[place]
        if 65 <= byte <= 90:
            byte |= LOWER
        value = (value ^ byte) * HASH_FACTOR
    return value


@inner
def numeric_reference(source, start, end, work, known):
    """Resolve `&#38;` or `&#x26;` from its first digit or x on; return its end, or `start` if invalid."""
    place, base = start, 10
    if place < end and source[place] | LOWER == SMALL_X:
        place, base = start + 1, 16
    first, code = place, 0
    while place < end:
        byte = source[place]
        if 48 <= byte <= 57:
            digit = byte - 48
        elif base == 16 and 97 <= byte | LOWER <= 102:
            digit = (byte | LOWER) - 87
        else:
            break
        code = min(code * base + digit, 0x110000)
        place += 1
    if place == first:
        return start
    if place < end and source[place] == SEMICOLON:
        place += 1
    if 0x80 <= code <= 0x9F:
        code = known[known[at.K_WINDOWS] + code - 0x80]
    if code == 0 or code > 0x10FFFF or 0xD800 <= code <= 0xDFFF:
        code = REPLACEMENT
    work[at.CODE] = code
    return place


@inner
def reference(source, start, end, work, known):
    """Resolve the character reference at an ampersand into the memory and return its end.

    An ampersand without a valid reference stands for itself. Names without a semicolon are the legacy ones;
    the longest that fits counts.
    """
    work[at.CODE] = AMPERSAND
    work[at.SECOND_CODE] = 0
    place = start + 1
    if place < end and source[place] == HASH:
        after = numeric_reference(source, place + 1, end, work, known)
        return after if after > place + 1 else place
    value = HASH_SEED
    found, found_end = -1, place
    limit = min(end, place + LONGEST_REFERENCE)
    while place < limit:
        byte = source[place]
        if not (48 <= byte <= 57 or 97 <= byte | LOWER <= 122 or byte == SEMICOLON):
            break
        value = (value ^ byte) * HASH_FACTOR
        place += 1
        row = find_key(known, known[at.K_REFERENCES], known[at.K_REFERENCES_SIZE], value)
        if row >= 0:
            found, found_end = row, place
        if byte == SEMICOLON:
            break
    if found < 0:
        return start + 1
    codes = known[at.K_CODES] + 2 * found
    work[at.CODE] = known[codes]
    work[at.SECOND_CODE] = known[codes + 1]
    return found_end


@inlined
def put_code(code, out, place):
    """Write a character as UTF-8 and return the end."""
    if code < 0x80:
        out[place] = code
        return place + 1
    if code < 0x800:
        out[place] = 0xC0 | code >> 6
        out[place + 1] = 0x80 | code & 0x3F
        return place + 2
    if code < 0x10000:
        out[place] = 0xE0 | code >> 12
        out[place + 1] = 0x80 | code >> 6 & 0x3F
        out[place + 2] = 0x80 | code & 0x3F
        return place + 3
    out[place] = 0xF0 | code >> 18
    out[place + 1] = 0x80 | code >> 12 & 0x3F
    out[place + 2] = 0x80 | code >> 6 & 0x3F
    out[place + 3] = 0x80 | code & 0x3F
    return place + 4


@inlined
def code_at(source, place, end):
    """Return the character at `place` and its end."""
    byte = source[place]
    if byte < BEYOND_ASCII:
        return byte, place + 1
    size = 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
    code = byte & (0xFF >> size + 1)
    for further in range(place + 1, place + size):
        if further >= end or source[further] == LESS:
            return 0, further  # cannot be: the source is valid; never look beyond it, nor into a tag
        code = code << 6 | source[further] & 0x3F
    return code, place + size


@inlined
def class_of(code, classes):
    """Return the class of a character; beyond the basic plane there are letters and pictures."""
    if code < 0x10000:
        return classes[code]
    if code & 0xFFFE == 0xFFFE:
        return at.UNWANTED
    return at.OTHER if 0x1F000 <= code < 0x20000 else at.LETTER


@inner
def end_line(out, work):
    """End a line where lines are kept: strip white space at its end, drop it if it is empty."""
    written = work[at.OUT]
    while written > work[at.LINE_OUT] and (out[written - 1] == SPACE or out[written - 1] == TAB):
        written -= 1
        work[at.CHARACTERS] -= 1
    if written > work[at.LINE_OUT]:
        out[written] = NEWLINE
        written += 1
        work[at.CHARACTERS] += 1
        work[at.LINE_OUT] = written
    work[at.OUT] = written


@inner
def put_lines(source, start, end, out, work, known, classes):
    """Append text to a block that keeps its lines and their indentation; return the end."""
    place = start
    while place == start or (place < end and source[place] != LESS):
        if source[place] == AMPERSAND:
            place = reference(source, place, end, work, known)
            code = work[at.CODE]
        else:
            code, place = code_at(source, place, end)
        kind = class_of(code, classes)
        if code == NEWLINE:
            end_line(out, work)
        elif kind != at.UNWANTED:
            if kind == at.SPACE and code != TAB:
                code = SPACE
            work[at.OUT] = put_code(code, out, work[at.OUT])
            work[at.CHARACTERS] += 1
            work[at.COUNTS + kind] += 1
            work[at.BEFORE_LAST], work[at.LAST] = work[at.LAST], kind
    return place


@inner
def put_running(source, start, end, out, work, known, classes):
    """Append text to a block, with every run of white space as one space; return the end.

    This is the hottest loop of the scan, so values that change with every character stay in local variables.
    """
    written, characters, pending = work[at.OUT], work[at.CHARACTERS], work[at.PENDING]
    last, before, letters = work[at.LAST], work[at.BEFORE_LAST], 0
    empty = written == work[at.BLOCK_OUT]
    place = start
    while place == start or (place < end and source[place] != LESS):
        second = 0
        if source[place] == AMPERSAND:
            place = reference(source, place, end, work, known)
            code, second = work[at.CODE], work[at.SECOND_CODE]
        else:
            code, place = code_at(source, place, end)
        while True:
            kind = class_of(code, classes)
            if kind == at.SPACE:
                pending = 1
            elif kind != at.UNWANTED:
                if pending and not empty:
                    out[written] = SPACE
                    written += 1
                    characters += 1
                    work[at.COUNTS + at.SPACE] += 1
                pending = 0
                empty = False
                written = put_code(code, out, written)
                characters += 1
                before, last = last, kind
                if kind == at.LETTER:
                    letters += 1
                else:
                    work[at.COUNTS + kind] += 1
            if not second:
                break
            code, second = second, 0
        if kind == at.SPACE:  # more of the same, as fast as can be
            while place < end and source[place] < BEYOND_ASCII and classes[source[place]] == at.SPACE:
                place += 1
        elif kind == at.LETTER:
            first = place
            while place < end and source[place] < BEYOND_ASCII and classes[source[place]] == at.LETTER:
                out[written] = source[place]
                written += 1
                place += 1
            if place > first:
                before = at.LETTER
                characters += place - first
                letters += place - first
    if written > work[at.OUT]:
        work[at.BREAKS] = 0
    work[at.OUT], work[at.CHARACTERS], work[at.PENDING] = written, characters, pending and not empty
    work[at.LAST], work[at.BEFORE_LAST] = last, before
    work[at.COUNTS + at.LETTER] += letters
    return place


@inner
def put_text(source, start, end, keep_lines, out, work, known, classes):
    """Append text to the block and return its end: before the next `<`, or `end`. Its first byte may be any."""
    before = work[at.CHARACTERS]
    if work[at.OUT] == work[at.BLOCK_OUT]:
        work[at.SOURCE] = start
    if keep_lines:
        place = put_lines(source, start, end, out, work, known, classes)
    else:
        place = put_running(source, start, end, out, work, known, classes)
    if work[at.IN_LINK]:
        work[at.LINKED] += work[at.CHARACTERS] - before
    return place


@inlined
def goes_on(source, start, after, end):
    """Return True if text continues a name without a semicolon; addresses are full of `&copy=1`."""
    if after == end or source[start + 1] == HASH or source[after - 1] == SEMICOLON:
        return False
    byte = source[after]
    return byte == EQUALS or 48 <= byte <= 57 or 97 <= byte | LOWER <= 122


@inner
def put_string(source, start, end, strings, work, known):
    """Append the value of an attribute, references resolved, to the strings and return its number."""
    written = work[at.STRINGS_OUT]
    place = start
    while place < end:
        byte = source[place]
        if byte == AMPERSAND:
            after = reference(source, place, end, work, known)
            if goes_on(source, place, after, end):
                after = place + 1
                work[at.CODE], work[at.SECOND_CODE] = AMPERSAND, 0
            place = after
            written = put_code(work[at.CODE], strings, written)
            if work[at.SECOND_CODE]:
                written = put_code(work[at.SECOND_CODE], strings, written)
        else:
            if byte and byte != RETURN:
                strings[written] = byte
                written += 1
            place += 1
    strings[written] = 0
    work[at.STRINGS_OUT] = written + 1
    work[at.STRINGS] += 1
    return work[at.STRINGS] - 1
