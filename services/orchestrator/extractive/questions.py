"""Read a question: what kind of answer it wants, and which of its words the evidence must contain.

English cues with a neutral default: a question in another language keeps its words, numbers and names and gets no
answer type, so that overlap and similarity alone decide.
"""

import enum
import re
from dataclasses import dataclass

from services.orchestrator.extractive.terms import STOPWORDS, Token, tokens


class AnswerKind(enum.Enum):
    """What the answer should look like."""

    PERSON = "person"
    TIME = "time"
    PLACE = "place"
    QUANTITY = "quantity"
    DURATION = "duration"
    DEFINITION = "definition"
    REASON = "reason"
    MANNER = "manner"
    LIST = "list"
    YES_NO = "yes_no"
    DESCRIPTION = "description"
    FACT = "fact"
    """Any one fact: "what", "which", and every question whose form is not known."""
    KEYWORDS = "keywords"
    """No question at all: words to look up."""


@dataclass(frozen=True)
class Question:
    """A question, read."""

    text: str
    kind: AnswerKind
    terms: tuple[Token, ...]
    """Content words in order, each stem once."""

    @property
    def stems(self) -> frozenset[str]:
        """Stems of the content words."""
        return frozenset(term.stem for term in self.terms)


# First match wins: the specific forms stand before the general ones.
_FORMS: tuple[tuple[AnswerKind, str], ...] = (
    (AnswerKind.QUANTITY, r"\bhow (many|much|far|tall|high|deep|wide|large|big|heavy|fast|often|hot|cold|few)\b"),
    (AnswerKind.QUANTITY, r"\b(what|which)( \w+| (is|was|are|were) the( \w+)?)? (number|percentage|percent|proportion|amount|population|share|rate|cost|price|"
     r"speed|temperature|distance|length|height|weight|size|fraction)\b"),
    (AnswerKind.DURATION, r"\bhow (long|old)\b"),
    (AnswerKind.TIME, r"\b(when|since when|until when)\b|\b(what|which) (\w+ )?(year|date|day|month|century|decade|time|era|period|season)\b"),
    (AnswerKind.REASON, r"\bwhy\b|\bhow come\b|\b(what|which) (\w+ )?(reason|cause)s?\b|\bwhat (caused|led to|made)\b|\bfor what (reason|purpose)\b"),
    (AnswerKind.LIST, r"^(list|name|enumerate)\b|\bwhat are (the|some|all)\b|\bwhich \w+s are\b|\b(what|which) (kinds|types|sorts|examples|steps|features)\b"),
    (AnswerKind.DESCRIPTION, r"^(describe|explain|summari[sz]e|tell me|outline|compare|give)\b|\bwhat (happens|happened)\b|"
     r"\bdifference between\b"),
    (AnswerKind.PERSON, r"\b(who|whom|whose)\b|\b(what|which) (\w+ )?(person|man|woman|king|queen|president|leader|author|scientist|"
     r"general|director|inventor|ceo)\b"),
    (AnswerKind.PLACE, r"\bwhere\b|\b(what|which) (\w+ )?(city|country|place|state|river|region|town|continent|capital|county|"
     r"location|nation|province|island|sea|ocean|lake)\b"),
    (AnswerKind.DEFINITION, r"^(define|meaning of|definition of)\b|^what('s| is| are) ((an?|the) )?[\w\-]+( (?!of|in|on|for|to|the)[\w\-]+){0,2} ?\?*$|"
     r"\bwhat does .+ (mean|stand for)\b"),
    (AnswerKind.MANNER, r"\bhow\b"),
    (AnswerKind.FACT, r"\b(what|which)\b"),
    (AnswerKind.YES_NO, r"^(is|are|was|were|do|does|did|can|could|may|must|should|will|would|has|have|had|am)\b"),
)  # fmt: skip
_COMPILED = tuple((kind, re.compile(pattern)) for kind, pattern in _FORMS)
_QUESTION_MARKS = ("?", "？", "؟")


def read_question(text: str) -> Question:
    """Analyse `text`. Never fails: an empty or wordless question has no terms."""
    found = tokens(text)
    content = [token for token in found if not token.is_stopword]
    # "Who are they?" has no content word: then every word counts, as little as it is worth.
    content = content or found
    unique = {token.stem: token for token in reversed(content)}
    terms = tuple(sorted(unique.values(), key=lambda token: token.start))
    return Question(text, _kind(text), terms)


def _kind(text: str) -> AnswerKind:
    lowered = " ".join(text.lower().split())
    words = lowered.split()
    for kind, pattern in _COMPILED:
        if pattern.search(lowered):
            return kind
    asks = text.rstrip().endswith(_QUESTION_MARKS)
    if asks or len(words) > 6 or any(word in STOPWORDS for word in words):
        return AnswerKind.FACT
    return AnswerKind.KEYWORDS
