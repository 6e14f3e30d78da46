"""Kernels that read tags: names, attributes, keywords in class names, and the ends of comments and raw text."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from thresher.jit import inlined, inner
from thresher.reader.html.kernels import layout as at
from thresher.reader.html.kernels.text import HASH_FACTOR, HASH_MASK, HASH_SEED, LOWER, find_key

LESS, GREATER, SLASH, EQUALS, DASH, BANG = ord("<"), ord(">"), ord("/"), ord("="), ord("-"), ord("!")
DOUBLE_QUOTE, QUOTE, COLON, SPACE = ord('"'), ord("'"), ord(":"), ord(" ")
FIRST_CAPITAL, LAST_CAPITAL = ord("A"), ord("Z")


def _in_names() -> NDArray[np.uint8]:
    """Return every byte as names of tags and attributes are compared: lower case, 0 for bytes that end a name."""
    letters = np.frombuffer(bytes(range(256)).lower(), np.uint8).copy()
    letters[: SPACE + 1] = letters[[GREATER, SLASH]] = 0
    return letters


IN_NAMES = _in_names()


@inlined
def find_byte(source, start, end, wanted):
    """Return the first place of a byte, or `end`."""
    place = start
    while place < end and source[place] != wanted:
        place += 1
    return place


@inner
def starts_with(source, place, end, word):
    """Return True if a word stands at a place, in upper or lower case."""
    if place + len(word) > end:
        return False
    for offset in range(len(word)):
        byte, expected = source[place + offset], word[offset]
        if byte != expected and (byte | LOWER != expected | LOWER or not 97 <= byte | LOWER <= 122):
            return False
    return True


@inlined
def ends_name(source, place, end):
    """Return True if the name of a tag ends at a place."""
    return place >= end or not IN_NAMES[source[place]]


@inner
def after_comment(source, start, end):
    """Return the place after the comment that has its text from `start`, just after `<!--`."""
    place = start
    while place < end:
        place = find_byte(source, place, end, GREATER)
        dashes = 0
        before = place - 1
        if before > start and source[before] == BANG:
            before -= 1
            dashes = -(before < start + 1)
        while before >= start - 2 and source[before] == DASH and dashes < 2:
            dashes += 1
            before -= 1
        place += 1
        if dashes == 2:
            return min(place, end)
    return end


@inner
def is_same_name(source, place, end, name, name_end):
    """Return True if the name of a tag is repeated at a place, in upper or lower case."""
    for expected in range(name, name_end):
        byte = source[place] if place < end else SPACE
        if byte != source[expected] and (
            byte | LOWER != source[expected] | LOWER or not 97 <= byte | LOWER <= 122
        ):
            return False
        place += 1
    return ends_name(source, place, end)


@inner
def end_of_raw(source, start, end, tag, name, name_end):
    """Return the start of the end tag of an element without markup inside, or the end of the page.

    The name of the tag stands between `name` and `name_end`. Inside `<!--`, a script may hold another script
    with its end tag; old pages do that to hide code from old browsers.
    """
    in_comment = nested = False
    place = start
    while place < end:
        byte = source[place]
        if byte == LESS and place + 1 < end:
            following = source[place + 1]
            if following == SLASH:
                if is_same_name(source, place + 2, end, name, name_end):
                    if not nested:
                        return place
                    nested = False
            elif tag == at.SCRIPT and following == BANG:
                if place + 3 < end and source[place + 2] == DASH and source[place + 3] == DASH:
                    in_comment = True
                    place += 1  # `<!-->` is a whole comment
            elif in_comment and is_same_name(source, place + 1, end, name, name_end):
                nested = True
        elif in_comment and byte == GREATER and source[place - 1] == DASH and source[place - 2] == DASH:
            in_comment = nested = False
        place += 1
    return end


@inner
def read_attributes(source, start, end, work, known):
    """Record the values of known attributes and return the end of the tag; of equal names the first counts."""
    present = 0
    self_closed = False
    place = start
    while place < end and source[place] != GREATER:
        self_closed = source[place] == SLASH
        if source[place] <= SPACE or self_closed:
            place += 1
            continue
        value = HASH_SEED
        first = place
        while place < end:
            letter = IN_NAMES[source[place]]
            if not letter or (letter == EQUALS and place > first):
                break
            value = (value ^ letter) * HASH_FACTOR
            place += 1
        while place < end and source[place] <= SPACE:
            place += 1
        value_start = value_end = place
        if place < end and source[place] == EQUALS:
            place += 1
            while place < end and source[place] <= SPACE:
                place += 1
            byte = source[place] if place < end else SPACE
            if byte == DOUBLE_QUOTE or byte == QUOTE:
                value_start = place + 1
                value_end = find_byte(source, value_start, end, byte)
                place = value_end + 1
            else:
                value_start = place
                while place < end and source[place] > SPACE and source[place] != GREATER:
                    place += 1
                value_end = place
        row = find_key(known, known[at.K_ATTRIBUTES], known[at.K_ATTRIBUTES_SIZE], value)
        if row >= 0:
            number = known[known[at.K_ATTRIBUTE_NUMBERS] + row]
            if not present >> number & 1:
                present |= 1 << number
                work[at.VALUES + 2 * number] = value_start
                work[at.VALUES + 2 * number + 1] = value_end
    # A tag that the end of the page cuts off has no attributes.
    work[at.PRESENT] = present if place < end else 0
    work[at.SELF_CLOSED] = self_closed
    return place + 1


@inner
def names_say(source, number, work, known):
    """Return the subjects of an element's class or id as bits, and add the names to its signature."""
    steps, says = known[at.K_STEPS], known[at.K_SAYS]
    signature = work[at.SIGNATURE]
    found = state = 0
    for place in range(work[at.VALUES + 2 * number], work[at.VALUES + 2 * number + 1]):
        byte = source[place]
        if FIRST_CAPITAL <= byte <= LAST_CAPITAL:
            byte |= LOWER
        letter = byte - 96 if 97 <= byte <= 122 else 0
        state = known[steps + at.SYMBOLS * state + letter]
        found |= known[says + state]
        signature = (signature ^ byte) * HASH_FACTOR
    state = known[steps + at.SYMBOLS * state]  # the end of a name ends its last word
    work[at.SIGNATURE] = signature & HASH_MASK
    return found | known[says + state]


@inner
def declares(source, start, end, name, value):
    """Return True if a style holds a declaration such as `display : none`."""
    for first in range(start, end - len(name) - len(value)):
        if source[first] | LOWER == name[0] and starts_with(source, first, end, name):
            place = first + len(name)
            while place < end and (source[place] <= SPACE or source[place] == COLON):
                place += 1
            if starts_with(source, place, end, value):
                return True
    return False


@inner
def shows_little(source, start, end, enough):
    """Return True if markup holds fewer bytes of text than `enough`, tags left out."""
    shown = 0
    place = start
    while place < end and shown < enough:
        if source[place] == LESS:
            place = find_byte(source, place, end, GREATER)
        else:
            shown += source[place] > SPACE
        place += 1
    return shown < enough


@inlined
def tag_at(source, start, end, known):
    """Return the number of the tag named at a place and the end of the name; unknown names are hashed."""
    place, value = start, HASH_SEED
    while place < end and IN_NAMES[source[place]]:
        value = (value ^ IN_NAMES[source[place]]) * HASH_FACTOR
        place += 1
    row = find_key(known, known[at.K_TAGS], known[at.K_TAGS_SIZE], value)
    number = known[known[at.K_TAG_NUMBERS] + row] if row >= 0 else at.UNKNOWN_TAGS + (value & 0xFFFFFFFF)
    return number, place
