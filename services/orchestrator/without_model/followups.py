"""What a question means that leans on the one before it ("And in 2020?", "Who founded it?"): the names and words that it leaves out
come from the last question that stands alone."""

from collections.abc import Sequence

from kit.language.anaphora import content_words, goes_on, leans_on_the_last
from kit.language.question_language import language_by_words
from services.orchestrator.models import Turn

_GERMAN = "de"
"""Its nouns all look like names."""


def search_queries(question: str, history: Sequence[Turn]) -> tuple[str, ...]:
    """The question itself and, when it leans on the last one, both together."""
    anchor = _anchor(question, _questions(history))
    return (question, f"{anchor} {question}") if anchor else (question,)


def stand_alone(question: str, history: Sequence[Turn]) -> str:
    """The question with what it leaves out, in brackets; a question that stands alone is itself."""
    return _completed(question, _questions(history))


def _questions(history: Sequence[Turn]) -> list[str]:
    return [turn.text for turn in history if turn.role == "user"]


def _completed(question: str, asked: Sequence[str]) -> str:
    words = _left_out(question, _anchor(question, asked))
    return f"{question} ({' '.join(dict.fromkeys(words))})" if words else question


def _left_out(question: str, anchor: str) -> list[str]:
    """The names of the question before, or all its words without one. What "And in 2020?" asks again keeps all words but numbers,
    "And the Reds?" all but names."""
    found = content_words(anchor)
    own = [token for token in content_words(question) if token.is_exact]
    if goes_on(question) and own and language_by_words(question.lower()) != _GERMAN:
        is_replaced = [token.is_number if own[-1].is_number else token.is_name for token in found]
        return [token.surface for token, replaced in zip(found, is_replaced, strict=True) if not replaced]
    return [token.surface for token in found if token.is_exact] or [token.surface for token in found]


def _anchor(question: str, asked: Sequence[str]) -> str:
    """The last question that stands alone, or that asked it again of something else. Empty where this one stands alone."""
    if not asked or not leans_on_the_last(question):
        return ""
    asks_again = goes_on(question)
    for place in reversed(range(len(asked))):
        if not leans_on_the_last(asked[place]):
            return asked[place]
        if goes_on(asked[place]) is not asks_again:
            return _completed(asked[place], asked[:place])
    return asked[0]
