"""Answers that an agent gives in its own shape: a block that its model fills in, an answer that is whole before it is shown, or
what its file makes without a model."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import structlog

from kit.errors import GroundworkError
from kit.llm import Restart
from services.orchestrator.agent import Agent, Found, Made
from services.orchestrator.answering.blocks import fill_in, outline, violation, with_marks_of
from services.orchestrator.answering.citations import cited_numbers
from services.orchestrator.answering.draft import EXTRACTIVE, MODEL, Draft
from services.orchestrator.answering.drafting import Drafter, Question, degraded, restarted
from services.orchestrator.answering.generation import Generator, Listener
from services.orchestrator.prompts import rules
from services.orchestrator.steps.run import Run

_CARRIED, _INSUFFICIENT = ("supported", "partial"), "insufficient"
_log = structlog.get_logger()


async def write_own_draft(run: Run, drafter: Drafter, agent: Agent, question: Question) -> Draft:
    """The agent's answer. Where it has none of its own the documents are quoted."""
    can_ask = drafter.generator is not None and drafter.model_name and (question.evidence or question.called)
    if agent.output is not None and drafter.generator is not None and can_ask:
        try:
            return await _by_model(run, drafter, drafter.generator, agent, question)
        except GroundworkError as error:
            await run.say(degraded("answer", "llm", error, "Answering without the model."))
    return await _without_model(run, drafter, agent, question)


async def write_checked_draft(run: Run, drafter: Drafter, agent: Agent, question: Question) -> Draft:
    """The answer of a model that gives it whole. Of one that does not follow the schema, the answer as it is streamed."""
    if drafter.generator is None or not drafter.model_name or not question.evidence:
        return await drafter.write(question, run.journal)
    schema = _answer_schema([each.number for each in question.evidence])
    try:
        said = await _filled(run, drafter.generator, schema, rules.WHOLE_ANSWER, agent, question)
    except GroundworkError as error:
        await run.say(degraded("answer", "llm", error, "Showing the answer as it is written."))
        return await drafter.write(question, run.journal)
    answer, numbers = str(said["answer"]).strip(), said["citations"]
    if said["support_status"] == _INSUFFICIENT or not answer:
        return await drafter.refuse_written(question, run.journal)
    if not cited_numbers(answer):
        answer += "".join(f" [{number}]" for number in numbers)
    return await drafter.take_over(answer, question, run.journal)


def _answer_schema(numbers: Sequence[int]) -> Mapping[str, Any]:
    citations = {"type": "array", "items": {"type": "integer", "enum": list(numbers)}}
    status = {"type": "string", "enum": [*_CARRIED, _INSUFFICIENT]}
    properties = {"answer": {"type": "string"}, "citations": citations, "support_status": status}
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


async def _filled(
    run: Run, generator: Generator, schema: Mapping[str, Any], system: str, agent: Agent, question: Question
) -> Mapping[str, Any]:
    async def tell_of_restart(restart: Restart) -> None:
        await run.say(restarted(restart))

    return await fill_in(
        generator,
        schema,
        question.text,
        question.history,
        question.evidence,
        system=rules.with_prompt(system, agent.prompt),
        max_tokens=question.answer_tokens,
        listener=Listener(restarted=tell_of_restart),
        called=question.called,
    )


async def _by_model(run: Run, drafter: Drafter, generator: Generator, agent: Agent, question: Question) -> Draft:
    block = await _filled(run, generator, agent.output or {}, rules.BLOCK, agent, question)
    draft = await drafter.judge(_text(agent, block), question, run.journal)
    # A draft that quotes the documents instead is not what the block says.
    return _with_block(draft, block, question) if draft.method == MODEL else draft


async def _without_model(run: Run, drafter: Drafter, agent: Agent, question: Question) -> Draft:
    made = await _made(agent, Found(question.text, question.evidence)) if question.evidence else None
    if made is None:
        return await drafter.without_model().write(question, run.journal)
    draft = await drafter.without_model().judge(made.text, question, run.journal)
    draft = draft if made.block is None else _with_block(draft, made.block, question)
    return replace(draft, method=EXTRACTIVE)


async def _made(agent: Agent, found: Found) -> Made | None:
    """What the agent's file makes; None, logged, where it fails: its code is the operator's, and the run goes on."""
    if agent.without_model is None:
        return None
    try:
        made = await asyncio.to_thread(partial(agent.without_model, found))
        wrong = violation(made.block, agent.output) if made and made.block is not None and agent.output else ""
    except Exception as error:
        _log.exception("agent_failed", agent=agent.name, error=repr(error))
        return None
    if wrong:
        _log.error("agent_made_no_block", agent=agent.name, error=wrong)
        return None
    return made


def _text(agent: Agent, block: Mapping[str, Any]) -> str:
    if agent.show is not None:
        try:
            return agent.show(block)
        except Exception as error:
            _log.exception("agent_failed", agent=agent.name, error=repr(error))
    return outline(block)


def _with_block(draft: Draft, block: Mapping[str, Any], question: Question) -> Draft:
    return replace(draft, block=with_marks_of(draft.citations, block, question.evidence))
