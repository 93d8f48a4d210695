"""What runs ask people: listed, and decided. A decision is an entry of the run's log, which anybody who may can append while the
run is parked, and after which any worker continues it.

There is no list of its own of what waits: the log is the truth, the marker of a parked run says since when it waits and for whom,
its record says what it asks. So whatever removes a run removes its questions. Every orchestrator knows all markers (see
sweeping.py), so that a page of a listing reads the records of its own runs only.
"""

import asyncio
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Protocol

import structlog

from kit.access.principal import Principal
from kit.errors import GroundworkError, Unavailable
from services.orchestrator.errors import (
    ApprovalClosed,
    ApprovalNotFound,
    FencedOff,
    InvalidRequest,
    NotYoursToDecide,
    RunDamaged,
    RunExpired,
    RunForgotten,
    RunNotFound,
)
from services.orchestrator.log.events import Approval, ApprovalDecision, Asked, RunStatus, StepState
from services.orchestrator.log.journal import Journal
from services.orchestrator.models import RunKey, RunRecord, Wait
from services.orchestrator.ports import EventLog, RunStore

_log = structlog.get_logger()
TRIES = 5
"""Two people may decide at once; each append that comes too late looks again."""
ACTED_ON_WITHIN = timedelta(seconds=10)
"""After a decision whose orchestrator dies before the run has gone on. An append that is slow but succeeds takes less."""
_READ_AT_ONCE = 32
_ID = re.compile(r"([0-9a-f]{32})-[0-9a-f]{12}")
_TOKEN = re.compile(r"([0-9]{1,18})-([0-9a-f]{32}-[0-9a-f]{12})")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_Position = tuple[int, str]
"""Of a question in listings: microseconds since 1970 since which its run has waited, and its id, which begins with the run's."""


class WaitingRuns(Protocol):
    """What decisions need of runs; see Runs."""

    async def parked(self, tenant_id: str) -> Mapping[RunKey, Wait]: ...

    async def wake_by(self, key: RunKey, at: datetime) -> None: ...

    async def resume(self, key: RunKey) -> None: ...


@dataclass(frozen=True)
class PendingApproval:
    """A question of a run, or the decision once there is one."""

    run_id: str
    subject: str
    """Whose run it is."""
    approval: Approval
    yours: bool
    """Whether who looks may decide."""


@dataclass(frozen=True)
class QuestionPage:
    """One page of a listing."""

    questions: Sequence[PendingApproval]
    next_page_token: str = ""


class Approvals:
    """Questions of all runs."""

    def __init__(self, store: RunStore, log: EventLog, runs: WaitingRuns, now: Callable[[], datetime]) -> None:
        self._store = store
        self._log = log
        self._runs = runs
        self._now = now

    async def list(self, principal: Principal, page_size: int, page_token: str) -> QuestionPage:
        """What waits, oldest first: questions of the principal's runs and those that they may decide; for an operator all of the
        tenant. Raises InvalidRequest for a page token that is none, or Unavailable."""
        page_size = min(page_size or 100, 1000)
        after = _position(page_token)
        found: list[tuple[_Position, PendingApproval]] = []
        runs = await self._waiting(principal, after)
        at_once = min(page_size + 1, _READ_AT_ONCE)
        for start in range(0, len(runs), at_once):
            batch = runs[start : start + at_once]
            asked = await asyncio.gather(*(self._asked_by(key, principal) for _, key in batch))
            for (since, _), questions in zip(batch, asked, strict=True):
                found += [(place, each) for each in questions if (place := (since, each.approval.approval_id)) > after]
            if len(found) > page_size:
                return QuestionPage([each for _, each in found[:page_size]], _token(found[page_size - 1][0]))
        return QuestionPage([each for _, each in found])

    async def resolve(
        self, principal: Principal, approval_id: str, arguments_hash: str, *, allowed: bool
    ) -> PendingApproval:
        """Appends the decision about the call with these arguments, and lets the run go on. Harmless when repeated.

        Raises ApprovalNotFound, NotYoursToDecide, ApprovalClosed, or Unavailable when the log cannot be written.
        """
        wanted = ApprovalDecision.ALLOWED if allowed else ApprovalDecision.DENIED
        run = await self._run_of(principal.tenant_id, approval_id)
        for _ in range(TRIES):
            journal = await self._journal(run, approval_id)
            step, asked = _question(journal, run, approval_id, principal, arguments_hash)
            if asked.decision is not ApprovalDecision.PENDING:
                if asked.decision is not wanted:
                    raise _closed(asked, _SETTLED[asked.decision])
                if journal.progress.has_unread_decision:
                    await go_on(self._runs, run.key)
                return PendingApproval(run.key.run_id, run.subject, asked, yours=True)
            await self._check_open(journal, run, step, asked)
            decided = replace(asked, decision=wanted, decided_by=principal.subject)
            # Before the decision: should this process die after it, the run goes on by itself.
            await self._runs.wake_by(run.key, self._now() + ACTED_ON_WITHIN)
            try:
                await append_decision(journal, step, decided)
            except FencedOff:
                continue
            await go_on(self._runs, run.key)
            return PendingApproval(run.key.run_id, run.subject, decided, yours=True)
        raise Unavailable(f"run {run.key.run_id} is being written by others; try again", retry_after_s=1.0)

    async def _waiting(self, principal: Principal, after: _Position) -> Sequence[tuple[int, RunKey]]:
        """Runs whose questions concern the principal, oldest wait first, from the one at `after` on."""
        sees_all = principal.sees_all
        waits = await self._runs.parked(principal.tenant_id)
        places = [
            (_microseconds(wait.since), key)
            for key, wait in waits.items()
            if sees_all or principal.subject in wait.subjects
        ]
        last = (after[0], after[1][:32])
        return sorted(
            (place for place in places if (place[0], place[1].run_id) >= last),
            key=lambda each: (each[0], each[1].run_id),
        )

    async def _asked_by(self, key: RunKey, principal: Principal) -> Sequence[PendingApproval]:
        """What the run asks and the principal may see, by id."""
        try:
            run, is_cancelled = await asyncio.gather(self._store.get(key), self._store.is_cancelled(key))
        except RunDamaged:
            return []
        if run is None or run.status is not RunStatus.WAITING or is_cancelled:
            return []
        now = self._now()
        pending = [each for each in run.pending or await self._pending(run) if each.expires_at > now]
        return [
            PendingApproval(key.run_id, run.subject, each, yours=_may_decide(principal, run, each))
            for each in sorted(pending, key=lambda each: each.approval_id)
            if _may_see(principal, run, each)
        ]

    async def _pending(self, run: RunRecord) -> Sequence[Approval]:
        """Of a record that has no room for its questions."""
        try:
            return (await Journal.open(run.key, self._log, self._now)).progress.pending
        except (RunNotFound, RunForgotten):
            return []

    async def _run_of(self, tenant_id: str, approval_id: str) -> RunRecord:
        match = _ID.fullmatch(approval_id)
        run = await self._store.get(RunKey(tenant_id, match[1])) if match else None
        if run is None:
            raise _not_found(approval_id)
        return run

    async def _journal(self, run: RunRecord, approval_id: str) -> Journal:
        try:
            return await Journal.open(run.key, self._log, self._now)
        except (RunNotFound, RunForgotten, RunExpired):
            raise _not_found(approval_id) from None

    async def _check_open(self, journal: Journal, run: RunRecord, step: str, asked: Approval) -> None:
        if journal.progress.done is not None or run.finished_at is not None:
            raise _closed(asked, f"can no longer be decided: run {run.key.run_id} has ended")
        if Wait(journal.progress.asked_at[step], asked.expires_at).is_over(self._now()):
            raise _closed(asked, f"expired at {asked.expires_at.isoformat()}; ask again")
        if await self._store.is_cancelled(run.key):
            raise _closed(asked, f"can no longer be decided: run {run.key.run_id} is being cancelled")


