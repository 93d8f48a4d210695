"""Answering without a model: sentences of the evidence are measured, ranked, judged by fitted trees, and quoted or refused.

The room is frozen: it gets no rule that changes their order or overrides the trees.
"""

from services.orchestrator.without_model.answering import (
    CLOSEST_PASSAGES,
    EMPTY_QUESTION,
    NO_EVIDENCE,
    WEAK_EVIDENCE,
    answer,
    render,
)
from services.orchestrator.without_model.models import AnswerSentence, ExtractiveAnswer, Passage
from services.orchestrator.without_model.settings import ExtractiveSettings

__all__ = [
    "CLOSEST_PASSAGES",
    "EMPTY_QUESTION",
    "NO_EVIDENCE",
    "WEAK_EVIDENCE",
    "AnswerSentence",
    "ExtractiveAnswer",
    "ExtractiveSettings",
    "Passage",
    "answer",
    "render",
]
