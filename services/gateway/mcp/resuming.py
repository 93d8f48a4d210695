"""Streams of MCP that are resumed: the id of an event says which run it tells of and up to where, so that any gateway goes on from
the run's log with the caller's own rights. No gateway keeps events of MCP."""

import base64
import binascii
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import structlog
from mcp.server.streamable_http import EventCallback, EventStore
from mcp_types import (
    CallToolResult,
    JSONRPCError,
    JSONRPCMessage,
    JSONRPCNotification,
    JSONRPCResponse,
    RequestId,
    TextContent,
)
from mcp_types.jsonrpc import INTERNAL_ERROR, ErrorData
from starlette.requests import Request

from services.gateway.mcp.own_api import ApiRequest, OwnApi, Refused
from services.gateway.mcp.run_tools import RUN_ID_META, RunTools, progress_message, progress_notification
from services.gateway.streams.sse import ServerSentEvent

_log = structlog.get_logger()


@dataclass(frozen=True)
class Place:
    """A place in the stream of a call."""

    run_id: str
    seq: int
    request_id: RequestId
    progress_token: str | int

    def encoded(self) -> str:
        """The id of an event."""
        parts = [self.run_id, self.seq, self.request_id, self.progress_token]
        return base64.urlsafe_b64encode(json.dumps(parts).encode()).decode().rstrip("=")

    @classmethod
    def read(cls, event_id: str) -> "Place | None":
        """The place; None of an event that tells of no run."""
        try:
            parts = json.loads(base64.urlsafe_b64decode(event_id + "=" * (-len(event_id) % 4)))
            run_id, seq, request_id, progress_token = parts
        except (binascii.Error, ValueError, TypeError):
            return None
        is_one = isinstance(run_id, str) and run_id.isalnum() and isinstance(seq, int)
        return cls(run_id, seq, request_id, progress_token) if is_one else None


class RunLogStore(EventStore):
    """Names events by their place in a run's log, and keeps nothing."""

    async def store_event(self, stream_id: str, message: JSONRPCMessage | None) -> str:
        """The id of the event."""
        params = message.params if isinstance(message, JSONRPCNotification) else None
        run_id = ((params or {}).get("_meta") or {}).get(RUN_ID_META)
        if not params or not run_id:
            return "-"
        request_id = int(stream_id) if stream_id.isdigit() else stream_id
        return Place(run_id, int(params["progress"]), request_id, params["progressToken"]).encoded()

    async def replay_events_after(self, last_event_id: str, send_callback: EventCallback) -> str | None:  # noqa: ARG002
        """Nothing: streams of runs are resumed by `resumed`, and others have one answer."""
        return None


async def resumed(place: Place, client: Request, api: OwnApi, runs: RunTools) -> AsyncIterator[ServerSentEvent]:
    """The rest of a call's stream: its progress, and its result."""
    asked = ApiRequest("GET", f"/v1/runs/{place.run_id}/events", {"after": place.seq})
    seq = place.seq
    try:
        async with api.events(client, asked) as events:
            async for event in events:
                seq = event.data.get("seq", seq)
                if message := progress_message(event):
                    at = Place(place.run_id, seq, place.request_id, place.progress_token)
                    yield ServerSentEvent("message", _progress(at, message), at.encoded())
        result = await runs.result_of(client, place.run_id)
    except Refused as refused:
        error = JSONRPCError(
            jsonrpc="2.0", id=place.request_id, error=ErrorData(code=INTERNAL_ERROR, message=str(refused))
        )
        yield ServerSentEvent("message", _wire(error))
        return
    called = CallToolResult(
        content=[TextContent(type="text", text=result.model_dump_json(indent=2))],
        structured_content=result.model_dump(mode="json"),
    )
    answer = JSONRPCResponse(jsonrpc="2.0", id=place.request_id, result=_wire(called))
    yield ServerSentEvent("message", _wire(answer))


def _progress(at: Place, message: str) -> dict[str, Any]:
    notification = progress_notification(at.run_id, at.seq, at.progress_token, message)
    return {"jsonrpc": "2.0", **_wire(notification)}


def _wire(message: Any) -> dict[str, Any]:
    wire: dict[str, Any] = message.model_dump(by_alias=True, mode="json", exclude_none=True)
    return wire
