"""What the orchestrator keeps about runs besides their events."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from services.orchestrator.log.events import (
    AgentChosen,
    Answer,
    Budgets,
    Done,
    Payload,
    Plan,
    Retrieval,
    RunMode,
    RunStatus,
    Token,
    Usage,
    Verification,
)


@dataclass(frozen=True)
class BroughtName:
    """A model that a user brought. Its address and key are kept elsewhere, sealed; see runs/brought_models.py."""

    model: str
    preset: str = ""


@dataclass(frozen=True)
class RunRequest:
    """What was asked."""

    mode: RunMode
    question: str
    collection_ids: Sequence[str] = ()
    thread_id: str = ""
    agent: str = ""
    document_ids: Sequence[str] = ()
    budgets: Budgets = Budgets()
    top_k: int = 0
    model_credentials: BroughtName | None = None
    """The model that the user brought, if any."""


@dataclass(frozen=True)
class RunKey:
    """A run's full name: run ids are unique within their tenant."""

    tenant_id: str
    run_id: str

    @property
    def started_at_s(self) -> float:
        """Seconds since 1970: run ids begin with their time, 12 hex digits of milliseconds."""
        return int(self.run_id[:12], 16) / 1000


@dataclass(frozen=True)
class Dependent:
    """A run as a holder of text that comes from elsewhere, and the thread that its answer went into: both are erased with it."""

    key: RunKey
    thread_id: str = ""
    subject: str = ""
    """Whose thread."""


@dataclass(frozen=True)
class RunRecord:
    """The summary of a run. It holds the whole request, so that any orchestrator can take the run over."""

    key: RunKey
    subject: str
    request: RunRequest
    status: RunStatus
    created_at: datetime
    finished_at: datetime | None = None
    forgotten_at: datetime | None = None
    """When its events were erased, because a document that they quote was deleted."""

    traceparent: str = ""
    """The request that asked, as a W3C traceparent: whoever works on the run, at once or after a death, does it in that trace."""

    @property
    def dependent(self) -> Dependent:
        return Dependent(self.key, self.request.thread_id, self.subject)

    def finished(self, status: RunStatus, at: datetime) -> "RunRecord":
        return replace(self, status=status, finished_at=at)


@dataclass
class Progress:
    """How far a run has come: the fold of its log. A run that is taken over continues from here."""

    seq: int = 0
    started: bool = False
    agent: AgentChosen | None = None
    plan: Plan | None = None
    retrieval: Retrieval | None = None
    shown: str = ""
    verification: Verification | None = None
    answer: Answer | None = None
    usage: Usage | None = None
    done: Done | None = None

    def apply(self, seq: int, payload: Payload) -> None:
        self.seq = seq
        self.started = True
        match payload:
            case AgentChosen():
                self.agent = payload
            case Plan():
                self.plan = payload
            case Retrieval():
                self.retrieval = payload
            case Token():
                self.shown = self.shown[: payload.offset] + payload.text
            case Verification():
                self.verification = payload
            case Answer():
                self.answer = payload
            case Usage():
                self.usage = payload
            case Done():
                self.done = payload
            case _:
                pass


@dataclass(frozen=True)
class Turn:
    """One message of a thread's history."""

    role: str
    text: str
    run_id: str = ""
    """Run that wrote it, if one did."""


@dataclass(frozen=True)
class SearchQuery:
    """What the retriever is asked. `queries` starts with the user's own words."""

    queries: Sequence[str]
    collection_ids: Sequence[str]
    document_ids: Sequence[str] = ()
    top_k: int = 8


@dataclass(frozen=True)
class Page:
    """One page of a listing of runs."""

    runs: Sequence[RunRecord] = field(default_factory=list)
    next_page_token: str = ""


@dataclass(frozen=True)
class RunLimits:
    """Limits of the run service; see settings.py for their reasons."""

    wall_clock_s: float = 120.0
    lease_s: float = 5.0
    max_concurrent_runs: int = 256