async def go_on(runs: WaitingRuns, key: RunKey) -> None:
    """Lets a run go on that has its decision. It stands, whatever comes of this: else a sweeper finds the run."""
    try:
        await runs.resume(key)
    except GroundworkError as error:
        _log.warning("decided_run_not_resumed", run_id=key.run_id, reason=error.reason, error=error.message)


async def append_decision(journal: Journal, step: str, decided: Asked) -> None:
    """Raises FencedOff when somebody else has written meanwhile, Unavailable when the log cannot be written."""
    await journal.record(step, decided, StepState())
    if not journal.durable:
        raise Unavailable("the decision could not be written; try again in a few seconds", retry_after_s=2.0)


_SETTLED = {
    ApprovalDecision.ALLOWED: "was allowed already",
    ApprovalDecision.DENIED: "was denied already",
    ApprovalDecision.EXPIRED: "has expired; ask again",
    ApprovalDecision.UNKNOWN: "was decided already",
}


def _question(
    journal: Journal, run: RunRecord, approval_id: str, principal: Principal, arguments_hash: str
) -> tuple[str, Approval]:
    """The step that asks, and what; only to whom it concerns."""
    found = ((step, each) for step, each in journal.progress.approvals.items() if each.approval_id == approval_id)
    step, asked = next(found, ("", None))
    if asked is None or not _may_see(principal, run, asked):
        raise _not_found(approval_id)
    if not _may_decide(principal, run, asked):
        raise NotYoursToDecide(
            f"{approval_id} is not yours to decide; ask one of those whom it names", approval_id=approval_id
        )
    if asked.arguments_hash != arguments_hash:
        raise ApprovalNotFound(
            f"{approval_id} is not about these arguments; read it again and decide with its arguments_hash",
            approval_id=approval_id,
        )
    return step, asked


def _may_decide(principal: Principal, run: RunRecord, asked: Approval) -> bool:
    return principal.subject in (asked.may_decide or (run.subject,))


def _may_see(principal: Principal, run: RunRecord, asked: Approval) -> bool:
    return principal.subject in (run.subject, *asked.may_decide) or principal.sees_all


def _not_found(approval_id: str) -> ApprovalNotFound:
    return ApprovalNotFound(
        f"there is no approval {approval_id[:80]!r}; list those that wait for you", approval_id=approval_id[:80]
    )


def _closed(asked: Approval, why: str) -> ApprovalClosed:
    return ApprovalClosed(f"{asked.approval_id} {why}", approval_id=asked.approval_id, decision=asked.decision.value)


def _microseconds(at: datetime) -> int:
    return (at - _EPOCH) // _MICROSECOND


def _token(position: _Position) -> str:
    return f"{position[0]}-{position[1]}"


def _position(page_token: str) -> _Position:
    if not page_token:
        return (0, "")
    match = _TOKEN.fullmatch(page_token)
    if match is None:
        raise InvalidRequest(
            "the page token is none of this listing; use next_page_token of the page before", field="page_token"
        )
    return int(match[1]), match[2]
