"""What to search for when a question leans on the one before it ("and in 2020?", "who founded it?"). Evidence is of this turn
only; the words that a follow-up leaves out come from the last question that stands alone."""

from collections.abc import Sequence

from kit.language.terms import starts_with_anaphor, tokens
from services.orchestrator.models import Turn

_POINTERS = frozenset(
    [
        "it",
        "its",
        "he",
        "she",
        "his",
        "her",
        "him",
        "they",
        "them",
        "their",
        "this",
        "that",
        "these",
        "those",
        "there",
        "one",
        "same",
        "former",
        "latter",
    ]
)
_CONNECTORS = frozenset(["and", "but", "or", "so", "also", "then", "what", "how"])
_SHORT_QUESTION_TERMS = 2
"""A question with this few content words of its own says too little to search for alone."""


def search_queries(question: str, history: Sequence[Turn]) -> tuple[str, ...]:
    """The question itself and, when it leans on the last one, both together."""
    anchor = _anchor(question, history)
    return (question, f"{anchor} {question}") if anchor else (question,)


def stand_alone(question: str, history: Sequence[Turn]) -> str:
    """The question with what it leaves out: of the last question that stands alone the names, or else its words. A question that
    leans on nothing is itself."""
    anchor = _anchor(question, history)
    if not anchor:
        return question
    content = [token for token in tokens(anchor) if not token.is_stopword]
    names = [token.surface for token in content if token.is_exact] or [token.surface for token in content]
    return f"{question} ({' '.join(dict.fromkeys(names))})" if names else question


def _anchor(question: str, history: Sequence[Turn]) -> str:
    """The last question that stands alone, before one that does not: "Who is Ada? Where was she born? And when?" is
    about Ada to its
    end. Empty when this one stands alone."""
    if not _leans_on_the_last(question):
        return ""
    asked = [turn.text for turn in history if turn.role == "user"]
    alone = [text for text in asked if not _leans_on_the_last(text)]
    return alone[-1] if alone else asked[-1] if asked else ""


def _leans_on_the_last(question: str) -> bool:
    found = tokens(question)
    words = [token.surface.lower() for token in found]
    content = [token for token in found if not token.is_stopword]
    points_back = any(word in _POINTERS for word in words) or starts_with_anaphor(question)
    trails = bool(words) and words[0] in _CONNECTORS and len(content) <= _SHORT_QUESTION_TERMS
    return points_back or trails or len(content) <= 1
