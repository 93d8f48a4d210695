"""The vocabulary of a run, as the core speaks it: one frozen dataclass per message of orchestrator.proto and state.proto, of
the same name and field for field; a field `x_s` is the contract's Duration `x`. What a client may see of a run is a payload,
nothing else. UNKNOWN stands for what a newer version wrote."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum
from typing import Any


class RunMode(Enum):
    CHAT = "chat"
    GROUNDED = "grounded"
    QA = "qa"
    AGENT = "agent"
    UNKNOWN = "unknown"


class RunStatus(Enum):
    RUNNING = "running"
    COMPLETED = "completed"
    REFUSED = "refused"
    CANCELLED = "cancelled"
    TIMEOUT = "timeout"
    FAILED = "failed"
    WAITING = "waiting"
    """For a person's decision."""
    UNKNOWN = "unknown"


class SupportStatus(Enum):
    SUPPORTED = "supported"
    PARTIAL = "partial"
    INSUFFICIENT = "insufficient"
    UNAVAILABLE = "unavailable"
    UNKNOWN = "unknown"
    SIMILAR_WORDING = "similar_wording"
    """Every claim is worded like its citations, by a judge that may not say more."""


class AnswerStatus(Enum):
    """Whether an answer answers its question, by its calibrated confidence."""

    LIKELY = "likely"
    UNCERTAIN = "uncertain"
    UNLIKELY = "unlikely"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class Degradation:
    """What was done in a lesser way than asked, and why."""

    part: str
    reason: str
    message: str


@dataclass(frozen=True)
class BoundingBox:
    """The place of a line on a page, PDF points, origin top left."""

    page: int
    x0: float
    y0: float
    x1: float
    y1: float
    char_start: int = 0
    char_end: int = 0
    """0 where it is not known which characters of the passage the rectangle is of."""


@dataclass(frozen=True)
class Origin:
    """Who wrote a passage, when and where; what is not known is empty."""

    channel: str = ""
    author: str = ""
    date: str = ""
    """ISO 8601."""
    message_id: str = ""
    read_at: str = ""
    """When a page of the web was read, ISO 8601."""


@dataclass(frozen=True)
class Budgets:
    """Limits of a run. Zero means the service's setting in a request, and no limit once the run has begun."""

    wall_clock_s: float = 0.0
    """Of time worked."""
    answer_tokens: int = 0
    steps: int = 0
    tool_calls: int = 0
    parallel_calls: int = 0
    tokens: int = 0
    cost_usd: float = 0.0
    reasoning_steps: int = 0


class Payload:
    """What happened in a run."""


@dataclass(frozen=True)
class RunStarted(Payload):
    mode: RunMode
    question: str
    thread_id: str = ""
    collection_ids: Sequence[str] = ()
    budgets: Budgets = Budgets()
    model: str = ""


@dataclass(frozen=True)
class AgentChosen(Payload):
    name: str
    chosen_by: str


@dataclass(frozen=True)
class Thinking(Payload):
    phase: str
    text: str
    degraded: Degradation | None = None


@dataclass(frozen=True)
class MetadataValues:
    """One metadata field and the values that it may have."""

    key: str
    values: Sequence[str]


@dataclass(frozen=True)
class SearchFilter:
    """What every search of a run keeps to."""

    metadata: Sequence[MetadataValues] = ()
    date_from: datetime | None = None
    date_to: datetime | None = None

    @property
    def is_set(self) -> bool:
        return bool(self.metadata) or self.date_from is not None or self.date_to is not None


@dataclass(frozen=True)
class SubQuery:
    """One search of a round."""

    text: str
    purpose: str
    strategy: str = ""
    filter: SearchFilter | None = None


@dataclass(frozen=True)
class Plan(Payload):
    route: str
    queries: Sequence[str]
    reasons: Sequence[str] = ()
    sub_queries: Sequence[SubQuery] = ()
    must_phrases: Sequence[str] = ()
    should_phrases: Sequence[str] = ()
    filter: SearchFilter | None = None
    planned_by: str = ""
    round: int = 0
    effort: str = ""
    parts: Sequence[str] = ()
    investigation: str = ""


@dataclass(frozen=True)
class StageRank:
    """Where a passage stood at one stage of one search."""

    stage: str
    rank: int
    score: float
    query: str = ""


@dataclass(frozen=True)
class DroppedPassage:
    """A passage that was found and left out."""

    chunk_id: str
    document_name: str
    stage: str
    kept_chunk_id: str = ""


@dataclass(frozen=True)
class Evidence:
    """One passage of the evidence set; `number` is what a citation says."""

    number: int
    chunk_id: str
    document_id: str
    document_name: str
    text: str
    page: int = 0
    heading_path: Sequence[str] = ()
    score: float = 0.0
    dense_score: float | None = None
    char_start: int = 0
    char_end: int = 0
    bounding_boxes: Sequence[BoundingBox] = ()
    collection_id: str = ""
    ranks: Sequence[StageRank] = ()
    origin: Origin | None = None


