"""A mode: one way to serve a run. A module of this folder that has a function `build_mode` is one: it is found there, and nothing
registers it. The frame around every mode, from the first event of a run to the last, is in serving.py."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Protocol

from kit.llm import LanguageModel
from services.orchestrator.answering.drafting import Drafter
from services.orchestrator.guard.policy import Guard
from services.orchestrator.log.events import Answer, Budgets, RunMode
from services.orchestrator.models import RunRecord
from services.orchestrator.modes.agents import Agents
from services.orchestrator.modes.threads import Threads
from services.orchestrator.ports import Library, RunSources, Searcher, SentenceScorer, Tools
from services.orchestrator.remembering.recalling import NothingRemembered, Remembering
from services.orchestrator.steps.run import Run
from services.orchestrator.verification.checks import Checks


@dataclass(frozen=True)
class ModeServices:
    """What modes are built from: `build_mode(services, settings) -> Mode`."""

    searcher: Searcher
    tools: Tools
    sources: RunSources
    threads: Threads
    model: LanguageModel
    """One without a name is none."""

    drafter: Drafter
    """Asks the same model."""

    agents: Agents

    scorer: SentenceScorer
    """Says how near texts are in meaning."""

    library: Library
    """Reads whole documents."""

    held: Callable[[], AbstractContextManager[None]] = nullcontext
    """Within it the model stays the same one."""

    checks: Checks = field(default_factory=Checks)
    """How answers are checked."""

    remembering: Remembering = field(default_factory=NothingRemembered)
    """What is remembered of users."""

    guard: Guard = Guard.FLAG
    """What becomes of questions that are not safe, unless a request is stricter."""

    approval_life_s: float = 900.0
    """How long a person has to allow an e-mail with an answer."""

    is_agent_on: Callable[[str], bool] = lambda _: True
    """Whether an operator has left the agent of this name switched on."""


class Mode(Protocol):
    """One way to serve a run. What a mode does not say itself is as it stands here."""

    name: RunMode
    description: str
    """One sentence for people: what the mode does with a question."""

    budgets: Budgets
    """The most that a request gets."""

    usual: Budgets = Budgets()
    """What a request gets that does not say; zero stands for the most."""

    needs_collections: bool = True
    """Whether a request must name collections."""

    takes_documents: bool = True
    """Whether a request may name documents to keep to."""

    takes_tools: bool = False
    """Whether a request may choose tools."""

    only_reads: bool = False
    """Whether only tools that change nothing may be chosen."""

    takes_agents: bool = False
    """Whether a request may name an agent."""

    takes_functions: bool = False
    """Whether a request may bring functions of its caller's, and a schema for its answer."""

    takes_research: bool = False
    """Whether a request may say how the run goes about research."""

    speaks: bool = False
    """Whether a request may ask for an answer that is going to be read aloud."""

    delivers: bool = False
    """Whether an answer is mailed where the message asks for it."""

    remembers: bool = False
    """Whether what is remembered of the user is used, and the turn is learnt from."""

    answers_late: bool = False
    """Whether a run whose time is up is asked for an answer from what it has found; see `Progress.is_time_up`."""

    @contextmanager
    def admitted(self, decided: RunMode | None) -> Iterator[RunMode]:
        """How the run is served while it is worked on: as was `decided` when it began, or as the mode decides now."""
        yield decided or self.name

    async def answer(self, run: Run, record: RunRecord) -> Answer:
        """The answer. It reads as a plain program: what stands in `run.once` is done once, whichever process works on the run.
        Raises Parked when a call waits for a person."""
        ...
