"""Tokens of a text without its tokenizer: an estimate from above, by script. Vocabularies are made for English first: a Latin word
is one to three tokens, a letter of a script that the vocabulary hardly knows falls apart into its bytes."""

import math
import re
from collections.abc import Sequence

_WORD = re.compile(r"[A-Za-z]+")
_ENGLISH_WORDS = frozenset(["the", "of", "and", "that", "with", "are", "from", "this"])
"""Frequent in English and rare in other languages of that alphabet."""
_ENGLISH_SHARE = 0.05
_LETTERS_PER_TOKEN = 2.2
_LETTERS_PER_ENGLISH_TOKEN = 5
_LETTERS_PER_CAPITAL_TOKEN = 1.8
"""Of a Latin word with the space before it."""
_WHOLE_WORD = 7
"""English words of this many letters are nearly all tokens of their own."""
_CASE_CHANGE = re.compile(r"[a-z](?=[A-Z])|[A-Z](?=[A-Z][a-z])")
"""In camelCase and in encoded data: a token ends there."""
_SPACE_ALONE = re.compile(r" (?=[0-9])|  +")
"""Other spaces belong to the word behind them."""
_TOKENS_PER_SIGN = 1.05
"""Digits, punctuation and the like: SmolLM2 and Llama 2 split numbers into digits."""
_SCRIPTS: tuple[tuple[int, int, float], ...] = (
    (0x0080, 0x024F, 1.2),  # Latin with marks, among ASCII letters
    (0x0370, 0x03FF, 1.6),  # Greek
    (0x0400, 0x052F, 1.2),  # Cyrillic
    (0x0530, 0x06FF, 1.6),  # Armenian, Hebrew, Arabic
    (0x0900, 0x0DFF, 2.4),  # Indic
    (0x0E00, 0x0FFF, 2.4),  # Thai, Lao, Tibetan
    (0x2000, 0x206F, 1.5),  # punctuation
    (0x3040, 0x30FF, 2.0),  # kana
    (0x4E00, 0x9FFF, 2.2),  # CJK
    (0xAC00, 0xD7AF, 3.0),  # Hangul
)
"""First and last code point, tokens a character: measured on SmolLM2's vocabulary, which is hard on all but English."""
_BASIC_PLANE = 0xFFFF
_OTHER = 3.2
"""Any other character of the basic plane: its bytes."""
_ASTRAL = 4.0
"""Emoji and rare characters: four bytes."""


def estimate_tokens(text: str) -> int:
    """Tokens of the text, estimated from above: vocabularies in use need fewer for natural text."""
    if not text:
        return 0
    words = _WORD.findall(text)
    letters = sum(map(len, words))
    ascii_count = _ascii_count(text)
    tokens: float = _of_words(words) + len(_CASE_CHANGE.findall(text))
    tokens += (ascii_count - letters - text.count(" ")) * _TOKENS_PER_SIGN
    tokens += sum(1 + (space.end() - space.start()) // 4 for space in _SPACE_ALONE.finditer(text))
    if ascii_count < len(text):
        tokens += sum(_weight(ord(character)) for character in text if not character.isascii())
    return math.ceil(tokens) + 1


def _of_words(words: Sequence[str]) -> int:
    is_english = sum(word.lower() in _ENGLISH_WORDS for word in words) > _ENGLISH_SHARE * len(words)
    return sum(_of_word(word, is_english=is_english) for word in words)


def _of_word(word: str, *, is_english: bool) -> int:
    if word.isupper():
        return math.ceil(len(word) / _LETTERS_PER_CAPITAL_TOKEN)
    if not is_english:
        return math.ceil(len(word) / _LETTERS_PER_TOKEN)
    return 1 if len(word) <= _WHOLE_WORD else math.ceil(len(word) / _LETTERS_PER_ENGLISH_TOKEN)


def _ascii_count(text: str) -> int:
    return len(text) if text.isascii() else sum(map(str.isascii, text))


def _weight(code_point: int) -> float:
    if code_point > _BASIC_PLANE:
        return _ASTRAL
    for first, last, tokens in _SCRIPTS:
        if first <= code_point <= last:
            return tokens
    return _OTHER


_ASCII_OF_LONGEST_TOKENS = 12
CHARS_OF_LONGEST_TOKENS = 4
"""Characters that a token may have on average, in ASCII and in other scripts."""


def fewest_tokens(text: str) -> float:
    """Tokens of the text, estimated from below: a model that has written this much has used at least these."""
    ascii_count = _ascii_count(text)
    return ascii_count / _ASCII_OF_LONGEST_TOKENS + (len(text) - ascii_count) / CHARS_OF_LONGEST_TOKENS
