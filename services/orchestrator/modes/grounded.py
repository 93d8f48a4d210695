"""Mode grounded: an agent answers the next message of a conversation over documents."""

import json
from dataclasses import replace
from functools import partial

import structlog

from kit import deadline
from kit.errors import GroundworkError
from services.orchestrator.agent import Agent
from services.orchestrator.answering.drafting import degraded
from services.orchestrator.errors import AgentFailed, StepDiverged
from services.orchestrator.log.events import AgentChosen, Answer, Budgets, Degradation, RunMode, Thinking
from services.orchestrator.models import RunRecord, RunRequest, ToolSelection
from services.orchestrator.modes.agents import AUTO
from services.orchestrator.modes.documents import DocumentAnswers, Limits, is_small_talk
from services.orchestrator.modes.function_answers import FunctionAnswers
from services.orchestrator.modes.mode import Mode, ModeServices
from services.orchestrator.modes.proactive import ChatTurn
from services.orchestrator.modes.routing import DEFAULT, Router
from services.orchestrator.modes.tool_answers import ChatLimits, ToolAnswers
from services.orchestrator.prompts import rules
from services.orchestrator.remembering.recalling import NothingRemembered, Recall
from services.orchestrator.settings import OrchestratorSettings
from services.orchestrator.steps.budgets import usual_for
from services.orchestrator.steps.run import Run, resolved
from services.orchestrator.toolloop.loop import NoFirstWord, ToolsNotSupported
from services.orchestrator.work import Hands, Work

_WITH_TOOLS = Budgets(reasoning_steps=2, tool_calls=3, parallel_calls=2)
"""What an agent with tools gets that does not say: less than a chat, since it is asked for an answer from documents."""
_LEFT = "left"
"""Step that says that the agent's own work has come to nothing."""
_log = structlog.get_logger()
_DOCUMENTS_NAMED = Degradation(
    "tools", "DOCUMENTS_NAMED", "Tools read whole collections: the documents that are named are searched without them."
)


