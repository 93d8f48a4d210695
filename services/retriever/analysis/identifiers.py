"""Spellings of identifiers: what a part number, version, name of a program or telephone number is called however it is written.

A text has, besides its words, one term for each identifier: its parts without what stands between (`PPR-9087` and `ppr9087`,
`node.js` and `NodeJS`, `352 030 15 97`, `978-3-16-148410-0`, `MAX_RETRY_COUNT` and `maxRetryCount`), and with the signs that tell
it from others (`.NET`, `R&D`, `CD4+`, `3.0.0`, `10.20.30.41`), and these read aloud (`dotnet`, `csharp`). So words are found as
before, and an identifier in each spelling before what has only one of its parts.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from types import MappingProxyType

from kit.language.phrases import SIGNED_LETTER

_COMPOUND = re.compile(r"(?<![^\W_])[^\W_]+(?:[-\u2010./&_][^\W_]+)+")
_SIGNED = re.compile(r"(?<![\w.)\]/])\.[A-Za-z]\w*|\b\w{2,}(?:\+{1,3}|#)(?![\w+])")
"""`.NET`, `.env`, `Notepad++`, `CD4+`."""
_HYPHENATED = re.compile(r"[^\W\d_]{5,}(?:[-\u2010][^\W\d_]{5,})+")
"""Two plain words: `Amazonas-Regenwald` is no identifier."""
_SIGNED_LETTER = re.compile(SIGNED_LETTER)
_READ_ALOUD = MappingProxyType({".": "dot", "+": "plus", "#": "sharp"})
_NUMBERED = re.compile(r"\d+(?:\.\d+)+")
"""A version, an address, a decimal: what the points tell apart. `v3.0.0` has `3.0.0`."""
_THOUSANDS = re.compile(r"(?<![\d,.])\d{1,3}(?:,\d{3})+(?![\d,])")
_GROUPS = re.compile(r"\b\d+(?:[ ()/-]{1,3}\d+)+\b")
_GROUPED_DIGITS = range(6, 21)
"""Fewer are two numbers side by side, more are a table's row."""
_ACCOUNT = re.compile(r"\b[A-Z]{2}\d{2}(?:[ -][A-Z0-9]{4}){2,7}(?:[ -][A-Z0-9]{1,3})?\b")
"""An IBAN, in groups of four."""
_CAMEL = re.compile(r"\b[A-Za-z][a-z]+(?:[A-Z][a-z]+)+\b")
_HUMP = re.compile(r"[A-Za-z][a-z]+")
_BETWEEN = re.compile(r"[\W_]+")
_BETWEEN_KEPT = re.compile(r"[^\w&]+|_")
_MIXED = re.compile(r"\b(?:([A-Za-z]{2,})(\d{2,})|(\d{2,})([A-Za-z]{2,}))\b")
_LETTERS = re.compile(r"[A-Za-z]{1,5}")
_NUMBER = re.compile(r"\d\w*")


def spellings_of(text: str) -> list[str]:
    """What a text says besides its words. `text` has one character for variants of a letter."""
    return [*_joined(text), *(part for camel in _CAMEL.findall(text) for part in _HUMP.findall(camel))]


def looked_for(text: str) -> list[str]:
    """Spellings of a query: also the parts of one that is written together. Not two plain words as one: the few texts that join
    them would count them a third time (XQuAD in German: 0.9426, not 0.9412). Not `.NET` beside `dotnet`: all texts that have it
    have both, and would count it twice."""
    counted = {_BETWEEN_KEPT.sub("", name) for name in _COMPOUND.findall(text) if _HYPHENATED.fullmatch(name)}
    counted.update(_SIGNED.findall(text))
    spellings = (spelling for spelling in spellings_of(text) if spelling not in counted)
    return [*spellings, *(part for mixed in _MIXED.findall(text) for part in mixed if part)]


def joined_neighbours(words: Sequence[str]) -> list[str]:
    """Of a query's words: a few letters and a number, either first, as one (`PPR 9087`)."""
    kinds = (_LETTERS, _NUMBER)
    return [
        first + second
        for first, second in pairwise(words)
        if any(a.fullmatch(first) and b.fullmatch(second) for a, b in (kinds, kinds[::-1]))
    ]


def _joined(text: str) -> Iterator[str]:
    for compound in _COMPOUND.findall(text):
        if not _NUMBERED.fullmatch(compound):
            yield _BETWEEN_KEPT.sub("", compound)
    yield from (signed := _SIGNED.findall(text))
    for name in (*signed, *_SIGNED_LETTER.findall(text)):
        yield "".join(_READ_ALOUD.get(character, character) for character in name)
    yield from _NUMBERED.findall(text)
    yield from (number.replace(",", "") for number in _THOUSANDS.findall(text))
    yield from (_BETWEEN.sub("", account) for account in _ACCOUNT.findall(text))
    for groups in _GROUPS.findall(text):
        digits = _BETWEEN.sub("", groups)
        if len(digits) in _GROUPED_DIGITS:
            yield digits
