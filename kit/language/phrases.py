"""What "contains this phrase" means, for both engines and the core alike: the phrase's words stand in the text, one after the
other. Case, accents and punctuation do not count; endings do, for nothing is stemmed.

Engines that match phrases index `phrase_tokens` joined by spaces, so that they cannot disagree with `contains_phrase`.
"""

import re
import unicodedata
from collections.abc import Iterable
from functools import cache

_KEPT_MARKS = frozenset((0, 7, 8, 9))
"""Combining classes that are part of the letter: none, nukta, kana voicing, virama. The others are accents and vowel points."""
_WITHOUT_SPACES = r"\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"
SIGNED_LETTER = r"(?<!\w)[A-Za-z](?:\+{2,3}|[+#](?![\w+]))"
"""A pattern of a letter whose sign is part of its name: C++ and C# are not C, A+ is not A."""
_TOKEN = re.compile(rf"{SIGNED_LETTER}|[{_WITHOUT_SPACES}]|[^\W{_WITHOUT_SPACES}]+")
"""A character of the scripts that write without spaces (Thai, Lao, Burmese, Khmer, Japanese, Chinese), else a word."""
_DIGIT = re.compile(r"\d")
_QUOTED = re.compile(r"(?<!\w)[\"“”„«]([^\"“”„«»]{2,200})[\"“”„»](?!\w)")
"""A mark after a digit or letter opens nothing: it stands for inches, seconds or Hebrew gershayim."""
_MAX_QUOTES = 4


def phrase_tokens(text: str) -> list[str]:
    """The folded words of a text, in order."""
    return _TOKEN.findall(folded(text))


def contains_phrase(text: str, phrase: str) -> bool:
    """Whether the phrase's words stand in the text in their order with nothing but space and punctuation between."""
    return f" {' '.join(phrase_tokens(phrase))} " in f" {' '.join(phrase_tokens(text))} "


def quoted_phrases(query_text: str) -> tuple[str, ...]:
    """What stands in quotation marks and has words, each once, the first few."""
    quoted = (phrase.strip() for phrase in _QUOTED.findall(query_text))
    return tuple(dict.fromkeys(phrase for phrase in quoted if phrase_tokens(phrase)))[:_MAX_QUOTES]


def numbers_in(tokens: Iterable[str]) -> frozenset[str]:
    """Those of the words that have a digit: years, amounts, identifiers."""
    return frozenset(filter(_DIGIT.search, set(tokens)))


def folded(text: str) -> str:
    """Lower case, without accents and vowel points, compatible characters (full width, ligatures) made one."""
    if text.isascii():
        return text.lower()
    letters = unicodedata.normalize("NFKD", text.casefold())
    return unicodedata.normalize("NFKC", _accents().sub("", letters))


@cache
def _accents() -> re.Pattern[str]:
    """Made when first needed: looking through 65 000 characters takes 10 ms. Beyond them are marks of music and dead scripts."""
    marks = (chr(code) for code in range(0x300, 0x10000) if unicodedata.combining(chr(code)) not in _KEPT_MARKS)
    return re.compile(f"[{''.join(marks)}]+")
