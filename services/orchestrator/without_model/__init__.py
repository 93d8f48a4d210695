"""Answering without a model: sentences of the evidence are measured, ranked by fitted weights, judged, and quoted or refused.

Fitted trees judge how likely the best one answers; for keywords it is the share of them that its section holds. The room is frozen:
it gets no further rule that changes the order or overrides the trees.
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
