"""WebSockets: none is served yet, and each handshake passes the checks of every other request before it is refused."""

import asyncio
import json
from collections.abc import AsyncIterator, MutableMapping
from dataclasses import dataclass, field
from typing import Any

import httpx
import pytest

from kit.access.api_keys import new_text
from kit.access.principal import QUERY
from kit.jetstream import Nats
from services.gateway.settings import GatewaySettings
from tests.service.gateway.conftest import Live, Settings, in_process
from tests.service.gateway.key_desk import KeyDesk, bearer, id_of

Message = MutableMapping[str, Any]
DENIAL = "websocket.http.response"


@pytest.fixture
def guarded(settings: Settings, nats_url: str) -> GatewaySettings:
    return settings(auth="api_keys", nats_url=nats_url, wrong_api_keys_per_minute=5)


@pytest.fixture
async def keyed_client(guarded: GatewaySettings) -> AsyncIterator[httpx.AsyncClient]:
    async with in_process(guarded) as client:
        yield client


async def ask(client: httpx.AsyncClient, scope: dict[str, Any], *received: Message) -> list[Message]:
    """What the application sends to a scope that is given to it as a server would."""
    incoming, sent = iter(received), []

    async def receive() -> Message:
        return next(incoming)

    async def send(message: Message) -> None:
        sent.append(message)

    await client._transport.app(scope, receive, send)  # type: ignore[attr-defined]
    return sent


async def handshake(
    client: httpx.AsyncClient, headers: dict[str, str] | None = None, *, path: str = "/v1/voice", denial: bool = True
) -> list[Message]:
    named = {"Host": "127.0.0.1:8080", "Upgrade": "websocket", "Connection": "Upgrade", **(headers or {})}
    scope = {
        "type": "websocket",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "scheme": "ws",
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "root_path": "",
        "headers": [(name.lower().encode(), value.encode()) for name, value in named.items()],
        "client": ("192.0.2.7", 4711),
        "server": ("127.0.0.1", 8080),
        "subprotocols": [],
        "extensions": {DENIAL: {}} if denial else {},
    }
    return await ask(client, scope, {"type": "websocket.connect"})


def refusal(sent: list[Message]) -> tuple[int, str]:
    assert [each["type"] for each in sent] == [f"{DENIAL}.start", f"{DENIAL}.body"]
    headers = dict(sent[0]["headers"])
    assert headers[b"content-type"] == b"application/problem+json"
    assert headers[b"x-content-type-options"] == b"nosniff"
    return sent[0]["status"], json.loads(sent[1]["body"])["reason"]


@dataclass(frozen=True)
class Case:
    status: int
    reason: str
    headers: dict[str, str] = field(default_factory=dict)
    path: str = "/v1/voice"


CASES = [
    Case(400, "WEBSOCKET_NOT_SERVED"),
    Case(400, "WEBSOCKET_NOT_SERVED", path="/livez"),
    Case(400, "WEBSOCKET_NOT_SERVED", {"Origin": "http://127.0.0.1:8080"}),
    Case(403, "CROSS_ORIGIN", {"Origin": "https://evil.example"}),
    Case(403, "HOST_NOT_ALLOWED", {"Host": "evil.example"}),
    Case(404, "ROUTE_NOT_FOUND", path="/v1/runs%2Fr1"),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.reason}-{case.path}-{case.headers}")
async def test_handshake_passes_the_checks_of_a_request_and_is_refused(client: httpx.AsyncClient, case: Case) -> None:
    assert refusal(await handshake(client, case.headers, path=case.path)) == (case.status, case.reason)
    (closed,) = await handshake(client, case.headers, path=case.path, denial=False)
    assert closed == {"type": "websocket.close", "code": 1008, "reason": case.reason}


async def test_handshake_needs_a_key_and_is_audited(
    keyed_client: httpx.AsyncClient, jetstream: Nats, logs: list[MutableMapping[str, Any]]
) -> None:
    text = await (await KeyDesk.open(jetstream)).issue(QUERY, subject="anna", tenant_id="acme")
    assert refusal(await handshake(keyed_client)) == (401, "API_KEY_MISSING")
    assert refusal(await handshake(keyed_client, bearer(text))) == (400, "WEBSOCKET_NOT_SERVED")
    refused, asked = [each for each in logs if each["event"] == "audit" and each["method"] == "WEBSOCKET"]
    assert (refused["action"], refused["status"], refused["reason"]) == ("refused", 401, "API_KEY_MISSING")
    assert (asked["action"], asked["status"], asked["key_id"]) == ("request", 400, id_of(text))


async def test_wrong_keys_in_handshakes_are_limited(keyed_client: httpx.AsyncClient) -> None:
    wrong = new_text("0" * 24).get_secret_value()
    refusals = [refusal(await handshake(keyed_client, bearer(wrong))) for _ in range(6)]
    assert refusals == [(401, "API_KEY_INVALID")] * 5 + [(429, "TOO_MANY_WRONG_API_KEYS")]


@pytest.mark.parametrize("path", ["/v1/voice", "/livez"])
async def test_upgrade_over_a_socket_is_answered_with_a_problem(live: Live, path: str) -> None:
    async with live() as client:
        reader, writer = await asyncio.open_connection(client.base_url.host, client.base_url.port)
        head = f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
        writer.write(
            (head + "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n").encode()
        )
        async with asyncio.timeout(60):
            answer = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
            body = json.loads(await reader.read(int(answer.partition("content-length: ")[2].partition("\r\n")[0])))
        writer.close()
    assert answer.startswith("http/1.1 400 ")
    assert "content-type: application/problem+json" in answer
    assert body["reason"] == "WEBSOCKET_NOT_SERVED"


async def test_lifespan_is_handled_and_what_nobody_knows_is_not_passed_on(client: httpx.AsyncClient) -> None:
    scope = {"type": "lifespan", "asgi": {"version": "3.0"}, "state": {}}
    sent = await ask(client, scope, {"type": "lifespan.startup"}, {"type": "lifespan.shutdown"})
    assert [each["type"] for each in sent] == ["lifespan.startup.complete", "lifespan.shutdown.complete"]
    with pytest.raises(NotImplementedError, match="webtransport"):
        await ask(client, {"type": "webtransport", "path": "/v1/voice"})