@dataclass(frozen=True)
class Retrieval(Payload):
    evidence: Sequence[Evidence]
    degraded: Sequence[Degradation] = ()
    timings_ms: Mapping[str, float] = field(default_factory=dict)
    strategy: str = ""
    round: int = 0
    dropped: Sequence[DroppedPassage] = ()
    searches: int = 0
    investigation: str = ""


class PartState(Enum):
    """How far a part of a question is covered."""

    FOUND = "found"
    PARTLY = "partly"
    CONFLICTING = "conflicting"
    MISSING = "missing"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class CoveragePart:
    """One part of a question, with the numbers of the passages that speak of it."""

    text: str
    kind: str
    state: PartState
    score: float
    evidence: Sequence[int] = ()


@dataclass(frozen=True)
class Coverage(Payload):
    """What the evidence covers of a question."""

    parts: Sequence[CoveragePart]
    share: float
    round: int = 0
    investigation: str = ""


@dataclass(frozen=True)
class Safety(Payload):
    """Something that is not safe was seen, in a text that a model is given or in one that it wrote."""

    place: str
    kind: str
    rule: str
    action: str
    passage: int = 0
    start: int = 0
    end: int = 0
    text: str = ""


@dataclass(frozen=True)
class Token(Payload):
    """A piece of the answer. One that starts below what was already shown replaces it from there."""

    text: str
    offset: int


@dataclass(frozen=True)
class CheckedBy:
    """Who has judged a claim, and how often that judge is wrong."""

    name: str
    measured: bool = False
    """Whether its error was measured and is small enough for it to say that a source supports a claim."""
    false_passed: float | None = None
    true_failed: float | None = None
    claims: int = 0


@dataclass(frozen=True)
class DecidingSpan:
    """The words of a passage that decide about a claim."""

    document_id: str
    document_name: str
    chunk_id: str
    start: int
    end: int
    text: str


@dataclass(frozen=True)
class SentenceVerdict:
    """The verdict on one claim; `start` and `end` are its place in the answer."""

    sentence: str
    verdict: str
    citations: Sequence[int]
    score: float
    is_action: bool = False
    start: int = 0
    end: int = 0
    span: DecidingSpan | None = None
    probability: float | None = None
    checked_by: CheckedBy | None = None
    searched: bool = False
    removed: bool = False


@dataclass(frozen=True)
class ClaimChecked(Payload):
    """A claim was checked. A later one of the same index replaces it."""

    index: int
    verdict: SentenceVerdict


@dataclass(frozen=True)
class Verification(Payload):
    sentences: Sequence[SentenceVerdict]
    citation_precision: float
    citation_coverage: float
    support_status: SupportStatus | None
    """None: nothing was judged."""
    answer_confidence: float | None = None
    answer_status: AnswerStatus | None = None
    checked_by: CheckedBy | None = None
    verify: str = ""
    removed: int = 0
    citation_recall: float = 0.0
    """Share of claims that are carried by the citations they were written with."""


@dataclass(frozen=True)
class Citation:
    """A cited passage; the quote is the span of `text` that carries the claim."""

    number: int
    document_id: str
    document_name: str
    chunk_id: str
    page: int
    text: str
    quote_start: int = 0
    quote_end: int = 0
    bounding_boxes: Sequence[BoundingBox] = ()
    heading_path: Sequence[str] = ()
    origin: Origin | None = None


@dataclass(frozen=True)
class ConflictSide:
    """One value, and the citation that says it; the span is of the citation's text."""

    value: str
    citation: int
    start: int = 0
    end: int = 0
    date: str = ""
    """ISO 8601, as far as it is known."""
    document_id: str = ""
    document_name: str = ""


@dataclass(frozen=True)
class Conflict:
    """What sources disagree about; newest side first."""

    what: str
    sides: Sequence[ConflictSide]
    found_by: str = ""


@dataclass(frozen=True)
class ArtefactItem:
    """A part of an artefact that rests on passages; `path` is a JSON Pointer into the body."""

    path: str
    citations: Sequence[int] = ()


@dataclass(frozen=True)
class Artefact(Payload):
    """Something that an agent has made besides its text. A later one of the same id replaces it."""

    artefact_id: str
    kind: str
    title: str
    body: Mapping[str, Any] | None
    """By the schema of its kind. The order of an object's members is not kept: what has an order is a list."""
    items: Sequence[ArtefactItem] = ()
    citations: Sequence[Citation] = ()
    """Numbered 1, 2, 3 … within the artefact."""
    outline: str = ""
    """The same as plain text."""


@dataclass(frozen=True)
class FunctionCall:
    """A call of a function of the caller's."""

    call_id: str
    name: str
    arguments: str
    """JSON text."""


