"""What one client may take of the connections that all share: event streams by tenant, connections by address."""

import asyncio
from contextlib import AsyncExitStack
from dataclasses import dataclass
from ipaddress import ip_network
from typing import Any

import httpx
import pytest
from groundwork.ingest.v1 import ingest_pb2

from services.gateway.serving import connections
from services.gateway.serving.connection_table import (
    ConnectionLimits,
    ConnectionTable,
    connection_limits,
    origin_of,
    stream_limit,
)
from services.gateway.settings import GatewaySettings
from services.gateway.streams.shares import StreamShares
from tests.service.gateway.conftest import Live, Settings, World
from tests.service.gateway.fakes import RUN_ID, document
from tests.service.gateway.test_connections import PATIENT, answered_and_closed, connected, reason

SSE = {"Accept": "text/event-stream"}
STREAMS: dict[str, tuple[str, str, Any]] = {
    "events": ("GET", "/v1/events", None),
    "document": ("GET", "/v1/documents/d0000001/events", None),
    "run": ("GET", f"/v1/runs/{RUN_ID}/events", None),
    "chat": ("POST", "/v1/collections/default/chat", {"message": "How long?"}),
    "qa": ("POST", "/v1/qa", {"question": "How long?"}),
}


@pytest.mark.parametrize("name", STREAMS)
async def test_stream_beyond_the_share_is_refused_before_anything_is_begun_and_other_requests_are_not(
    live: Live, world: World, name: str
) -> None:
    world.ingest.documents = {"d0000001": document("d0000001")}
    method, path, body = STREAMS[name]
    async with live(max_event_streams=1) as http:
        async with http.stream("GET", "/v1/events") as first:
            await _begun(first)
            refused = await http.request(method, path, json=body, headers=SSE)
            assert (refused.status_code, refused.json()["reason"]) == (429, "TOO_MANY_EVENT_STREAMS")
            assert "GROUNDWORK_MAX_EVENT_STREAMS" in refused.json()["detail"]
            assert int(refused.headers["retry-after"]) > 0
            assert world.orchestrator.requests == []
            assert (await http.post("/v1/qa", json={"question": "How long?"})).status_code == 200
            assert (await http.get("/v1/runs")).status_code == 200
        async with asyncio.timeout(60):
            while not await _is_taken(http, method, path, body):
                pass


async def _begun(response: httpx.Response) -> None:
    assert response.status_code == 200
    async for line in response.aiter_lines():
        if line == "event: snapshot_complete":
            return


async def _is_taken(http: httpx.AsyncClient, method: str, path: str, body: object) -> bool:
    async with http.stream(method, path, json=body, headers=SSE) as response:
        return response.status_code == 200


async def test_refusals_of_streams_stand_in_the_openapi_document(client: httpx.AsyncClient) -> None:
    paths = (await client.get("/openapi.json")).json()["paths"]
    for path, methods in paths.items():
        for method, operation in methods.items():
            if "text/event-stream" in operation["responses"].get("200", {}).get("content", {}):
                assert "429" in operation["responses"], (method, path)


async def test_tenants_have_shares_of_their_own() -> None:
    shares = StreamShares(2)
    async with AsyncExitStack() as stack:
        for tenant_id in ("a", "b", "a", "b"):
            stack.enter_context(shares.place(tenant_id))
        with pytest.raises(Exception, match="2 event streams"), shares.place("a"):
            pass
    with shares.place("a"):
        pass


@pytest.mark.parametrize(
    ("max_connections", "max_event_streams", "expected"),
    [(100, None, 50), (1, None, 1), (3, None, 1), (100, 80, 80), (100, 200, 100)],
)
def test_half_of_the_connections_may_be_one_tenants_streams(
    settings: Settings, max_connections: int, max_event_streams: int | None, expected: int
) -> None:
    made = settings(max_connections=max_connections, max_event_streams=max_event_streams)
    assert stream_limit(made) == expected


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("127.0.0.1", None),
        ("::1", None),
        ("::ffff:127.0.0.1", None),
        ("192.0.2.1", "192.0.2.1/32"),
        ("::ffff:192.0.2.1", "192.0.2.1/32"),
        ("2001:db8:0:1:a::b", "2001:db8:0:1::/64"),
        ("10.1.2.3", None),
        ("", None),
    ],
)
def test_client_is_known_by_its_address_unless_many_come_from_it(address: str, expected: str | None) -> None:
    assert origin_of(address, proxies=(ip_network("10.0.0.0/8"), ip_network("2001:db9::/32"))) == expected


