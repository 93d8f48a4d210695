"""Mode agent: an agent that plans, searches in rounds, measures what it has found, and says what it could not find. While it is
off, and where it breaks, the question gets one search, as in mode qa, and an event says so."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

import structlog

from kit import deadline
from kit.errors import (
    Aborted,
    DeadlineExceeded,
    GroundworkError,
    Internal,
    ResourceExhausted,
    Unavailable,
)
from services.orchestrator.errors import BudgetSpent
from services.orchestrator.log.events import Answer, Budgets, Degradation, RunMode, Thinking
from services.orchestrator.models import RunRecord
from services.orchestrator.modes.documents import DocumentAnswers, Limits, is_small_talk
from services.orchestrator.modes.mode import Mode, ModeServices
from services.orchestrator.research.gate import ResearchGate
from services.orchestrator.research.running import ResearchRun
from services.orchestrator.research.steps import ResearchServices
from services.orchestrator.settings import OrchestratorSettings
from services.orchestrator.steps.run import Run, resolved

RESEARCH = "research"
"""What an operator switches."""
_log = structlog.get_logger()
_OWN_FAILURES = (Unavailable, DeadlineExceeded, ResourceExhausted, Internal, Aborted)
"""Research broke. Any other error of ours is the question's: the run fails and says why."""
_FAILED = "failed"
_OFF = Degradation(
    "agent",
    "AGENT_OFF",
    "Research is switched off, busy or failing: this question gets one search and one answer, as in mode qa.",
)


class Research(Mode):
    """Serves the mode agent."""

    name = RunMode.AGENT
    description = "Research: plans, searches in rounds, measures what the evidence covers, and says what is missing."
    takes_research = True
    takes_tools = True
    only_reads = True
    answers_late = True

    def __init__(
        self, services: ModeServices, limits: Limits, gate: ResearchGate, input_life_s: float = 86_400.0
    ) -> None:
        self.budgets: Budgets = limits.budgets
        self._gate = gate
        self._documents = DocumentAnswers(services, limits)
        self._services = ResearchServices(
            services.searcher,
            services.sources,
            services.threads,
            services.drafter,
            services.model,
            services.checks,
            services.tools,
            services.library,
            limits.evidence_top_k,
            input_life_s,
        )

    @contextmanager
    def admitted(self, decided: RunMode | None) -> Iterator[RunMode]:
        """Researched, or by one search while research is off, busy or failing; as was decided when the run began."""
        mode = decided or (self.name if self._gate.admits() else RunMode.QA)
        if mode is not self.name:
            yield mode
            return
        self._gate.entered()
        try:
            yield mode
        finally:
            self._gate.left()

    async def answer(self, run: Run, record: RunRecord) -> Answer:
        if is_small_talk(record.request.question):
            return await self._documents.answer(run, record)
        if run.journal.progress.mode is not self.name:
            await run.say(Thinking("load", "Answering with one search.", _OFF))
            return await self._documents.answer(run, record)
        return await self._researched(run, record) or await self._documents.answer(run, record, within="qa/")

    async def _researched(self, run: Run, record: RunRecord) -> Answer | None:
        """The answer; None, said so, where research has broken on the way."""
        if run.is_recorded(_FAILED):
            return None
        try:
            answer = await ResearchRun(self._services, run, record).answer()
        except GroundworkError as error:
            if not isinstance(error, _OWN_FAILURES) or isinstance(error, BudgetSpent) or deadline.is_spent():
                raise
            reason, message = error.reason, error.message
        except Exception as error:
            _log.exception("research_failed", run_id=record.key.run_id, error=repr(error))
            reason, message = "INTERNAL", "research broke"
        else:
            self._gate.succeeded()
            return answer
        self._gate.failed()
        note = Degradation("agent", reason, f"Research broke ({message}): answering with one search instead.")
        shown = Thinking("load", "Answering with one search.", note)
        await run.once(_FAILED, partial(resolved, shown), Thinking, is_last_resort=True)
        return None


def build_mode(services: ModeServices, settings: OrchestratorSettings) -> Mode:
    gate = ResearchGate(
        is_on=lambda: settings.research_enabled and services.is_agent_on(RESEARCH),
        most_runs=settings.agentic_runs_max,
        failure_rate=settings.research_failure_rate,
    )
    return Research(services, Limits.of(settings), gate, settings.approval_life_s)
