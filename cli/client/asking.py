"""A question and its run: followed to the end across broken connections, cancelled when the user no longer wants it."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Protocol

import httpx

from cli.client.gateway import Gateway, Json, in_path
from cli.client.sse import Event
from cli.errors import ApiError, CliError

RESUME_FOR_S = 60.0
"""A server that is restarted is back within seconds; after a minute without it, it is gone."""
RESUME_DELAY_S = 0.5
CANCEL_TIMEOUT_S = 5.0
PASSING_STATUSES = frozenset({429, 502, 503, 504})


class RunStart(Protocol):
    """Something that begins a run."""

    def start(self) -> tuple[str, Json]:
        """Where to POST it, and the body."""
        ...


def _asked(verify: str | None) -> Json:
    """The member `verify` of the body; without it the setting of the server decides."""
    return {"verify": verify} if verify else {}


@dataclass(frozen=True)
class Question:
    """What to ask, and of what."""

    text: str
    collection_ids: tuple[str, ...]
    thread_id: str | None = None
    agent: str | None = None
    verify: str | None = None
    """What becomes of claims that are not supported; None means the server's setting."""

    def start(self) -> tuple[str, Json]:
        if len(self.collection_ids) == 1:
            path = f"/v1/collections/{in_path(self.collection_ids[0], 'collection')}/chat"
            said = {"message": self.text, "thread_id": self.thread_id, "agent": self.agent}
            return path, said | _asked(self.verify)
        return "/v1/qa", {"question": self.text, "collection_ids": list(self.collection_ids)} | _asked(self.verify)


@dataclass(frozen=True)
class Message:
    """The next message of a chat."""

    text: str
    thread_id: str | None = None
    tools: tuple[str, ...] | None = None
    """None means all."""
    collection_ids: tuple[str, ...] | None = None
    """What tools may read; None means all."""
    verify: str | None = None
    """What becomes of claims that are not supported; None means the server's setting."""

    def start(self) -> tuple[str, Json]:
        body: Json = {"message": self.text, "thread_id": self.thread_id} | _asked(self.verify)
        body["tools"] = None if self.tools is None else list(self.tools)
        body["collection_ids"] = None if self.collection_ids is None else list(self.collection_ids)
        return "/v1/chat", body


@dataclass
class Position:
    """Where in the run's log we are, and since when nothing new has come."""

    run_id: str = ""
    seq: int = 0
    done: bool = False
    heard_at: float = 0.0
    looks_only: bool = False
    """Whether the run is somebody else's concern: leaving it does not cancel it."""

    def note_break(self, opened_at: float) -> None:
        """A stream that was silent for long without breaking was sound: its run waits for a person."""
        if (now := asyncio.get_running_loop().time()) - opened_at > RESUME_FOR_S:
            self.heard_at = now

    def is_lost(self) -> bool:
        """Whether it is time to give up."""
        return asyncio.get_running_loop().time() - self.heard_at > RESUME_FOR_S


async def ask(
    gateway: Gateway,
    asked: RunStart | None,
    position: Position | None = None,
    until: Callable[[Event], bool] = lambda _: False,
) -> AsyncIterator[Event]:
    """The run's events, each once, to `done`, or to one that `until` is true of: then the run goes on without us, and another call
    with the same position and nothing `asked` reads on. Closing or cancelling this before the end cancels the run, unless the
    position only looks."""
    position = position or Position()
    try:
        async for event in _follow(gateway, asked, position):
            yield event
            if until(event):
                return
    except (asyncio.CancelledError, GeneratorExit):
        if position.run_id and not position.done and not position.looks_only:
            await cancel(gateway, position.run_id)
        raise


async def _follow(gateway: Gateway, asked: RunStart | None, position: Position) -> AsyncIterator[Event]:
    position.heard_at = asyncio.get_running_loop().time()
    method, path, body, params = _begin(asked) if asked else _read_on(position)
    while True:
        opened_at = asyncio.get_running_loop().time()
        try:
            async with gateway.events(method, path, json=body, params=params) as (run_id, events):
                position.run_id = run_id or position.run_id
                async for event in _fresh(events, position):
                    yield event
        except (httpx.TransportError, ApiError) as error:
            position.note_break(opened_at)
            _raise_unless_passing(gateway, error, position)
        if position.done:
            return
        position.note_break(opened_at)
        if not position.run_id:
            raise CliError("The server ended the answer before it began. Ask again.")
        if position.is_lost():
            raise CliError(f"Run {position.run_id} gave no sign for {RESUME_FOR_S:.0f} s. See `groundwork status`.")
        await asyncio.sleep(RESUME_DELAY_S)
        method, path, body, params = _read_on(position)


def _begin(asked: RunStart) -> tuple[str, str, Json | None, Json]:
    path, body = asked.start()
    return "POST", path, body, {}


def _read_on(position: Position) -> tuple[str, str, Json | None, Json]:
    return "GET", f"/v1/runs/{in_path(position.run_id, 'run')}/events", None, {"after": position.seq}


def _raise_unless_passing(gateway: Gateway, error: httpx.TransportError | ApiError, position: Position) -> None:
    """A run that has begun goes on without us; what broke on the way to it may heal."""
    if isinstance(error, ApiError):
        if not position.run_id or error.status not in PASSING_STATUSES:
            raise error
    elif not position.run_id or position.is_lost():
        raise gateway.unreachable(error) from error


async def _fresh(events: AsyncIterator[Event], position: Position) -> AsyncIterator[Event]:
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


async def cancel(gateway: Gateway, run_id: str) -> None:
    """Asks for the run to be stopped, and waits a moment for the answer."""
    # Shielded by its own task: we may be here because our own task was cancelled.
    call = asyncio.ensure_future(gateway.request("POST", f"/v1/runs/{in_path(run_id, 'run')}/cancel"))
    with contextlib.suppress(CliError, TimeoutError):
        await asyncio.wait_for(call, CANCEL_TIMEOUT_S)
