"""How far a run has come: the fold of its log. The process that continues the run starts from here."""

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from services.orchestrator.log.events import (
    Answer,
    Approval,
    ApprovalDecision,
    Artefact,
    Asked,
    Budgets,
    Done,
    InputRequest,
    InputState,
    Payload,
    RunError,
    RunEvent,
    RunMode,
    RunParked,
    RunStarted,
    StepPhase,
    StepState,
    StepUsage,
    Thinking,
    Token,
    Usage,
)
from services.orchestrator.models import Outcome

RESUMED = "resume"
"""Phase of the event that says that another worker continues the run."""
TIME_UP = "timeout"
"""Step of a run whose time has run out and that answers with what it has found."""
DELIVERY = "delivery"
"""Step of a run that is asked to mail its answer; what is done about it has keys below."""
_DAMAGED = "EVENT_DAMAGED"


def approval_id(run_id: str, step: str) -> str:
    """Of the question that a step asks. It names the run, so that a decision finds it, and fits a segment of a URL's path."""
    return f"{run_id}-{hashlib.sha256(step.encode()).hexdigest()[:12]}"


@dataclass(frozen=True)
class Recorded:
    """The event that tells of a step's result, or of an effect that is about to be caused."""

    payload: Payload
    state: StepState


@dataclass
class Progress:
    """What the log says so far. Apply its events in order."""

    seq: int = 0
    mode: RunMode | None = None
    """How the run is served, as the log says; None before it has begun."""
    budgets: Budgets = Budgets()
    """The budgets in force, as the log says."""
    shown: str = ""
    """Text of the answer that has been shown."""
    answer: Answer | None = None
    artefacts: dict[str, Artefact] = field(default_factory=dict)
    """By their id, in order of their beginning."""
    usage: Usage | None = None
    error: RunError | None = None
    done: Done | None = None
    results: dict[str, Recorded] = field(default_factory=dict)
    """By step."""
    intents: dict[str, Recorded] = field(default_factory=dict)
    """Of effects, by step; those whose result is known are in here too."""
    approvals: dict[str, Approval] = field(default_factory=dict)
    """By step, in the order in which they were asked: the question, or the decision once there is one."""
    inputs: dict[str, InputRequest] = field(default_factory=dict)
    """By step: the question to the user, or what came of it once something has."""
    asked_at: dict[str, datetime] = field(default_factory=dict)
    """By step: when its question was asked."""
    parked: RunParked | None = None
    """What the run waits for, as the log says; None while it goes on."""
    has_unread_decision: bool = False
    """Somebody has decided since a worker last began."""
    spent: dict[str, StepUsage] = field(default_factory=dict)
    """By step, in order of their beginning."""
    began_at: datetime | None = None
    worked_s: float = 0.0
    damaged: bool = False
    """An entry cannot be read: it may have been an intent."""
    resumes: int = 0
    """How often another worker continued the run."""
    fruitless_resumes: int = 0
    """How often the run was continued in a row without anything having come of it."""

    @classmethod
    def of(cls, events: Iterable[RunEvent]) -> "Progress":
        """What a log says that begins with these."""
        progress = cls()
        for event in events:
            progress.apply(event)
        return progress

    @property
    def started(self) -> bool:
        return self.seq > 0

    @property
    def is_time_up(self) -> bool:
        return TIME_UP in self.results

    @property
    def pending(self) -> Sequence[Approval]:
        """The questions that nobody has decided."""
        return [each for each in self.approvals.values() if each.decision is ApprovalDecision.PENDING]

    @property
    def pending_input(self) -> InputRequest | None:
        """The question that the user has not answered."""
        return next((each for each in self.inputs.values() if each.state is InputState.PENDING), None)

    @property
    def waiting_since(self) -> datetime | None:
        """When the oldest question that nobody has answered was asked."""
        approvals = [step for step, each in self.approvals.items() if each.decision is ApprovalDecision.PENDING]
        inputs = [step for step, each in self.inputs.items() if each.state is InputState.PENDING]
        return min((self.asked_at[step] for step in (*approvals, *inputs)), default=None)

    @property
    def outcome(self) -> Outcome:
        return Outcome(self.answer, self.usage, self.error)

    def apply(self, event: RunEvent) -> None:
        is_resume = isinstance(event.payload, Thinking) and event.payload.phase == RESUMED
        self.resumes += is_resume
        self.fruitless_resumes = self.fruitless_resumes + 1 if is_resume else 0
        self.has_unread_decision = self.has_unread_decision and not is_resume
        if event.state is not None:
            self.worked_s = max(self.worked_s, event.state.worked_s)
        self.seq = event.seq
        self.began_at = self.began_at or event.at
        self._apply_to_step(event)
        if not isinstance(event.payload, Asked):
            self.parked = event.payload if isinstance(event.payload, RunParked) else None
        match event.payload:
            case RunStarted():
                self.mode, self.budgets = event.payload.mode, event.payload.budgets
            case Token(text, offset):
                self.shown = self.shown[:offset] + text
            case Answer():
                self.answer = event.payload
            case Artefact(artefact_id):
                self.artefacts[artefact_id] = event.payload
            case Usage() | RunError() | Done():
                self._apply_ending(event.payload)
            case Thinking(degraded=degraded) if degraded is not None and degraded.reason == _DAMAGED:
                self.damaged = True
            case _:
                pass

    def _apply_ending(self, payload: Usage | RunError | Done) -> None:
        match payload:
            case Usage():
                self.usage = payload
            case RunError():
                self.error = payload
            case Done():
                self.done = payload

    def _apply_to_step(self, event: RunEvent) -> None:
        state, step = event.state, event.step
        if state is None or not step:
            return
        if state.spent is not None:
            self.spent[step] = state.spent
        if isinstance(event.payload, Asked):
            self._apply_asked(event, event.payload)
        elif state.phase is StepPhase.RESULT:
            self.results[step] = Recorded(event.payload, state)
        elif state.phase is StepPhase.INTENT:
            self.intents[step] = Recorded(event.payload, state)

    def _apply_asked(self, event: RunEvent, asked: Asked) -> None:
        if isinstance(asked, Approval):
            self.approvals[event.step] = replace(asked, approval_id=approval_id(event.run_id, event.step))
        else:
            self.inputs[event.step] = asked
        self.asked_at.setdefault(event.step, event.at)
        self.has_unread_decision |= asked.is_decided
