"""An identity provider sends users and groups by SCIM, and who has left is let in by nothing any more."""

import asyncio
import json
from collections.abc import AsyncIterator, MutableMapping
from contextlib import AbstractAsyncContextManager
from datetime import UTC, datetime
from typing import Any

import httpx
import pytest
from pydantic import SecretStr

from kit.access.principal import ADMIN, INGEST, QUERY
from kit.jetstream import KeyValue, Nats, connect, connection
from kit.testing.nats import nats_server
from ops.nats_users import ADMINISTRATOR, publish_subjects
from services.gateway.access.directory import members
from services.gateway.settings import GatewaySettings
from tests.service.gateway.conftest import Clocks, Settings, World, in_process, over_http
from tests.service.gateway.fakes import RUN_ID
from tests.service.gateway.key_desk import KeyDesk, bearer
from tests.service.gateway.oidc.conftest import Issuer, Listing, issuer, issuers_file, listing  # noqa: F401 - fixtures
from tests.service.gateway.oidc.test_login import Browser, shows
from tests.service.gateway.sse_reader import received

USER, GROUP = "urn:ietf:params:scim:schemas:core:2.0:User", "urn:ietf:params:scim:schemas:core:2.0:Group"
PATCH = "urn:ietf:params:scim:api:messages:2.0:PatchOp"
SCIM = {"Content-Type": "application/scim+json"}


class WallClock(Clocks):
    """The time of day goes on: what was given before a deactivation is older than it."""

    def now(self) -> datetime:
        return datetime.now(UTC)


def gateway(settings: GatewaySettings) -> AbstractAsyncContextManager[httpx.AsyncClient]:
    return in_process(settings, clocks=WallClock())


def streaming(settings: GatewaySettings) -> AbstractAsyncContextManager[httpx.AsyncClient]:
    return over_http(settings, clocks=WallClock())


class Provider:
    """An identity provider with a token of tenant `acme`."""

    def __init__(self, client: httpx.AsyncClient, token: str) -> None:
        self.client = client
        self.headers = {**bearer(token), **SCIM}

    async def ask(self, method: str, path: str, body: Any = None, **params: str) -> httpx.Response:
        return await self.client.request(
            method, f"/scim/v2{path}", json=body, params=params or None, headers=self.headers
        )

    async def add_user(self, user_name: str, **attributes: Any) -> str:
        answer = await self.ask("POST", "/Users", {"schemas": [USER], "userName": user_name, **attributes})
        assert answer.status_code == 201, answer.text
        assert answer.headers["content-type"] == "application/scim+json"
        assert answer.headers["location"] == f"http://127.0.0.1:8080/scim/v2/Users/{answer.json()['id']}"
        return str(answer.json()["id"])

    async def add_group(self, name: str, *members: str) -> str:
        body = {"schemas": [GROUP], "displayName": name, "members": [{"value": each} for each in members]}
        answer = await self.ask("POST", "/Groups", body)
        assert answer.status_code == 201, answer.text
        return str(answer.json()["id"])

    async def patch(self, path: str, *operations: dict[str, Any]) -> httpx.Response:
        return await self.ask("PATCH", path, {"schemas": [PATCH], "Operations": list(operations)})

    async def set_active(self, user_id: str, is_active: bool) -> None:
        answer = await self.patch(f"/Users/{user_id}", {"op": "replace", "value": {"active": is_active}})
        assert (answer.status_code, answer.json()["active"]) == (200, is_active)


@pytest.fixture
async def desk(jetstream: Nats) -> KeyDesk:
    return await KeyDesk.open(jetstream)


@pytest.fixture
def asking(settings: Settings, nats_url: str) -> GatewaySettings:
    return settings(auth="api_keys", nats_url=nats_url)


@pytest.fixture
async def provider(asking: GatewaySettings, desk: KeyDesk) -> AsyncIterator[Provider]:
    async with gateway(asking) as client:
        yield Provider(client, await desk.issue(ADMIN, subject="provider"))


def said(answer: httpx.Response) -> tuple[int, str]:
    body = answer.json()
    return answer.status_code, body.get("scimType") or body.get("reason") or ""


async def me(client: httpx.AsyncClient, headers: dict[str, str]) -> httpx.Response:
    return await client.get("/v1/me", headers=headers)