@dataclass(frozen=True)
class Answer(Payload):
    text: str
    citations: Sequence[Citation]
    support_status: SupportStatus | None
    """None: nothing was judged, since the answer claims nothing from documents."""
    method: str
    block: Mapping[str, Any] | None = None
    answer_confidence: float | None = None
    """Calibrated probability that the text answers the question; of a refusal, that an answer stands in the closest passages."""
    answer_status: AnswerStatus | None = None
    closest: Sequence[Citation] = ()
    """Of a refusal: the passages that came closest, best first."""
    conflicts: Sequence[Conflict] = ()
    """What the sources disagree about."""
    coverage: Coverage | None = None
    ending: str = ""
    """How a research run ended: an `AnswerEnding`."""
    verification: Verification | None = None
    """What was checked, claim by claim."""
    artefacts: Sequence[Artefact] = ()
    """What the agent has made besides the text."""
    function_calls: Sequence[FunctionCall] = ()
    """Functions of the caller's that the model calls: the run ends with them."""


@dataclass(frozen=True)
class StepUsage:
    """What one step took, all attempts at it together."""

    step: str
    seconds: float = 0.0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost_usd: float = 0.0
    model: str = ""

    @property
    def tokens(self) -> int:
        return self.prompt_tokens + self.completion_tokens


@dataclass(frozen=True)
class Usage(Payload):
    prompt_tokens: int = 0
    completion_tokens: int = 0
    seconds: float = 0.0
    cost_usd: float = 0.0
    step_seconds: Mapping[str, float] = field(default_factory=dict)
    model: str = ""
    steps: Sequence[StepUsage] = ()
    worked_seconds: float = 0.0
    tool_calls: int = 0


@dataclass(frozen=True)
class RunError(Payload):
    code: str
    reason: str
    message: str
    retryable: bool


@dataclass(frozen=True)
class Done(Payload):
    status: RunStatus


@dataclass(frozen=True)
class ToolCall(Payload):
    call_id: str
    name: str
    arguments: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class ToolResult(Payload):
    call_id: str
    ok: bool
    summary: str = ""
    duration_s: float = 0.0
    error_reason: str = ""
    error_message: str = ""


class ApprovalDecision(Enum):
    PENDING = "pending"
    ALLOWED = "allowed"
    DENIED = "denied"
    EXPIRED = "expired"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class Approval(Payload):
    """A question to a person (PENDING), or the answer to it."""

    approval_id: str
    tool: str
    arguments: Mapping[str, Any] | None
    arguments_hash: str
    may_decide: Sequence[str]
    expires_at: datetime
    decision: ApprovalDecision = ApprovalDecision.PENDING
    decided_by: str = ""
    is_tainted: bool = False
    """Whether text that the user did not write was in the run's context: then each call that changes something is asked about."""
    tainted_arguments: Sequence[str] = ()
    """Names of the arguments that came from such text."""

    @property
    def is_decided(self) -> bool:
        """Whether somebody has decided; a question that has expired is closed by the run itself."""
        return self.decision in (ApprovalDecision.ALLOWED, ApprovalDecision.DENIED)


class InputState(Enum):
    PENDING = "pending"
    ANSWERED = "answered"
    EXPIRED = "expired"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class InputRequest(Payload):
    """A question to the user of the run (PENDING), or what came of it."""

    question: str
    state: InputState
    text: str
    expires_at: datetime

    @property
    def is_decided(self) -> bool:
        """Whether the user has answered; a question that has expired is closed by the run itself."""
        return self.state is InputState.ANSWERED


Asked = Approval | InputRequest
"""What a run asks a person, and what came of it. The person who is asked may append it while the run waits."""


@dataclass(frozen=True)
class RunParked(Payload):
    """The run waits. It goes on at the next event that is no `Asked`."""

    waits_for: str
    approval_ids: Sequence[str]
    until: datetime


@dataclass(frozen=True)
class Unknown(Payload):
    """A payload of a kind that this version does not know; it is in `RunEvent.raw`."""


class StepPhase(Enum):
    """What an event is to its step."""

    RESULT = "result"
    INTENT = "intent"
    UNKNOWN = "unknown"
    """Also of an event that was only said."""


class EffectClass(Enum):
    """What happens when a call is made twice."""

    NONE = "none"
    IDEMPOTENT = "idempotent"
    ONCE = "once"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class StepState:
    """What is noted with an event so that another worker can continue after it. Never shown to a client."""

    phase: StepPhase | None = None
    result: bytes = b""
    worked_s: float = 0.0
    """Time worked on the run up to this event."""
    spent: StepUsage | None = None
    """By the event's step so far."""
    effect: EffectClass | None = None
    arguments_hash: str = ""


@dataclass(frozen=True)
class RunEvent:
    """One entry of a run's log. `seq` counts 1, 2, 3 … without gaps."""

    run_id: str
    seq: int
    at: datetime
    payload: Payload
    step: str = ""
    """The step that it belongs to; empty for none."""
    state: StepState | None = field(default=None, compare=False, repr=False)
    """None in logs of versions before there were steps."""
    raw: bytes | None = field(default=None, compare=False, repr=False)
    """The event as it was read from the log, so that it is passed on with what a newer version put into it."""
