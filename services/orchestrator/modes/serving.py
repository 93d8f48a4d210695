"""Serves runs, each by its mode. The modes are the modules of this folder that have a function `build_mode`."""

from collections.abc import Iterable, Sequence
from functools import partial
from types import ModuleType

from kit.dropped_in import modules_in
from kit.llm.sampling import use_sampling
from kit.network.local_models import LocalModelsOnly
from services.orchestrator import modes as folder
from services.orchestrator.answering.drafting import degraded
from services.orchestrator.delivering.delivery import Deliveries, Delivery
from services.orchestrator.errors import ModeNotOffered
from services.orchestrator.guard.policy import Guard, flag_question, strictest
from services.orchestrator.guard.reporting import report_safety_to
from services.orchestrator.log.events import Answer, RunMode, RunStarted, RunStatus
from services.orchestrator.log.journal import Journal
from services.orchestrator.models import RunRecord, RunRequest
from services.orchestrator.modes.mode import Mode, ModeServices
from services.orchestrator.settings import OrchestratorSettings
from services.orchestrator.steps.budgets import in_force, usual_for
from services.orchestrator.steps.run import Run, check_not_breaking, end, status_of


class Modes:
    """The modes that are offered, by name, and the frame that is the same for all of them."""

    def __init__(self, modes: Iterable[Mode], services: ModeServices) -> None:
        self._modes = {mode.name: mode for mode in modes}
        self._services = services
        self._deliveries = Deliveries(services)
        self.agents = services.agents
        self.guard = services.guard

    @property
    def all(self) -> Sequence[Mode]:
        """By name."""
        return sorted(self._modes.values(), key=lambda mode: mode.name.value)

    def named(self, name: RunMode) -> Mode:
        """Raises ModeNotOffered."""
        if name not in self._modes:
            raise ModeNotOffered(f"mode {name.value} is not offered; use {listed(self.all)}")
        return self._modes[name]

    def offers(self, name: RunMode) -> bool:
        """Whether a run in this mode can be worked on here."""
        return name in self._modes

    async def run(self, record: RunRecord, journal: Journal) -> RunStatus:
        """Takes the run from where its log ends to `done`. Returns how it ended. Raises Parked when it waits for a person."""
        if journal.progress.done is not None:
            return journal.progress.done.status
        if (broken := check_not_breaking(journal)) is not None:
            await self.remember_unfinished(record, journal, RunStatus.FAILED)
            return await end(journal, RunStatus.FAILED, broken)
        mode = self.named(record.request.mode)
        with mode.admitted(journal.progress.mode) as served_as:
            run = await Run.begin(journal, self._started(mode, record.request, served_as))
            with report_safety_to(run.say), use_sampling(record.request.sampling):
                await self._say_if_no_local_model(run, record)
                if strictest(self.guard, record.request.guard) is not Guard.PASS:
                    await flag_question(record.request.question)
                delivery = await self._deliveries.read(run, record) if mode.delivers else None
                do = partial(self._answered, mode, run, record, delivery)
                answer = await run.once("answer", do, Answer, of_steps=True)
                status = RunStatus.TIMEOUT if journal.progress.is_time_up else status_of(answer)
                if delivery is not None:
                    # A person may take long to decide: meanwhile the thread goes on, with this answer in it.
                    await self._services.threads.remember(journal, record, answer, status)
                    await self._deliveries.deliver(run, record, delivery, answer)
            await run.tell_usage()
            if delivery is None:
                await self._services.threads.remember(journal, record, answer, status)
            if mode.remembers:
                await self._services.remembering.queue(journal, record)
            return await run.end(status)

    async def _say_if_no_local_model(self, run: Run, record: RunRecord) -> None:
        is_new = run.journal.progress.answer is None
        if is_new and record.local_models_only and not self._services.drafter.model_name:
            error = LocalModelsOnly("a collection that this may search allows local models only, and there is none")
            await run.say(degraded("answer", "language_model", error, "Answering without a model."))

    async def _answered(self, mode: Mode, run: Run, record: RunRecord, delivery: Delivery | None) -> Answer:
        if delivery is None:
            return await mode.answer(run, record)
        earlier = await self._deliveries.earlier_answer(run, record, delivery)
        return earlier or await mode.answer(run, delivery.asked(record))

    async def remember_unfinished(self, record: RunRecord, journal: Journal, status: RunStatus) -> None:
        """Keeps the turn of a run that ends without having been answered to its end."""
        await self._services.threads.remember_unfinished(journal, record, status)

    def _started(self, mode: Mode, request: RunRequest, served_as: RunMode) -> RunStarted:
        return RunStarted(
            mode=served_as,
            question=request.question,
            thread_id=request.thread_id,
            collection_ids=request.collection_ids,
            budgets=in_force(usual_for(request.budgets, mode.usual), mode.budgets),
            model=self._services.drafter.model_name,
        )


def discover_modes(services: ModeServices, settings: OrchestratorSettings, package: ModuleType = folder) -> Modes:
    """All modes of the package. Raises BrokenModule."""
    modules = [load() for _, load in modules_in(package)]
    built = [module.build_mode(services, settings) for module in modules if hasattr(module, "build_mode")]
    return Modes(built, services)


def listed(modes: Iterable[Mode]) -> str:
    """Their names, for a message."""
    names = [mode.name.value for mode in modes]
    return f"{', '.join(names[:-1])} or {names[-1]}" if len(names) > 1 else "".join(names) or "another"
