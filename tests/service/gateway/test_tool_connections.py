"""Connections over HTTP: made for oneself or for the tenant, listed without what they hold, and forgotten."""

import httpx

from tests.service.gateway.conftest import World

PATH = "/v1/connections/github"


async def test_connection_is_made_listed_and_forgotten(client: httpx.AsyncClient, world: World) -> None:
    made = await client.put(PATH, json={"secret": "github_pat_1"})
    assert (made.status_code, made.json()["account"], made.json()["shared"]) == (200, "ann-at-github", False)
    shared = await client.put(PATH, json={"secret": "github_pat_2", "shared": True})
    assert shared.json()["shared"]
    assert [each.secret for each in world.tools.connections.values()] == ["github_pat_1", "github_pat_2"]
    listed = await client.get("/v1/connections")
    assert (listed.json()["services"], len(listed.json()["connections"])) == (["github", "mail"], 2)
    assert "github_pat" not in listed.text + made.text + shared.text
    assert (await client.delete(PATH)).status_code == 204
    assert list(world.tools.connections) == [("github", True)]
    assert (await client.delete(PATH, params={"shared": "true"})).status_code == 204
    assert world.tools.connections == {}


async def test_mailbox_is_connected_for_its_user(client: httpx.AsyncClient, world: World) -> None:
    body = {"secret": "pass word", "account": "ann@example.com"}
    assert (await client.put("/v1/connections/mail", json=body)).status_code == 200
    assert world.tools.connections["mail", False].account == "ann@example.com"


async def test_service_is_connected_by_a_login_there(client: httpx.AsyncClient, world: World) -> None:
    assert (await client.get("/v1/connections")).json()["logins"] == ["github"]
    begun = (await client.post(f"{PATH}/login", json={"shared": True})).json()
    assert (begun["user_code"], begun["verification_url"]) == ("WDJB-MJHT", "https://example.com/device")
    waiting = (await client.post(f"{PATH}/login/finish", json={"login": begun["login"]})).json()
    assert waiting == {"connection": None, "login": "agreed", "trouble": ""}
    done = (await client.post(f"{PATH}/login/finish", json={"login": waiting["login"]})).json()
    assert (done["connection"]["account"], done["login"]) == ("ann-at-github", "")
    assert [each.service for each in world.tools.logins] == ["github"] * 3
    assert world.tools.logins[0].shared


async def test_refused_credential_is_not_repeated(client: httpx.AsyncClient) -> None:
    for secret in ("", "x" * 8001, 7):
        refused = await client.put(PATH, json={"secret": secret})
        assert refused.status_code == 400
        assert "xxxx" not in refused.text
