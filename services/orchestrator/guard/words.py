"""The words by which the guard tells orders to a model from other text: one file a language in `words/`, each with the same fields.

A field holds words separated by white space, a phrase field phrases separated by semicolons. A word that ends in `*` begins others.
Add a language by adding a file: a test checks that the languages of the product are the guard's."""

import re
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import IntFlag
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from services.orchestrator.guard.folding import fold, undisguised

FOLDER = Path(__file__).with_name("words")
UNSPACED = ("ja", "th", "zh")
"""Languages that write words without spaces between them."""
_CLITICS = ("ar", "fa", "he")
"""Languages that write small words as letters in front of others."""
_LONGEST_CLITICS = 3
_SHORTEST_STEM = 3


class Sort(IntFlag):
    """What a word may be in an order. The members are the fields of the files, in lower case."""

    IGNORE = 1
    ORDERS = 2
    EARLIER = 4
    ABOVE = 8
    YOUR = 16
    PROMPT = 32
    HIDDEN = 64
    REVEAL = 128
    SECRETS = 256
    ROLE = 512
    FREED = 1024
    SEND = 2048
    DATA = 4096
    HOW = 8192
    MAKE = 16384
    WEAPONS = 32768
    WHAT = 65536
    HARM = 131072
    PERSON = 262144
    P_OVERRIDE = 524288
    P_ROLE = 1048576
    P_LEAK = 2097152


PHRASES = {"override": Sort.P_OVERRIDE, "role": Sort.P_ROLE, "leak": Sort.P_LEAK}
WORDS = [sort for sort in Sort if not str(sort.name).startswith("P_")]
BITS = 22
"""Of each language in a mask of all."""
WORD = re.compile(r"[^\s.,;:!?…\"'`´()\[\]{}<>«»„“”‚‘’/\\|*_#=+~^&%–—、。，！？：；（）「」『』【】〈〉।॥؟،؛-]+")
_END = re.compile(r"[.!?…。！？।॥؟\n]")
_UNSPACED = re.compile(r"[\u0e00-\u0e7f\u3040-\u30ff\u3400-\u9fff]+")


@dataclass(frozen=True)
class Mark:
    """A word or phrase of some sort; `mask` says its sorts and languages."""

    start: int
    end: int
    mask: int
    sentence: int


@dataclass(frozen=True)
class Vocabulary:
    """The words of all languages, by how they are looked up."""

    codes: Sequence[str]
    verb_last: int
    """A bit for each language in which the verb of an order may stand behind what it is about."""
    exact: dict[str, int]
    stems: dict[str, int]
    phrases: dict[str, list[tuple[Sequence[str], int]]]
    """By their first word: the words behind it."""
    unspaced: dict[str, list[tuple[str, int]]]
    """By their first character."""

    def mask(self, word: str) -> int:
        """The sorts of the folded word, and their languages."""
        mask = self._mask_of(word)
        plain = undisguised(word)
        if plain != word:
            mask |= self._mask_of(plain)
        if not word.isascii() and not mask and "\u0590" <= word[0] <= "\u06ff":
            for cut in range(1, min(_LONGEST_CLITICS + 1, len(word) - _SHORTEST_STEM + 1)):
                mask |= self._mask_of(word[cut:]) & self._with_clitics
        return mask

    @property
    def _with_clitics(self) -> int:
        return sum(((1 << BITS) - 1) << BITS * self.codes.index(code) for code in _CLITICS)

    def _mask_of(self, word: str) -> int:
        mask = self.exact.get(word, 0)
        for length in range(_SHORTEST_STEM - 1, len(word) + 1):
            mask |= self.stems.get(word[:length], 0)
        return mask


@cache
def vocabulary() -> Vocabulary:
    """Read once."""
    paths = sorted(FOLDER.glob("*.toml"))
    words = Vocabulary([path.stem for path in paths], 0, {}, {}, {}, {})
    verb_last = 0
    for number, path in enumerate(paths):
        row = tomllib.loads(path.read_text("utf-8"))
        verb_last |= row.get("verb_last", False) << number
        _take_in(words, row, number)
    return Vocabulary(words.codes, verb_last, words.exact, words.stems, words.phrases, words.unspaced)


def _take_in(words: Vocabulary, row: dict[str, Any], number: int) -> None:
    is_unspaced = words.codes[number] in UNSPACED
    for text, sort in _entries(row):
        bit = int(sort) << BITS * number
        if is_unspaced and not text.isascii():
            words.unspaced.setdefault(text[0], []).append((text, bit))
        elif " " in text:
            first, *rest = WORD.findall(text)
            words.phrases.setdefault(first, []).append((rest, bit))
        elif text.endswith("*"):
            stem = text[:-1]
            words.stems[stem] = words.stems.get(stem, 0) | bit
        else:
            words.exact[text] = words.exact.get(text, 0) | bit


def _entries(row: dict[str, Any]) -> Iterator[tuple[str, Sort]]:
    for sort in WORDS:
        for word in row[str(sort.name).lower()].split():
            yield fold(word), sort
    for field, sort in PHRASES.items():
        for phrase in row["phrases"][field].split(";"):
            yield " ".join(WORD.findall(fold(phrase))), sort


@lru_cache(maxsize=65_536)
def _mask(word: str) -> int:
    return vocabulary().mask(word)


def sorts_in(folded: str) -> int:
    """The sorts that the words of a folded text may have, and their languages: a fraction of the work of `places`."""
    seen, phrases = 0, vocabulary().phrases
    words = set(WORD.findall(folded))
    for word in words:
        seen |= _mask(word)
        for rest, bit in phrases.get(word, ()):
            if words.issuperset(rest):
                seen |= bit
    if not folded.isascii():
        for _, _, bit in _unspaced_in(folded):
            seen |= bit
    return seen


def marks_in(folded: str) -> list[Mark]:
    """The words and phrases of a folded text that are of any sort, in their order."""
    found: list[tuple[int, int, int]] = []
    tokens = [(match[0], match.start(), match.end()) for match in WORD.finditer(folded)]
    phrases = vocabulary().phrases
    for place, (word, start, end) in enumerate(tokens):
        if mask := _mask(word):
            found.append((start, end, mask))
        for rest, bit in phrases.get(word, ()):
            if [each[0] for each in tokens[place + 1 : place + 1 + len(rest)]] == rest:
                found.append((start, tokens[place + len(rest)][2], bit))
    if not folded.isascii():
        found += _unspaced_in(folded)
    if not found:
        return []
    found.sort()
    return _in_sentences(folded, found)


def _unspaced_in(folded: str) -> Iterator[tuple[int, int, int]]:
    words = vocabulary().unspaced
    for run in _UNSPACED.finditer(folded):
        for place in range(run.start(), run.end()):
            for word, bit in words.get(folded[place], ()):
                if folded.startswith(word, place):
                    yield place, place + len(word), bit


def _in_sentences(folded: str, found: list[tuple[int, int, int]]) -> list[Mark]:
    ends = [match.start() for match in _END.finditer(folded)]
    marks, sentence = [], 0
    for start, end, mask in found:
        while sentence < len(ends) and ends[sentence] < start:
            sentence += 1
        marks.append(Mark(start, end, mask, sentence))
    return marks