async def until_refused(client: httpx.AsyncClient, headers: dict[str, str]) -> httpx.Response:
    """At another gateway, which hears of a change in a few milliseconds."""
    async with asyncio.timeout(60):
        while (answer := await me(client, headers)).status_code == 200:
            await asyncio.sleep(0.01)
    return answer


async def test_deactivated_user_loses_keys_and_open_streams_at_every_gateway_until_active_again(
    asking: GatewaySettings, desk: KeyDesk
) -> None:
    key, other = bearer(await desk.issue(QUERY, subject="anna@x.org")), bearer(await desk.issue(QUERY, subject="ben"))
    token = await desk.issue(ADMIN, subject="provider")
    async with (
        gateway(asking) as here,
        streaming(asking) as there,
        there.stream("GET", "/v1/events", headers=key) as stream,
    ):
        provider, events = Provider(here, token), received(stream)
        user_id = await provider.add_user("Anna@X.org", displayName="Anna")
        assert (await me(here, key)).status_code == 200
        await provider.set_active(user_id, False)
        assert said(await me(here, key)) == (401, "SUBJECT_DEACTIVATED")
        async with asyncio.timeout(60):
            seen = [event async for event in events]
        assert (seen[-1].event, seen[-1].data["reason"]) == ("error", "SUBJECT_DEACTIVATED")
        assert said(await until_refused(there, key)) == (401, "SUBJECT_DEACTIVATED")
        assert (await me(here, other)).status_code == 200
        await provider.set_active(user_id, True)
        assert (await me(here, key)).status_code == 200


async def test_run_under_way_goes_on_when_its_user_is_deactivated(
    asking: GatewaySettings, desk: KeyDesk, world: World
) -> None:
    key = bearer(await desk.issue(QUERY, subject="anna"))
    token = await desk.issue(ADMIN, subject="provider")
    world.orchestrator.pause_after = 4
    async with (
        gateway(asking) as here,
        streaming(asking) as client,
        client.stream(
            "POST", "/v1/qa", json={"question": "How long?"}, headers={**key, "Accept": "text/event-stream"}
        ) as stream,
    ):
        provider, events = Provider(here, token), received(stream)
        seen = [await anext(events) for _ in range(4)]
        user_id = await provider.add_user("anna")
        await provider.set_active(user_id, False)
        async with asyncio.timeout(60):
            assert [event.data["reason"] async for event in events] == ["SUBJECT_DEACTIVATED"]
            assert said(await until_refused(client, key)) == (401, "SUBJECT_DEACTIVATED")
            await world.orchestrator.hung_up.wait()
        assert world.orchestrator.cancelled == []
        await provider.set_active(user_id, True)
        world.orchestrator.pause_after = None
        async with asyncio.timeout(60):
            while (await me(client, key)).status_code != 200:
                await asyncio.sleep(0.01)
        path = f"/v1/runs/{RUN_ID}/events"
        async with client.stream("GET", path, params={"after": seen[-1].id or ""}, headers=key) as rest:
            assert [event.event async for event in received(rest)][-1] == "done"


async def test_tokens_and_logins_from_before_a_deactivation_stay_refused(
    listing: Listing,  # noqa: F811
    issuer: Issuer,  # noqa: F811
    desk: KeyDesk,
) -> None:
    async with gateway(listing(issuer.entry(client_id="console"))) as client:
        provider = Provider(client, await desk.issue(ADMIN, subject="provider"))
        session, token = shows(session=await Browser(client, issuer).log_in()), bearer(issuer.token())
        user_id = await provider.add_user("anna")
        assert [(await me(client, each)).status_code for each in (session, token)] == [200, 200]
        await provider.set_active(user_id, False)
        for each in (session, token):
            assert said(await me(client, each)) == (401, "SUBJECT_DEACTIVATED")
        await provider.set_active(user_id, True)
        for each in (session, token):
            assert said(await me(client, each)) == (401, "SUBJECT_DEACTIVATED")
        later = issuer.token(iat=issuer.claims()["iat"] + 30)
        assert (await me(client, bearer(later))).status_code == 200


async def test_deleted_user_stays_out_with_old_keys_also_when_the_name_is_given_again(
    provider: Provider, desk: KeyDesk
) -> None:
    old = bearer(await desk.issue(QUERY, subject="anna"))
    user_id = await provider.add_user("anna")
    assert (await provider.ask("DELETE", f"/Users/{user_id}")).status_code == 204
    assert said(await me(provider.client, old)) == (401, "SUBJECT_DEACTIVATED")
    for method in ("GET", "DELETE"):
        assert (await provider.ask(method, f"/Users/{user_id}")).status_code == 404
    assert (await provider.ask("GET", "/Users")).json()["totalResults"] == 0
    await provider.add_user("anna")
    assert said(await me(provider.client, old)) == (401, "SUBJECT_DEACTIVATED")
    new = bearer(await desk.issue(QUERY, subject="anna"))
    assert (await me(provider.client, new)).status_code == 200


