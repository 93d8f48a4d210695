"""Who is let in by a gateway that asks for API keys, with a real message store behind it."""

import asyncio
import re
import socket
from collections.abc import AsyncIterator, MutableMapping
from contextlib import closing
from datetime import timedelta
from typing import Any

import httpx
import pytest
from starlette.datastructures import Headers

from kit.access.api_keys import new_text
from kit.access.principal import ADMIN, INGEST, QUERY
from kit.jetstream import Nats
from kit.testing.nats import NatsServer
from services.gateway.access.key_ring import KeyRing
from services.gateway.access.keys import Keys
from services.gateway.app import require_loopback, run
from services.gateway.errors import AuthenticationRequired
from services.gateway.serving.server import bind
from services.gateway.settings import GatewaySettings
from tests.service.gateway.conftest import Clocks, Live, Settings, World, in_process
from tests.service.gateway.key_desk import KeyDesk, bearer, id_of
from tests.service.gateway.sse_reader import received

Logs = list[MutableMapping[str, Any]]


@pytest.fixture
async def desk(jetstream: Nats) -> KeyDesk:
    return await KeyDesk.open(jetstream)


@pytest.fixture
def clocks() -> Clocks:
    return Clocks()


@pytest.fixture
def guarded(settings: Settings, nats_url: str) -> GatewaySettings:
    return settings(auth="api_keys", nats_url=nats_url, wrong_api_keys_per_minute=5)


@pytest.fixture
async def client(guarded: GatewaySettings, clocks: Clocks) -> AsyncIterator[httpx.AsyncClient]:
    async with in_process(guarded, clocks=clocks) as client:
        yield client


