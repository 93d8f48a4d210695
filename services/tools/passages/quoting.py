"""Where words are quoted in a text: word for word, or nearly so."""

import re
from dataclasses import dataclass
from difflib import SequenceMatcher

_WORD = re.compile(r"\w+")


@dataclass(frozen=True)
class Place:
    """Characters of a text that have the words of a quote."""

    start: int
    end: int
    likeness: float
    """Share of words that both have in the same order, 0 to 1 (Ratcliff and Obershelp). 1: word for word."""


def find_quote(quote: str, text: str, least: float) -> Place | None:
    """The place of the text that is most like the quote, by its words: case, marks and white space do not count. None where no
    place is as like as `least`."""
    wanted = [word.casefold() for word in _WORD.findall(quote)]
    found = list(_WORD.finditer(text))
    words = [each[0].casefold() for each in found]
    if not wanted or not words:
        return None
    matcher = SequenceMatcher(None, words, wanted, autojunk=False)
    best = matcher.find_longest_match()
    if not best.size:
        return None
    start = max(0, best.a - best.b)
    window = words[start : start + len(wanted)]
    blocks = [each for each in SequenceMatcher(None, window, wanted, autojunk=False).get_matching_blocks() if each.size]
    likeness = 2 * sum(each.size for each in blocks) / (len(window) + len(wanted))
    if not blocks or likeness < least:
        return None
    first, last = start + blocks[0].a, start + blocks[-1].a + blocks[-1].size - 1
    return Place(found[first].start(), found[last].end(), round(likeness, 3))
