"""Mode agent: an agent that plans, searches in rounds, measures what it has found, and says what it could not find."""

from services.orchestrator.log.events import Answer, Budgets, RunMode
from services.orchestrator.models import RunRecord
from services.orchestrator.modes.documents import DocumentAnswers, Limits, is_small_talk
from services.orchestrator.modes.mode import Mode, ModeServices
from services.orchestrator.research.running import ResearchRun, ResearchServices
from services.orchestrator.settings import OrchestratorSettings
from services.orchestrator.steps.run import Run


class Research(Mode):
    """Serves the mode agent."""

    name = RunMode.AGENT
    description = "Research: plans, searches in rounds, measures what the evidence covers, and says what is missing."
    takes_research = True
    answers_late = True

    def __init__(self, services: ModeServices, limits: Limits) -> None:
        self.budgets: Budgets = limits.budgets
        self._documents = DocumentAnswers(services, limits)
        self._services = ResearchServices(
            services.searcher,
            services.sources,
            services.threads,
            services.drafter,
            services.checks,
            limits.evidence_top_k,
        )

    async def answer(self, run: Run, record: RunRecord) -> Answer:
        if is_small_talk(record.request.question):
            return await self._documents.answer(run, record)
        return await ResearchRun(self._services, run, record).answer()


def build_mode(services: ModeServices, settings: OrchestratorSettings) -> Mode:
    return Research(services, Limits.of(settings))