async def test_keys_of_a_former_name_let_nobody_in(provider: Provider, desk: KeyDesk) -> None:
    old = bearer(await desk.issue(QUERY, subject="anna"))
    user_id = await provider.add_user("anna")
    renamed = await provider.patch(f"/Users/{user_id}", {"op": "replace", "path": "userName", "value": "anna.b"})
    assert renamed.json()["userName"] == "anna.b"
    assert said(await me(provider.client, old)) == (401, "SUBJECT_DEACTIVATED")
    new = bearer(await desk.issue(QUERY, subject="anna.b"))
    assert (await me(provider.client, new)).status_code == 200
    await provider.set_active(user_id, False)
    again = bearer(await desk.issue(QUERY, subject="anna"))
    assert said(await me(provider.client, again)) == (401, "SUBJECT_DEACTIVATED")


async def test_subject_is_made_of_the_attribute_that_the_operator_names(
    settings: Settings, nats_url: str, desk: KeyDesk
) -> None:
    key = bearer(await desk.issue(QUERY, subject="okta.00u1"))
    asking = settings(auth="api_keys", nats_url=nats_url, scim_subject="okta.{externalId}")
    async with gateway(asking) as client:
        provider = Provider(client, await desk.issue(ADMIN, subject="provider"))
        without = await provider.ask("POST", "/Users", {"schemas": [USER], "userName": "anna@x.org"})
        assert said(without) == (400, "invalidValue")
        user_id = await provider.add_user("anna@x.org", externalId="00u1")
        await provider.add_group("Sales", user_id)
        assert (await me(client, key)).json()["groups"] == ["okta.Sales"]
        await provider.set_active(user_id, False)
        assert said(await me(client, key)) == (401, "SUBJECT_DEACTIVATED")


async def test_groups_join_those_of_the_key_and_end_streams_when_they_are_left(
    asking: GatewaySettings, desk: KeyDesk
) -> None:
    key = bearer(await desk.issue(QUERY, subject="anna", groups=("own",)))
    async with streaming(asking) as client:
        provider = Provider(client, await desk.issue(ADMIN, subject="provider"))
        user_id = (await provider.ask("POST", "/Users", {"schemas": [USER], "userName": "anna"})).json()["id"]
        group_id = await provider.add_group("Sales EMEA", user_id)
        assert (await me(client, key)).json()["groups"] == ["Sales EMEA", "own"]
        async with client.stream("GET", "/v1/events", headers=key) as stream:
            listed = (await provider.ask("GET", "/Groups", filter='displayName eq "sales emea"')).json()
            assert listed["Resources"][0]["members"][0]["value"] == user_id
            # As Microsoft Entra takes somebody out.
            operation = {"op": "Remove", "path": "members", "value": [{"value": user_id}]}
            assert "members" not in (await provider.patch(f"/Groups/{group_id}", operation)).json()
            async with asyncio.timeout(60):
                seen = [event async for event in received(stream)]
        assert (seen[-1].event, seen[-1].data["reason"]) == ("error", "GROUPS_CHANGED")
        assert (await me(client, key)).json()["groups"] == ["own"]
        added = await provider.patch(
            f"/Groups/{group_id}", {"op": "add", "path": "members", "value": [{"value": user_id}]}
        )
        assert [each["value"] for each in added.json()["members"]] == [user_id]
        assert (await me(client, key)).json()["groups"] == ["Sales EMEA", "own"]
        # As Okta renames a group.
        value = {"id": group_id, "displayName": "Sales"}
        assert (await provider.patch(f"/Groups/{group_id}", {"op": "replace", "value": value})).status_code == 200
        assert (await me(client, key)).json()["groups"] == ["Sales", "own"]
        assert (await provider.ask("DELETE", f"/Groups/{group_id}")).status_code == 204
        assert (await me(client, key)).json()["groups"] == ["own"]
        assert (await provider.ask("GET", f"/Groups/{group_id}")).status_code == 404