def refusal(answer: httpx.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["reason"]


async def until(client: httpx.AsyncClient, text: str, status: int) -> httpx.Response:
    """The first answer of that status: another process's change is known in a few milliseconds."""
    async with asyncio.timeout(60):
        while (answer := await client.get("/v1/runs", headers=bearer(text))).status_code != status:
            await asyncio.sleep(0.01)
    return answer


async def test_the_caller_is_whom_the_key_names(client: httpx.AsyncClient, desk: KeyDesk, world: World) -> None:
    text = await desk.issue(QUERY, INGEST, subject="anna", tenant_id="acme")
    for headers in (bearer(text), {"X-API-Key": text}, {"Authorization": f"bearer  {text} "}):
        path = "/v1/collections/default/documents"
        assert (await client.post(path, headers=headers, files={"file": ("a.txt", b"hello")})).status_code == 202
    (caller,) = {(each.tenant_id, each.subject, each.scopes) for each in world.ingest.callers}
    assert caller == ("acme", "anna", frozenset({QUERY, INGEST}))


async def test_without_a_key_nothing_below_v1_is_answered_whether_it_exists_or_not(client: httpx.AsyncClient) -> None:
    paths = (await client.get("/openapi.json")).json()["paths"]
    asked = [(method, re.sub(r"{\w+}", "0" * 32, path)) for path, methods in paths.items() for method in methods]
    asked = [(method, path) for method, path in asked if path.startswith("/v1")]
    assert len(asked) > 30
    for method, path in [*asked, ("get", "/v1/nothing"), ("post", "/v1"), ("brew", "/v1/runs")]:
        answer = await client.request(method, path, content=b"{not json", headers={"Content-Type": "application/json"})
        assert refusal(answer) == (401, "API_KEY_MISSING"), (method, path)
        assert answer.headers["WWW-Authenticate"] == "Bearer"
    for path in ("/livez", "/readyz", "/openapi.json", "/", "/documents"):
        assert (await client.get(path)).status_code == 200, path


async def test_client_of_mcp_without_a_key_is_told_where_it_learns_how_to_get_in(client: httpx.AsyncClient) -> None:
    for method in ("GET", "POST", "DELETE"):
        answer = await client.request(method, "/mcp")
        assert refusal(answer) == (401, "API_KEY_MISSING")
        challenge = re.fullmatch(
            r'Bearer resource_metadata="http://[^/"]+(/[^"]+)"', answer.headers["WWW-Authenticate"]
        )
        assert challenge is not None, answer.headers
        described = await client.get(challenge[1])
        assert (described.status_code, described.json()["bearer_methods_supported"]) == (200, ["header"])


async def test_each_refusal_has_its_reason_and_helps_no_guesser(
    client: httpx.AsyncClient, desk: KeyDesk, clocks: Clocks
) -> None:
    good = await desk.issue(QUERY)
    unknown = new_text("0" * 24).get_secret_value()
    wrong_secret = new_text(id_of(good)).get_secret_value()
    answers = [await client.get("/v1/runs", headers=bearer(text)) for text in (unknown, wrong_secret)]
    assert [refusal(answer) for answer in answers] == [(401, "API_KEY_INVALID")] * 2
    assert len({answer.json()["detail"] for answer in answers}) == 1
    for headers in (bearer(good[:-1]), {"Authorization": "Basic abc"}, {**bearer(good), "X-API-Key": unknown}):
        assert refusal(await client.get("/v1/runs", headers=headers)) == (401, "API_KEY_MALFORMED")
    expired = await desk.issue(QUERY, expires_at=clocks.day + timedelta(hours=1))
    await until(client, expired, 200)
    clocks.day += timedelta(hours=1)
    assert refusal(await client.get("/v1/runs", headers=bearer(expired))) == (401, "API_KEY_EXPIRED")


async def test_a_key_is_good_at_another_gateway_at_once_and_revoked_there_too(
    guarded: GatewaySettings, desk: KeyDesk
) -> None:
    olga = await desk.issue()
    async with in_process(guarded, key=olga) as here, in_process(guarded) as there:
        for _ in range(20):
            made = (await here.post("/v1/keys", json={"name": "k", "subject": "anna", "scopes": ["query"]})).json()
            assert (await there.get("/v1/runs", headers=bearer(made["key"]))).status_code == 200
            new = (await here.post(f"/v1/keys/{made['id']}/rotate", json={"keep_old_for_s": 60})).json()["key"]
            for text in (new, made["key"]):
                assert (await there.get("/v1/runs", headers=bearer(text))).status_code == 200
        assert (await here.delete(f"/v1/keys/{made['id']}")).status_code == 204
        assert refusal(await here.get("/v1/runs", headers=bearer(new))) == (401, "API_KEY_REVOKED")
        assert refusal(await until(there, new, 401)) == (401, "API_KEY_REVOKED")


async def test_a_rotated_key_has_two_texts_for_a_while(guarded: GatewaySettings, desk: KeyDesk, clocks: Clocks) -> None:
    old = await desk.issue()
    async with in_process(guarded, clocks=clocks) as client:
        answer = await client.post(f"/v1/keys/{id_of(old)}/rotate", headers=bearer(old), json={"keep_old_for_s": 60})
        new = answer.json()["key"]
        assert (await client.get("/v1/runs", headers=bearer(old))).status_code == 200
        clocks.day += timedelta(seconds=60)
        assert refusal(await client.get("/v1/runs", headers=bearer(old))) == (401, "API_KEY_EXPIRED")
        answer = await client.post(f"/v1/keys/{id_of(old)}/rotate", headers=bearer(new), json={"keep_old_for_s": 0})
        assert refusal(await client.get("/v1/runs", headers=bearer(new))) == (401, "API_KEY_INVALID")
        assert (await client.get("/v1/runs", headers=bearer(answer.json()["key"]))).status_code == 200


async def test_wrong_keys_are_limited_by_address_and_lock_nobody_out(
    client: httpx.AsyncClient, desk: KeyDesk, clocks: Clocks
) -> None:
    good = await desk.issue(QUERY)
    for _ in range(5):
        answer = await client.get("/v1/runs", headers=bearer(new_text(id_of(good)).get_secret_value()))
        assert answer.status_code == 401
    for text in (new_text(id_of(good)).get_secret_value(), "gw_guess"):
        answer = await client.get("/v1/runs", headers=bearer(text))
        assert refusal(answer) == (429, "TOO_MANY_WRONG_API_KEYS")
        assert answer.headers["Retry-After"] == "12"
    assert (await client.get("/v1/runs", headers=bearer(good))).status_code == 200
    elsewhere = httpx.ASGITransport(client._transport.app, client=("192.0.2.7", 5))  # type: ignore[attr-defined]
    async with httpx.AsyncClient(transport=elsewhere, base_url="http://127.0.0.1") as neighbour:
        assert (await neighbour.get("/v1/runs", headers=bearer("gw_guess"))).status_code == 401
    clocks.seconds += 12
    assert (await client.get("/v1/runs", headers=bearer("gw_guess"))).status_code == 401


async def test_nobody_is_let_in_by_what_may_have_been_revoked(
    client: httpx.AsyncClient, desk: KeyDesk, clocks: Clocks, nats: NatsServer
) -> None:
    good = await desk.issue(QUERY)
    await until(client, good, 200)
    await nats.stop()
    clocks.seconds += 30
    assert (await client.get("/v1/runs", headers=bearer(good))).status_code == 200
    clocks.seconds += 1
    answer = await client.get("/v1/runs", headers=bearer(good))
    assert refusal(answer) == (503, "API_KEYS_UNKNOWN")
    assert "may have been revoked" in answer.json()["detail"]
    ready = (await client.get("/readyz")).json()
    assert (ready["status"], ready["services"]["gateway"]["state"]) == ("not_ready", "not_serving")
    await nats.start()
    await until(client, good, 200)


async def test_a_gateway_that_starts_before_the_message_store_waits_for_it(
    guarded: GatewaySettings, clocks: Clocks, nats: NatsServer, desk: KeyDesk
) -> None:
    good = await desk.issue(QUERY)
    await nats.stop()
    keys = Keys(guarded, now=clocks.now, clock=clocks.clock)
    following = asyncio.create_task(keys.run())
    try:
        assert "have not been read yet" in keys.ring.trouble
        await nats.start()
        async with asyncio.timeout(60):
            await keys.ring.wait_fresh()
        assert keys.ring.find(id_of(good)) is not None
    finally:
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)


