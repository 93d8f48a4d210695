"""Questions without a model: statements of the passages with a number, a name or a term left out, and wrong values in its place."""

import random
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from itertools import zip_longest

from services.orchestrator.log.events import Evidence
from services.orchestrator.quizzes.distractors import Sentences, find_distractors, stems_of
from services.orchestrator.quizzes.facts import Fact, FactKind, find_facts
from services.orchestrator.quizzes.questions import FALSE, TRUE, Difficulty, QuestionKind, QuizQuestion
from services.orchestrator.quizzes.wishes import Wishes

WRONG_OPTIONS = {Difficulty.EASY: 2, Difficulty.MEDIUM: 3, Difficulty.HARD: 3}
"""Of a multiple choice."""
LEAST_WRONG_OPTIONS = 2
MOST_PASSAGES = 200
_MOST_SHORT_WORDS = 4
"""Words of an answer that somebody is asked to write."""
_ORDER = {FactKind.TERM: 0, FactKind.YEAR: 1, FactKind.NUMBER: 2, FactKind.NAME: 3, FactKind.CELL: 4}
_MOST_OF_A_COLUMN = 0.34
"""Share of the questions that ask for the same column of a table."""


def make_questions(evidence: Sequence[Evidence], wishes: Wishes, earlier: Collection[str] = ()) -> list[QuizQuestion]:
    """As many questions as were asked for and the passages allow, spread over the passages; none with a proof of `earlier`.

    `earlier` are quotes and questions of the quizzes before.
    """
    evidence = _sample(evidence)
    facts = find_facts(evidence)
    sentences = Sentences(evidence)
    asked = {key_of(each) for each in earlier}
    columns: Counter[str] = Counter()
    questions: list[QuizQuestion] = []
    for fact in _spread(facts):
        if len(questions) == wishes.count:
            break
        if {key_of(fact.quote), key_of(fact.cloze)} & asked or columns[fact.column] > _MOST_OF_A_COLUMN * wishes.count:
            continue
        kind = wishes.kinds[len(questions) % len(wishes.kinds)]
        made = _question(fact, kind, facts, sentences, wishes.difficulty, is_true=len(questions) % 4 < 2)
        if made is None:
            continue
        questions.append(made)
        asked |= {key_of(fact.quote), key_of(fact.statement)}
        columns.update([fact.column] if fact.column else [])
    return questions


def _sample(evidence: Sequence[Evidence]) -> Sequence[Evidence]:
    """At most so many passages that all of them can be compared, spread over the whole."""
    step = -(-len(evidence) // MOST_PASSAGES) if evidence else 1
    return evidence[::step]


def key_of(text: str) -> str:
    """What two wordings of one statement or question have in common: their content words."""
    return " ".join(sorted(stems_of(text)))


def _spread(facts: Sequence[Fact]) -> Iterator[Fact]:
    """The best facts of each passage first, then the second best of each."""
    passages: dict[int, list[Fact]] = {}
    for fact in facts:
        passages.setdefault(fact.source, []).append(fact)
    ranked = [sorted(each, key=lambda fact: (not fact.is_clear, _ORDER[fact.kind])) for each in passages.values()]
    turns = [fact for turn in zip_longest(*ranked) for fact in turn if fact is not None]
    yield from sorted(turns, key=lambda fact: not fact.is_clear)


def _question(
    fact: Fact,
    kind: QuestionKind,
    facts: Sequence[Fact],
    sentences: Sentences,
    difficulty: Difficulty,
    *,
    is_true: bool,
) -> QuizQuestion | None:
    """A question for the fact; None where there are no wrong options for it, or its answer is too long to write."""
    if kind is QuestionKind.SHORT_ANSWER:
        if len(fact.answer.split()) > _MOST_SHORT_WORDS:
            return None
        return QuizQuestion(kind, fact.cloze, fact.answer, fact.source, fact.quote, difficulty=difficulty)
    wrong = find_distractors(fact, facts, sentences, hard=difficulty is Difficulty.HARD)
    if kind is QuestionKind.TRUE_FALSE:
        if not (is_true or wrong):
            return None
        text, answer = (fact.statement, TRUE) if is_true else (fact.with_answer(wrong[0]), FALSE)
        return QuizQuestion(kind, text, answer, fact.source, fact.quote, difficulty=difficulty)
    if len(wrong) < LEAST_WRONG_OPTIONS:
        return None
    options = shuffled([fact.answer, *wrong[: WRONG_OPTIONS[difficulty]]], fact.statement)
    return QuizQuestion(kind, fact.cloze, fact.answer, fact.source, fact.quote, options, difficulty=difficulty)


def shuffled(options: Sequence[str], seed: str) -> tuple[str, ...]:
    """The options in an order that depends on the question alone, so that a run that is continued shows the same. Numbers are not
    sorted either, since the right one would be found in the middle."""
    order = sorted(options)
    random.Random(seed).shuffle(order)  # noqa: S311 - an order to show, no secret
    return tuple(order)