async def test_a_user_is_found_shown_and_replaced(provider: Provider) -> None:
    # Okta sends attributes that are not kept.
    sent = {
        "name": {"givenName": "Anna", "familyName": "Beck"},
        "emails": [{"primary": True, "value": "anna@localhost", "type": "work"}],
        "externalId": "00u1",
        "groups": [],
        "password": "s3cret",
        "locale": "de-DE",
        "urn:ietf:params:scim:schemas:extension:enterprise:2.0:User": {"department": "R&D"},
    }
    user_id = await provider.add_user("anna", **sent)
    await provider.add_user("ben", active=False)
    found = (await provider.ask("GET", "/Users", filter='userName eq "ANNA"')).json()
    assert (found["totalResults"], found["Resources"][0]["id"]) == (1, user_id)
    shown = (await provider.ask("GET", f"/Users/{user_id}")).json()
    assert {name: shown[name] for name in ("name", "emails", "externalId", "active")} == {
        **{name: sent[name] for name in ("name", "emails", "externalId")},
        "active": True,
    }
    assert "password" not in shown
    assert shown["meta"]["resourceType"] == "User"
    for query, names in (
        ('active eq false and userName sw "b"', ["ben"]),
        ('externalId eq "00u1"', ["anna"]),
        ('name.familyName eq "Beck"', ["anna"]),
        ('userName eq "nobody"', []),
    ):
        listed = (await provider.ask("GET", "/Users", filter=query)).json()
        assert [each["userName"] for each in listed.get("Resources", [])] == names
    first = (await provider.ask("GET", "/Users", count="1", attributes="userName")).json()
    assert (first["totalResults"], list(first["Resources"][0])) == (2, ["schemas", "id", "userName"])
    page = (await provider.ask("GET", "/Users", sortBy="userName", startIndex="2", count="1")).json()
    assert (page["totalResults"], page["itemsPerPage"], page["Resources"][0]["userName"]) == (2, 1, "ben")
    put = await provider.ask("PUT", f"/Users/{user_id}", {"schemas": [USER], "userName": "anna", "externalId": "00u1"})
    assert (put.json()["active"], "name" in put.json()) == (True, False)
    entra = [{"op": "Replace", "path": "active", "value": "False"}, {"op": "Add", "path": "title", "value": "Dr"}]
    assert (await provider.patch(f"/Users/{user_id}", *entra)).json()["active"] is False
    again = await provider.ask("PUT", f"/Users/{user_id}", {"schemas": [USER], "userName": "anna"})
    assert again.json()["active"] is False


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "kind"),
    [
        ("POST", "/Users", {"schemas": [USER], "userName": "ANNA"}, 409, "uniqueness"),
        ("POST", "/Users", {"schemas": [USER], "userName": "a b*"}, 400, "invalidValue"),
        ("POST", "/Users", {"schemas": [USER]}, 400, "invalidValue"),
        ("POST", "/Users", [], 400, "invalidSyntax"),
        ("POST", "/Users", {"schemas": [USER], "userName": "ben", "active": "perhaps"}, 400, "invalidValue"),
        ("PUT", "/Users/nobody", {"schemas": [USER], "userName": "ben"}, 404, ""),
        ("PATCH", "/Users/nobody", {"schemas": [PATCH], "Operations": [{"op": "remove", "path": "name"}]}, 404, ""),
        ("PATCH", "/Users/{anna}", {"schemas": [PATCH], "Operations": [{"op": "steal"}]}, 400, "invalidValue"),
        ("GET", "/Users?filter=userName%20is", None, 400, "invalidFilter"),
        ("GET", "/Groups?filter=displayName%20eq%20%22" + "x" * 2000 + "%22", None, 400, "invalidFilter"),
        ("POST", "/Users", {"schemas": [USER], "userName": "ben", "displayName": "x" * 20_000}, 400, "invalidValue"),
        ("GET", "/Users?count=many", None, 400, "invalidValue"),
        ("POST", "/Groups", {"schemas": [GROUP], "displayName": "x" * 200}, 400, "invalidValue"),
        ("POST", "/Groups", {"schemas": [GROUP], "displayName": "g", "members": [{"value": "z"}]}, 400, "invalidValue"),
        ("GET", "/Schemas/urn:none", None, 404, ""),
        ("GET", "/Users/nobody", None, 404, ""),
    ],
)
async def test_what_cannot_be_is_refused_in_words_of_scim(
    provider: Provider, method: str, path: str, body: Any, status: int, kind: str
) -> None:
    anna = await provider.add_user("anna")
    answer = await provider.ask(method, path.format(anna=anna), body)
    assert said(answer) == (status, kind), answer.text
    assert answer.json()["schemas"] == ["urn:ietf:params:scim:api:messages:2.0:Error"]
    assert answer.json()["detail"]


