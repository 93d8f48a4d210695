"""What the orchestrator keeps about runs besides their events."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from kit.access.principal import Principal
from kit.llm.sampling import Sampling
from services.orchestrator.log.events import (
    Answer,
    Approval,
    Artefact,
    Budgets,
    EffectClass,
    FunctionCall,
    RunError,
    RunMode,
    RunStatus,
    SearchFilter,
    Usage,
)


@dataclass(frozen=True)
class BroughtName:
    """A model that a user brought. Its address and key are kept elsewhere, sealed; see runs/brought_models.py."""

    model: str
    preset: str = ""


@dataclass(frozen=True)
class ToolSelection:
    """Tools that a run may use, by name; none means that no tool may be used."""

    names: Sequence[str] = ()


@dataclass(frozen=True)
class WithoutModel:
    """What a tool does in a chat where no model calls tools."""

    intent: str
    """What a message must ask for: the value of a Route."""

    argument: str = ""
    """The argument that gets it; empty where the tool needs none."""

    ability: str = ""
    """What the tool does, for a person: completes "I can"."""


@dataclass(frozen=True)
class Tool:
    """A tool of the tools service."""

    name: str
    description: str
    parameters: Mapping[str, Any]
    """JSON Schema of its arguments."""

    effect: EffectClass = EffectClass.NONE
    parallel_safe: bool = True
    """Whether calls may run beside each other."""

    requires_fresh_input: bool = False
    """Whether it works on what the call before it found, so that it must wait for that."""

    needs_approval: bool = False
    """Whether a person must allow each call."""

    key_arguments: Sequence[str] = ()
    """Arguments that make two calls the same; empty means all."""

    timeout_s: float = 5.0
    """Longest a call may take."""

    worth: int = 0
    """Worth to a model whose context has no room for all tools: the higher, the sooner it is shown."""

    called_for_by: Sequence[str] = ()
    """Regular expressions of messages that call for the tool."""

    without_model: WithoutModel | None = None
    self_contained: bool = False
    """Whether its result holds no text but its own and that of its arguments."""

    on_request: bool = False
    """Whether it is for runs that name it, and messages that call for it, alone."""

    outward: bool = False
    """Whether a call asks for an address that its arguments name, and so could carry data there."""

    other_names: Sequence[str] = ()
    """Other names by which a request may name it."""

    is_callers: bool = False
    """Whether it is a function of the run's caller, who makes its calls."""

    def is_named(self, names: Collection[str]) -> bool:
        """Whether one of the names is a name of this tool."""
        return any(name in names for name in (self.name, *self.other_names))


@dataclass(frozen=True)
class ResearchOptions:
    """How a research run goes about its question. What is empty is the mode's to choose."""

    effort: str = ""
    """`auto`, `low`, `medium` or `high`."""
    answer: str = ""
    """`short` or `report`."""
    filter: SearchFilter | None = None


@dataclass(frozen=True)
class HistoryMessage:
    """One message that was said before."""

    role: str
    """`user`, `assistant`, or `tool` for what came of a function call."""
    text: str
    calls: Sequence[FunctionCall] = ()
    """Functions that the assistant called."""
    call_id: str = ""
    """The call that the tool's message answers."""


