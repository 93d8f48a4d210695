"""The extractive answer: what a run says when no language model is configured, and when one fails.

It never invents: every sentence is copied from a passage and cites it, and weak evidence is refused.
"""

import asyncio
import math
import re
from collections.abc import Collection, Sequence
from dataclasses import replace

from kit.language.cues import compares, is_year
from kit.language.questions import AnswerKind, Question, read_question
from kit.language.sentences import UnitKind
from kit.language.terms import tokens
from services.orchestrator.answering.extractive.answerability import probability
from services.orchestrator.answering.extractive.denials import tells_another_number
from services.orchestrator.answering.extractive.features import (
    Candidate,
    WeighedCandidates,
    gather,
    has_column_and_cell,
)
from services.orchestrator.answering.extractive.models import AnswerSentence, ExtractiveAnswer, Passage
from services.orchestrator.answering.extractive.rows import is_row, is_shortened, is_whole, names_a_column, shortened
from services.orchestrator.answering.extractive.scored import Scored
from services.orchestrator.answering.extractive.scoring import prefilter, rank
from services.orchestrator.answering.extractive.selection import select
from services.orchestrator.answering.extractive.settings import ExtractiveSettings
from services.orchestrator.answering.extractive.signals import lacks_identifier, read_signals
from services.orchestrator.answering.extractive.superseded import (
    judged_with_its_antecedent,
    only_names,
    speaks_of_a_namesake,
    speaks_of_others_only,
    without_superseded,
)
from services.orchestrator.answering.extractive.two_steps import find_bridge, read_two_steps
from services.orchestrator.ports import SentenceScorer

EMPTY_QUESTION = "EMPTY_QUESTION"
NO_EVIDENCE = "NO_EVIDENCE"
WEAK_EVIDENCE = "WEAK_EVIDENCE"
MOST_WITHOUT_IDENTIFIER = 0.2
"""The most that is believed of evidence that lacks a number or an identifier of the question: "Apollo 13" is not "Apollo 11". A
choice: the labelled data has few such questions."""
LEAST_OF_FITTING_ROW = 0.6
"""A row with a column and a cell of the question answers it at least this often: 0.93 of 217 questions made from rows of tables had
their value in the answer."""
MOST_OF_THE_UNSAID = 0.45
"""The most that is believed where the question does not say enough: "When did he join?" of whom, "Where is Ghana?" which of the
sixty fields of a row. A choice: unlikely, and shown."""
LEAST_OF_ANOTHER_NUMBER = 0.5
"""What is about all that a yes or no question asks, and has another number, denies it. A choice: shown, and called uncertain."""
MOST_OF_OTHER_ROW = 0.2
"""A row that lacks one of them, and a word of the question besides, is about something else."""
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
    """Answer `question` from `passages` alone, in two steps where it takes two. Raises nothing but cancellation: a failing scorer
    costs quality, not the answer.

    The lexical part takes about 0.1 ms a sentence on the event loop; the scorer is called once a step, with a deadline.
    """
    steps = read_two_steps(question)
    bridge = find_bridge(steps, passages) if steps else None
    if steps and bridge:
        second = await _in_one_step(steps.second(bridge.name), passages, scorer, settings)
        if second.answerable:
            return _behind(bridge.candidate, second)
    return await _in_one_step(question, passages, scorer, settings)


def _behind(bridge: Candidate, second: ExtractiveAnswer) -> ExtractiveAnswer:
    """The answer of the second step behind the unit that named whom it is about."""
    number, unit = bridge.passage.number, bridge.unit
    if any((each.number, each.start) == (number, unit.start) for each in second.sentences):
        return second
    first = AnswerSentence(_shown(unit.text, unit.kind), number, unit.start, unit.end, bridge.coverage)
    return replace(second, sentences=(first, *second.sentences))