async def test_members_are_changed_by_the_hundred_in_the_order_of_the_operations(provider: Provider) -> None:
    anna, ben = await provider.add_user("anna"), await provider.add_user("ben")
    path = f"/Groups/{await provider.add_group('Sales', anna)}"
    here, gone = [{"value": anna}, {"value": ben}], [{"value": f"gone{number}"} for number in range(400)]
    answer = await provider.patch(
        path,
        {"op": "Add", "path": "Members", "value": here},
        *({"op": "remove", "path": f'members[value eq "{each["value"]}"]'} for each in gone),
        {"op": "Remove", "path": "members", "value": [*gone, {"value": ben}]},
        {"op": "replace", "path": "displayName", "value": "Sellers"},
        {"op": "add", "path": "members", "value": [{"value": ben}]},
        {"op": "remove", "path": f'members[value eq "{anna}"]'},
    )
    assert answer.status_code == 200, answer.text
    assert (answer.json()["displayName"], [each["value"] for each in answer.json()["members"]]) == ("Sellers", [ben])
    unknown = await provider.patch(path, {"op": "add", "path": "members", "value": gone[:1]})
    assert said(unknown) == (400, "invalidValue")
    assert "members" not in (await provider.patch(path, {"op": "remove", "path": "members"})).json()


async def test_what_would_take_too_long_is_refused(provider: Provider) -> None:
    user, group = f"/Users/{await provider.add_user('anna')}", f"/Groups/{await provider.add_group('Sales')}"
    renaming = {"op": "replace", "path": "displayName", "value": "x"}
    long = {"op": "remove", "path": f"members[{' or '.join(['value pr'] * 300)}]"}
    for path in (user, group):
        assert said(await provider.patch(path, *[renaming] * 101)) == (400, "invalidValue")
    assert said(await provider.patch(group, long)) == (400, "invalidPath")
    assert said(await provider.ask("PATCH", group, {"schemas": [PATCH], "Operations": []}))[0] == 400


async def test_a_name_that_is_no_text_is_refused(provider: Provider) -> None:
    body = json.dumps({"schemas": [GROUP], "displayName": "a\ud800b"}).encode()
    answer = await provider.client.post("/scim/v2/Groups", content=body, headers=provider.headers)
    assert said(answer) == (400, "invalidSyntax")


async def test_a_name_in_other_letters_of_case_takes_nothing_away(provider: Provider, desk: KeyDesk) -> None:
    key = bearer(await desk.issue(QUERY, subject="anna"))
    user_id = await provider.add_user("Anna")
    await provider.add_group("Sales", user_id)
    assert (await me(provider.client, key)).json()["groups"] == []
    await provider.patch(f"/Users/{user_id}", {"op": "replace", "path": "userName", "value": "anna"})
    assert (await me(provider.client, key)).json()["groups"] == ["Sales"]
    await provider.set_active(user_id, False)
    assert said(await me(provider.client, key)) == (401, "SUBJECT_DEACTIVATED")


async def test_a_record_that_cannot_be_read_lets_nobody_back_in(
    provider: Provider, desk: KeyDesk, jetstream: Nats
) -> None:
    key, user_id = bearer(await desk.issue(QUERY, subject="anna")), await provider.add_user("anna")
    await provider.set_active(user_id, False)
    bucket = await KeyValue.open(jetstream, "DIRECTORY")
    await bucket.put(f"acme.user.{user_id}", b"{")
    await bucket.put("acme.newer", b"{}")
    await provider.add_user("ben")  # the gateway has read what was written before
    assert said(await me(provider.client, key)) == (401, "SUBJECT_DEACTIVATED")


async def test_users_are_taken_again_after_the_bucket_was_emptied(
    asking: GatewaySettings, desk: KeyDesk, jetstream: Nats
) -> None:
    token = await desk.issue(ADMIN, subject="provider")
    async with gateway(asking) as client:
        await Provider(client, token).add_user("anna")
    await (await KeyValue.open(jetstream, "DIRECTORY")).purge_matching(">")
    async with gateway(asking) as client:
        await Provider(client, token).add_user("anna")


