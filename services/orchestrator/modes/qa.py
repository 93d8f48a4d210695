"""Mode qa: one search, one answer, no agent."""

from services.orchestrator.log.events import Answer, RunMode
from services.orchestrator.models import RunRecord
from services.orchestrator.modes.documents import DocumentAnswers, Limits
from services.orchestrator.modes.mode import Mode, ModeServices
from services.orchestrator.settings import OrchestratorSettings
from services.orchestrator.steps.run import Run


class Qa(Mode):
    """Serves the mode qa."""

    name = RunMode.QA
    description = "One search, one answer with citations."

    def __init__(self, services: ModeServices, limits: Limits) -> None:
        self.budgets = limits.budgets
        self._documents = DocumentAnswers(services, limits)

    async def answer(self, run: Run, record: RunRecord) -> Answer:
        return await self._documents.answer(run, record)


def build_mode(services: ModeServices, settings: OrchestratorSettings) -> Mode:
    return Qa(services, Limits.of(settings))