@dataclass(frozen=True)
class Function:
    """A function of the caller's."""

    name: str
    description: str
    parameters: str
    """JSON Schema of its arguments, as JSON text."""


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
    tools: ToolSelection | None = None
    """None means all that the tenant may use."""
    memory: str = ""
    research: ResearchOptions | None = None
    """Of a research run; None means its defaults."""
    verify: str = ""
    """The value of a Verify; empty means as set."""
    history: Sequence[HistoryMessage] = ()
    """What was said before, where the client keeps the conversation; empty means what the thread holds."""
    guard: str = ""
    """`flag` or `block`; empty means as set."""
    style: str = ""
    """`spoken`, or empty for a written answer."""
    instructions: str = ""
    """What the application that asks tells the model besides the rules of the house."""
    functions: Sequence[Function] = ()
    """Functions of the caller's that the model may call."""
    function_choice: str = ""
    """`auto` or empty, `required`, `none`, or the name of the function that must be called."""
    one_function_at_a_time: bool = False
    called: Sequence[HistoryMessage] = ()
    """What was called for this question so far, and what came of it."""
    answer_schema: str = ""
    """JSON Schema that the model fills in, as JSON text; empty for an answer that is text."""
    sampling: Sampling | None = None
    previous_run_id: str = ""
    """The run that this one goes on from."""

    @property
    def filter(self) -> SearchFilter | None:
        """What every search of the run keeps to, also where research is off; None limits nothing."""
        return self.research.filter if self.research else None

    @property
    def repeats_calls(self) -> bool:
        """Whether it holds calls of an earlier run."""
        return any(each.calls for each in (*self.history, *self.called))

    @property
    def said(self) -> Sequence[HistoryMessage]:
        """The conversation that the request brings, with its question."""
        return (*self.history, HistoryMessage("user", self.question), *self.called)


@dataclass(frozen=True)
class RunKey:
    """A run's full name: run ids are unique within their tenant."""

    tenant_id: str
    run_id: str

    @classmethod
    def named(cls, name: str) -> "RunKey":
        """Of a key in the message store."""
        tenant_id, _, run_id = name.partition(".")
        return cls(tenant_id, run_id)

    @property
    def name(self) -> str:
        """As a key in the message store."""
        return f"{self.tenant_id}.{self.run_id}"

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
class Outcome:
    """What a run has to show for itself at its end; what it did not get to is None."""

    answer: Answer | None = None
    usage: Usage | None = None
    error: RunError | None = None


@dataclass(frozen=True)
class Wait:
    """How long a question to a person stands, and whom it concerns."""

    since: datetime
    """When it was asked."""
    until: datetime
    subjects: Sequence[str] = ()
    """Whose run it is, and who may decide."""

    def is_over(self, now: datetime) -> bool:
        """By a clock that may have been set: a time before the question is as far away as one after it, so that no wait is longer
        than twice what it should be."""
        return abs(now - self.since) >= self.until - self.since


@dataclass(frozen=True)
class RunMarker:
    """Who works on a run that has not ended. `revision` is what a change of it is compared with."""

    owner: str
    """Id of an orchestrator process; empty when nobody does."""
    begun: bool = False
    """Whether an entry of the run's log is on disk."""
    parked: bool = False
    """The run waits for somebody's decision: nobody is to work on it until it is resumed, or its wait is over."""
    wait: Wait | None = None
    """Of a parked run; None when it cannot be read."""
    revision: int = 0
    raw: bytes = field(default=b"", compare=False, repr=False)
    """The marker as it was read, so that a change of it keeps what a newer version put into it."""

    def is_due(self, now: datetime) -> bool:
        """Whether anybody may go on with a parked run; also with one whose wait cannot be read, which is parked anew."""
        return self.parked and (self.wait is None or self.wait.is_over(now))


@dataclass(frozen=True)
class MarkerChange:
    """What became of a run's marker."""

    key: RunKey
    marker: RunMarker | None
    """None when it was removed."""
    revision: int
    """Of the change, over the markers of all runs."""


