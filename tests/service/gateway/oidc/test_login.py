"""People log in by their browser at an OIDC issuer, and out again."""

import asyncio
import base64
import hashlib
from datetime import timedelta
from http.cookies import SimpleCookie
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest

from kit.jetstream import Nats
from services.gateway.settings import GatewaySettings
from tests.service.gateway.conftest import Clocks, in_process, over_http
from tests.service.gateway.key_desk import KeyDesk, bearer
from tests.service.gateway.oidc.conftest import Issuer, Listing
from tests.service.gateway.sse_reader import received

SESSION, LEAVING = "__Host-groundwork", "__Host-groundwork-login"


def cookies_of(answer: httpx.Response) -> dict[str, Any]:
    found: SimpleCookie = SimpleCookie()
    for header in answer.headers.get_list("set-cookie"):
        found.load(header)
    return dict(found)


def shows(**cookies: str) -> dict[str, str]:
    """The header by which a browser shows cookies."""
    names = {"session": SESSION, "leaving": LEAVING}
    return {"Cookie": "; ".join(f"{names[name]}={value}" for name, value in cookies.items())}


class Browser:
    """Goes to the issuer and back, as a person who types the right password."""

    def __init__(self, client: httpx.AsyncClient, issuer: Issuer) -> None:
        self.client = client
        self.issuer = issuer
        self.leaving = ""
        self.asked: dict[str, str] = {}

    async def leave(self, to: str = "/") -> httpx.Response:
        answer = await self.client.get("/oidc/login", params={"issuer": self.issuer.url, "to": to})
        if answer.status_code == 303:
            asked = parse_qs(urlsplit(answer.headers["location"]).query)
            self.asked = {name: values[0] for name, values in asked.items()}
            self.leaving = cookies_of(answer)[LEAVING].value
        return answer

    async def come_back(self, *, state: str = "", session: str = "", **claims: Any) -> httpx.Response:
        """`session`: the cookie that the browser has of an earlier login."""
        claims = {"aud": "console", "nonce": self.asked["nonce"], **claims}
        self.issuer.codes["c0de"] = self.issuer.token(**claims)
        parameters = {"code": "c0de", "state": state or self.asked["state"]}
        shown = {"leaving": self.leaving} | ({"session": session} if session else {})
        return await self.client.get("/oidc/callback", params=parameters, headers=shows(**shown))

    async def log_in(self, **claims: Any) -> str:
        await self.leave()
        return str(cookies_of(await self.come_back(**claims))[SESSION].value)


def refusal(answer: httpx.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["reason"]


async def test_a_person_logs_in_and_acts_by_the_cookie_until_they_log_out(
    settings_of_console: GatewaySettings, issuer: Issuer, jetstream: Nats
) -> None:
    desk = await KeyDesk.open(jetstream)
    async with in_process(settings_of_console) as here, in_process(settings_of_console) as there:
        assert (await here.get("/oidc/issuers")).json() == {"issuers": [{"issuer": issuer.url, "name": "Acme"}]}
        browser = Browser(here, issuer)
        left = await browser.leave("/?thread=1#answer")
        assert left.headers["location"].startswith(f"{issuer.url}/authorize?")
        assert browser.asked["redirect_uri"] == "http://127.0.0.1:8080/oidc/callback"
        back = await browser.come_back(groups=["editors"], sid="s1")
        assert (back.status_code, back.headers["location"]) == (303, "/?thread=1#answer")
        cookie = cookies_of(back)[SESSION]
        assert (cookie["httponly"], cookie["secure"], cookie["path"], cookie["samesite"]) == (True, True, "/", "lax")
        (token_request,) = [asked for asked in issuer.server.asked if asked.target == "/token"]
        verifier = parse_qs(token_request.body.decode())["code_verifier"][0]
        challenge = base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).decode().rstrip("=")
        assert browser.asked["code_challenge"] == challenge
        session = shows(session=cookie.value)
        for client in (here, there):
            me = (await client.get("/v1/me", headers=session)).json()
            assert me == {"tenant": "acme", "subject": "anna", "scopes": ["query", "ingest"], "groups": ["editors"]}
        by_key = {**bearer(await desk.issue(subject="olga")), **session}
        assert (await here.get("/v1/me", headers=by_key)).json()["subject"] == "olga"
        out = await here.post("/oidc/logout", headers=session)
        assert out.json()["then"].startswith(f"{issuer.url}/end?")
        assert cookies_of(out)[SESSION].value == ""
        assert refusal(await here.get("/v1/me", headers=session)) == (401, "TOKEN_REVOKED")
        async with asyncio.timeout(60):  # the other gateway hears of it in a few milliseconds
            while (answer := await there.get("/v1/me", headers=session)).status_code == 200:
                await asyncio.sleep(0.01)
        assert refusal(answer) == (401, "TOKEN_REVOKED")
        assert (await here.post("/oidc/logout", headers=session)).json() == {"then": ""}


