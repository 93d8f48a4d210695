"""Mode grounded: an agent answers the next message of a conversation over documents."""

from functools import partial

from services.orchestrator.log.events import AgentChosen, Answer, RunMode
from services.orchestrator.models import RunRecord, RunRequest
from services.orchestrator.modes.documents import DocumentAnswers, Limits
from services.orchestrator.modes.mode import Mode, ModeServices
from services.orchestrator.settings import OrchestratorSettings
from services.orchestrator.steps.run import Run, just

DEFAULT_AGENT = "reasoning"


class Grounded(Mode):
    """Serves the mode grounded."""

    name = RunMode.GROUNDED
    description = "The next message of a conversation over documents, answered by an agent."
    takes_agents = True

    def __init__(self, services: ModeServices, limits: Limits) -> None:
        self.budgets = limits.budgets
        self._documents = DocumentAnswers(services, limits)

    async def prepare(self, run: Run, record: RunRecord) -> None:
        """Chooses the agent."""
        await run.once("agent", partial(just, _agent(record.request)), AgentChosen)

    async def answer(self, run: Run, record: RunRecord) -> Answer:
        return await self._documents.answer(run, record)


def build_mode(services: ModeServices, settings: OrchestratorSettings) -> Mode:
    return Grounded(services, Limits.of(settings))


def _agent(request: RunRequest) -> AgentChosen:
    return AgentChosen(DEFAULT_AGENT, "default" if request.agent in ("", "auto") else "explicit")
