"""What a message wants, read from its words: how a chat is served where no model calls tools.

What is not clearly something else is a question about the documents: a search too many costs milliseconds, one too few an answer.
"""

import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cache

from kit.language.data import LANGUAGES, all_phrases

_MOST_CHARS = 400
"""Small talk, sums and questions about the time are short."""


class Route(Enum):
    """How a chat is served. The value is what `plan.route` says."""

    TOOLS = "tools"
    """A model calls tools as it sees fit."""
    SEARCH = "search"
    MATH = "math"
    TIME = "time"
    TALK = "talk"
    """Small talk, and questions about the assistant itself."""
    ACT = "act"
    """To keep, send or delete something, which takes a model. It is planned as talk."""


@dataclass(frozen=True)
class Intent:
    """`expression` is what is to be computed, as math_eval takes it."""

    route: Route
    expression: str = ""


def read_intent(message: str) -> Intent:
    """Never fails."""
    if _is_request(message):
        return Intent(Route.ACT)
    if len(message) > _MOST_CHARS:
        return Intent(Route.SEARCH)
    if (expression := _expression(message)) is not None:
        return Intent(Route.MATH, expression)
    words = _words(message)
    if _time().fullmatch(words):
        return Intent(Route.TIME)
    return Intent(Route.TALK if not words or _talk().fullmatch(words) else Route.SEARCH)


def _is_request(message: str) -> bool:
    """Whether something is to be done. What is to be kept or sent may be long; a question is no request unless it asks politely."""
    match = _request().match(_words(message[:_MOST_CHARS]))
    asks = message.rstrip().endswith(("?", "？"))
    return match is not None and (not asks or bool(match["polite"]))


def _words(message: str) -> str:
    """Lower case, without punctuation, one space between words."""
    folded = unicodedata.normalize("NFKC", message).casefold()
    return " ".join("".join(char if char.isalnum() or unicodedata.combining(char) else " " for char in folded).split())


def _any(phrases: Iterable[str]) -> str:
    return "|".join(re.escape(words) for phrase in phrases if (words := _words(phrase)))


@cache
def _talk() -> re.Pattern[str]:
    return re.compile(f"(?:(?:{_any(all_phrases('small_talk'))})(?: |$))++")


@cache
def _time() -> re.Pattern[str]:
    return re.compile(f"(?:{_any(all_phrases('time_questions'))})(?: (?:now|today))?")


@cache
def _request() -> re.Pattern[str]:
    polite = f"(?P<polite>(?:(?:{_any(all_phrases('polite'))}) ?)*+)"
    return re.compile(rf"{polite}(?:{_any(all_phrases('requests'))})(?: |$)")


_NUMBER = r"\d+(?:\.\d+)?"
_NUMBERS = (
    (r"(?<=\d)[, ](?=\d{3}(?!\d))", ""),  # 1,250 and 1 250: thousands
    (r"(?<=\d),(?=\d)", "."),  # 1,5: a decimal comma
    (r"[−–]", "-"),
    (r"\s*(?:[×✕·]|(?<=\d)\s?x\s?(?=\d))\s*", " * "),
    (r"\s*÷\s*", " / "),
    (r"\s*\^\s*", " ** "),
)
_ARITHMETIC = re.compile(
    rf"(?:{_NUMBER}|\s|[-+*/()%]|\b(?:sqrt|log|ln|exp|sin|cos|tan|abs|round|floor|ceil|factorial)(?=\()|\b(?:pi|tau|e)\b)+"
)
_COMPUTES = re.compile(r"[\d)]\s*(?:\*\*|[-+*/%])\s*[-+]?\s*[\d(a-z]|[a-z]\(", re.IGNORECASE)
_DATE = re.compile(r"\d{4}-\d\d?-\d\d?|\d\d?/\d\d?/\d{2,4}")
_SPAN = re.compile(r"\(?\d+\)?(?:[-/]\d+)+|\d+\s*-\s*\d+")
"""A span of years, a telephone number, "24/7". Behind a word that asks for a result it is a sum all the same."""
_SIGNS = {"%": " / 100 * "}
"""What a sign of the language files stands for, where it is not itself: "15 % of 80"."""


def _expression(message: str) -> str | None:
    """The sum that the message is, as math_eval takes it; None when it is none."""
    text = unicodedata.normalize("NFKC", message).strip(" \t\n=?!.")
    bare = _lead().sub("", text).strip(" \t\n:=?!.")
    plain = _replace(bare, _NUMBERS)
    written = _replace(plain, _operators())
    asks = bare != text or written != plain
    if not _ARITHMETIC.fullmatch(written) or not _COMPUTES.search(written) or _DATE.fullmatch(written):
        return None
    return written if asks or not _SPAN.fullmatch(written) else None


def _replace(text: str, rules: Sequence[tuple[str, str]]) -> str:
    for pattern, replacement in rules:
        text = re.sub(pattern, replacement, text, flags=re.IGNORECASE)
    return " ".join(text.split())


@cache
def _lead() -> re.Pattern[str]:
    """What asks for the result of a sum, before or behind it."""
    asking = "|".join(re.escape(phrase).replace(r"\ ", r"[\s'’]+") for phrase in all_phrases("sums"))
    return re.compile(rf"^(?:{asking})(?!\w)|(?<![^\W\d])(?:{asking})$", re.IGNORECASE)


@cache
def _operators() -> tuple[tuple[str, str], ...]:
    """Words between numbers, longest first, with their signs."""
    found = {word: sign for language in LANGUAGES.values() for word, sign in language.operators.items()}
    return tuple(
        (rf"(?<=[\d)])\s*{re.escape(word)}\s+(?=[\d(])", _SIGNS.get(found[word], f" {found[word]} "))
        for word in sorted(found, key=len, reverse=True)
    )
