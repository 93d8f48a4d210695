"""Whether a question can be answered as it stands: "When did he die?" with nothing before it says of nobody whom it means. Such a
question is asked back once before a thorough search."""

from collections.abc import Sequence

from kit.language.anaphora import content_words, goes_on, has_pronoun
from services.orchestrator.models import Turn
from services.orchestrator.research.phrases import phrases_for
from services.orchestrator.research.question.parts import find_subjects

_MOST_WORDS = 2
"""A question with more words of its own says enough to be searched for, whatever its pronoun means."""


def clarify_by_rules(question: str, history: Sequence[Turn]) -> str:
    """What to ask the user; empty where the question says what it is about. One of a conversation leans on what was said before."""
    if history or find_subjects(question):
        return ""
    found = content_words(question)
    is_open = not found or goes_on(question) or (has_pronoun(question) and len(found) <= _MOST_WORDS)
    return phrases_for(question).what_is_meant.format(question=question.strip()) if is_open else ""


def may_be_unclear(question: str, history: Sequence[Turn]) -> bool:
    """Whether a model is asked too: what names something, or goes on from a conversation, is searched for as it stands."""
    return not history and not find_subjects(question)