def test_proxies_are_read_from_a_list(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GROUNDWORK_PROXIES", "10.0.0.0/8, 192.0.2.7,2001:db9::/32")
    made = GatewaySettings(auth_public_keys="{}", auth_signing_key="x")  # type: ignore[arg-type] # as text
    assert [str(each) for each in made.proxies] == ["10.0.0.0/8", "192.0.2.7/32", "2001:db9::/32"]
    assert connection_limits(made).proxies == made.proxies
    monkeypatch.setenv("GROUNDWORK_PROXIES", "10.0.0.1/8")
    with pytest.raises(ValueError, match="has host bits set"):
        GatewaySettings(auth_public_keys="{}", auth_signing_key="x")  # type: ignore[arg-type]


@dataclass(eq=False)
class FakeConnection:
    """A connection as the table sees it."""

    origin: str | None
    cut: str = ""

    def close(self, why: str) -> None:
        self.cut = why


def table(**limits: Any) -> ConnectionTable:
    timeouts = {"head_timeout_s": 1.0, "idle_timeout_s": 1.0, "send_timeout_s": 1.0}
    return ConnectionTable(
        ConnectionLimits(**{"max_connections": 8, "max_per_address": 2, "proxies": (), **timeouts, **limits})
    )


def entered(table: ConnectionTable, origin: str | None, *, busy: bool) -> FakeConnection:
    connection = FakeConnection(origin)
    assert table.enter(connection) is None
    (table.busy if busy else table.wait)(connection)
    return connection


def test_address_with_its_share_at_work_gets_no_more_and_others_do() -> None:
    places = table()
    first = entered(places, "a", busy=True)
    entered(places, "a", busy=True)
    bystander = entered(places, "b", busy=False)
    refusal = places.enter(FakeConnection("a"))
    assert refusal is not None
    assert (refusal.code.http_status, refusal.reason) == (429, "TOO_MANY_CONNECTIONS_FROM_ADDRESS")
    assert "GROUNDWORK_PROXIES" in refusal.message
    for origin in ("b", "c", None, None):
        entered(places, origin, busy=True)
    assert bystander.cut == ""
    places.leave(first)
    entered(places, "d", busy=True)
    assert bystander.cut == ""


def test_address_makes_room_for_itself_from_its_own_that_wait() -> None:
    places = table()
    bystander = entered(places, "b", busy=False)
    first = entered(places, "a", busy=False)
    entered(places, "a", busy=True)
    entered(places, "a", busy=True)
    assert (first.cut, bystander.cut) == ("evicted", "")


def test_what_has_left_is_not_counted() -> None:
    places = table()
    for _ in range(5):
        places.leave(entered(places, "a", busy=True))
    assert places.enter(FakeConnection("a")) is None


async def test_refusal_by_address_is_told_and_health_still_answers(
    live: Live, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "origin_of", lambda address, proxies: address)
    async with live(**PATIENT, max_connections_per_address=1) as http, AsyncExitStack() as stack:
        stream = await stack.enter_async_context(connected(http))
        await stream.send(b"GET /v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n")
        await stream.reader.readuntil(b"snapshot_complete")
        status, _, body = await answered_and_closed(http, b"/v1/runs")
        assert (status, reason(body)) == (429, "TOO_MANY_CONNECTIONS_FROM_ADDRESS")
        status, _, _ = await answered_and_closed(http, b"/livez")
        assert status == 200
        world.ingest.changes.put_nowait(ingest_pb2.WatchDocumentsResponse(document=document("d0000001")))
        await stream.reader.readuntil(b"event: document")