@dataclass(frozen=True)
class Reserved:
    """What was reserved for a run under one limit; see limits/reservations.py."""

    scope: str
    """Whose use the limit sums up: the value of a Scope."""
    what: str
    """The value of a What."""
    window: str
    """Name of the hour, day or month."""
    amount: int
    """Units: of dollars millionths."""
    member: str = ""
    """Of whom within the tenant: the user or group, or the id of the API key."""


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
    """The request that asked, as a W3C traceparent: the run is worked on in that trace, at once or after a process has died."""

    scopes: frozenset[str] = frozenset()
    """What the caller may do: each process that works on the run acts with them."""

    groups: frozenset[str] = frozenset()
    """The groups of the asker, likewise."""

    outcome: Outcome = Outcome()
    """What came out. Empty before the end, in listings, and once it is forgotten."""

    pending: Sequence[Approval] = ()
    """What a run that waits asks, for listings. Empty when that is too long to be kept here too: then only the log has it."""

    reserved: Sequence[Reserved] = ()
    """What it may use under the limits of its user, as far as there are any."""

    local_models_only: bool = False
    """Whether it asks local models only, since a collection that it may search allows no others."""

    @property
    def principal(self) -> Principal:
        """Whom the run acts as."""
        return Principal(self.key.tenant_id, self.subject, self.scopes, groups=self.groups)

    @property
    def dependent(self) -> Dependent:
        return Dependent(self.key, self.request.thread_id, self.subject)

    @property
    def without_outcome(self) -> "RunRecord":
        return replace(self, outcome=Outcome())

    def finished(self, status: RunStatus, at: datetime, outcome: Outcome | None = None) -> "RunRecord":
        return replace(self, status=status, finished_at=at, outcome=outcome or self.outcome)


@dataclass(frozen=True)
class Turn:
    """One message of a thread's history."""

    role: str
    text: str
    run_id: str = ""
    """Run that wrote it, if one did."""
    run_status: RunStatus | None = None
    """How that run ended; None for a question, and where it is not known."""
    calls: Sequence[FunctionCall] = ()
    """Functions of the caller's that the assistant called."""
    call_id: str = ""
    """Of a tool's message: the call that it answers."""


@dataclass(frozen=True)
class QuizAnswer:
    """An answer to a question of a quiz, graded."""

    question_id: str
    given: str
    is_right: bool
    graded_by: str


@dataclass(frozen=True)
class StoredQuiz:
    """A quiz of a thread, and what was answered to it, one answer a question."""

    quiz: Artefact
    answers: Sequence[QuizAnswer] = ()


@dataclass(frozen=True)
class SearchQuery:
    """What the retriever is asked. `queries` starts with the user's own words."""

    queries: Sequence[str]
    collection_ids: Sequence[str]
    document_ids: Sequence[str] = ()
    top_k: int = 8
    strategy: str = ""
    """Engines to ask: "lexical", "dense" or "hybrid"; empty: the retriever decides."""
    metadata: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Only passages whose metadata field has one of these values."""
    date_from: datetime | None = None
    date_to: datetime | None = None
    """Only passages dated from the one on, and before the other."""
    must_phrases: Sequence[str] = ()
    """Each passage must contain all of them."""
    weights: Mapping[str, float] = field(default_factory=dict)
    """How much each engine counts, `dense` and `lexical`; empty: the retriever decides."""
    explain: bool = False
    """Whether each passage says where it stood at each stage, and what was left out is listed."""
    reranks: bool = True
    """Whether the retriever may rerank; it decides whether that pays."""

    def narrowed_to(self, kept: SearchFilter | None) -> "SearchQuery":
        """The query that also keeps to the filter. Where the two exclude each other, the query's own values or dates stay: a filter
        that a model wrote never opens what the request has closed."""
        if kept is None:
            return self
        metadata = dict(self.metadata)
        for each in kept.metadata:
            own = metadata.get(each.key, each.values)
            metadata[each.key] = tuple(value for value in own if value in each.values) or own
        begins = max(filter(None, (self.date_from, kept.date_from)), default=None)
        ends = min(filter(None, (self.date_to, kept.date_to)), default=None)
        if begins and ends and begins >= ends:
            begins, ends = self.date_from, self.date_to
        return replace(self, metadata=metadata, date_from=begins, date_to=ends)


@dataclass(frozen=True)
class ReadableDocument:
    """A document that can be read whole."""

    document_id: str
    name: str
    revision_id: str
    chunk_count: int
    source: str = ""
    """The folder of the source that it comes from; empty of an upload."""


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
    """Lifetime of a process's lease; see runs/ownership.py."""
    max_concurrent_runs: int = 256
