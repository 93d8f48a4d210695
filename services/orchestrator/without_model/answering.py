"""The extractive answer: what a run says when no language model is configured, and when one fails.

It never invents: every sentence is copied from a passage and cites it, and weak evidence is refused.
"""

import asyncio
import math
import re
from collections.abc import Collection, Sequence

from kit.language.questions import AnswerKind, Question, read_question
from kit.language.sentences import UnitKind
from kit.reading.rows import shortened
from services.orchestrator.ports import SentenceScorer
from services.orchestrator.without_model.answerability import probability
from services.orchestrator.without_model.features import Candidate, Scored, WeighedCandidates, gather
from services.orchestrator.without_model.models import AnswerSentence, ExtractiveAnswer, Passage
from services.orchestrator.without_model.scoring import prefilter, rank
from services.orchestrator.without_model.selection import select
from services.orchestrator.without_model.settings import ExtractiveSettings
from services.orchestrator.without_model.signals import read_signals

EMPTY_QUESTION = "EMPTY_QUESTION"
NO_EVIDENCE = "NO_EVIDENCE"
WEAK_EVIDENCE = "WEAK_EVIDENCE"
CLOSEST_PASSAGES = 3
"""Passages that a refusal shows."""
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
    """Answers `question` from `passages` alone. Raises nothing but cancellation: a failing scorer costs quality, not the answer.

    The lexical part takes about 0.1 ms a sentence on the event loop; the scorer is called once, with a deadline.
    """
    read = read_question(question)
    if not read.terms:
        return ExtractiveAnswer((), False, 0.0, EMPTY_QUESTION)
    evidence = gather(read, passages)
    candidates = prefilter(evidence, settings)
    if not candidates:
        return ExtractiveAnswer((), False, 0.0, NO_EVIDENCE)
    semantics, degraded_reason = await score_candidates(read, candidates, scorer, settings)
    ranked = rank(candidates, semantics, settings)
    sure = _confidence(read, evidence, ranked)
    total = (settings.without_scorer if semantics is None else settings.with_scorer).total
    if sure < (settings.min_confidence_by_words if semantics is None else settings.min_confidence):
        return ExtractiveAnswer((), False, sure, WEAK_EVIDENCE, _closest(ranked, total, read.stems), degraded_reason)
    chosen = select(read, evidence, ranked, settings)
    sentences = tuple(_sentence(each, total, read.stems) for each in chosen)
    return ExtractiveAnswer(sentences, True, sure, degraded_reason=degraded_reason)


def render(extractive: ExtractiveAnswer) -> list[str]:
    """Pieces of the answer's text, one a sentence, each with a mark of its own: 1, 2, 3. Joined they are the whole answer."""
    pieces: list[str] = []
    for index, sentence in enumerate(extractive.sentences):
        breaks = "\n" in sentence.text or (index > 0 and "\n" in extractive.sentences[index - 1].text)
        separator = "" if index == 0 else "\n\n" if breaks else " "
        pieces.append(f"{separator}{sentence.text.rstrip()} [{index + 1}]")
    return pieces


async def score_candidates(
    read: Question, candidates: Sequence[Candidate], scorer: SentenceScorer | None, settings: ExtractiveSettings
) -> tuple[list[float] | None, str]:
    """Similarities in the order of `candidates`, or None and why there are none."""
    if scorer is None:
        return None, "no sentence scorer is configured"
    texts = [_scored_text(candidate, read.stems) for candidate in candidates]
    try:
        async with asyncio.timeout(settings.scorer_timeout_s):
            scores = [float(score) for score in await scorer.score(read.text, texts)]
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


def _scored_text(candidate: Candidate, stems: Collection[str]) -> str:
    """What the scorer reads: the unit with the title or lead-in that it would not be understood without."""
    unit = candidate.unit
    context = unit.lead_in or (unit.heading if len(unit.text) < 80 else "")
    text = shortened(unit.text, stems) if unit.kind is UnitKind.ROW else unit.text
    return f"{context} {text}" if context else text


def _confidence(read: Question, evidence: WeighedCandidates, ranked: Sequence[Scored]) -> float:
    """The probability that the best unit answers, as the trees say it. Words to look up are answered by as
    much of them as is in the unit's section."""
    if read.kind is AnswerKind.KEYWORDS:
        return round(evidence.share(ranked[0].candidate.nearby), 3)
    return round(probability(read_signals(read, evidence, ranked)), 3)


def _closest(ranked: Sequence[Scored], total: float, stems: Collection[str]) -> tuple[AnswerSentence, ...]:
    """The best unit of each passage, of the first few passages."""
    best: dict[int, Scored] = {}
    for scored in ranked:
        best.setdefault(scored.candidate.passage.number, scored)
    return tuple(_sentence(scored, total, stems) for scored in list(best.values())[:CLOSEST_PASSAGES])


def _sentence(scored: Scored, total: float, stems: Collection[str]) -> AnswerSentence:
    candidate = scored.candidate
    unit = candidate.unit
    text = _captioned(shortened(unit.text, stems), candidate.caption) if unit.kind is UnitKind.ROW else unit.text
    shown = min(1.0, max(0.0, scored.value / total))
    return AnswerSentence(_shown(text, unit.kind), candidate.passage.number, unit.start, unit.end, shown)


def _captioned(row: str, caption: str) -> str:
    """A row under the name of its sheet or its caption, which says what it is about."""
    return f"{caption}: {row}" if caption and caption not in row else row


def _shown(text: str, kind: UnitKind) -> str:
    # Marks of the source would read as ours. In code they are indexes: those stay, with an invisible character inside.
    text = _INDEX.sub(f"[{_WORD_JOINER}", text) if _CODE.search(text) else _FOOTNOTE_MARK.sub("", text)
    if kind not in _LINES:
        return " ".join(text.split())
    lines = [" ".join(line.split()) for line in text.splitlines()]
    if kind is UnitKind.ITEM:
        return " ".join([_LIST_MARK.sub("", lines[0]), *lines[1:]])
    return "\n".join(line for line in lines if line)
