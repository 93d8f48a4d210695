"""The supported languages, and their words: one file a language in `languages/`, each with the same fields.

Files hold words only. Fields are words separated by white space, or phrases separated by semicolons; fields of `[time]` that are
lists have a fixed length (twelve months, seven weekdays, …). Add a language by adding a file: a test checks that it is complete.
"""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).with_name("languages")
ENGLISH = "en"
WORDS = ("stop_words", "function_words", "question_words", "pronouns")
PHRASES = ("connectors", "small_talk", "time_questions", "polite", "requests", "sums")
"""Fields of a language file by the shape of their values."""


@dataclass(frozen=True)
class Language:
    """The words of one language, in lower case."""

    code: str
    """ISO 639-1."""
    name: str
    """In English."""
    stop_words: frozenset[str]
    """Words without content, but for those that are content words of another language."""
    function_words: frozenset[str]
    """Question words, articles, prepositions, auxiliary verbs: they tell the language of a short question."""
    question_words: frozenset[str]
    pronouns: frozenset[str]
    """Words that stand for something named before."""
    refusal: str
    """What is said when search finds nothing near the question."""
    unsure: str
    """What is said when what is near the question does not answer it for sure."""
    greeting: str
    """What is said to small talk where no model answers."""
    conflict: str
    """What is said before the values that sources disagree about."""
    connectors: tuple[str, ...]
    """How a question begins that goes on from the one before: "and"."""
    small_talk: tuple[str, ...]
    time_questions: tuple[str, ...]
    """Questions about the time and the date of today."""
    polite: tuple[str, ...]
    """What may stand before a request."""
    requests: tuple[str, ...]
    """How a request to keep, send or delete something begins."""
    sums: tuple[str, ...]
    """What stands before a sum."""
    operators: Mapping[str, str]
    """Words for operators of arithmetic, and their signs."""
    time: Mapping[str, tuple[tuple[str, ...], ...]]
    """Words for times by field of `[time]`: one tuple of words or phrases for each entry of a list, else one tuple."""


def phrases(text: str) -> tuple[str, ...]:
    """The phrases of a field, in order."""
    return tuple(" ".join(each.split()) for each in text.split(";") if each.strip())


def read_language(path: Path) -> Language:
    """Reads one file. Raises KeyError when a field is missing, ValueError when the file is no TOML."""
    row = tomllib.loads(path.read_text("utf-8"))
    values: dict[str, Any] = {field: row[field] for field in ("name", "refusal", "unsure", "greeting", "conflict")}
    values |= {field: frozenset(row[field].split()) for field in WORDS}
    values |= {field: phrases(row[field]) for field in PHRASES}
    values["operators"] = dict(each.rsplit(" ", 1) for each in phrases(row["operators"]))
    values["time"] = {
        field: tuple(map(phrases, value)) if isinstance(value, list) else (phrases(value),)
        for field, value in row["time"].items()
    }
    return Language(code=path.stem, **values)


LANGUAGES: Mapping[str, Language] = {path.stem: read_language(path) for path in sorted(FOLDER.glob("*.toml"))}
"""By code. Read at once, since processes that read files of others lose the right to open more."""


def all_words(field: str) -> frozenset[str]:
    """The words of this field of all languages."""
    return frozenset[str]().union(*(getattr(language, field) for language in LANGUAGES.values()))


def all_phrases(field: str) -> tuple[str, ...]:
    """The phrases of this field of all languages, longest first."""
    found = {phrase for language in LANGUAGES.values() for phrase in getattr(language, field)}
    return tuple(sorted(found, key=lambda phrase: (-len(phrase), phrase)))
