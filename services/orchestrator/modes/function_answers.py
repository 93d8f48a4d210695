"""Answers to callers that bring functions of their own. The documents are searched once; the model answers from what was found, or
calls functions. Then the run ends with the calls: the caller makes them and asks anew with what they returned."""

import json
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from kit.llm import ChatMessage
from services.orchestrator.agent import Agent
from services.orchestrator.answering.agent_drafts import write_own_draft
from services.orchestrator.answering.citations import cited_numbers
from services.orchestrator.answering.draft import MODEL, Draft
from services.orchestrator.answering.drafting import Question, degraded
from services.orchestrator.log.events import Answer, Degradation, EffectClass, Evidence, Thinking
from services.orchestrator.log.screen import Screen
from services.orchestrator.models import Function, RunRecord, Tool, Turn
from services.orchestrator.modes.documents import DocumentAnswers
from services.orchestrator.modes.drafts import answer_of, answer_tokens, checked
from services.orchestrator.modes.mode import ModeServices
from services.orchestrator.modes.threads import turns_of
from services.orchestrator.modes.tool_answers import ChatLimits, ToolAnswers
from services.orchestrator.prompts import rules
from services.orchestrator.prompts.messages import compose, conversation, messages_of
from services.orchestrator.steps.run import Run
from services.orchestrator.toolloop.conversation import spec_of
from services.orchestrator.toolloop.loop import LoopEnd, LoopResult, LoopTask, NoFirstWord, ToolLoop, ToolsNotSupported
from services.orchestrator.verification.verdicts import Verify

_NO_MODEL = Degradation(
    "functions", "NO_MODEL", "No language model is there to call functions: the documents are searched without them."
)


class FunctionAnswers:
    """Answers questions from documents and with functions of the caller's."""

    def __init__(self, services: ModeServices, limits: ChatLimits, documents: DocumentAnswers) -> None:
        self._model = services.model
        self._drafter = services.drafter
        self._checks = services.checks
        self._threads = services.threads
        self._tools = ToolAnswers(services, limits)
        self._documents = documents
        self._loop = ToolLoop(services.model, services.tools, services.drafter, limits.loop, held=services.held)

    async def answer(self, run: Run, record: RunRecord, agent: Agent) -> Answer | None:
        """The answer, or the calls that the model wants; None, said so, where no model can call functions."""
        if not (self._tools.calls_tools or run.is_recorded("plan")):
            await run.say(Thinking("tools", _NO_MODEL.message, _NO_MODEL))
            return None
        history = await self._threads.history(run, record, for_model=True, with_calls=True)
        said = [turn for turn in history if turn.role != "tool" and not turn.calls]
        evidence = await self._documents.evidence(run, record, agent, said)
        task = await self._task(run, record, agent, history, evidence)
        try:
            result = await self._loop.run(run, task, Screen(run.journal))
        except (ToolsNotSupported, NoFirstWord) as error:
            part = "tools" if isinstance(error, ToolsNotSupported) else "llm"
            await run.say(degraded("plan", part, error, "Searching the documents instead."))
            return None
        return await self._answer(run, record, agent, task, result)

    async def _task(
        self, run: Run, record: RunRecord, agent: Agent, history: Sequence[Turn], evidence: Sequence[Evidence]
    ) -> LoopTask:
        request = record.request
        functions = [_tool(each) for each in request.functions]
        tokens = answer_tokens(run)
        names = [each.name for each in functions]
        system = rules.with_prompt(rules.WITH_FUNCTIONS, agent.prompt)
        asked: Sequence[ChatMessage] = conversation(system, request.question, history)
        if evidence:
            specs = [spec_of(each) for each in functions]
            fitted = await compose(
                request.question, history, evidence, self._model, answer_tokens=tokens, tools=specs, system=system
            )
            asked = fitted.messages
        return LoopTask(
            question=request.question,
            messages=[*asked, *messages_of(turns_of(request.called))],
            offered=functions,
            ranking=names,
            needed=names,
            answer_tokens=tokens,
            collection_ids=request.collection_ids,
            evidence=evidence,
            tool_choice=request.function_choice or "auto",
        )

    async def _filled_in(self, run: Run, record: RunRecord, agent: Agent, task: LoopTask) -> Answer:
        """The answer by the schema of the request, from what was found and what the functions returned."""
        question = Question(
            task.question,
            (),
            task.evidence,
            task.answer_tokens,
            prompt=agent.prompt,
            check=self._checks.of(run, record, task.evidence),
            called=messages_of(turns_of(record.request.called)),
        )
        draft = await run.once(
            "draft", partial(write_own_draft, run, self._drafter, agent, question), Draft, show=checked
        )
        return answer_of(draft, task.evidence)

    async def _answer(self, run: Run, record: RunRecord, agent: Agent, task: LoopTask, result: LoopResult) -> Answer:
        if result.end is LoopEnd.HANDED_OVER:
            calls = result.function_calls[:1] if record.request.one_function_at_a_time else result.function_calls
            return Answer(result.text, (), None, MODEL, function_calls=tuple(calls))
        if record.request.answer_schema and result.draft is None:
            return await self._filled_in(run, record, agent, task)
        if result.draft is not None:
            return answer_of(result.draft, result.evidence)
        check = self._checks.of(run, record, result.evidence)
        has_nothing_to_judge = not result.evidence or check.verify is Verify.OFF
        if record.request.called and has_nothing_to_judge and not cited_numbers(result.text):
            return Answer(result.text, (), None, MODEL)  # it tells of what the functions said, which no judge has seen
        question = Question(task.question, (), result.evidence, task.answer_tokens, check=check)
        judge = partial(self._drafter.judge, result.text, question, run.journal)
        draft = await run.once("verify", judge, Draft, show=checked, is_last_resort=True)
        return answer_of(draft, result.evidence)


def _tool(function: Function) -> Tool:
    """As the loop offers it. What its calls change is the caller's to know: no guess repairs their arguments."""
    return replace(
        Tool(function.name, function.description, json.loads(function.parameters or "{}")),
        effect=EffectClass.ONCE,
        is_callers=True,
    )