async def test_logging_in_anew_ends_the_login_that_the_browser_had(
    settings_of_console: GatewaySettings, issuer: Issuer
) -> None:
    async with in_process(settings_of_console) as client:
        browser = Browser(client, issuer)
        other = await Browser(client, issuer).log_in(groups=["editors"])
        first = await browser.log_in(groups=["editors"])
        await browser.leave()
        second = cookies_of(await browser.come_back(session=first, sub="bert", groups=["editors"]))[SESSION].value
        assert refusal(await client.get("/v1/me", headers=shows(session=first))) == (401, "TOKEN_REVOKED")
        assert (await client.get("/v1/me", headers=shows(session=second))).json()["subject"] == "bert"
        assert (await client.get("/v1/me", headers=shows(session=other))).status_code == 200
        await browser.leave()
        assert (await browser.come_back(session=first)).status_code == 303  # one that is over is in nobody's way


async def test_a_page_of_another_site_can_neither_act_nor_log_anybody_out(
    settings_of_console: GatewaySettings, issuer: Issuer
) -> None:
    async with in_process(settings_of_console) as client:
        session = shows(session=await Browser(client, issuer).log_in())
        for origin in ({"Origin": "https://evil.example"}, {"Sec-Fetch-Site": "cross-site"}):
            for path in ("/v1/threads", "/oidc/logout"):
                assert refusal(await client.post(path, headers={**session, **origin})) == (403, "CROSS_ORIGIN")
        assert (await client.get("/v1/me", headers=session)).status_code == 200


@pytest.mark.parametrize(
    ("claims", "said"),
    [
        ({"nonce": "another"}, "another login"),
        ({"aud": "groundwork"}, "for others"),
        ({"sub": None}, "who it is for"),
        ({"state": "another"}, "another login"),
    ],
)
async def test_a_login_that_is_not_this_browser_s_comes_to_nothing_and_says_so_to_a_person(
    settings_of_console: GatewaySettings, issuer: Issuer, claims: dict[str, Any], said: str
) -> None:
    async with in_process(settings_of_console) as client:
        browser = Browser(client, issuer)
        await browser.leave()
        answer = await browser.come_back(**claims)
    assert answer.status_code in {400, 401}
    assert answer.headers["content-type"].startswith("text/html")
    assert said in answer.text
    assert SESSION not in cookies_of(answer)


async def test_what_the_issuer_or_an_attacker_sends_back_is_said_and_never_markup(
    settings_of_console: GatewaySettings, issuer: Issuer
) -> None:
    async with in_process(settings_of_console) as client:
        browser = Browser(client, issuer)
        await browser.leave("//evil.example")
        back = {"state": browser.asked["state"], "error": "access_denied", "error_description": "<script>no</script>"}
        refused = await client.get("/oidc/callback", params=back, headers=shows(leaving=browser.leaving))
        assert (refused.status_code, "&lt;script&gt;no" in refused.text, "<script>" in refused.text) == (
            400,
            True,
            False,
        )
        assert (await browser.come_back()).headers["location"] == "/"
        for leaving in ("", "e30=", "%%%", "bnVsbA=="):
            lost = await client.get(
                "/oidc/callback", params={"code": "1", "state": "2"}, headers=shows(leaving=leaving)
            )
            assert (lost.status_code, "begin anew" in lost.text) == (400, True)
        again = {"code": "used", "state": browser.asked["state"]}
        used = await client.get("/oidc/callback", params=again, headers=shows(leaving=browser.leaving))
        assert (used.status_code, "gave no token" in used.text) == (400, True)
        assert (await client.get("/oidc/login", params={"issuer": "https://elsewhere.example"})).status_code == 404
        issuer.is_silent = True
        assert (await browser.leave()).status_code == 503


