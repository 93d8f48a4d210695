"""The agent that makes quizzes. What a model writes is checked against the passages; what is missing then, rules make."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

from kit.errors import GroundworkError
from services.orchestrator.agent import Agent, Searching
from services.orchestrator.answering.draft import EXTRACTIVE, MODEL
from services.orchestrator.log.events import Answer, Evidence, Thinking
from services.orchestrator.log.screen import Screen
from services.orchestrator.quizzes.checking import checked_questions, schema_of
from services.orchestrator.quizzes.making import make_questions
from services.orchestrator.quizzes.questions import QuizQuestion
from services.orchestrator.quizzes.showing import QUIZ, SCHEMA, questions_in, quiz_artefact, quiz_text
from services.orchestrator.quizzes.wishes import Wishes, read_wishes
from services.orchestrator.work import Work

_AT_ONCE = 5
"""Questions that a model writes in one object, so that it is never cut off."""
_TOKENS_OF_A_QUESTION = 220
_PASSAGES_AT_ONCE = 12
_TOP_K = 40
_NOTHING = (
    "No question can be made: the passages hold too few statements with a number, a year, a name or a term to ask for."
)
_PROMPT = """You write a quiz. Ask {count} {difficulty} questions{topic}, each about another statement of the sources.
- kind multiple_choice: four short options of which exactly one is right; `answer` repeats the right one. Take wrong options from
  the sources where you can; no source may say that they are right.
- kind true_false: `question` is a statement, `answer` is "true" or "false", `options` is empty.
- kind short_answer: `answer` has one to four words, `options` is empty.
- `quote`: the sentence of the source that proves the answer, copied exactly; `source`: its number. `explanation`: one sentence.
- Do not ask again: {earlier}"""


@dataclass(frozen=True)
class _Written:
    """Questions that one step has brought."""

    questions: Sequence[QuizQuestion]


async def work(work: Work) -> Answer | None:
    """A quiz as the message wants it; None where the passages allow none."""
    wishes = read_wishes(work.message)
    wishes = replace(wishes, topic=_topic(work, wishes))
    found = await work.passages(wishes.topic, has_topic=bool(wishes.topic))
    if not found.evidence:
        return None
    earlier = [each for turn in work.history if turn.role == "assistant" for each in questions_in(turn.text)]
    questions = await _by_model(work, wishes, found.evidence, earlier) if work.has_model else []
    missing = wishes.count - len(questions)
    method = MODEL if questions else EXTRACTIVE
    if missing:
        asked = [*earlier, *(each.text for each in questions), *(each.quote for each in questions)]
        questions += await _by_rules(work, wishes, missing, found.evidence, asked)
    if not questions:
        await Screen(work.run.journal).settle(_NOTHING)
        return Answer(_NOTHING, (), None, EXTRACTIVE)
    if len(questions) < wishes.count:
        await work.tell(f"The passages allow {len(questions)} of {wishes.count} questions.")
    text = quiz_text(questions)
    await work.publish(quiz_artefact(questions, found.evidence, _title(wishes)))
    await Screen(work.run.journal).settle(text)
    return Answer(text, (), None, method)


def _topic(work: Work, wishes: Wishes) -> str:
    """What the quiz is about; of "one more" what the last request was about."""
    if wishes.topic or not wishes.is_more:
        return wishes.topic
    asked = (read_wishes(turn.text).topic for turn in reversed(work.history) if turn.role == "user")
    return next(filter(None, asked), "")


def _title(wishes: Wishes) -> str:
    return f"Quiz: {wishes.topic}" if wishes.topic else "Quiz"


async def _by_model(
    work: Work, wishes: Wishes, evidence: Sequence[Evidence], earlier: Sequence[str]
) -> list[QuizQuestion]:
    """Questions of the model that hold. Where it fails, those that it has written until then."""
    questions: list[QuizQuestion] = []
    rounds = -(-wishes.count // _AT_ONCE)
    for number in range(rounds):
        count = min(_AT_ONCE, wishes.count - number * _AT_ONCE)
        passages = _slice(evidence, number, rounds)
        asked = [*earlier, *(each.text for each in questions)]
        try:
            written = await work.run.once(
                f"model{number + 1}",
                partial(_written, work, wishes, count, passages, asked),
                _Written,
                show=lambda found: Thinking("work", f"The model wrote {len(found.questions)} questions that hold."),
            )
        except GroundworkError as error:
            await work.degrade("llm", error, "Making the questions without the model.")
            break
        questions += written.questions
    return questions


def _slice(evidence: Sequence[Evidence], number: int, rounds: int) -> Sequence[Evidence]:
    """Other passages for each round, as far as there are enough."""
    size = max(_PASSAGES_AT_ONCE, -(-len(evidence) // rounds))
    start = min(number * size, max(0, len(evidence) - size))
    return evidence[start : start + size][:_PASSAGES_AT_ONCE]


async def _written(
    work: Work, wishes: Wishes, count: int, evidence: Sequence[Evidence], earlier: Sequence[str]
) -> _Written:
    prompt = _PROMPT.format(
        count=count,
        difficulty=wishes.difficulty.value,
        topic=f" about {wishes.topic}" if wishes.topic else "",
        earlier="; ".join(earlier[-20:]) or "nothing yet",
    )
    filled = await work.fill_in(
        schema_of(count, wishes.kinds), evidence, prompt=prompt, max_tokens=count * _TOKENS_OF_A_QUESTION
    )
    return _Written(checked_questions(filled, evidence, wishes.difficulty, earlier))


async def _by_rules(
    work: Work, wishes: Wishes, count: int, evidence: Sequence[Evidence], earlier: Sequence[str]
) -> list[QuizQuestion]:
    wanted = Wishes(count, wishes.kinds, wishes.difficulty)

    async def make() -> _Written:
        return _Written(await asyncio.to_thread(make_questions, evidence, wanted, earlier))

    made = await work.run.once(
        "rules",
        make,
        _Written,
        show=lambda found: Thinking("work", f"{len(found.questions)} questions made by rules."),
        is_last_resort=True,
    )
    return list(made.questions)


AGENT = Agent(
    "Makes a quiz about documents: multiple choice, true or false, short answers; test questions, one more, another quiz.",
    searching=Searching(top_k=_TOP_K),
    called_for_by=(
        r"\b(quiz(zes)?|test me|quiz me|flash ?cards?|multiple[- ]choice|true[- ](or[- ])?false|exam questions?|test questions?)\b",
        r"\b(practice|revision|trivia|comprehension) questions?\b|\bquestions? (to|that) (test|check)\b",
        r"\b(ask me|test my|check my (knowledge|understanding))\b",
        r"\b(викторин\w+|тест (по|на|из)|проверь мо\w+|задай мне|экзаменуй\w*)\b|\b(חידון|בחן אותי|שאלון|מבחן על)\b",
        r"\b(interrogazione|cuestionario|questionnaire à choix|prüfungsfragen|quizfragen|frag mich ab)\b",
    ),
    work=work,
    artefacts={QUIZ: SCHEMA},
)
