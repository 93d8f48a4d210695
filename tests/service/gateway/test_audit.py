"""The audit log as it is stored and read: one chain for each tenant, written by all gateways."""

import asyncio
import json
from collections.abc import AsyncIterator, MutableMapping
from typing import Any

import httpx
import pytest
from nats.js.errors import APIError

from kit.access.principal import ADMIN, QUERY
from kit.jetstream import Nats
from kit.stores.audit_chain import ChainCheck, ChainLink
from kit.testing.nats import NatsServer
from services.gateway.access import audit_recorder
from services.gateway.access.audit_store import AuditStore, Head
from services.gateway.settings import GatewaySettings
from services.gateway.state import AUDIT
from tests.service.gateway.conftest import Settings, in_process
from tests.service.gateway.key_desk import KeyDesk, bearer, id_of

Json = dict[str, Any]
MAX_BYTES = 16 * 1024**2


@pytest.fixture
async def desk(jetstream: Nats) -> KeyDesk:
    return await KeyDesk.open(jetstream)


@pytest.fixture
def guarded(settings: Settings, nats_url: str) -> GatewaySettings:
    return settings(auth="api_keys", nats_url=nats_url)


@pytest.fixture(autouse=True)
def _answers_wait_for_their_entries(monkeypatch: pytest.MonkeyPatch) -> None:
    """However slow the machine is."""
    monkeypatch.setattr(audit_recorder, "_WAIT_S", 60.0)


@pytest.fixture
async def client(guarded: GatewaySettings) -> AsyncIterator[httpx.AsyncClient]:
    async with in_process(guarded) as client:
        yield client


@pytest.fixture
async def store(jetstream: Nats) -> AuditStore:
    return await AuditStore.open(jetstream, retention_days=365, max_bytes=MAX_BYTES)


async def read(client: httpx.AsyncClient, key: str, **params: Any) -> list[Json]:
    """The entries, whose chain is right."""
    answer = await client.get("/v1/audit", headers=bearer(key), params=params)
    assert answer.status_code == 200, answer.text
    assert answer.headers["Content-Type"] == "application/x-ndjson"
    check = ChainCheck()
    return [check.take(line) for line in answer.text.splitlines()]


async def read_once_stored(client: httpx.AsyncClient, key: str, **params: Any) -> list[Json]:
    """The entries of a chain that has some: no answer waits for those of refusals."""
    async with asyncio.timeout(60):
        while not (entries := await read(client, key, **params)):
            pass
    return entries


async def lines_of(store: AuditStore, **params: Any) -> list[str]:
    return [line async for line in store.lines("acme", **params)]


async def test_entry_says_who_did_what_to_what_and_from_where(client: httpx.AsyncClient, desk: KeyDesk) -> None:
    olga = await desk.issue(ADMIN)
    made = (await client.post("/v1/keys", headers=bearer(olga), json={"name": "k", "scopes": ["query"]})).json()
    await client.delete(f"/v1/keys/{made['id']}", headers=bearer(olga))
    created, posted, revoked, deleted = await read(client, olga)
    assert (created["action"], created["about_key_id"], created["about_scopes"]) == ("key_created", made["id"], [QUERY])
    assert posted["about"] == {"made": f"/v1/keys/{made['id']}"}
    assert (revoked["action"], revoked["number"]) == ("key_revoked", 3)
    assert deleted["about"] == {"key_id": made["id"]}
    assert {
        name: deleted[name] for name in ("action", "method", "route", "status", "address", "subject", "key_id")
    } == {
        "action": "request",
        "method": "DELETE",
        "route": "/v1/keys/{key_id}",
        "status": 204,
        "address": "127.0.0.1",
        "subject": "olga",
        "key_id": id_of(olga),
    }


async def test_entry_has_no_text_of_questions_or_documents(client: httpx.AsyncClient, desk: KeyDesk) -> None:
    olga = await desk.issue(ADMIN)
    await client.post("/v1/qa", headers=bearer(olga), json={"question": "Where does the quokka live?"})
    file = {"file": ("quokka.txt", b"The quokka lives on Rottnest Island.", "text/plain")}
    await client.post("/v1/collections/default/documents", headers=bearer(olga), files=file)
    entries = await read_once_stored(client, olga)
    assert [entry["route"] for entry in entries] == ["/v1/qa", "/v1/collections/{collection_id}/documents"]
    assert "quokka" not in json.dumps(entries).lower()


async def test_answer_to_a_change_is_out_only_once_its_entry_can_be_read_at_another_gateway(
    guarded: GatewaySettings, desk: KeyDesk
) -> None:
    olga = await desk.issue(ADMIN)
    async with in_process(guarded) as here, in_process(guarded) as there:
        for number in range(1, 11):
            await (here if number % 2 else there).post("/v1/threads", headers=bearer(olga))
            assert len(await read(there if number % 2 else here, olga)) == number


