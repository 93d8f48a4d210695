"""What to search for when a question leans on the one before it ("and in 2020?", "who founded it?"). Evidence is of this turn
only; the words that a follow-up leaves out come from the last question."""

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
    asked = [turn.text for turn in history if turn.role == "user"]
    if not asked or not _leans_on_the_last(question):
        return (question,)
    return (question, f"{asked[-1]} {question}")


def _leans_on_the_last(question: str) -> bool:
    found = tokens(question)
    words = [token.surface.lower() for token in found]
    content = [token for token in found if not token.is_stopword]
    points_back = any(word in _POINTERS for word in words) or starts_with_anaphor(question)
    trails = bool(words) and words[0] in _CONNECTORS and len(content) <= _SHORT_QUESTION_TERMS
    return points_back or trails or len(content) <= 1
