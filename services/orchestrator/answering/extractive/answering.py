"""The extractive answer: what a run says when no language model is configured, and when one fails.

It never invents: every sentence is copied from a passage and cites it, and weak evidence is refused.
"""

import asyncio
import math
import re
from collections.abc import Sequence

from kit.language.questions import read_question
from kit.language.sentences import UnitKind
from services.orchestrator.answering.extractive.features import Candidate, gather
from services.orchestrator.answering.extractive.models import AnswerSentence, ExtractiveAnswer, Passage, SentenceScorer
from services.orchestrator.answering.extractive.scoring import Scored, confidence, prefilter, rank, read_signals
from services.orchestrator.answering.extractive.selection import select
from services.orchestrator.answering.extractive.settings import ExtractiveSettings

EMPTY_QUESTION = "EMPTY_QUESTION"
NO_EVIDENCE = "NO_EVIDENCE"
WEAK_EVIDENCE = "WEAK_EVIDENCE"
_LINES = frozenset({UnitKind.LIST, UnitKind.ROW, UnitKind.ITEM})
# A footnote mark of the source would read as a citation of ours; an index in code must stay.
_FOOTNOTE_MARK = re.compile(r"[ \t]*(?:\[\d{1,3}\])+")
_INDEX = re.compile(r"\[(?=\d{1,3}\])")
_WORD_JOINER = "\u2060"
_CODE = re.compile(r"[`=_{}]")
_LIST_MARK = re.compile(r"^(?:[-*•‣◦–—+·]|#{1,6})\s+")


async def answer(
    question: str, passages: Sequence[Passage], scorer: SentenceScorer | None, settings: ExtractiveSettings
) -> ExtractiveAnswer:
    """Answer `question` from `passages` alone. Raises nothing but cancellation: a failing scorer costs quality, not the answer.

    The lexical part takes about 0.1 ms a sentence on the event loop; the scorer is called once, with a deadline.
    """
    read = read_question(question)
    if not read.terms:
        return _refusal(EMPTY_QUESTION, 0.0)
    evidence = gather(read, passages)
    candidates = prefilter(evidence, settings)
    if not candidates:
        return _refusal(NO_EVIDENCE, 0.0)
    semantics, degraded_reason = await _semantics(question, candidates, scorer, settings)
    ranked = rank(candidates, semantics, settings)
    sure = confidence(read_signals(read, evidence, ranked[0]), settings)
    if sure < settings.min_confidence:
        return _refusal(WEAK_EVIDENCE, sure, degraded_reason)
    total = (settings.without_scorer if semantics is None else settings.with_scorer).total
    chosen = select(read, evidence, ranked, settings)
    return ExtractiveAnswer(tuple(_sentence(s, total) for s in chosen), True, sure, degraded_reason=degraded_reason)


def render(extractive: ExtractiveAnswer) -> list[str]:
    """Pieces of the answer's text, one a sentence, each with its citation mark; joined they are the whole answer."""
    pieces: list[str] = []
    for index, sentence in enumerate(extractive.sentences):
        breaks = "\n" in sentence.text or (index > 0 and "\n" in extractive.sentences[index - 1].text)
        separator = "" if index == 0 else "\n\n" if breaks else " "
        pieces.append(f"{separator}{sentence.text} [{sentence.number}]")
    return pieces


async def _semantics(
    question: str, candidates: Sequence[Candidate], scorer: SentenceScorer | None, settings: ExtractiveSettings
) -> tuple[list[float] | None, str]:
    """Similarities in the order of `candidates`, or None and why there are none."""
    if scorer is None:
        return None, "no sentence scorer is configured"
    texts = [_scored_text(candidate) for candidate in candidates]
    try:
        async with asyncio.timeout(settings.scorer_timeout_s):
            scores = [float(score) for score in await scorer.score(question, texts)]
    except TimeoutError:
        return None, f"the sentence scorer took longer than {settings.scorer_timeout_s} s"
    except Exception as error:  # the port may raise anything, and the fallback of everything else must not fail
        return None, f"the sentence scorer failed: {type(error).__name__}"
    if len(scores) != len(texts) or not all(math.isfinite(score) for score in scores):
        return (
            None,
            f"the sentence scorer gave {len(scores)} scores for {len(texts)} sentences, or not all were numbers",
        )
    return scores, ""


def _scored_text(candidate: Candidate) -> str:
    """What the scorer reads: the unit with the title or lead-in that it would not be understood without."""
    unit = candidate.unit
    context = unit.lead_in or (unit.heading if len(unit.text) < 80 else "") or candidate.antecedent
    return f"{context} {unit.text}" if context else unit.text


def _sentence(scored: Scored, total: float) -> AnswerSentence:
    candidate = scored.candidate
    unit = candidate.unit
    shown = min(1.0, max(0.0, scored.value / total))
    return AnswerSentence(_shown(unit.text, unit.kind), candidate.passage.number, unit.start, unit.end, shown)


def _shown(text: str, kind: UnitKind) -> str:
    # Marks of the source would read as ours. In code they are indexes: those stay, with an invisible character inside.
    text = _INDEX.sub(f"[{_WORD_JOINER}", text) if _CODE.search(text) else _FOOTNOTE_MARK.sub("", text)
    if kind not in _LINES:
        return " ".join(text.split())
    lines = [" ".join(line.split()) for line in text.splitlines()]
    if kind is UnitKind.ITEM:
        return " ".join([_LIST_MARK.sub("", lines[0]), *lines[1:]])
    return "\n".join(line for line in lines if line)


def _refusal(reason: str, sure: float, degraded_reason: str = "") -> ExtractiveAnswer:
    return ExtractiveAnswer((), False, sure, reason, degraded_reason)