async def test_a_login_ends_with_its_hours_and_with_what_the_issuer_says(
    settings_of_console: GatewaySettings, issuer: Issuer
) -> None:
    clocks = Clocks()
    async with (
        in_process(settings_of_console, clocks=clocks) as client,
        over_http(settings_of_console, clocks=clocks) as streaming,
    ):
        session = shows(session=await Browser(client, issuer).log_in(sid="s1"))
        async with streaming.stream("GET", "/v1/events", headers=session) as stream:
            events = received(stream)
            seen = [await anext(events)]
            told = {"logout_token": issuer.logout_token(sid="s1")}
            assert (await client.post("/oidc/backchannel-logout", data=told)).status_code == 200
            async with asyncio.timeout(60):
                seen += [event async for event in events]
        assert seen[-1].data["reason"] == "TOKEN_REVOKED"
        assert refusal(await client.get("/v1/me", headers=session)) == (401, "TOKEN_REVOKED")
        another = shows(session=await Browser(client, issuer).log_in(sid="s2"))
        assert (await client.get("/v1/me", headers=another)).status_code == 200
        clocks.day += timedelta(hours=8, seconds=1)
        assert refusal(await client.get("/v1/me", headers=another)) == (401, "SESSION_OVER")


async def test_what_is_no_login_is_none(settings_of_console: GatewaySettings, issuer: Issuer) -> None:
    async with in_process(settings_of_console) as client:
        good = await Browser(client, issuer).log_in()
        for secret in ("x", ("A" if good[0] != "A" else "B") + good[1:], "*" * 43, good + "A"):
            assert refusal(await client.get("/v1/me", headers=shows(session=secret))) == (401, "SESSION_OVER"), secret
        assert (await client.get("/v1/me", headers=shows(session=good))).status_code == 200


async def test_without_a_console_at_the_issuer_nobody_can_log_in(listing: Listing, issuer: Issuer) -> None:
    for entries, changes in (([issuer.entry()], {}), ([], {"oidc_issuers_file": None})):
        async with in_process(listing(*entries, **changes)) as client:
            assert (await client.get("/oidc/issuers")).json() == {"issuers": []}
            assert (await client.get("/oidc/login", params={"issuer": issuer.url})).status_code == 404


async def test_logins_that_fail_are_slowed_by_address_before_the_issuer_is_asked(
    listing: Listing, issuer: Issuer
) -> None:
    settings = listing(issuer.entry(client_id="console"), wrong_api_keys_per_minute=3)
    async with in_process(settings) as client:
        transport: Any = client._transport
        transport.client = ("203.0.113.9", 1)
        browser = Browser(client, issuer)
        for _ in range(5):  # one that comes about costs nothing
            await browser.log_in()
        await browser.leave()
        back = {"code": "guessed", "state": browser.asked["state"]}
        answers = [
            await client.get("/oidc/callback", params=back, headers=shows(leaving=browser.leaving)) for _ in range(5)
        ]
        assert [answer.status_code for answer in answers] == [400, 400, 400, 429, 429]
        assert len([asked for asked in issuer.server.asked if asked.target == "/token"]) == 5 + 3
        transport.client = ("198.51.100.9", 1)
        await browser.log_in()


async def test_logins_that_begin_and_do_not_come_back_are_slowed_by_address(listing: Listing, issuer: Issuer) -> None:
    settings = listing(issuer.entry(client_id="console"), begun_logins_per_minute=3, proxies=("192.0.2.1/32",))
    async with in_process(settings) as client:
        transport: Any = client._transport
        transport.client = ("203.0.113.9", 1)
        browser = Browser(client, issuer)
        for _ in range(5):  # one that comes about costs nothing
            await browser.log_in()
        asked = len(issuer.server.asked)
        answers = [await browser.leave() for _ in range(5)]
        assert [answer.status_code for answer in answers] == [303, 303, 303, 429, 429]
        assert "wait a minute" in answers[-1].text
        assert len(issuer.server.asked) == asked + 3
        for address in ("198.51.100.9", "192.0.2.1", "192.0.2.1", "192.0.2.1", "192.0.2.1"):  # the last is a proxy
            transport.client = (address, 1)
            assert (await browser.leave()).status_code == 303
