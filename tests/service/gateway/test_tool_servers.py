"""MCP servers over HTTP: logging in at one, from the address that is opened to the page at which the browser ends."""

import httpx
import pytest

from tests.service.gateway.conftest import World

PATH = "/v1/tool-servers/crm/login"


async def test_login_begins_and_ends_at_the_page_of_the_gateway(client: httpx.AsyncClient, world: World) -> None:
    begun = await client.post(PATH, json={"client_id": "ours", "client_secret": "s1", "scope": "a"})
    assert begun.json()["authorization_url"] == "https://login.example.com/authorize"
    asked = world.tools.logins[-1]
    page = str(client.base_url.join("/tool-servers/callback"))
    assert (asked.name, asked.redirect_uri, asked.client_id, asked.client_secret) == ("crm", page, "ours", "s1")
    shown = await client.get("/tool-servers/callback", params={"state": "crm.1", "code": "c1"})
    assert (shown.status_code, "c1" in shown.text) == (200, False)
    assert "form-action 'none'" in shown.headers["content-security-policy"]
    answer = {"state": "crm.1", "code": "c1", "iss": None}
    assert (await client.post(f"{PATH}/answer", json=answer)).json()["name"] == "crm"
    given = world.tools.logins[-1]
    assert (given.name, given.state, given.code, given.issuer) == ("crm", "crm.1", "c1", "")
    assert (await client.delete(PATH)).status_code == 204


@pytest.mark.parametrize(
    "address",
    ["https://evil.example/callback", "http://127.0.0.1:1/elsewhere", "http://127.0.0.1.evil.example:1/callback"],
)
async def test_browser_ends_at_the_gateway_or_on_its_own_machine(client: httpx.AsyncClient, address: str) -> None:
    assert (await client.post(PATH, json={"redirect_uri": address})).status_code == 400
    own = await client.post(PATH, json={"redirect_uri": "http://127.0.0.1:4711/callback"})
    assert own.status_code == 200
