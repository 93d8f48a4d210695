"""Questions to a person, and what came of them. A question is an event, and so is the decision; see runs/approvals.py."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from services.orchestrator.log.events import Approval, ApprovalDecision
from services.orchestrator.steps.calls import arguments_hash


@dataclass(frozen=True)
class ApprovalRequest:
    """What a person is asked: may this tool be called with these arguments?"""

    tool: str
    arguments: Mapping[str, Any]
    expires_at: datetime
    """Counts at the first asking; a run that is continued keeps to it. At most `settings.approval_life_s` away."""
    may_decide: Sequence[str] = ()
    """Subjects; empty means the subject whose run it is."""
    is_tainted: bool = False
    """Whether text that the user did not write is in the run's context."""
    tainted_arguments: Sequence[str] = ()
    """Names of the arguments that came from such text."""

    def question(self, approval_id: str) -> Approval:
        hash_ = arguments_hash(self.arguments)
        return Approval(
            approval_id,
            self.tool,
            self.arguments,
            hash_,
            tuple(self.may_decide),
            self.expires_at,
            is_tainted=self.is_tainted,
            tainted_arguments=tuple(self.tainted_arguments),
        )


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
