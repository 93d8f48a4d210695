"""Calls by their id: made once, whatever becomes of who asked.

    effect       before the call        asked again                      its maker died in between
    none         nothing is noted       made again                       made again
    idempotent   noted                  the outcome that was noted       made again
    once         noted, or not made     the outcome that was noted       in doubt: never made again

While a call is being made, a caller that asks again waits for it. A call with an effect goes on to its end when its caller hangs
up: half an e-mail is worse than one that nobody waits for. When a run is deleted, what came of its calls is erased, and calls of it
that still arrive are refused.
"""

import asyncio
import hashlib
import json
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import datetime, timedelta

import structlog

from kit.errors import Unavailable
from services.tools.errors import (
    CallForgotten,
    CallIdMissing,
    CallIdReused,
    CallInDoubt,
    CallNotRecorded,
    InvalidArguments,
)
from services.tools.models import Call, Effect, Policy, ToolOutcome
from services.tools.ports import CallStore, NotedCall

_log = structlog.get_logger()
_MARGIN = timedelta(seconds=1)
"""Between a call's time limit and the last moment at which its end may still be noted."""
_CALL_ID_CHARACTERS_MAX = 200
_LOOK_AGAIN_S = 0.1
_END_TRIES = 5


class Calls:
    """The calls of one process."""

    def __init__(
        self,
        store: CallStore,
        *,
        now: Callable[[], datetime],
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._store = store
        self._now = now
        self._sleep = sleep
        self._running: dict[tuple[str, str], tuple[str, asyncio.Task[ToolOutcome]]] = {}

    async def once(self, call: Call, policy: Policy, make: Callable[[], Awaitable[ToolOutcome]]) -> ToolOutcome:
        """What comes of the call. Raises ToolError for a call that was not made, or whose fate is unknown."""
        if policy.effect is Effect.NONE:
            return await make()
        if not call.call_id:
            raise CallIdMissing(f"{call.name} changes something and needs a call_id; name the call, and call again")
        if len(call.call_id) > _CALL_ID_CHARACTERS_MAX:
            raise InvalidArguments(f"a call_id has at most {_CALL_ID_CHARACTERS_MAX} characters; use a shorter one")
        fingerprint = _fingerprint(call)
        key = (call.tenant_id, call.call_id)
        if key not in self._running:
            task = asyncio.create_task(self._noted(call, policy, fingerprint, make))
            self._running[key] = (fingerprint, task)
            task.add_done_callback(lambda _: self._running.pop(key))
        running, task = self._running[key]
        _check_same(call, running, fingerprint)
        return await asyncio.shield(task)

    async def forget(self, tenant_id: str, caller: str) -> None:
        """Erases what came of a run's calls; `caller` is its id. Raises Unavailable."""
        await self._store.forget(tenant_id, caller)

    async def close(self) -> None:
        """Waits for the calls that go on without their callers."""
        await asyncio.gather(*(task for _, task in self._running.values()), return_exceptions=True)

    async def _noted(
        self, call: Call, policy: Policy, fingerprint: str, make: Callable[[], Awaitable[ToolOutcome]]
    ) -> ToolOutcome:
        begun = NotedCall(fingerprint, self._now())
        try:
            there = await self._store.begin(call.tenant_id, call.call_id, begun)
        except Unavailable as error:
            raise CallNotRecorded(
                f"{call.name} was not called, since the call could not be recorded first; try again in a moment"
            ) from error
        if there is not None:
            _check_same(call, there.fingerprint, fingerprint)
            there = await self._settled(call, policy, there)
            if there.forgotten:
                raise CallForgotten(f"{call.name} is not called: the run that it was a part of has been deleted")
            if there.outcome is not None:
                return there.outcome
            if policy.effect is Effect.ONCE:
                raise CallInDoubt(
                    f"{call.name} was called at {there.begun_at:%Y-%m-%d %H:%M:%S} UTC and its end is not known: it may have been "
                    "done. It is not done again; look whether it was, before anybody does it anew"
                )
        outcome = await make()
        await self._end(call, replace(begun, outcome=outcome))
        return outcome

    async def _settled(self, call: Call, policy: Policy, there: NotedCall) -> NotedCall:
        """The call once its maker, who may be another process, has noted its end or has had the time to."""
        given_up_at = there.begun_at + timedelta(seconds=policy.timeout_s) + _MARGIN
        while there.outcome is None and not there.forgotten and self._now() < given_up_at:
            await self._sleep(_LOOK_AGAIN_S)
            try:
                there = await self._store.get(call.tenant_id, call.call_id) or there
            except Unavailable:
                continue
        return there

    async def _end(self, call: Call, ended: NotedCall) -> None:
        """Notes the outcome. If that fails, a caller that asks again gets CallInDoubt, which is true by then."""
        for tries_left in reversed(range(_END_TRIES)):
            try:
                await self._store.end(call.tenant_id, call.call_id, ended)
            except Unavailable as error:
                if not tries_left:
                    _log.error("tool_outcome_not_noted", tool=call.name, call_id=call.call_id, error=error.message)
                    return
                await self._sleep(_LOOK_AGAIN_S)
            else:
                return


def _check_same(call: Call, known: str, fingerprint: str) -> None:
    if known not in (fingerprint, ""):
        raise CallIdReused(f"call_id {call.call_id!r:.80} stands for a call with other arguments; use a new one")


def _fingerprint(call: Call) -> str:
    words = json.dumps([call.name, call.arguments], sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(words.encode()).hexdigest()
