"""A run as one answer: its events gathered, for clients that ask for JSON instead of a stream."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing
from dataclasses import dataclass, field

from groundwork.orchestrator.v1 import orchestrator_pb2 as pb

from kit.errors import Cancelled, DeadlineExceeded, GroundworkError, Internal
from services.gateway.backends import Backends
from services.gateway.models import Json, RunEvent
from services.gateway.problems import error_of

_LOOK_EVERY_S = 0.25
"""How often a run that has asked for an approval is looked at: whether other calls of it still go on is not in its events."""

_NO_ANSWER: Json = {
    "citations": [],
    "support_status": None,
    "method": "",
    "answer_confidence": None,
    "answer_status": None,
    "closest": [],
}
"""What of an `answer` event is in the response besides its text, as it is before one has come."""


@dataclass
class Gathered:
    """What a run has told so far."""

    run_id: str = ""
    thread_id: str | None = None
    status: str = ""
    answer: Json = field(default_factory=lambda: {"answer": "", **_NO_ANSWER})
    usage: Json = field(default_factory=dict)
    degraded: list[Json] = field(default_factory=list)
    calls: dict[str, Json] = field(default_factory=dict)
    """Calls of tools by their id, in order of their beginning."""
    pending: dict[str, Json] = field(default_factory=dict)
    """Approvals that nobody has decided about, by their id."""
    failure: Json | None = None

    def add(self, event: RunEvent) -> None:
        self.run_id = event.run_id
        data = event.data
        match event.kind:
            case "run":
                self.thread_id = data["thread_id"]
            case "thinking" | "retrieval":
                self._note(data["degraded"])
            case "tool" | "tool_result":
                self._take_call(event.kind, data)
            case "approval":
                self._take_approval(data)
            case "answer":
                named = {name: data[name] for name in _NO_ANSWER}
                self.answer = {"answer": data["text"], **named}
            case "usage":
                self.usage = data
            case "error":
                self.failure = data
            case "done":
                self.status = data["status"]

    def _note(self, degraded: Json | list[Json] | None) -> None:
        told = degraded if isinstance(degraded, list) else [degraded] if degraded else []
        self.degraded += [each for each in told if each not in self.degraded]

    def _take_call(self, kind: str, data: Json) -> None:
        if kind == "tool":
            call = {name: data[name] for name in ("call_id", "name", "arguments", "step")}
            self.calls[str(data["call_id"])] = {**call, "ok": None, "summary": "", "duration_ms": None, "error": None}
        elif data["call_id"] in self.calls:
            self.calls[data["call_id"]] |= {name: data[name] for name in ("ok", "summary", "duration_ms", "error")}

    def _take_approval(self, data: Json) -> None:
        if data["decision"] == "pending":
            self.pending[str(data["approval_id"])] = data
        else:
            self.pending.pop(str(data["approval_id"]), None)

    def body(self) -> Json:
        """What came of the run. Raises what it ended with instead of an answer."""
        self._raise_unless_answered()
        known = {"run_id": self.run_id, "status": self.status, "usage": self.usage, "degraded": self.degraded}
        return {**known, **self.answer}

    def _raise_unless_answered(self) -> None:
        error: GroundworkError
        where = f"see GET /v1/runs/{self.run_id}/events"
        match self.status:
            case "completed" | "refused":
                return
            case "timeout" if self.answer["answer"]:  # with what was found by then
                return
            case "cancelled":
                error = Cancelled(
                    f"run {self.run_id} was cancelled before it had answered; {where}", reason="RUN_CANCELLED"
                )
            case "timeout":
                error = DeadlineExceeded(
                    f"run {self.run_id} ran out of time; {where}, or ask again", reason="RUN_TIMEOUT"
                )
            case _ if self.failure:
                error = error_of(self.failure["code"], self.failure["message"], self.failure["reason"])
            case _:
                error = Internal(f"run {self.run_id} ended without an answer; {where}", reason="RUN_FAILED")
        error.metadata["run_id"] = self.run_id
        raise error


async def gathered(events: AsyncIterator[RunEvent], services: Backends) -> Gathered:
    """All that the run tells to its end, or until it does nothing but wait for a person's decision: then its status is `waiting`.
    Raises what the stream raises."""
    found = Gathered()
    reader = asyncio.create_task(_read(events, found))
    try:
        while not (await asyncio.wait({reader}, timeout=_LOOK_EVERY_S))[0]:
            if found.pending and await _is_waiting(found.run_id, services):
                found.status = "waiting"
                return found
        await reader
    finally:
        reader.cancel()
        await asyncio.gather(reader, return_exceptions=True)
    return found


async def _read(events: AsyncIterator[RunEvent], found: Gathered) -> None:
    async with aclosing(events):  # type: ignore[type-var] # `follow` is an async generator
        async for event in events:
            found.add(event)


async def _is_waiting(run_id: str, services: Backends) -> bool:
    try:
        answer = await services.orchestrator.GetRun(
            pb.GetRunRequest(run_id=run_id), timeout=services.settings.rpc_timeout_s
        )
    except GroundworkError:
        return False  # the stream will tell what is wrong
    return bool(answer.run.status == pb.RUN_STATUS_WAITING)
