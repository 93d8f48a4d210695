"""Where sentences end, without a model: punctuation followed by space and something that begins a sentence. Good enough to cut
on; a wrong cut costs a little context, which the overlap gives back."""

import re
from collections.abc import Iterator

_END = re.compile(
    r"""(?:(?<![.!?…])[.!?…]++["'”’»)\]]*+(?=\s)   # Latin, Cyrillic, Greek …: the end and a space
       |[。！？｡]++["'”’」』）]*+                    # Chinese, Japanese: no space needed
       |[।॥؟۔]++)                                  # Devanagari, Arabic, Urdu
       \s*+""",
    re.VERBOSE,
)
_ABBREVIATION = re.compile(
    r"(?:\b(?:[A-Z]|Mr|Mrs|Ms|Dr|Prof|St|Jr|Sr|vs|etc|al|Fig|Figs|Eq|No|Nos|Vol|pp?|ed|eds|cf|ca|approx|Inc|Ltd|Co|Corp|e\.g|i\.e|z\.B|d\.h|bzw))\.$"
)


def sentence_spans(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Spans that cover text[start:end] without gaps, each a sentence with the space after it; lines end sentences too."""
    for line_start, line_end in _line_spans(text, start, end):
        begin = line_start
        for found in _END.finditer(text, line_start, line_end):
            if found.end() >= line_end:
                break
            if _is_end(text, begin, found):
                yield begin, found.end()
                begin = found.end()
        yield begin, line_end


def _is_end(text: str, begin: int, found: "re.Match[str]") -> bool:
    if text[found.start()] in "。！？｡।॥؟۔":
        return True
    following = text[found.end()]
    if following.islower():
        return False
    return not (
        text[found.start()] == "." and _ABBREVIATION.search(text[max(begin, found.start() - 12) : found.start() + 1])
    )


def _line_spans(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    while start < end:
        newline = text.find("\n", start, end)
        stop = end if newline < 0 else newline + 1
        while stop < end and text[stop].isspace():
            stop += 1
        yield start, stop
        start = stop
