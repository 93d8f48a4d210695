"""Extractive answers: the sentences of the evidence that answer the question best, each with its citation."""

from services.orchestrator.extractive.answering import EMPTY_QUESTION, NO_EVIDENCE, WEAK_EVIDENCE, answer, render
from services.orchestrator.extractive.models import AnswerSentence, ExtractiveAnswer, Passage, SentenceScorer
from services.orchestrator.extractive.settings import ExtractiveSettings

__all__ = [
    "EMPTY_QUESTION",
    "NO_EVIDENCE",
    "WEAK_EVIDENCE",
    "AnswerSentence",
    "ExtractiveAnswer",
    "ExtractiveSettings",
    "Passage",
    "SentenceScorer",
    "answer",
    "render",
]
