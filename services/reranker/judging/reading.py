"""A text as the judge of claims sees it: its words, each with the vector that the embedding model gives it in this text."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from kit.language.sentences import split_units
from kit.language.terms import STOPWORDS, stem
from services.reranker.judging import cues, small_words
from services.reranker.judging.clauses import Clauses
from services.reranker.models import Float32, Int8

Pieces = Callable[[Sequence[str]], list[list[str]]]
"""The tokenizer's pieces of each text, as they are written."""

_WORD_BYTES = 600
_MARK = "▁"
"""What SentencePiece writes for a space in front of a word."""
_UNSPACED = re.compile(r"[\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]")
_NUMBER = re.compile(r"[-+−]?\d+(?:[.,:/’' \u00a0]\d+)*")
_SEPARATOR = re.compile(r"[,.’' \u00a0](?=\d{3}(?:\D|$))")


@dataclass(frozen=True)
class Word:
    """A word of a text; of a script without spaces, a piece of one."""

    surface: str
    start: int
    """First character in the text."""
    end: int
    unit: int
    """Number of the sentence or row that it stands in; 0 is the heading above the text."""
    is_first: bool
    """Whether its unit begins with it."""
    language: str = ""
    """Of its text; "" where it is uncertain."""

    @cached_property
    def lower(self) -> str:
        return self.surface.lower()

    @cached_property
    def number(self) -> str:
        """Its value in digits, where it stands for a number; otherwise empty."""
        if self.surface[:1].isdigit():
            return number_value(self.surface)
        return cues.NUMBER_WORDS.get(self.lower, "")

    @cached_property
    def decides(self) -> tuple[bool, ...]:
        """Which of the categories of cues.py it belongs to, in their order."""
        return cues.categories_of(self.lower)

    @cached_property
    def cues(self) -> frozenset[str]:
        """What it decides in its language, as words.toml says."""
        return small_words.cues_of(self.lower, self.language)

    @cached_property
    def value(self) -> str:
        """Its value in digits, where it stands for a number in its language; otherwise empty."""
        return (
            number_value(self.surface)
            if self.surface[:1].isdigit()
            else small_words.number_of(self.lower, self.language)
        )

    @cached_property
    def is_name(self) -> bool:
        """Whether it is written with a capital that no sentence explains."""
        return self.surface[0].isupper() and (not self.is_first or self.surface.isupper()) and not self.is_stop

    @cached_property
    def is_stop(self) -> bool:
        return self.lower in STOPWORDS

    @cached_property
    def stem(self) -> str:
        return stem(self.surface)


def number_value(text: str) -> str:
    """`1,000` and `1 000` are 1000; `2,5` is 2.5; `14th` is 14."""
    match = _NUMBER.match(text)
    digits = _SEPARATOR.sub("", match[0] if match else text)
    return digits.replace(",", ".").rstrip(".")


@dataclass(frozen=True)
class ReadText:
    """Words with their vectors, of one text or of several one after another."""

    text: str
    words: Sequence[Word]
    vectors: Float32
    """float32 [words, dimension], each of length one."""
    pooled: Float32
    """float32 [dimension]: the embedding."""
    units: Sequence[tuple[int, int]]
    """First and last character of each sentence or row; the first is the heading."""

    @cached_property
    def clauses(self) -> Clauses:
        return Clauses(self.text, self.words)

    @property
    def size_bytes(self) -> int:
        """About what it takes in memory: the vectors, and the words with what is remembered of each."""
        return self.vectors.nbytes + self.pooled.nbytes + _WORD_BYTES * len(self.words)


def read_text(text: str, heading: str, pieces_of: Pieces) -> tuple[list[Word], list[int], list[tuple[int, int]]]:
    """The words of heading and text, the number of the word to which each token of `joined(heading, text)` belongs (-1: none),
    and the units."""
    whole, shift = joined(heading, text), len(joined(heading, ""))
    units = [(0, max(0, shift - 1)), *_unit_spans(text, shift)]
    chunks = list(re.finditer(r"\S+", whole))
    language = small_words.language_of(text)
    pieces = pieces_of([chunk[0] for chunk in chunks])
    words: list[Word] = []
    owners: list[int] = []
    unit, last_unit = 0, -1
    for chunk, own in zip(chunks, pieces, strict=True):
        while unit + 1 < len(units) and chunk.start() >= units[unit + 1][0]:
            unit += 1
        for start, end, count in _split(chunk[0], own):
            surface = chunk[0][start:end]
            if not surface or not any(map(str.isalnum, surface)):
                owners.extend([-1] * count)
                continue
            first = unit != last_unit
            last_unit = unit
            owners.extend([len(words)] * count)
            words.append(Word(surface, chunk.start() + start, chunk.start() + end, unit, first, language))
    return words, owners, units


