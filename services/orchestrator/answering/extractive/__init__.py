"""Extractive answers: the sentences of the evidence that answer the question best, each with its citation."""

from services.orchestrator.answering.extractive.answering import (
    CLOSEST_PASSAGES,
    EMPTY_QUESTION,
    NO_EVIDENCE,
    WEAK_EVIDENCE,
    answer,
    render,
)
from services.orchestrator.answering.extractive.models import AnswerSentence, ExtractiveAnswer, Passage
from services.orchestrator.answering.extractive.settings import ExtractiveSettings
from services.orchestrator.answering.extractive.two_steps import find_bridge, read_two_steps

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
    "find_bridge",
    "read_two_steps",
    "render",
]
