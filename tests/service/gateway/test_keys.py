"""`/v1/keys`: who may make, see, rotate and revoke which key."""

from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import httpx
import pytest

from kit.access.api_keys import read_shown
from kit.access.principal import ADMIN, INGEST, OPERATOR, QUERY
from kit.jetstream import Nats
from services.gateway.access.keys import Keys
from tests.service.gateway.conftest import Clocks, Settings, World, in_process
from tests.service.gateway.key_desk import KeyDesk, bearer, id_of


@pytest.fixture
async def desk(jetstream: Nats) -> KeyDesk:
    return await KeyDesk.open(jetstream)


@pytest.fixture
def clocks() -> Clocks:
    return Clocks()


@pytest.fixture
async def client(settings: Settings, nats_url: str, clocks: Clocks) -> AsyncIterator[httpx.AsyncClient]:
    async with in_process(settings(auth="api_keys", nats_url=nats_url), clocks=clocks) as client:
        yield client


def refusal(answer: httpx.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["reason"]


async def make(client: httpx.AsyncClient, by: str, **body: Any) -> httpx.Response:
    return await client.post("/v1/keys", headers=bearer(by), json={"name": "Laptop", "scopes": [QUERY], **body})


async def asked_guards(client: httpx.AsyncClient, world: World, by: str) -> list[str]:
    """The guards that the orchestrator is told on each route that asks a question, of requests that name none and one that does."""
    message = {"messages": [{"role": "user", "content": "How long?"}], "model": "groundwork"}
    for path, body in (
        ("/v1/qa", {"question": "How long?"}),
        ("/v1/agent", {"question": "How long?", "guard": "flag"}),
        ("/v1/chat", {"message": "How long?"}),
        ("/v1/chat/completions", message),
        ("/v1/responses", {"model": "groundwork", "input": "How long?"}),
    ):
        answer = await client.post(path, json=body, headers={**bearer(by), "Accept": "application/json"})
        assert answer.status_code == 200, answer.text
    guards = [each.guard for each in world.orchestrator.requests]
    world.orchestrator.requests.clear()
    return guards


async def test_guard_of_a_key_holds_on_every_route_and_for_the_keys_that_are_made_with_it(
    client: httpx.AsyncClient, desk: KeyDesk, world: World
) -> None:
    olga = await desk.issue(OPERATOR)
    assert await asked_guards(client, world, olga) == ["", "flag", "", "", ""]
    made = (await make(client, olga, scopes=[ADMIN], guard="block")).json()
    assert made["guard"] == "block"
    assert await asked_guards(client, world, made["key"]) == ["block"] * 5
    child = (await make(client, made["key"], guard="flag")).json()
    assert child["guard"] == "block"
    assert (await make(client, olga)).json()["guard"] is None
    assert (await make(client, olga, guard="pass")).status_code == 400


async def test_mode_of_memory_of_a_key_holds_where_a_request_names_none(
    client: httpx.AsyncClient, desk: KeyDesk, world: World
) -> None:
    olga = await desk.issue(OPERATOR)
    made = (await make(client, olga, scopes=[ADMIN], memory="off")).json()
    assert (made["memory"], (await make(client, made["key"])).json()["memory"]) == ("off", "off")
    assert (await make(client, olga, memory="sometimes")).status_code == 400
    world.ingest.memory = {"contracts": "always"}
    headers = {**bearer(made["key"]), "Accept": "application/json"}
    for body in ({"collection_ids": ["contracts"]}, {"memory": "auto"}):
        await client.post("/v1/chat", json={"message": "Hi", **body}, headers=headers)
    assert [each.memory for each in world.orchestrator.requests] == ["off", "auto"]


async def listed(client: httpx.AsyncClient, by: str, **query: str) -> list[str]:
    """Subjects and ids."""
    answer = await client.get("/v1/keys", headers=bearer(by), params=query)
    return [f"{each['tenant_id']}/{each['subject']}/{each['id']}" for each in answer.json()["keys"]]


async def test_a_key_is_made_shown_once_and_described_afterwards(
    client: httpx.AsyncClient, desk: KeyDesk, clocks: Clocks
) -> None:
    olga = await desk.issue(ADMIN)
    expires_at = (clocks.day + timedelta(days=1)).isoformat(timespec="seconds")
    answer = await make(client, olga, subject="anna", scopes=[QUERY, INGEST, QUERY], expires_at=expires_at)
    made = answer.json()
    assert answer.status_code == 201
    assert (answer.headers["Location"], answer.headers["Cache-Control"]) == (f"/v1/keys/{made['id']}", "no-store")
    text = made.pop("key")
    assert read_shown(text).key_id == made["id"]
    assert (await client.get(f"/v1/keys/{made['id']}", headers=bearer(olga))).json() == made
    assert {key: made[key] for key in ("name", "tenant_id", "subject", "scopes", "status", "created_by")} == {
        "name": "Laptop",
        "tenant_id": "acme",
        "subject": "anna",
        "scopes": [QUERY, INGEST],
        "status": "active",
        "created_by": "olga",
    }
    assert (await client.delete(f"/v1/keys/{made['id']}", headers=bearer(olga))).status_code == 204
    assert (await client.delete(f"/v1/keys/{made['id']}", headers=bearer(olga))).status_code == 204
    assert (await client.get(f"/v1/keys/{made['id']}", headers=bearer(olga))).json()["status"] == "revoked"
    answer = await client.post(f"/v1/keys/{made['id']}/rotate", headers=bearer(olga))
    assert refusal(answer) == (400, "VALIDATION_FAILED")


async def test_nobody_grants_what_they_do_not_have_nor_makes_keys_for_a_tenant_that_is_not_theirs(
    client: httpx.AsyncClient, desk: KeyDesk
) -> None:
    operator, admin = await desk.issue(OPERATOR, tenant_id="house"), await desk.issue(ADMIN)
    user = await desk.issue(QUERY, INGEST)
    assert refusal(await make(client, user)) == (403, "SCOPE_MISSING")
    refused = await make(client, admin, scopes=[QUERY, OPERATOR])
    assert (*refusal(refused), refused.json()["scope"]) == (403, "SCOPE_MISSING", OPERATOR)
    assert refusal(await make(client, admin, tenant_id="other")) == (403, "SCOPE_MISSING")
    assert (await make(client, admin, scopes=[ADMIN], tenant_id="acme")).status_code == 201
    made = await make(client, operator, scopes=[OPERATOR], tenant_id="other", subject="otto")
    assert (made.status_code, made.json()["tenant_id"]) == (201, "other")
    assert refusal(await make(client, admin, expires_at="2020-01-01")) == (400, "VALIDATION_FAILED")


async def test_each_sees_their_own_keys_admins_their_tenants_and_operators_all(
    client: httpx.AsyncClient, desk: KeyDesk
) -> None:
    operator, admin = await desk.issue(OPERATOR, tenant_id="house"), await desk.issue(ADMIN)
    anna, otto = await desk.issue(QUERY, subject="anna"), await desk.issue(ADMIN, tenant_id="other", subject="otto")
    acme = [f"acme/anna/{id_of(anna)}", f"acme/olga/{id_of(admin)}"]
    assert await listed(client, anna) == acme[:1]
    assert await listed(client, admin) == acme
    assert await listed(client, operator) == [f"house/olga/{id_of(operator)}"]
    assert await listed(client, operator, tenant_id="acme") == acme
    for caller, tenant in ((admin, "other"), (anna, "other"), (otto, "acme")):
        assert await listed(client, caller, tenant_id=tenant) == []
    foreign = {}
    for caller, key in ((anna, admin), (otto, anna), (admin, otto), (admin, "gw_" + "0" * 24 + "_")):
        for method, path in (("GET", ""), ("DELETE", ""), ("POST", "/rotate")):
            answer = await client.request(method, f"/v1/keys/{id_of(key)}{path}", headers=bearer(caller))
            foreign[answer.json()["detail"].replace(id_of(key), "ID")] = refusal(answer)
    assert list(foreign.values()) == [(404, "API_KEY_NOT_FOUND")]
    for caller in (anna, admin, operator):
        assert (await client.get(f"/v1/keys/{id_of(anna)}", headers=bearer(caller))).status_code == 200


async def test_a_key_is_no_way_to_the_power_of_a_mightier_one(client: httpx.AsyncClient, desk: KeyDesk) -> None:
    operator, admin, weak = await desk.issue(OPERATOR), await desk.issue(ADMIN), await desk.issue(QUERY)
    for caller, key in ((weak, admin), (weak, operator), (admin, operator)):
        for answer in (
            await client.post(f"/v1/keys/{id_of(key)}/rotate", headers=bearer(caller)),
            await client.delete(f"/v1/keys/{id_of(key)}", headers=bearer(caller)),
        ):
            assert refusal(answer) == (403, "SCOPE_MISSING")
    rotated = await client.post(f"/v1/keys/{id_of(weak)}/rotate", headers=bearer(weak), json={"keep_old_for_s": 0})
    assert refusal(await client.get("/v1/keys", headers=bearer(weak))) == (401, "API_KEY_INVALID")
    weak = rotated.json()["key"]
    assert (await client.delete(f"/v1/keys/{id_of(weak)}", headers=bearer(weak))).status_code == 204
    assert refusal(await client.get("/v1/keys", headers=bearer(weak))) == (401, "API_KEY_REVOKED")


async def test_a_new_text_gives_nobody_groups_in_which_they_are_not(client: httpx.AsyncClient, desk: KeyDesk) -> None:
    admin, bare = await desk.issue(ADMIN), await desk.issue(QUERY, subject="anna")
    in_hr = await desk.issue(QUERY, subject="anna", groups=("hr",))
    rotate = f"/v1/keys/{id_of(in_hr)}/rotate"
    assert (await client.post(rotate, headers=bearer(in_hr))).status_code == 200
    refused = await client.post(rotate, headers=bearer(bare))
    assert refusal(refused) == (403, "SCOPE_MISSING")
    assert "the group hr" in refused.json()["detail"]
    assert (await client.post(rotate, headers=bearer(admin))).status_code == 200
    assert (await client.delete(f"/v1/keys/{id_of(in_hr)}", headers=bearer(bare))).status_code == 204


async def test_groups_that_no_token_could_name_together_are_refused(client: httpx.AsyncClient, desk: KeyDesk) -> None:
    groups = [f"{number:03}" + "ж" * 125 for number in range(500)]
    assert refusal(await make(client, await desk.issue(ADMIN), groups=groups)) == (400, "VALIDATION_FAILED")


async def test_a_request_that_is_repeated_makes_no_second_key_and_says_how_to_get_its_text(
    client: httpx.AsyncClient, desk: KeyDesk
) -> None:
    olga, paul = await desk.issue(ADMIN), await desk.issue(ADMIN, subject="paul")
    body = {"name": "Laptop", "scopes": [QUERY]}
    again = {"Idempotency-Key": "a1"}
    made = (await client.post("/v1/keys", headers=bearer(olga) | again, json=body)).json()
    repeated = await client.post("/v1/keys", headers=bearer(olga) | again, json=body)
    assert (*refusal(repeated), repeated.json()["key_id"]) == (409, "API_KEY_EXISTS", made["id"])
    assert made["key"] not in repeated.text
    assert (await client.post(f"/v1/keys/{made['id']}/rotate", headers=bearer(olga))).status_code == 200
    assert (await client.post("/v1/keys", headers=bearer(paul) | again, json=body)).status_code == 201


async def test_a_long_list_comes_in_pages_newest_first(
    client: httpx.AsyncClient, desk: KeyDesk, clocks: Clocks
) -> None:
    olga = await desk.issue(ADMIN)
    made = []
    for number in range(7):
        clocks.day += timedelta(seconds=number % 2)  # some at the same moment
        made.append((await make(client, olga)).json()["id"])
    seen: list[str] = []
    token = ""
    while True:
        query = {"page_size": 2, "page_token": token}
        page = (await client.get("/v1/keys", headers=bearer(olga), params=query)).json()
        seen += [each["id"] for each in page["keys"]]
        if not (token := page["next_page_token"] or ""):
            break
    assert len(seen) == len(set(seen)) == 8
    assert set(seen) == {*made, id_of(olga)}


async def test_ended_keys_are_listed_for_a_while_and_a_tenant_has_so_many(
    settings: Settings, nats_url: str, desk: KeyDesk, clocks: Clocks
) -> None:
    olga, otto = await desk.issue(ADMIN), await desk.issue(ADMIN, tenant_id="other")
    limited = settings(auth="api_keys", nats_url=nats_url, api_keys_per_tenant=3, ended_api_keys_kept_days=1)
    async with in_process(limited, clocks=clocks) as client:
        keys: Keys = client._transport.app.state.api_keys  # type: ignore[attr-defined]
        revoked = (await make(client, olga)).json()["id"]
        expiring = await make(client, olga, expires_at=(clocks.day + timedelta(hours=1)).isoformat(timespec="seconds"))
        assert refusal(await make(client, olga)) == (412, "TOO_MANY_API_KEYS")
        assert (await make(client, otto)).status_code == 201
        await client.delete(f"/v1/keys/{revoked}", headers=bearer(olga))
        clocks.day += timedelta(days=1)
        await keys.forget_ended(desk.store)
        assert len(await listed(client, olga)) == 3
        clocks.day += timedelta(hours=2)
        await keys.forget_ended(desk.store)
        await keys.ring.reached(await desk.store.last_revision(), 20)
        assert await listed(client, olga) == [f"acme/olga/{id_of(olga)}"]
        assert refusal(await client.get("/v1/keys", headers=bearer(expiring.json()["key"]))) == (401, "API_KEY_INVALID")
        assert (await make(client, olga)).status_code == 201


async def test_without_keys_there_are_none_to_change(settings: Settings) -> None:
    async with in_process(settings()) as client:
        assert refusal(await client.get("/v1/keys")) == (412, "API_KEYS_OFF")
        assert refusal(await client.post("/v1/keys", json={"name": "k", "scopes": [QUERY]})) == (412, "API_KEYS_OFF")