async def test_gateways_that_write_at_once_make_one_chain(guarded: GatewaySettings, desk: KeyDesk) -> None:
    olga = await desk.issue(ADMIN)
    async with in_process(guarded) as one, in_process(guarded) as two:
        asked = [each.post("/v1/threads", headers=bearer(olga)) for _ in range(40) for each in (one, two)]
        assert {answer.status_code for answer in await asyncio.gather(*asked)} == {201}
        entries = await read(one, olga)
    assert [entry["number"] for entry in entries] == list(range(1, 81))


async def test_who_reads_which_chain(client: httpx.AsyncClient, desk: KeyDesk) -> None:
    olga, eve = await desk.issue(ADMIN), await desk.issue(ADMIN, subject="eve", tenant_id="other")
    operator, reader = await desk.issue(tenant_id="house"), await desk.issue(QUERY)
    await client.post("/v1/threads", headers=bearer(olga))
    await client.get("/v1/runs", headers=bearer("gw_guess"))
    assert [entry["subject"] for entry in await read(client, olga)] == ["olga"]
    assert await read(client, eve) == []
    assert len(await read(client, operator, tenant_id="acme")) == 1
    (refused,) = await read_once_stored(client, operator, chain="unknown_callers")
    assert (refused["action"], refused["reason"], refused["address"]) == ("refused", "API_KEY_MALFORMED", "127.0.0.1")
    for key, params in ((reader, {}), (eve, {"tenant_id": "acme"}), (eve, {"chain": "unknown_callers"})):
        answer = await client.get("/v1/audit", headers=bearer(key), params=params)
        assert (answer.status_code, answer.json()["reason"]) == (403, "SCOPE_MISSING")


async def test_operator_who_changes_a_key_of_another_tenant_is_in_the_log_of_both(
    client: httpx.AsyncClient, desk: KeyDesk
) -> None:
    operator, olga = await desk.issue(tenant_id="house"), await desk.issue(ADMIN)
    theirs = await desk.issue(QUERY)
    assert (await client.get("/v1/me", headers=bearer(theirs))).status_code == 200  # the gateway has heard of it
    await client.delete(f"/v1/keys/{id_of(theirs)}", headers=bearer(operator))
    of_house = await read(client, operator)
    assert [entry["action"] for entry in of_house] == ["key_revoked", "request"]
    await client.post("/v1/threads", headers=bearer(olga))  # behind it in the same chain
    revoked, _ = await read(client, olga)
    assert (revoked["action"], revoked["tenant_id"], revoked["about_key_id"]) == ("key_revoked", "house", id_of(theirs))


async def test_without_keys_there_is_no_audit_log(settings: Settings) -> None:
    async with in_process(settings()) as client:
        answer = await client.get("/v1/audit")
    assert (answer.status_code, answer.json()["reason"]) == (412, "API_KEYS_OFF")


async def test_new_entries_are_read_by_number_by_time_and_in_parts(store: AuditStore, jetstream: Nats) -> None:
    for batch in range(30):
        await store.append("acme", [{"action": f"{batch}"}] * (1 + batch % 3), f"b{batch}")
        await store.append("other", [{"action": "other"}], f"o{batch}")
    every = await lines_of(store)
    assert len(every) == 60
    for after in (1, 2, 3, 30, 58, 59, 60, 1000):
        assert await lines_of(store, after=after) == every[after:]
    message = await jetstream.js.get_msg(AUDIT.stream, seq=31)
    assert message.time is not None
    since = await lines_of(store, since=message.time)
    assert 0 < len(since) < 60
    assert since == every[-len(since) :]
    assert await lines_of(store, since=message.time, after=59) == every[59:]


async def test_newest_entries_come_first_and_in_parts(store: AuditStore, jetstream: Nats) -> None:
    for batch in range(20):
        await store.append("acme", [{"action": f"{batch}"}] * (1 + batch % 3), f"b{batch}")
    every = (await lines_of(store))[::-1]
    assert await store.newest("acme", before=0, since=None, limit=7) == every[:7]
    assert await store.newest("acme", before=len(every) - 6, since=None, limit=7) == every[7:14]
    assert await store.newest("acme", before=10**9, since=None, limit=7) == every[:7]
    assert await store.newest("acme", before=3, since=None, limit=7) == every[-2:]
    message = await jetstream.js.get_msg(AUDIT.stream, seq=20)
    assert message.time is not None
    assert await store.newest("acme", before=0, since=message.time, limit=7) == every[:2]
    assert await store.newest("nobody", before=0, since=None, limit=7) == []