class Grounded(Mode):
    """Serves the mode grounded."""

    name = RunMode.GROUNDED
    description = "The next message of a conversation over documents, answered by an agent."
    takes_agents = True
    takes_functions = True
    speaks = True
    delivers = True
    remembers = True

    def __init__(
        self,
        services: ModeServices,
        limits: Limits,
        with_tools: ChatLimits = ChatLimits(),  # noqa: B008 - frozen
        *,
        checks_first: bool = False,
    ) -> None:
        """With `checks_first` no answer is shown before it is checked."""
        self._checks_first = checks_first
        self.budgets = limits.budgets
        self._agents = services.agents
        self._router = Router(services.agents, services.model)
        self._threads = services.threads
        self._drafter = services.drafter
        self._remembering = services.remembering
        self._tools = ToolAnswers(services, with_tools)
        self._documents = DocumentAnswers(services, limits)
        self._functions = FunctionAnswers(services, with_tools, self._documents)
        self._hands = Hands(
            services.searcher, services.sources, services.drafter, services.scorer, services.checks, services.library
        )

    async def answer(self, run: Run, record: RunRecord) -> Answer:
        remembering = self._remembering if self._drafter.model_name else NothingRemembered()
        async with remembering.recalling(run, record) as recall:
            return await self._answered(run, record, recall)

    async def _answered(self, run: Run, record: RunRecord, recall: Recall) -> Answer:
        chosen = await run.once("agent", partial(self._choose, run, record), AgentChosen)
        agent = self._agents.get(chosen.name) or await self._instead(run, chosen)
        agent = _as_asked(agent, record.request)
        agent = replace(agent, checked_first=agent.checked_first or self._checks_first)
        asked = record.request.budgets
        budgets = usual_for(agent.budgets, _WITH_TOOLS) if agent.tools else agent.budgets
        run.narrow(replace(budgets, answer_tokens=asked.answer_tokens or budgets.answer_tokens))
        if record.request.functions or record.request.called:
            answer = await self._functions.answer(run, record, await _reminded(agent, recall))
            return answer or await self._documents.answer(run, record, agent, recall, within="documents/")
        if agent.work is not None and not is_small_talk(record.request.question):
            answer = await self._by_own_work(run, record, await _reminded(agent, recall))
            return answer or await self._documents.answer(run, record, agent, recall, within="documents/")
        answer = await self._by_tools(run, record, agent, recall) if agent.tools else None
        return answer or await self._documents.answer(run, record, agent, recall)

    async def _choose(self, run: Run, record: RunRecord) -> AgentChosen:
        if record.request.agent not in ("", AUTO):
            return await self._router.choose(record.request, (), may_ask=False)
        if record.request.functions or record.request.called or record.request.answer_schema:
            return AgentChosen(self._agents.default.name, DEFAULT)
        may_ask = bool(self._hands.drafter.model_name) and not is_small_talk(record.request.question)
        # What answers reads the thread again, and says it when that fails.
        history = await self._threads.history(run, record, for_model=may_ask, says_failure=False)
        return await self._router.choose(record.request, history, may_ask=may_ask)

    async def _by_own_work(self, run: Run, record: RunRecord, agent: Agent) -> Answer | None:
        """What the agent's own work comes to; None, said so, where it fails, and where the agent leaves the message to a search."""
        assert agent.work is not None
        if run.is_recorded(_LEFT):
            return None
        history = await self._threads.history(run, record, for_model=bool(self._hands.drafter.model_name))
        try:
            answer = await agent.work(Work(run, record, agent, history, self._hands))
        except GroundworkError as error:
            if isinstance(error, StepDiverged) or deadline.is_spent():
                raise
            note = degraded("work", "agent", error, "Searching the documents instead.")
        except Exception as error:
            _log.exception("agent_failed", agent=agent.name, run_id=record.key.run_id, error=repr(error))
            note = degraded("work", "agent", AgentFailed(f"the agent {agent.name} failed"), "Searching instead.")
        else:
            if answer is not None:
                return replace(answer, artefacts=tuple(run.journal.progress.artefacts.values()))
            note = Thinking("work", "Searching the documents.")
        await run.once(_LEFT, partial(resolved, note), Thinking, is_last_resort=True)
        return None

    async def _by_tools(self, run: Run, record: RunRecord, agent: Agent, recall: Recall) -> Answer | None:
        """The answer of the agent's model with its tools; None where the documents have to do without."""
        if record.request.document_ids:
            await run.say(Thinking("tools", _DOCUMENTS_NAMED.message, _DOCUMENTS_NAMED))
            return None
        if not (self._tools.calls_tools or run.is_recorded("tools")):
            return None
        history = await self._threads.history(run, record, for_model=True)
        request = replace(record.request, tools=ToolSelection(agent.tools))
        toolbox = await self._tools.toolbox(run, request, history, by_model=True)
        if not toolbox.shown:
            return None
        try:
            prompt = await recall.added_to(agent.prompt)
            return await self._tools.answer(ChatTurn(run, record, history, {}), toolbox, prompt)
        except (ToolsNotSupported, NoFirstWord) as error:
            part = "tools" if isinstance(error, ToolsNotSupported) else "llm"
            await run.say(degraded("plan", part, error, "Searching the documents instead."))
            return None

    async def _instead(self, run: Run, chosen: AgentChosen) -> Agent:
        """The default, for a run that began where there was an agent that this process does not have."""
        message = f"The agent {chosen.name} is not here any more: {self._agents.default.name} answers instead."
        await run.say(Thinking("agent", message, Degradation("agent", "AGENT_GONE", message)))
        return self._agents.default


async def _reminded(agent: Agent, recall: Recall) -> Agent:
    """The agent with what is remembered of the person."""
    return replace(agent, prompt=await recall.added_to(agent.prompt))


def _as_asked(agent: Agent, request: RunRequest) -> Agent:
    """The agent with what the caller tells it, and with the schema of the answer that the caller wants."""
    if wishes := rules.describe_wishes(request):
        agent = replace(agent, prompt=rules.with_prompt(agent.prompt, wishes).strip())
    return replace(agent, output=json.loads(request.answer_schema)) if request.answer_schema else agent


def build_mode(services: ModeServices, settings: OrchestratorSettings) -> Mode:
    checks_first = settings.grounded_answers == "checked"
    return Grounded(services, Limits.of(settings), ChatLimits.of(settings), checks_first=checks_first)
