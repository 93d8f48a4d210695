"""Mode grounded: an agent answers the next message of a conversation over documents."""

from dataclasses import replace
from functools import partial

from services.orchestrator.agent import Agent
from services.orchestrator.log.events import AgentChosen, Answer, Degradation, RunMode, Thinking
from services.orchestrator.models import RunRecord
from services.orchestrator.modes.agents import WordRouter
from services.orchestrator.modes.documents import DocumentAnswers, Limits
from services.orchestrator.modes.mode import Mode, ModeServices
from services.orchestrator.settings import OrchestratorSettings
from services.orchestrator.steps.run import Run


class Grounded(Mode):
    """Serves the mode grounded."""

    name = RunMode.GROUNDED
    description = "The next message of a conversation over documents, answered by an agent."
    takes_agents = True

    def __init__(self, services: ModeServices, limits: Limits) -> None:
        self.budgets = limits.budgets
        self._agents = services.agents
        self._router = WordRouter(services.agents)
        self._documents = DocumentAnswers(services, limits)

    async def answer(self, run: Run, record: RunRecord) -> Answer:
        chosen = await run.once("agent", partial(self._router.choose, record.request), AgentChosen)
        agent = self._agents.get(chosen.name) or await self._instead(run, chosen)
        asked = record.request.budgets
        run.narrow(replace(agent.budgets, answer_tokens=asked.answer_tokens or agent.budgets.answer_tokens))
        return await self._documents.answer(run, record, agent)

    async def _instead(self, run: Run, chosen: AgentChosen) -> Agent:
        """The default, for a run that began where there was an agent that this process does not have."""
        message = f"The agent {chosen.name} is not here any more: {self._agents.default.name} answers instead."
        await run.say(Thinking("agent", message, Degradation("agent", "AGENT_GONE", message)))
        return self._agents.default


def build_mode(services: ModeServices, settings: OrchestratorSettings) -> Mode:
    return Grounded(services, Limits.of(settings))
