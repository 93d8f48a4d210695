"""A question and its run: followed to the end across broken connections, cancelled when the user no longer wants it."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

import httpx

from cli.errors import ApiError, CliError
from cli.gateway import Gateway, Json
from cli.sse import Event

RESUME_FOR_S = 60.0
"""A server that is restarted is back within seconds; after a minute without it, it is gone."""
RESUME_DELAY_S = 0.5
CANCEL_TIMEOUT_S = 5.0
PASSING_STATUSES = frozenset({429, 502, 503, 504})


@dataclass(frozen=True)
class Question:
    """What to ask, and of what."""

    text: str
    collection_ids: tuple[str, ...]
    thread_id: str | None = None
    agent: str | None = None


@dataclass
class Outcome:
    """What a run has told so far."""

    run_id: str = ""
    status: str = ""
    text: str = ""
    """The answer as streamed; `final` replaces it."""
    final: Json | None = None
    degraded: list[Json] = field(default_factory=list)
    usage: Json = field(default_factory=dict)
    error: Json | None = None
    evidence_count: int = 0

    def add(self, event: Event) -> None:
        """Takes an event in. A token piece that starts below what is there replaces it from there."""
        data = event.data
        match event.kind:
            case "run":
                self.run_id = data["run_id"]
            case "token":
                self.text = self.text[: data["offset"]] + data["text"]
            case "thinking":
                self._note(data.get("degraded"))
            case "retrieval":
                self.evidence_count = len(data["evidence"])
                for degradation in data.get("degraded", ()):
                    self._note(degradation)
            case "answer":
                self.final, self.text = data, data["text"]
            case "usage":
                self.usage = data
            case "error":
                self.error = data
            case "done":
                self.status = data["status"]

    def _note(self, degradation: Json | None) -> None:
        if degradation and degradation not in self.degraded:
            self.degraded.append(degradation)

    def as_json(self) -> Json:
        """For --json."""
        final: dict[str, Any] = self.final or {}
        return {
            "run_id": self.run_id,
            "status": self.status,
            "answer": self.text,
            "citations": final.get("citations", []),
            "support_status": final.get("support_status"),
            "method": final.get("method"),
            "degraded": self.degraded,
            "usage": {key: value for key, value in self.usage.items() if key not in {"run_id", "seq", "at"}},
            "error": self.error,
        }


async def ask(gateway: Gateway, question: Question) -> AsyncIterator[Event]:
    """The run's events, each once, to `done`. Closing or cancelling this before the end cancels the run."""
    method, path, body = _start(question)
    position = _Position()
    try:
        async for event in _follow(gateway, method, path, body, position):
            yield event
    except (asyncio.CancelledError, GeneratorExit):
        if position.run_id and not position.done:
            await _cancel(gateway, position.run_id)
        raise


@dataclass
class _Position:
    """Where in the run's log we are, and since when nothing new has come."""

    run_id: str = ""
    seq: int = 0
    done: bool = False
    heard_at: float = 0.0

    def is_lost(self) -> bool:
        """Whether it is time to give up."""
        return asyncio.get_running_loop().time() - self.heard_at > RESUME_FOR_S


async def _follow(
    gateway: Gateway, method: str, path: str, body: Json | None, position: _Position
) -> AsyncIterator[Event]:
    position.heard_at = asyncio.get_running_loop().time()
    params: dict[str, Any] = {}
    while True:
        try:
            async with gateway.events(method, path, json=body, params=params) as (run_id, events):
                position.run_id = run_id or position.run_id
                async for event in _fresh(events, position):
                    yield event
        except (httpx.TransportError, ApiError) as error:
            _raise_unless_passing(gateway, error, position)
        if position.done:
            return
        if not position.run_id:
            raise CliError("The server ended the answer before it began. Ask again.")
        if position.is_lost():
            raise CliError(f"Run {position.run_id} gave no sign for {RESUME_FOR_S:.0f} s. See `groundwork status`.")
        await asyncio.sleep(RESUME_DELAY_S)
        method, path, body = "GET", f"/v1/runs/{quote(position.run_id, safe='')}/events", None
        params = {"after": position.seq}


def _raise_unless_passing(gateway: Gateway, error: httpx.TransportError | ApiError, position: _Position) -> None:
    """A run that has begun goes on without us; what broke on the way to it may heal."""
    if isinstance(error, ApiError):
        if not position.run_id or error.status not in PASSING_STATUSES:
            raise error
    elif not position.run_id or position.is_lost():
        raise gateway.unreachable(error) from error


async def _fresh(events: AsyncIterator[Event], position: _Position) -> AsyncIterator[Event]:
    """Events of the run's log, each once. An `error` without a seq is the gateway's: the stream broke, the run goes on."""
    async for event in events:
        if event.seq is None and event.kind == "error" and not event.data.get("retryable"):
            raise CliError(f"{event.data.get('message')} ({event.data.get('reason')})")
        if event.seq is None or event.seq <= position.seq:
            continue
        position.seq, position.heard_at = event.seq, asyncio.get_running_loop().time()
        position.run_id = event.data.get("run_id") or position.run_id
        position.done = event.kind == "done"
        yield event
        if position.done:
            return


def _start(question: Question) -> tuple[str, str, Json]:
    if len(question.collection_ids) == 1:
        path = f"/v1/collections/{quote(question.collection_ids[0], safe='')}/chat"
        return "POST", path, {"message": question.text, "thread_id": question.thread_id, "agent": question.agent}
    return "POST", "/v1/qa", {"question": question.text, "collection_ids": list(question.collection_ids)}


async def _cancel(gateway: Gateway, run_id: str) -> None:
    # Shielded by its own task: we may be here because our own task was cancelled.
    call = asyncio.ensure_future(gateway.request("POST", f"/v1/runs/{quote(run_id, safe='')}/cancel"))
    with contextlib.suppress(CliError, TimeoutError):
        await asyncio.wait_for(call, CANCEL_TIMEOUT_S)
