"""What a message wants, told by its words: how a chat is served where no model calls tools. Whatever is not clearly something else
is a question about the documents: a search too many costs milliseconds, one too few an answer."""

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from services.orchestrator.answering.wording import Talk, reply
from services.orchestrator.modes.phrases import ACT, KINDS, POLITE, TALK, TIME

_MOST_CHARS = 400
"""Small talk, sums and questions about the time are short."""


class Route(Enum):
    """How a chat is served. The value is what `plan.route` says, but of ACT, which is planned as talk: an earlier version may take
    such a run over."""

    TOOLS = "tools"
    """A model calls tools as it sees fit."""
    SEARCH = "search"
    MATH = "math"
    TIME = "time"
    TALK = "talk"
    """Small talk, and questions about the assistant itself."""
    ACT = "act"
    """To keep, send or delete something, which takes a model."""


@dataclass(frozen=True)
class Intent:
    """`expression` is what is to be computed, as math_eval takes it. `talk` is small talk that has a reply of its own."""

    route: Route
    expression: str = ""
    talk: Talk | None = None
    language: str = ""
    """Of `talk`."""

    @property
    def reply(self) -> str:
        """To `talk`, in its language; empty where there is none."""
        return reply(self.talk, self.language) if self.talk else ""


def read_intent(message: str) -> Intent:
    """Never fails."""
    if _is_request(message):
        return Intent(Route.ACT)
    if len(message) > _MOST_CHARS:
        return Intent(Route.SEARCH)
    if (expression := _expression(message)) is not None:
        return Intent(Route.MATH, expression)
    words = _words(message)
    if TIME.fullmatch(words):
        return Intent(Route.TIME)
    if words and not TALK.fullmatch(words):
        return Intent(Route.SEARCH)
    talk, language = next(((talk, language) for talk, language, said in KINDS if said.search(words)), (None, ""))
    return Intent(Route.TALK, talk=talk, language=language)


def _is_request(message: str) -> bool:
    """Whether something is to be done. What is to be kept or sent may be long; a question is none unless it asks politely."""
    words = _words(message[:_MOST_CHARS])
    asks = message.rstrip().endswith(("?", "？"))
    return bool(ACT.fullmatch(words)) and (not asks or POLITE.match(words) is not None)


def _words(message: str) -> str:
    """Lower case, without punctuation, one space between words."""
    folded = unicodedata.normalize("NFKC", message).casefold()
    return " ".join("".join(char if char.isalnum() or unicodedata.combining(char) else " " for char in folded).split())


def _pattern(*phrases: str) -> str:
    return "|".join(f"(?:{phrase})" for line in phrases for phrase in line.split("; "))


_LEAD = re.compile(
    r"""\s*(?:(?:please|bitte|hey|so|and|und|et|y)\s+)?(?:
        what\s+is|what['’]s|whats|calculate|compute|evaluate|how\s+much\s+is
        |was\s+(?:ist|macht)|wie\s*viel\s+(?:ist|sind|macht)|berechne|rechne|hoeveel\s+is|bereken
        |combien\s+(?:font|fait)|calcule[zr]?|cu[aá]nto\s+(?:es|son)|calcula|quanto\s+(?:fa|é|e)|calcola
        |ile\s+(?:to|jest)(?:\s+jest)?|oblicz|сколько\s+будет|посчитай|вычисли|计算|算一下
    )\s*:?\s*(?:the\s+result\s+of\s+)?""",
    re.IGNORECASE | re.VERBOSE,
)
_TAIL = re.compile(
    r"\s*=?[?？!.\s]*(?:等于(?:多少|几)|は(?:いくつ|いくら)(?:ですか)?|kaç(?:\s+eder)?)?[?？!.\s]*$", re.IGNORECASE
)
_NUMBER = r"\d+(?:\.\d+)?"
_DIGITS = (
    (r"(?<=\d)[, ](?=\d{3}(?!\d))", ""),  # 1,250 and 1 250: thousands
    (r"(?<=\d),(?=\d)", "."),  # 1,5: a decimal comma
    (r"[−–]", "-"),
    (r"\s*(?:[×✕·]|(?<=\d)\s?x\s?(?=\d))\s*", " * "),
    (r"\s*÷\s*", " / "),
    (r"\s*\^\s*", " ** "),
)
_WORDS = (
    (r"\s(?:divided\s+by|geteilt\s+durch|gedeeld\s+door|divis[eé]\s+par|dividido\s+(?:por|entre)|diviso|разделить\s+на)\s", " / "),
    (r"\s(?:multiplied\s+by|times|mal|maal|fois|умножить\s+на)\s", " * "),
    (r"\s(?:plus|più|плюс)\s", " + "),
    (r"\s(?:minus|moins|menos|meno|минус)\s", " - "),
    (r"\s(?:to\s+the\s+power\s+of|hoch)\s", " ** "),
    (rf"(?:the\s+)?(?:square\s+root\s+of|wurzel\s+(?:aus|von)|racine\s+carr[eé]e\s+de|√)\s*({_NUMBER})", r"sqrt(\1)"),
    (
        rf"({_NUMBER})\s*(?:%|per\s?cent|prozent|procent|pour\s*cent|por\s+ciento|процентов)\s+(?:of|von|van|de|di|от)\s+({_NUMBER})",
        r"\1 / 100 * \2",
    ),
)  # fmt: skip
_ARITHMETIC = re.compile(
    rf"(?:{_NUMBER}|\s|[-+*/()%]|\b(?:sqrt|log|ln|exp|sin|cos|tan|abs|round|floor|ceil|factorial)(?=\()|\b(?:pi|tau|e)\b)+"
)
_COMPUTES = re.compile(r"[\d)]\s*(?:\*\*|[-+*/%])\s*[-+]?\s*[\d(a-z]|[a-z]\(", re.IGNORECASE)
_DATE = re.compile(r"\d{4}-\d\d?-\d\d?|\d\d?/\d\d?/\d{2,4}")
_SPAN = re.compile(r"\(?\d+\)?(?:[-/]\d+)+|\d+\s*-\s*\d+")
"""A span of years, a telephone number, "24/7". Behind a word that asks for a result it is a sum all the same."""


def _expression(message: str) -> str | None:
    """The sum that the message is, as math_eval takes it; None when it is none."""
    text = unicodedata.normalize("NFKC", message).strip()
    lead = _LEAD.match(text)
    text = _plain(_TAIL.sub("", text[lead.end() :] if lead else text), _DIGITS)
    written = _plain(text, _WORDS)
    asks = lead is not None or written != text
    if not _ARITHMETIC.fullmatch(written) or not _COMPUTES.search(written) or _DATE.fullmatch(written):
        return None
    return written if asks or not _SPAN.fullmatch(written) else None


def _plain(text: str, rules: Sequence[tuple[str, str]]) -> str:
    for pattern, replacement in rules:
        text = re.sub(pattern, replacement, text, flags=re.IGNORECASE)
    return " ".join(text.split())