def joined(heading: str, text: str) -> str:
    """What the model reads."""
    return f"{heading}\n{text}" if heading else text


def _unit_spans(text: str, shift: int) -> list[tuple[int, int]]:
    spans: list[tuple[int, int]] = []
    for unit in split_units(text):
        if not spans or unit.start + shift >= spans[-1][1]:
            spans.append((unit.start + shift, unit.end + shift))
    return spans or [(shift, shift + len(text))]


def _split(chunk: str, pieces: Sequence[str]) -> list[tuple[int, int, int]]:
    """Start, end and number of pieces of each word or run of punctuation within a chunk between spaces."""
    found: list[tuple[int, int, int]] = []
    position = 0
    for piece in pieces:
        length = min(len(piece.replace(_MARK, "")), len(chunk) - position)
        end = position + length
        if found and _belong_together(chunk, found[-1][0], position, end):
            start, _, count = found.pop()
            found.append((start, end, count + 1))
        else:
            found.append((position, end, 1))
        position = end
    return [_trimmed(chunk, *each) for each in found]


def _belong_together(chunk: str, start: int, middle: int, end: int) -> bool:
    if middle in (start, end):
        return True
    left, right = chunk[middle - 1], chunk[middle]
    if _UNSPACED.match(left) or _UNSPACED.match(right):
        return False
    if left.isalnum() and right.isalnum():
        return left.isdigit() == right.isdigit() or chunk[start].isalpha()
    if left.isdigit() and right in ".,:/":
        return (end < len(chunk) and chunk[end].isdigit()) or (end > middle + 1 and chunk[middle + 1].isdigit())
    if right.isdigit() and left in ".,:/":
        return middle >= 2 and chunk[start].isdigit()
    return (left.isalpha() and right in "'’") or (left in "'’" and right.isalpha() and middle - start > 1)


def _trimmed(chunk: str, start: int, end: int, count: int) -> tuple[int, int, int]:
    while start < end and not chunk[start].isalnum():
        start += 1
    while start < end and not (chunk[end - 1].isalnum() or chunk[end - 1] in "%€$£°"):
        end -= 1
    return start, end, count


def with_vectors(
    text: str, heading: str, read: tuple[list[Word], list[int], list[tuple[int, int]]], tokens: Int8, pooled: Float32
) -> ReadText:
    """`tokens`: int8 [content tokens, dimension]; words beyond the model's window are left out."""
    words, owners, units = read
    count = min(len(owners), len(tokens))
    owner = np.array(owners[:count], int)
    known = owner >= 0
    size = int(owner.max(initial=-1)) + 1
    vectors = np.zeros((size, tokens.shape[1]), np.float32)
    np.add.at(vectors, owner[known], tokens[:count][known].astype(np.float32))
    vectors /= np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-6)
    return ReadText(joined(heading, text), words[:size], vectors, pooled, units)


def concatenated(texts: Sequence[ReadText]) -> ReadText:
    """Several passages as one; their units keep their order."""
    if len(texts) == 1:
        return texts[0]
    words: list[Word] = []
    units: list[tuple[int, int]] = []
    shift = 0
    for each in texts:
        words += [
            Word(
                word.surface, word.start + shift, word.end + shift, word.unit + len(units), word.is_first, word.language
            )
            for word in each.words
        ]
        units += [(start + shift, end + shift) for start, end in each.units]
        shift += len(each.text) + 1
    pooled = np.mean([each.pooled for each in texts], axis=0)
    vectors = np.concatenate([each.vectors for each in texts])
    return ReadText("\n".join(each.text for each in texts), words, vectors, pooled / np.linalg.norm(pooled), units)
