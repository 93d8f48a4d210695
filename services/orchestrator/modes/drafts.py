"""Answers from an evidence set, as far as the run's budgets let a model write them."""

from collections.abc import Sequence
from dataclasses import replace

from services.orchestrator.agent import Agent
from services.orchestrator.answering.agent_drafts import write_checked_draft, write_own_draft
from services.orchestrator.answering.draft import Draft
from services.orchestrator.answering.drafting import Drafter, Question, degraded
from services.orchestrator.answering.quotes import number_quotes
from services.orchestrator.errors import BudgetSpent
from services.orchestrator.log.events import Answer, Evidence, Payload, Retrieval, Thinking
from services.orchestrator.models import Turn
from services.orchestrator.steps.run import Run
from services.orchestrator.verification.actions import claimed_action
from services.orchestrator.verification.checking import AnswerCheck
from services.orchestrator.verification.claims import split_claims
from services.orchestrator.without_model.followups import stand_alone

PLAIN = Agent("Answers as it is done without an agent.")


async def write_draft(
    run: Run,
    drafter: Drafter,
    question: str,
    history: Sequence[Turn],
    retrieval: Retrieval,
    check: AnswerCheck,
    agent: Agent = PLAIN,
    *,
    before: str = "",
) -> Draft:
    """Streams the answer of the agent to the question. A run that may not use a model any more is answered without one, and an
    event says so."""
    affordable = await _affordable(run, drafter)
    asked = Question(
        question,
        history,
        retrieval.evidence,
        answer_tokens(run),
        retrieval.degraded,
        prompt=agent.prompt,
        stands_alone=stand_alone(question, history),
        check=check,
        before=before,
    )
    if agent.output is not None or (agent.without_model is not None and not affordable.model_name):
        return await write_own_draft(run, affordable, agent, asked)
    if agent.checked_first:
        return await write_checked_draft(run, affordable, agent, asked)
    return await affordable.write(asked, run.journal)


def answer_tokens(run: Run) -> int:
    """Tokens that a model may write as the answer."""
    return run.budgets.affordable_tokens(run.budgets.budgets.answer_tokens)


def answer_of(draft: Draft, evidence: Sequence[Evidence]) -> Answer:
    """The answer that a draft makes. An earlier version recorded drafts without citations, whose marks are the numbers of
    passages."""
    if draft.is_refusal or draft.citations:
        return draft.answer
    quoted = number_quotes(draft.text, evidence)
    return replace(draft, text=quoted.text, citations=quoted.citations).answer


def checked(draft: Draft) -> Payload:
    """The event that records a draft."""
    return draft.verification or Thinking("verify", "There is no claim to check.")


def speaks_of_actions(text: str) -> bool:
    """Whether an answer without sources says that something was done, which can be checked all the same."""
    return any(claimed_action(claim.text, is_cited=False) for claim in split_claims(text))


async def _affordable(run: Run, drafter: Drafter) -> Drafter:
    if not drafter.model_name:
        return drafter
    try:
        run.budgets.require_time()
        run.budgets.require_model()
    except BudgetSpent as error:
        await run.say(degraded("answer", "llm", error, "Quoting the documents instead."))
        return drafter.without_model()
    return drafter
