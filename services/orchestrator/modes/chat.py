"""Mode chat: history → tools → plan → tool loop, or what the words of the message ask for → verify."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

from kit.llm import Operation
from services.orchestrator.answering.drafting import degraded
from services.orchestrator.answering.generation import Generator
from services.orchestrator.log.events import (
    Answer,
    Degradation,
    Plan,
    RunMode,
    Thinking,
)
from services.orchestrator.metrics import SHED_CHATS
from services.orchestrator.models import RunRecord
from services.orchestrator.modes.mode import Mode, ModeServices
from services.orchestrator.modes.proactive import ChatTurn, Proactive, plan_for, serving
from services.orchestrator.modes.tool_answers import ChatLimits, ToolAnswers
from services.orchestrator.prompts import rules
from services.orchestrator.remembering.recalling import NothingRemembered, Recall
from services.orchestrator.settings import OrchestratorSettings
from services.orchestrator.steps.run import Run, resolved, tell_time_is_up
from services.orchestrator.toolloop.loop import (
    NoFirstWord,
    ToolsNotSupported,
)
from services.orchestrator.without_model.intents import Route

_SHED = Degradation(
    "load",
    "SHED_TO_QA",
    "Many chats are being served: this one gets one search and one answer, as in mode qa; the model was not offered any tools. Ask "
    "again later for all of them.",
)


class Chat(Mode):
    """Serves the mode chat."""

    name = RunMode.CHAT
    description = "The next message of a conversation in which the model may use tools."
    needs_collections = False
    takes_documents = False
    takes_tools = True
    speaks = True
    remembers = True
    answers_late = True

    def __init__(self, services: ModeServices, limits: ChatLimits) -> None:
        self.budgets, self.usual = limits.budgets, limits.usual
        self._model = services.model
        self._threads = services.threads
        self._remembering = services.remembering
        self._limits = limits
        self._by_tools = ToolAnswers(services, limits)
        generator = Generator(services.model, held=services.held)
        self._proactive = Proactive(services.tools, services.sources, services.drafter, generator, services.checks)
        self._agentic = 0

    @contextmanager
    def admitted(self, decided: RunMode | None) -> Iterator[RunMode]:
        """How the run is served: as was decided when it began, or else by how many are served with tools here. Where no model calls
        tools nothing is saved."""
        is_full = self._by_tools.calls_tools and 0 < self._limits.agentic_runs_max <= self._agentic
        mode = decided or (RunMode.QA if is_full else RunMode.CHAT)
        if decided is None and is_full:
            SHED_CHATS.inc()
        is_agentic = self._by_tools.calls_tools and mode is RunMode.CHAT
        self._agentic += is_agentic
        try:
            yield mode
        finally:
            self._agentic -= is_agentic

    @property
    def _model_name(self) -> str:
        return self._model.info(Operation.ANSWER).model

    async def answer(self, run: Run, record: RunRecord) -> Answer:
        if run.journal.progress.mode is not self.name:
            await run.say(Thinking("load", "Answering with one search.", _SHED))
        remembering = self._remembering if self._model_name else NothingRemembered()
        async with remembering.recalling(run, record) as recall:
            return await self._answered(run, record, recall)

    async def _answered(self, run: Run, record: RunRecord, recall: Recall) -> Answer:
        history = await self._threads.history(run, record, for_model=bool(self._model_name))
        by_model = run.journal.progress.mode is self.name and self._by_tools.calls_tools
        toolbox = await self._by_tools.toolbox(run, record.request, history, by_model=by_model)
        wishes = rules.describe_wishes(record.request)
        prompt = await recall.added_to(wishes) if self._model_name else ""
        asked = ChatTurn(run, record, history, serving(toolbox.offered), prompt)
        by_loop = by_model and toolbox.shown
        first = Plan(Route.TOOLS.value, ()) if by_loop else plan_for(asked.question, history, asked.tools)
        plan = await run.once("plan", partial(resolved, first), Plan, is_last_resort=True)
        took_all_time = False
        if plan.route == Route.TOOLS.value:
            try:
                return await self._by_tools.answer(asked, toolbox, asked.prompt)
            except (ToolsNotSupported, NoFirstWord) as error:
                part = "tools" if isinstance(error, ToolsNotSupported) else "llm"
                await run.say(degraded("plan", part, error, "Going by the words of the message instead."))
                by_words = plan_for(asked.question, history, asked.tools)
                plan = await run.once("replan", partial(resolved, by_words), Plan, is_last_resort=True)
                took_all_time = self._by_tools.took_all_time(run, error.reason)
        answer = await self._proactive.answer(asked, plan)
        if took_all_time:
            await tell_time_is_up(run.journal)
        return answer


def build_mode(services: ModeServices, settings: OrchestratorSettings) -> Mode:
    return Chat(services, ChatLimits.of(settings))
