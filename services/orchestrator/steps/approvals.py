"""Questions to a person. A question is an event; so is the decision, which anybody who may can append while the run is parked, and
after which any worker continues the run."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from kit.errors import Unavailable
from services.orchestrator.errors import ApprovalClosed, ApprovalNotFound, FencedOff, NotYoursToDecide
from services.orchestrator.log.events import Approval, ApprovalDecision, StepState
from services.orchestrator.log.journal import Journal
from services.orchestrator.models import RunKey, RunRecord
from services.orchestrator.ports import EventLog
from services.orchestrator.steps.effects import arguments_hash

_TRIES = 5
"""Two people may decide at once; each append that comes too late looks again."""


@dataclass(frozen=True)
class ApprovalRequest:
    """What a person is asked: may this tool be called with these arguments?"""

    tool: str
    arguments: Mapping[str, Any]
    expires_at: datetime
    may_decide: Sequence[str] = ()
    """Subjects; empty means the subject whose run it is."""

    def question(self, step: str) -> Approval:
        hash_ = arguments_hash(self.arguments)
        return Approval(step, self.tool, self.arguments, hash_, tuple(self.may_decide), self.expires_at)


@dataclass(frozen=True)
class Decision:
    """What came of a question."""

    allowed: bool
    expired: bool = False
    decided_by: str = ""

    @classmethod
    def of(cls, approval: Approval) -> "Decision":
        # A decision that only a newer version knows allows nothing.
        return cls(
            approval.decision is ApprovalDecision.ALLOWED,
            approval.decision is ApprovalDecision.EXPIRED,
            approval.decided_by,
        )


class Approvals:
    """Takes decisions for parked runs. `resume` lets a run go on that is parked, and does nothing with one that is not."""

    def __init__(self, log: EventLog, resume: Callable[[RunKey], Awaitable[None]], now: Callable[[], datetime]) -> None:
        self._log = log
        self._resume = resume
        self._now = now

    async def decide(
        self, run: RunRecord, approval_id: str, arguments_hash_: str, subject: str, *, allowed: bool
    ) -> Approval:
        """Appends the decision about the call with these arguments, and lets the run go on. Harmless when repeated.

        Raises ApprovalNotFound, NotYoursToDecide, ApprovalClosed, or Unavailable when the log cannot be written.
        """
        wanted = ApprovalDecision.ALLOWED if allowed else ApprovalDecision.DENIED
        for _ in range(_TRIES):
            journal = await Journal.open(run.key, self._log, self._now)
            asked = self._asked(journal, run, approval_id, arguments_hash_, subject, wanted)
            decided = replace(asked, decision=wanted, decided_by=subject)
            if asked.decision is ApprovalDecision.PENDING:
                try:
                    await _append(journal, approval_id, decided)
                except FencedOff:
                    continue
            await self._resume(run.key)
            return decided
        raise Unavailable(f"run {run.key.run_id} is being written by others; try again", retry_after_s=1.0)

    def _asked(
        self,
        journal: Journal,
        run: RunRecord,
        approval_id: str,
        arguments_hash_: str,
        subject: str,
        wanted: ApprovalDecision,
    ) -> Approval:
        asked = journal.progress.approvals.get(approval_id)
        if asked is None or asked.arguments_hash != arguments_hash_:
            raise ApprovalNotFound(
                f"run {run.key.run_id} has not asked {approval_id[:80]!r} about these arguments; read its events again"
            )
        if subject not in (asked.may_decide or (run.subject,)):
            raise NotYoursToDecide(f"{approval_id} is not yours to decide; ask one of those whom the event names")
        if asked.decision is ApprovalDecision.PENDING:
            if journal.progress.done is not None:
                raise ApprovalClosed(f"run {run.key.run_id} has ended; nothing can be decided any more")
            if asked.expires_at <= self._now():
                raise ApprovalClosed(f"{approval_id} expired at {asked.expires_at.isoformat()}; ask again")
        elif asked.decision is not wanted:
            raise ApprovalClosed(f"{approval_id} was decided already: {asked.decision.value}")
        return asked


async def _append(journal: Journal, step: str, decided: Approval) -> None:
    await journal.record(step, decided, StepState())
    if not journal.durable:
        raise Unavailable("the decision could not be written; try again in a few seconds", retry_after_s=2.0)
