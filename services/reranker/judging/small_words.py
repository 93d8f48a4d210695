"""Small words that decide what a sentence says: who denies, forbids, counts, plans, compares, restricts or explains with them. They
are in words.toml, by language. A word counts in the language of its text, and in all languages where that is uncertain."""

import re
import tomllib
from collections.abc import Mapping
from functools import cache, lru_cache
from pathlib import Path

import icu

from kit.language.data import LANGUAGES
from kit.language.question_language import language_by_words
from kit.language.terms import STOPWORDS

WORDS_FILE = Path(__file__).with_name("words.toml")
_ALSO = {
    "forbidding": "negation",
    "without": "negation",
    "more_of": "more",
    "less_of": "less",
    "later": "more",
    "earlier": "less",
}
_ENDINGS, _MEASURES = "endings", "measures"
_UNSPACED = frozenset({"zh", "ja", "ko", "th"})
"""Their entries are parts of words."""
_NONE: frozenset[str] = frozenset()
_SCRIPTS = (
    ("ja", re.compile("[\u3041-\u30ff]")),
    ("zh", re.compile("[\u3400-\u9fff]")),
    ("ko", re.compile("[\uac00-\ud7af]")),
    ("th", re.compile("[\u0e00-\u0e7f]")),
    ("he", re.compile("[\u05d0-\u05ea]")),
    ("el", re.compile("[\u0370-\u03ff]")),
    ("hi", re.compile("[\u0900-\u097f]")),
)
"""Scripts that one of the supported languages writes with."""
_LETTERS = (
    ("uk", re.compile("[іїєґ]")),
    ("ru", re.compile("[а-яё]")),
    ("tr", re.compile("[ığş]")),
    ("pl", re.compile("[ąęłśźż]")),
)
"""Letters of one language, for texts without a function word."""
_SCRIPT_SHARE = 0.3
_READ_CHARS = 600
"""Of a text, to tell its language."""


def languages() -> list[str]:
    """The languages that words.toml has words of."""
    return list(_table())


def language_of(text: str) -> str:
    """The language of a text, by its script and its function words; "" where it is uncertain."""
    read = text[:_READ_CHARS].lower()
    for code, script in _SCRIPTS:
        if len(script.findall(read)) > _SCRIPT_SHARE * sum(map(str.isalpha, read)):
            return code
    return language_by_words(" ".join(read.split())) or next((code for code, own in _LETTERS if own.search(read)), "")


@lru_cache(maxsize=32_768)
def cues_of(word: str, language: str) -> frozenset[str]:
    """The categories of words.toml that a word in lower case belongs to."""
    if language in _UNSPACED:
        return frozenset(name for part, names in _by_word(language).items() if part in word for name in names)
    found = _by_word(language).get(word, _NONE)
    if word.endswith(("n't", "n’t")) or (language in ("tr", "") and word.endswith(_endings("tr"))):
        found |= {"negation"}
    return found


@cache
def _table() -> Mapping[str, Mapping[str, str]]:
    read: Mapping[str, Mapping[str, str]] = tomllib.loads(WORDS_FILE.read_text("utf-8"))
    return {language: words for language, words in read.items() if language != _MEASURES}


def measures() -> Mapping[str, str]:
    """The words of units by unit, separated by spaces."""
    read: Mapping[str, Mapping[str, str]] = tomllib.loads(WORDS_FILE.read_text("utf-8"))
    return read[_MEASURES]


@cache
def _endings(language: str) -> tuple[str, ...]:
    return tuple(_table()[language].get(_ENDINGS, "").split())


@cache
def _by_word(language: str) -> Mapping[str, frozenset[str]]:
    """Of a language; "" is all of those that write with spaces."""
    own = [language] if language in _table() else [code for code in _table() if code not in _UNSPACED]
    found: dict[str, set[str]] = {}
    for code in own:
        for name, words in _table()[code].items():
            for word in words.split() if name != _ENDINGS else ():
                found.setdefault(word, set()).update({name, _ALSO.get(name, name)})
    return {word: frozenset(names) for word, names in found.items()}


@lru_cache(maxsize=32_768)
def number_of(word: str, language: str) -> str:
    """The value, in digits, of a number from two on that is written out in one word; empty where the word is none."""
    return _numbers(language).get(word, "")


_NO_NUMBERS = frozenset({"sei", "năm", "ba", "cent", "mil", "dans", "ten", "six"})
"""Words of other meanings as well, where the language is not known."""
_AMBIGUOUS = {"it": {"sei"}, "vi": {"năm", "ba", "không"}}
_SPELLED = (*range(2, 101), *range(200, 1000, 100))


@cache
def _numbers(language: str) -> Mapping[str, str]:
    """Of a language; "" is all of them, without words that have other meanings somewhere."""
    if not language:
        all_numbers: dict[str, str] = {}
        for code in LANGUAGES:
            for word, value in _numbers(code).items():
                all_numbers[word] = value if all_numbers.setdefault(word, value) == value else ""
        return {word: value for word, value in all_numbers.items() if value and word not in STOPWORDS | _NO_NUMBERS}
    found = dict(_spelled(language)) if language in LANGUAGES else {}
    if language in LANGUAGES:
        for place, words in enumerate(LANGUAGES[language].time["numbers"]):
            found |= {word: f"{place + 1}" for word in words if place}
    return {word: value for word, value in found.items() if word not in _AMBIGUOUS.get(language, ())}


def _spelled(language: str) -> Mapping[str, str]:
    """By ICU's rules, in all genders and cases."""
    rules = icu.RuleBasedNumberFormat(icu.URBNFRuleSetTag.SPELLOUT, icu.Locale(language))
    names = [rules.getRuleSetName(number) for number in range(rules.getNumberOfRuleSetNames())]
    found: dict[str, str] = {}
    for name in names:
        if "cardinal" in name and not name.startswith("%%"):
            for value in _SPELLED:
                word = str(rules.format(value, name)).replace("\u00ad", "")
                if " " not in word:
                    found.setdefault(word, f"{value}")
    return found
