"""A chat without a model that calls tools: the words of the message decide.

It searches for what a question about documents asks, does sums, says what time it is, and answers small talk politely. A request to
keep or send something is answered with the sentence that this takes a model. The events are those of the tool loop."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from kit.llm import ModelRejected, ModelUnavailable, Restart
from services.orchestrator.answering.draft import EXTRACTIVE, Draft
from services.orchestrator.answering.drafting import Drafter, Question, degraded, finished_text, restarted
from services.orchestrator.answering.generation import Generator, Listener
from services.orchestrator.answering.refusals import SEARCH_DOWN
from services.orchestrator.errors import BudgetSpent, QuestionTooLong, ReadOnlyRun
from services.orchestrator.log.events import (
    Answer,
    Degradation,
    Evidence,
    Payload,
    Plan,
    Retrieval,
    SupportStatus,
    Thinking,
)
from services.orchestrator.log.screen import Screen
from services.orchestrator.models import RunRecord, Tool, Turn
from services.orchestrator.modes.drafts import PLAIN, answer_of, answer_tokens, checked, write_draft
from services.orchestrator.modes.threads import forgotten_sources
from services.orchestrator.ports import RunSources, Tools
from services.orchestrator.prompts.fitting import fit
from services.orchestrator.prompts.messages import talk_messages
from services.orchestrator.steps.effects import ToolOutcome
from services.orchestrator.steps.retrying import effect_with_retry
from services.orchestrator.steps.run import Run, resolved
from services.orchestrator.toolloop.evidence import NotedCall
from services.orchestrator.verification.checks import Checks
from services.orchestrator.without_model.followups import search_queries
from services.orchestrator.without_model.intents import Route, read_intent

_OUT_OF_TIME = "The time of this run was over before anything was found. Please ask again, or allow it more time."


@dataclass(frozen=True)
class ChatTurn:
    """A message, and what there is to answer it with."""

    run: Run
    record: RunRecord
    history: Sequence[Turn]
    tools: Mapping[str, Tool]
    """By what a message must ask for: those that serve without a model."""

    prompt: str = ""
    """What the prompt has besides the rules: what is remembered of the user."""

    @property
    def question(self) -> str:
        return self.record.request.question


def serving(tools: Sequence[Tool]) -> dict[str, Tool]:
    """The tools that serve without a model, by what a message must ask for, the best of each; none that a person must allow."""
    ranked = sorted(tools, key=lambda tool: (tool.worth, tool.name))
    return {tool.without_model.intent: tool for tool in ranked if tool.without_model and not tool.needs_approval}


def plan_for(question: str, history: Sequence[Turn], tools: Mapping[str, Tool]) -> Plan:
    """What the words of the message ask for, as far as there are tools for it; `tools` are those that serve."""
    intent = read_intent(question)
    if intent.route is Route.MATH and Route.MATH.value in tools:
        return Plan(Route.MATH.value, (intent.expression,))
    if intent.route is Route.TIME and Route.TIME.value in tools:
        return Plan(Route.TIME.value, ())
    if intent.route in {Route.TALK, Route.ACT} or Route.SEARCH.value not in tools:
        return Plan(Route.TALK.value, ())
    return Plan(Route.SEARCH.value, search_queries(question, history))


class Proactive:
    """Answers by a plan that was made from the words of the message."""

    def __init__(
        self, tools: Tools, sources: RunSources, drafter: Drafter, generator: Generator, checks: Checks
    ) -> None:
        """`drafter` and `generator` ask the same model, if there is one."""
        self._checks = checks
        self._tools = tools
        self._sources = sources
        self._drafter = drafter
        self._generator = generator

    async def answer(self, asked: ChatTurn, plan: Plan) -> Answer:
        match Route(plan.route):
            case Route.MATH:
                return await self._computed(asked, plan.queries[0])
            case Route.TIME:
                return await self._time(asked)
            case Route.SEARCH:
                return await self._searched(asked, plan.queries)
            case _:
                return await self._talked(asked)

    async def _searched(self, asked: ChatTurn, queries: Sequence[str]) -> Answer:
        run = asked.run
        outcome = await self._called(asked, Route.SEARCH, list(queries))
        if not outcome.ok:
            text = _OUT_OF_TIME if outcome.error_reason == BudgetSpent.reason else SEARCH_DOWN
            note = Degradation("search", outcome.error_reason, outcome.summary)
            await run.say(Thinking("retrieve", "Search does not answer.", note))
            return await _said(run, text, SupportStatus.UNAVAILABLE)
        found = Retrieval(_numbered(outcome.evidence), _degradations(outcome.content))
        retrieval = await run.once("evidence", partial(resolved, found), Retrieval, of_steps=True)
        for part in retrieval.degraded:
            await run.say(Thinking("retrieve", part.message, part))
        check = self._checks.of(run, asked.record, retrieval.evidence)
        agent = replace(PLAIN, prompt=asked.prompt)
        draft = await run.once(
            "draft",
            partial(write_draft, run, self._drafter, asked.question, asked.history, retrieval, check, agent),
            Draft,
            show=checked,
            is_last_resort=True,
        )
        return answer_of(draft, retrieval.evidence)

    async def _computed(self, asked: ChatTurn, expression: str) -> Answer:
        outcome = await self._called(asked, Route.MATH, expression)
        result = outcome.content.get("result") if outcome.ok and isinstance(outcome.content, Mapping) else None
        if result is None:
            return await _said(asked.run, f"I could not compute {expression}: {outcome.summary}")
        sign = "=" if outcome.content.get("exact", True) else "≈"
        return await _said(asked.run, f"{expression} {sign} {result}")

    async def _time(self, asked: ChatTurn) -> Answer:
        outcome = await self._called(asked, Route.TIME)
        if not (outcome.ok and isinstance(outcome.content, Mapping) and "time" in outcome.content):
            return await _said(asked.run, f"I could not find out what time it is: {outcome.summary}")
        day, _, time = str(outcome.content["time"]).partition("T")
        weekday, zone = outcome.content.get("weekday", ""), outcome.content.get("timezone", "")
        return await _said(asked.run, f"It is {weekday}, {day}, {time[:5]} ({zone}).".replace("is , ", "is "))

    async def _called(self, asked: ChatTurn, route: Route, asks_for: Any = None) -> ToolOutcome:
        """What came of the call of the tool that serves the route. One that no budget allows, or that could not be logged, has
        failed."""
        run, record, tool = asked.run, asked.record, asked.tools[route.value]
        argument = tool.without_model.argument if tool.without_model else ""
        arguments = {argument: asks_for} if argument else {}
        call = self._tools.call(tool, arguments, record.request.collection_ids, run.tell_progress)
        note = partial(forgotten_sources, run, record, self._sources)
        try:
            return await effect_with_retry(run, tool.name, NotedCall(call, note))
        except (BudgetSpent, ReadOnlyRun) as error:
            return ToolOutcome(False, None, error.message, error.reason)

    async def _talked(self, asked: ChatTurn) -> Answer:
        intent = read_intent(asked.question)
        able = sorted(asked.tools.values(), key=lambda tool: (-tool.worth, tool.name))
        abilities = [tool.without_model.ability for tool in able if tool.without_model and tool.without_model.ability]
        if intent.route is Route.ACT:  # a model without tools might say that it has done it
            return await _said(asked.run, _cannot_act(abilities), SupportStatus.UNAVAILABLE)
        if self._drafter.model_name:
            try:
                draft = await asked.run.once("talk", partial(self._talk, asked), Draft, show=_unchecked)
            except (ModelUnavailable, ModelRejected, QuestionTooLong, BudgetSpent) as error:
                await asked.run.say(degraded("answer", "llm", error, "Answering without the model."))
            else:
                return draft.answer
        if intent.route is Route.TALK:
            return await _said(asked.run, await self._drafter.greeting(asked.question))
        withheld = asked.record.request.tools is not None
        return await _said(asked.run, _cannot(abilities, is_withheld=withheld), SupportStatus.UNAVAILABLE)

    async def _talk(self, asked: ChatTurn) -> Draft:
        asked.run.budgets.require_model()
        messages = talk_messages(asked.question, asked.history, asked.prompt)
        model = self._generator.model
        fitted = await fit(messages, model, answer_tokens(asked.run))
        screen = Screen(asked.run.journal)
        listener = Listener(restarted=partial(_tell_of_restart, asked.run))
        generated = await self._generator.say(fitted.messages, screen, max_tokens=fitted.max_tokens, listener=listener)
        text = await finished_text(generated.text, generated.reason, asked.run.journal)
        if not text:
            raise ModelUnavailable("the model said nothing", reason="LLM_EMPTY")
        check = self._checks.of(asked.run, asked.record, ())
        question = Question(asked.question, (), (), fitted.max_tokens, check=check)
        return await self._drafter.judge(text, question, asked.run.journal)


def _unchecked(draft: Draft) -> Payload:
    return draft.verification or Thinking("verify", "Not checked: no documents were read.")


async def _tell_of_restart(run: Run, restart: Restart) -> None:
    await run.say(restarted(restart))


async def _said(run: Run, text: str, support_status: SupportStatus | None = None) -> Answer:
    await Screen(run.journal).settle(text)
    return Answer(text, (), support_status, EXTRACTIVE)


def _cannot_act(abilities: Sequence[str]) -> str:
    can = f" Without one I can {_listed(abilities)}." if abilities else ""
    return (
        "I cannot do that: to keep notes, send e-mail or act in other ways takes a language model that calls tools, and none "
        "does here at the moment. An operator configures one with GROUNDWORK_LLM_BASE_URL, or starts it with "
        f"`make run LLM=local`.{can}"
    )


def _cannot(abilities: Sequence[str], *, is_withheld: bool) -> str:
    can = f" I can {_listed(abilities)}." if abilities else ""
    return (
        f"I cannot answer this: no language model answers at the moment, and the documents cannot be searched here.{can} "
        f"{'Allow a tool that searches documents.' if is_withheld else 'Please ask again in a minute.'}"
    )


def _listed(items: Sequence[str]) -> str:
    return items[0] if len(items) == 1 else f"{', '.join(items[:-1])} and {items[-1]}"


def _numbered(evidence: Sequence[Evidence]) -> tuple[Evidence, ...]:
    return tuple(replace(hit, number=number) for number, hit in enumerate(evidence, start=1))


def _degradations(content: Any) -> tuple[Degradation, ...]:
    """What the search had to do without, as the tool tells it."""
    losses = content.get("degraded", ()) if isinstance(content, Mapping) else ()
    return tuple(
        Degradation(str(each.get("part", "")), str(each.get("reason", "")), str(each.get("message", "")))
        for each in losses
        if isinstance(each, Mapping)
    )
