"""How near the query's neighbouring words stand to each other in a passage (Tao and Zhai, SIGIR 2007): late interaction compares
token with token and does not see that they belong together, and BM25 counts each word by itself.
"""

import re
from collections.abc import Mapping, Sequence
from itertools import pairwise

from kit.language.phrases import folded
from kit.language.terms import irregular_forms, tokens

_NEAR_CHARS = 25
"""Characters from the end of one word to the beginning of the other: some four words. 40 and 60 are no better (docs/adr/0020)."""
_MAX_WORDS = 64
"""Of a query that are looked at: a pasted page is no question."""


def nearness(query_text: str, passages: Sequence[str]) -> list[float]:
    """Of each passage the share, 0 to 1, of the query's pairs of neighbouring content words that stand near each other there, in
    either order. Nothing for a query of fewer than two, and in scripts without spaces, where all stands near. 30 passages take a
    millisecond."""
    stems = [token.stem for token in tokens(query_text) if not token.is_stopword][:_MAX_WORDS]
    pairs = {frozenset(pair) for pair in pairwise(stems) if pair[0] != pair[1]}
    if not pairs:
        return [0.0] * len(passages)
    # A stem is how its word begins, mostly; of two that begin alike the longer one counts.
    begins = {folded(stem): stem for stem in stems}
    stem_of = {folded(form): stem for stem in stems for form in irregular_forms(stem)} | begins
    longest_first = sorted(stem_of, key=len, reverse=True)
    patterns = [re.escape(word) + ("" if word in begins else r"\b") for word in longest_first]
    words = re.compile(rf"\b(?:{'|'.join(patterns)})")
    return [len(pairs & _near_pairs(words, stem_of, folded(passage))) / len(pairs) for passage in passages]


def _near_pairs(words: re.Pattern[str], stem_of: Mapping[str, str], text: str) -> set[frozenset[str]]:
    found: set[frozenset[str]] = set()
    last_end: dict[str, int] = {}
    for match in words.finditer(text):
        word = stem_of[match[0]]
        found.update(frozenset((word, other)) for other, end in last_end.items() if match.start() - end <= _NEAR_CHARS)
        last_end[word] = match.end()
    return found