async def test_memory_of_a_key_is_changed_by_an_administrator_and_noted(
    client: httpx.AsyncClient, desk: KeyDesk
) -> None:
    olga, anna = await desk.issue(ADMIN), await desk.issue(QUERY, subject="anna")
    path = f"/v1/keys/{id_of(anna)}"
    assert (await client.get(path, headers=bearer(anna))).status_code == 200  # by then the gateway knows the key
    for sent, kept in (("off", "off"), ("unset", None)):
        changed = await client.patch(path, headers=bearer(olga), json={"memory": sent})
        assert changed.status_code == 200, changed.text
        assert changed.json()["memory"] == kept
        assert (await client.get(path, headers=bearer(anna))).json()["memory"] == kept
    newest = await client.get("/v1/audit", headers=bearer(olga), params={"order": "newest", "limit": 2})
    assert newest.headers["Content-Type"] == "application/x-ndjson"
    posted, changed_entry = map(json.loads, newest.text.splitlines())
    assert posted["number"] == changed_entry["number"] + 1
    assert (changed_entry["action"], changed_entry["about_key_id"]) == ("key_changed", id_of(anna))
    assert (await client.patch(path, headers=bearer(anna), json={"memory": "auto"})).status_code == 403


async def test_batch_whose_answer_was_lost_is_stored_once(store: AuditStore) -> None:
    await store.append("acme", [{"action": "before"}], "b0")
    before = store._heads["acme"]
    link = await store.append("acme", [{"action": "one"}, {"action": "two"}], "b1")
    store._heads["acme"] = before  # as if the answer to b1 had never come
    assert await store.append("acme", [{"action": "one"}, {"action": "two"}], "b1") == link
    await store.append("acme", [{"action": "after"}], "b2")
    assert [json.loads(line)["action"] for line in await lines_of(store)] == ["before", "one", "two", "after"]


async def test_stored_entries_cannot_be_removed_one_by_one(store: AuditStore, jetstream: Nats) -> None:
    await store.append("acme", [{"action": "one"}], "b1")
    with pytest.raises(APIError):
        await jetstream.js.delete_msg(AUDIT.stream, 1)
    with pytest.raises(APIError):
        await jetstream.js.purge_stream(AUDIT.stream)


async def test_chain_goes_on_behind_what_was_removed_so_that_the_gap_shows(store: AuditStore, jetstream: Nats) -> None:
    link = await store.append("acme", [{"action": "one"}, {"action": "two"}], "b1")
    await jetstream.js.delete_stream(AUDIT.stream)
    await AuditStore.open(jetstream, retention_days=365, max_bytes=MAX_BYTES)
    await store.append("acme", [{"action": "three"}], "b2")
    (line,) = await lines_of(store)
    assert ChainCheck(link).take(line)["number"] == 3


async def test_entry_that_cannot_be_read_is_left_out_and_the_gap_shows(store: AuditStore, jetstream: Nats) -> None:
    await store.append("acme", [{"action": "one"}], "b1")
    await jetstream.js.publish("audit.acme.log", b"\xff damaged")
    fresh = await AuditStore.open(jetstream, retention_days=365, max_bytes=MAX_BYTES)
    await fresh.append("acme", [{"action": "two"}], "b2")
    assert [json.loads(line)["number"] for line in await lines_of(store)] == [1, 2]
    assert fresh._heads["acme"] == Head(3, ChainLink(2, json.loads((await lines_of(store))[1])["hash"]))


async def test_entries_wait_for_a_message_store_that_is_silent(
    guarded: GatewaySettings, desk: KeyDesk, nats: NatsServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit_recorder, "_WAIT_S", 0.1)
    operator = await desk.issue()
    async with in_process(guarded) as client:
        assert (await client.get("/v1/me", headers=bearer(operator))).status_code == 200
        await nats.stop()
        assert (await client.post("/v1/threads", headers=bearer(operator))).status_code == 201
        await nats.start()
        async with asyncio.timeout(60):
            while (await client.get("/v1/audit", headers=bearer(operator))).status_code != 200:
                pass
            while not (entries := await read(client, operator)):
                pass
    assert [entry["route"] for entry in entries] == ["/v1/threads"]


async def test_retention_is_as_the_setting_says_also_later(store: AuditStore, jetstream: Nats) -> None:
    for days in (30, 400):
        await AuditStore.open(jetstream, retention_days=days, max_bytes=MAX_BYTES)
        assert (await jetstream.js.stream_info(AUDIT.stream)).config.max_age == days * 86_400


async def test_full_log_loses_its_oldest_entries_and_its_chain_stays_right(
    jetstream: Nats, logs: list[MutableMapping[str, Any]]
) -> None:
    store = await AuditStore.open(jetstream, retention_days=365, max_bytes=20_000)
    await store.append("quiet", [{"action": "one"}], "q1")
    for batch in range(40):
        await store.append("acme", [{"action": "x" * 1000}], f"b{batch}")
    kept = await lines_of(store)
    check = ChainCheck()
    assert check.take(kept[0])["number"] > 1
    assert [check.take(line) for line in kept[1:]][-1]["number"] == 40
    assert (await store.append("quiet", [{"action": "two"}], "q2")).number == 2
    assert "audit_entries_gone" not in {line["event"] for line in logs}