async def _in_one_step(
    question: str, passages: Sequence[Passage], scorer: SentenceScorer | None, settings: ExtractiveSettings
) -> ExtractiveAnswer:
    read = read_question(question)
    if not read.terms:
        return _refusal(EMPTY_QUESTION, 0.0)
    evidence = gather(read, passages)
    candidates = prefilter(evidence, settings)
    if not candidates:
        return _refusal(NO_EVIDENCE, 0.0)
    semantics, degraded_reason = await score_candidates(read, candidates, scorer, settings)
    everything = rank(candidates, semantics, settings)
    ranked = without_superseded(read, everything)
    sure = _sure_of(read, evidence, ranked, everything)
    total = (settings.without_scorer if semantics is None else settings.with_scorer).total
    least = settings.min_confidence_by_words if semantics is None else settings.min_confidence
    sentences = [each for each in ranked if not _is_row(each) and each.value >= ranked[0].value - settings.broad_gap]
    if sure < least and _is_row(ranked[0]) and sentences:
        # Rows repeat the words of many questions: one that answers nothing hides no sentence that is as near and does.
        surer = _sure_of(read, evidence, sentences, [each for each in everything if not _is_row(each)])
        if surer >= least:
            sure, ranked = surer, sentences
    if sure < least:
        return ExtractiveAnswer(
            (), False, sure, WEAK_EVIDENCE, _closest(everything, total, read.stems), degraded_reason
        )
    chosen = select(read, evidence, ranked, settings)
    return ExtractiveAnswer(
        tuple(_sentence(s, total, read.stems) for s in chosen), True, sure, degraded_reason=degraded_reason
    )


def _sure_of(
    read: Question, evidence: WeighedCandidates, ranked: Sequence[Scored], everything: Sequence[Scored]
) -> float:
    """Of the best of `ranked`. It depends on all that was found: what is superseded is near, too."""
    best = judged_with_its_antecedent(evidence, ranked[0], everything)
    return _confidence(read, evidence, [best, *(each for each in everything if each is not ranked[0])])


def _is_row(scored: Scored) -> bool:
    return scored.candidate.unit.kind is UnitKind.ROW


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
    context = unit.lead_in or (unit.heading if len(unit.text) < 80 else "") or candidate.antecedent
    text = shortened(unit.text, stems) if unit.kind is UnitKind.ROW else unit.text
    return f"{context} {text}" if context else text


def _confidence(read: Question, evidence: WeighedCandidates, ranked: Sequence[Scored]) -> float:
    """That the best unit answers. Words to look up ask nothing: they are answered by as much of them as is in its section."""
    if read.kind is AnswerKind.KEYWORDS:
        return round(evidence.share(ranked[0].candidate.nearby), 3)
    sure = probability(read_signals(read, evidence, ranked))
    best = ranked[0].candidate
    if best.unit.kind is UnitKind.ROW and is_row(best.unit.text):
        if _lacks_year(read, best) or _compares_nowhere(read, evidence, best):
            sure = min(sure, MOST_OF_OTHER_ROW)
        elif has_column_and_cell(read, best):
            sure = max(sure, LEAST_OF_FITTING_ROW)
        elif read.stems - best.nearby and not is_whole(best.unit.text):
            sure = min(sure, MOST_OF_OTHER_ROW)
        elif is_shortened(best.unit.text) and not names_a_column(best.unit.text, read.stems):
            sure = min(sure, MOST_OF_THE_UNSAID)
    denies = tells_another_number(read, best)
    if denies:
        sure = max(sure, LEAST_OF_ANOTHER_NUMBER)
    is_other = (
        (lacks_identifier(read, evidence) and not denies)
        or speaks_of_a_namesake(read, best)
        or speaks_of_others_only(read, best)
        or only_names(read, best)
    )
    return round(min(sure, MOST_WITHOUT_IDENTIFIER) if is_other else sure, 3)


def _lacks_year(read: Question, row: Candidate) -> bool:
    """Whether the question names a year that the row does not have, which has others."""
    years = {term.stem for term in read.terms if is_year(term.surface)}
    return bool(years - row.about) and any(is_year(token.surface) for token in tokens(row.unit.text))


def _compares_nowhere(read: Question, evidence: WeighedCandidates, row: Candidate) -> bool:
    """Whether the question asks for the most or the least of several, which no single row tells that does not say so. "The minimum
    age for diving" is one of the only row about diving."""
    if not compares(read.text) or compares(f"{row.caption} {row.unit.text}"):
        return False
    rows = [each for each in evidence.candidates if each.unit.kind is UnitKind.ROW and each.covered >= row.covered]
    is_of_one = has_column_and_cell(read, row) and len(rows) == 1
    return not is_of_one or compares(read.text, but_limits=True)


def _overlaps(candidate: Candidate, quote: tuple[int, int, int]) -> bool:
    number, start, end = quote
    if candidate.passage.number != number:
        return False
    return start == end or (candidate.unit.start < end and start < candidate.unit.end)


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


def _refusal(reason: str, sure: float) -> ExtractiveAnswer:
    return ExtractiveAnswer((), False, sure, reason)