async def test_removing_active_deactivates(provider: Provider, desk: KeyDesk) -> None:
    key, user_id = bearer(await desk.issue(QUERY, subject="anna")), await provider.add_user("anna")
    assert (await provider.patch(f"/Users/{user_id}", {"op": "remove", "path": "active"})).json()["active"] is False
    assert said(await me(provider.client, key)) == (401, "SUBJECT_DEACTIVATED")


async def test_a_tenant_sees_and_ends_its_own_people_alone(provider: Provider, desk: KeyDesk) -> None:
    user_id = await provider.add_user("anna")
    group_id = await provider.add_group("Sales", user_id)
    stranger = Provider(provider.client, await desk.issue(ADMIN, subject="provider", tenant_id="other"))
    key = bearer(await desk.issue(QUERY, subject="anna", tenant_id="other"))
    operation = {"op": "replace", "value": {"active": False}}
    for path in (f"/Users/{user_id}", f"/Groups/{group_id}"):
        for answer in (
            await stranger.ask("GET", path),
            await stranger.ask("DELETE", path),
            await stranger.patch(path, operation),
            await stranger.ask("PUT", path, {"schemas": [USER], "userName": "anna", "displayName": "x"}),
        ):
            assert answer.status_code in (400, 404)
        assert (await provider.ask("GET", path)).status_code == 200
    assert (await stranger.ask("GET", "/Users")).json()["totalResults"] == 0
    foreign = await stranger.ask(
        "POST", "/Groups", {"schemas": [GROUP], "displayName": "g", "members": [{"value": user_id}]}
    )
    assert said(foreign) == (400, "invalidValue")
    await provider.set_active(user_id, False)
    assert (await me(provider.client, key)).status_code == 200


async def test_only_administrators_speak_scim(provider: Provider, desk: KeyDesk) -> None:
    user = Provider(provider.client, await desk.issue(QUERY, INGEST, subject="anna"))
    for path in ("/Users", "/Groups", "/Schemas", "/ResourceTypes", "/ServiceProviderConfig"):
        assert (await user.ask("GET", path)).status_code == 403
        assert (await provider.client.get(f"/scim/v2{path}", headers=SCIM)).status_code == 401
    assert (await user.ask("POST", "/Users", {"schemas": [USER], "userName": "ben"})).status_code == 403


@pytest.mark.parametrize("kind", ["Users", "Groups"])
async def test_a_change_of_another_version_is_refused_and_a_known_one_is_not_sent_again(
    provider: Provider, kind: str
) -> None:
    user_id = await provider.add_user("anna")
    path = f"/Users/{user_id}" if kind == "Users" else f"/Groups/{await provider.add_group('staff', user_id)}"
    shown = await provider.ask("GET", path)
    first = shown.headers["etag"]
    assert first == shown.json()["meta"]["version"]
    provider.headers["If-None-Match"] = f'"other", {first}'
    known = await provider.ask("GET", path)
    assert (known.status_code, known.content, known.headers["etag"]) == (304, b"", first)
    del provider.headers["If-None-Match"]

    provider.headers["If-Match"] = first.replace('"', "")
    assert (await provider.ask("DELETE", path)).status_code == 412  # no tag, so not that of any version

    provider.headers["If-Match"] = first
    change = {"op": "replace", "path": "displayName", "value": "Anna B."}
    changed = await provider.patch(path, change)
    assert changed.status_code == 200
    assert changed.headers["etag"] not in (first, "")
    for refused in (
        await provider.patch(path, change),
        await provider.ask("DELETE", path),
        await provider.ask("GET", path),
    ):
        assert refused.status_code == 412
        assert "changed since it was read" in refused.json()["detail"]
    provider.headers["If-Match"] = changed.headers["etag"]
    assert (await provider.ask("DELETE", path)).status_code == 204


async def test_a_group_has_another_version_when_one_of_its_members_has_left(provider: Provider) -> None:
    user_id = await provider.add_user("anna")
    path = f"/Groups/{await provider.add_group('staff', user_id)}"
    before = (await provider.ask("GET", path)).headers["etag"]
    assert (await provider.ask("DELETE", f"/Users/{user_id}")).status_code == 204
    assert (await provider.ask("GET", path)).headers["etag"] != before