async def test_a_request_that_comes_before_the_keys_are_read_waits_for_them(
    guarded: GatewaySettings, clocks: Clocks, desk: KeyDesk
) -> None:
    good = await desk.issue(QUERY)
    keys = Keys(guarded, now=clocks.now, clock=clocks.clock)
    admitted = asyncio.create_task(keys.door.admit(Headers(bearer(good)), "127.0.0.1"))
    await asyncio.sleep(0)
    following = asyncio.create_task(keys.run())
    try:
        async with asyncio.timeout(60):
            assert (await admitted).key == keys.ring.find(id_of(good))
    finally:
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)


async def test_health_does_not_wait_for_the_keys(
    client: httpx.AsyncClient, desk: KeyDesk, clocks: Clocks, nats: NatsServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    good = await desk.issue(QUERY)
    await nats.stop()
    clocks.seconds += 31
    waits: list[float] = []

    async def read_first(_: KeyRing, within_s: float) -> None:
        waits.append(within_s)

    monkeypatch.setattr(KeyRing, "read_first", read_first)
    assert (await client.get("/readyz", headers=bearer(good))).status_code == 503
    assert not waits


async def test_an_event_stream_ends_when_its_key_does(live: Live, nats_url: str, desk: KeyDesk, clocks: Clocks) -> None:
    good = await desk.issue(QUERY)
    async with (
        live(auth="api_keys", nats_url=nats_url) as client,
        client.stream("GET", "/v1/events", headers=bearer(good)) as response,
    ):
        assert response.status_code == 200
        events = received(response)
        seen = [await anext(events)]
        await desk.store.change("acme", id_of(good), lambda each: each.revoked(clocks.now()))
        async with asyncio.timeout(60):
            seen += [event async for event in events]
    last = seen[-1]
    assert (last.event, last.id, last.data["reason"], last.data["status"]) == ("error", None, "API_KEY_REVOKED", 401)


async def test_the_state_of_the_system_is_told_to_all_and_what_is_wrong_to_operators(
    client: httpx.AsyncClient, desk: KeyDesk, world: World
) -> None:
    world.health.detail = "the disk of tenant acme is full"
    operator, admin = await desk.issue(), await desk.issue(ADMIN)
    for headers in ({}, bearer(admin), bearer("gw_wrong")):
        answer = await client.get("/readyz", headers=headers)
        assert (answer.status_code, answer.json()["services"]["ingest"]) == (
            200,
            {"state": "serving", "detail": None, "kinds": []},
        )
        assert "acme" not in answer.text
    assert "disk of tenant acme" in (await client.get("/readyz", headers=bearer(operator))).text


async def test_hosts_are_checked_by_name_and_addresses_answered_to(client: httpx.AsyncClient, desk: KeyDesk) -> None:
    good = await desk.issue(QUERY)
    for host, status in (("10.1.2.3:8080", 200), ("[2001:db8::1]", 200), ("evil.example", 403)):
        answer = await client.get("/v1/runs", headers={**bearer(good), "Host": host})
        assert answer.status_code == status, host
        assert (await client.get("/livez", headers={"Host": host})).status_code == status


async def test_no_log_line_and_no_answer_shows_a_key(
    client: httpx.AsyncClient, desk: KeyDesk, logs: Logs, world: World
) -> None:
    olga = await desk.issue()
    made = await client.post("/v1/keys", headers=bearer(olga), json={"name": "k", "scopes": ["query"]})
    new = await client.post(f"/v1/keys/{made.json()['id']}/rotate", headers=bearer(olga))
    texts = [olga, made.json()["key"], new.json()["key"], new_text("0" * 24).get_secret_value(), olga[:-1]]
    answers = [
        await client.request(method, path, headers=bearer(text))
        for text in texts
        for method, path in (("GET", "/v1/runs"), ("GET", "/v1/keys"), ("DELETE", f"/v1/keys/{text}"))
    ]
    await world.kill()
    answers += [await client.get("/v1/runs", headers=bearer(text)) for text in texts]
    secrets = {text.rpartition("_")[2][:40] for text in texts}
    shown = "\n".join([*(answer.text + str(answer.headers) for answer in answers), *map(repr, logs)])
    assert not [secret for secret in secrets if secret in shown]
    assert {answer.status_code for answer in answers} >= {200, 400, 401, 503}


async def test_the_audit_log_says_who_did_what_and_who_was_refused(
    client: httpx.AsyncClient, desk: KeyDesk, logs: Logs
) -> None:
    olga, anna = await desk.issue(ADMIN), await desk.issue(QUERY, subject="anna")
    made = (await client.post("/v1/keys", headers=bearer(olga), json={"name": "k", "scopes": ["query"]})).json()
    await client.post(f"/v1/keys/{made['id']}/rotate", headers=bearer(olga))
    await client.delete(f"/v1/keys/{made['id']}", headers=bearer(olga))
    await client.post("/v1/keys", headers=bearer(anna), json={"name": "k", "scopes": ["query"]})
    await client.post("/v1/threads", headers=bearer(anna))
    await client.get("/v1/threads", headers=bearer(anna))
    await client.post("/v1/search", headers=bearer(anna), json={"query": "notice"})
    for _ in range(100):
        await client.get("/v1/threads/secret-words")
    lines = [line for line in logs if line["event"] == "audit"]
    shown = [(line["action"], line.get("subject"), line.get("route"), line.get("status")) for line in lines]
    assert shown[:8] == [
        ("key_created", "olga", None, None),
        ("request", "olga", "/v1/keys", 201),
        ("key_rotated", "olga", None, None),
        ("request", "olga", "/v1/keys/{key_id}/rotate", 200),
        ("key_revoked", "olga", None, None),
        ("request", "olga", "/v1/keys/{key_id}", 204),
        ("refused", "anna", "/v1/keys", 403),
        ("request", "anna", "/v1/threads", 201),
    ]
    assert shown[8:] == [("refused", None, "/v1/threads", 401)] * 20
    assert {line["address"] for line in lines} == {"127.0.0.1"}
    refused = next(line for line in lines if line["action"] == "refused")
    assert (refused["reason"], refused["key_id"], refused["tenant_id"]) == ("SCOPE_MISSING", id_of(anna), "acme")
    assert next(line for line in lines if line["action"] == "key_created")["about_key_id"] == made["id"]


async def test_a_last_use_is_noted_behind_the_request_once_a_minute(
    client: httpx.AsyncClient, desk: KeyDesk, clocks: Clocks
) -> None:
    text = await desk.issue(QUERY, subject="anna")
    app: Any = client._transport.app  # type: ignore[attr-defined]
    uses = app.state.api_keys._uses
    first = clocks.day
    for seconds in (0, 30, 29):
        clocks.day += timedelta(seconds=seconds)
        assert (await client.get("/v1/runs", headers=bearer(text))).status_code == 200
        await uses.flush(desk.store)
    assert await desk.store.last_uses("acme") == {id_of(text): first}
    clocks.day += timedelta(seconds=1)
    shown = (await client.get("/v1/keys", headers=bearer(text))).json()["keys"]
    assert shown[0]["last_used_at"] == first.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    await uses.flush(desk.store)
    assert await desk.store.last_uses("acme") == {id_of(text): clocks.day}


@pytest.mark.parametrize("host", ["0.0.0.0", "::"])
def test_without_keys_the_gateway_listens_on_loopback_only(host: str) -> None:
    with closing(bind(host, 0)) as door, pytest.raises(AuthenticationRequired, match="GROUNDWORK_AUTH=api_keys"):
        require_loopback(door)


async def test_the_process_says_what_to_do_before_it_serves_anybody(settings: Settings) -> None:
    with pytest.raises(AuthenticationRequired, match="groundwork keys bootstrap"):
        await run(settings(host="0.0.0.0"))


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "localhost", "::ffff:127.0.0.2"])
def test_loopback_needs_no_keys(host: str) -> None:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with closing(socket.socket(family)) as door:
        door.bind((host, 0))
        require_loopback(door)