async def test_says_what_it_serves(provider: Provider) -> None:
    config = (await provider.ask("GET", "/ServiceProviderConfig")).json()
    assert [config[each]["supported"] for each in ("patch", "etag", "bulk")] == [True, True, False]
    types = (await provider.ask("GET", "/ResourceTypes")).json()["Resources"]
    assert [each["endpoint"] for each in types] == ["/Users", "/Groups"]
    schemas = (await provider.ask("GET", "/Schemas")).json()["Resources"]
    assert [each["id"] for each in schemas] == [USER, GROUP]
    assert (await provider.ask("GET", f"/Schemas/{USER}")).json()["name"] == "User"
    assert (await provider.ask("GET", "/ResourceTypes/Group")).json()["schema"] == GROUP


async def test_of_two_gateways_one_gives_a_name(asking: GatewaySettings, desk: KeyDesk) -> None:
    token = await desk.issue(ADMIN, subject="provider")
    async with gateway(asking) as here, gateway(asking) as there:
        body = {"schemas": [USER], "userName": "anna"}
        answers = await asyncio.gather(
            *(Provider(client, token).ask("POST", "/Users", body) for client in (here, there) * 4)
        )
        assert sorted(answer.status_code for answer in answers) == [201, *[409] * 7]
        for client in (here, there):
            assert (await Provider(client, token).ask("GET", "/Users")).json()["totalResults"] == 1


async def test_of_a_change_and_a_deletion_of_one_version_of_a_group_one_is_done(
    asking: GatewaySettings, desk: KeyDesk
) -> None:
    token = await desk.issue(ADMIN, subject="provider")
    async with gateway(asking) as here, gateway(asking) as there:
        changing, deleting = Provider(here, token), Provider(there, token)
        for number in range(8):
            path = f"/Groups/{await changing.add_group(f'staff {number}')}"
            shown = await deleting.ask("GET", path)
            for provider in (changing, deleting):
                provider.headers["If-Match"] = shown.headers["etag"]
            change = {"op": "replace", "path": "displayName", "value": f"people {number}"}
            answers = await asyncio.gather(changing.patch(path, change), deleting.ask("DELETE", path))
            assert [answer.status_code for answer in answers] in ([200, 412], [404, 204])
            for provider in (changing, deleting):
                del provider.headers["If-Match"]


async def test_who_may_come_in_is_in_the_audit_log(provider: Provider) -> None:
    user_id = await provider.add_user("anna")
    await provider.set_active(user_id, False)
    await provider.ask("DELETE", f"/Users/{user_id}")
    log = await provider.client.get("/v1/audit", headers=provider.headers)
    entries = [each for line in log.text.splitlines() if "about_subject" in (each := json.loads(line))]
    assert [(each["action"], each["about_subject"], each["subject"]) for each in entries] == [
        (action, "anna", "provider") for action in ("user_activated", "user_deactivated", "user_deleted")
    ]


async def test_without_keys_there_is_no_scim(client: httpx.AsyncClient) -> None:
    assert (await client.get("/scim/v2/Users")).status_code == 404


async def test_a_gateway_without_rights_to_the_directory_lets_only_the_bootstrap_key_in(
    settings: Settings, logs: list[MutableMapping[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(members, "FIRST_RECORDS_S", 0.1)  # the records never come
    monkeypatch.setattr(connection, "PATIENCE_S", 2.0)  # NATS leaves what is denied without an answer
    denied = [each for each in publish_subjects("gateway") if "DIRECTORY" in each]
    users = [
        {"user": ADMINISTRATOR, "password": "p"},
        {"user": "gateway", "password": "p", "permissions": {"publish": {"deny": denied}}},
    ]
    bootstrap = "correct-horse-battery-staple"
    async with nats_server(f"authorization {{ users: {json.dumps(users)} }}\n") as server:
        place = f"p@127.0.0.1:{server.port}"
        async with connect(f"nats://{ADMINISTRATOR}:{place}", name="test") as nats:
            key = await (await KeyDesk.open(nats)).issue(ADMIN, subject="anna")
        limited = settings(auth="api_keys", nats_url=f"nats://gateway:{place}", bootstrap_key=SecretStr(bootstrap))
        async with gateway(limited) as client:
            async with asyncio.timeout(60):
                while not any(line["event"] == "directory_not_opened" for line in logs):
                    await asyncio.sleep(0.01)
            assert said(await me(client, bearer(key))) == (503, "DIRECTORY_STALE")
            assert (await me(client, bearer(bootstrap))).status_code == 200
