"""The cookie of a login is replaced while it is used, at all gateways and in all tabs, and a copy of an old one ends the login."""

import asyncio
import json
import random
import string
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import httpx
import pytest

from kit.jetstream import Nats
from kit.testing.nats import NatsServer
from services.gateway.access.oidc.rotation import GRACE_S, ROTATED_EVERY_S
from services.gateway.settings import GatewaySettings
from tests.service.gateway.conftest import Clocks, in_process, over_http
from tests.service.gateway.key_desk import KeyDesk, bearer
from tests.service.gateway.oidc.conftest import Issuer
from tests.service.gateway.oidc.test_login import SESSION, Browser, cookies_of, refusal, shows
from tests.service.gateway.sse_reader import received


@dataclass
class Two:
    """Two gateways with one clock, and the cookie of a login at the first."""

    here: httpx.AsyncClient
    there: httpx.AsyncClient
    first: str
    clocks: Clocks = field(default_factory=Clocks)

    def wait(self, seconds: float) -> None:
        self.clocks.day += timedelta(seconds=seconds)

    async def rotated(self, cookie: str) -> str:
        """The cookie that follows, shown once at each gateway."""
        self.wait(ROTATED_EVERY_S + 1)
        new = new_cookie(await me(self.here, cookie))
        assert new
        for client in (self.there, self.here):
            assert new_cookie(await me(client, new)) == ""
        return new


async def me(client: httpx.AsyncClient, cookie: str) -> httpx.Response:
    return await client.get("/v1/me", headers=shows(session=cookie))


def new_cookie(answer: httpx.Response) -> str:
    assert answer.status_code == 200, answer.text
    return cookies_of(answer)[SESSION].value if SESSION in cookies_of(answer) else ""


@pytest.fixture
async def two(settings_of_console: GatewaySettings, issuer: Issuer) -> AsyncIterator[Two]:
    clocks = Clocks()
    async with AsyncExitStack() as stack:
        here, there = [
            await stack.enter_async_context(in_process(settings_of_console, clocks=clocks)) for _ in range(2)
        ]
        yield Two(here, there, await Browser(here, issuer).log_in(groups=["editors"]), clocks)


async def test_all_tabs_get_the_same_new_cookie_from_all_gateways(two: Two) -> None:
    assert new_cookie(await me(two.here, two.first)) == new_cookie(await me(two.there, two.first)) == ""
    two.wait(ROTATED_EVERY_S + 1)
    answers = await asyncio.gather(*(me(client, two.first) for client in (two.here, two.there) * 6))
    (new,) = {new_cookie(answer) for answer in answers}
    cookie = cookies_of(answers[0])[SESSION]
    assert (cookie["httponly"], cookie["secure"], cookie["path"], cookie["samesite"]) == (True, True, "/", "lax")
    assert int(cookie["max-age"]) <= 8 * 3600 - ROTATED_EVERY_S
    assert answers[0].headers["cache-control"] == "no-store"
    shown = await asyncio.gather(*(me(client, new) for client in (two.here, two.there) * 3))
    assert {new_cookie(answer) for answer in shown} == {""}
    two.wait(GRACE_S - 1)  # requests that were under way
    for client in (two.here, two.there):
        assert new_cookie(await me(client, two.first)) == ""
    await two.rotated(await two.rotated(new))


async def test_a_new_cookie_that_never_arrived_costs_nothing(two: Two) -> None:
    two.wait(ROTATED_EVERY_S + 1)
    lost = new_cookie(await me(two.here, two.first))
    two.wait(3600)
    assert new_cookie(await me(two.there, two.first)) == new_cookie(await me(two.here, two.first)) == lost
    assert new_cookie(await me(two.there, lost)) == ""


@pytest.mark.parametrize("rotations", [1, 3])
async def test_an_old_cookie_ends_the_login_and_its_streams_everywhere_and_is_in_the_audit_log(
    two: Two, settings_of_console: GatewaySettings, jetstream: Nats, rotations: int
) -> None:
    newest = two.first
    for _ in range(rotations):
        newest = await two.rotated(newest)
    async with (
        over_http(settings_of_console, clocks=two.clocks) as streaming,
        streaming.stream("GET", "/v1/events", headers=shows(session=newest)) as stream,
    ):
        events = received(stream)
        seen = [await anext(events)]
        two.wait(GRACE_S + 1)
        transport: Any = two.there._transport
        transport.client = ("203.0.113.9", 1)
        assert refusal(await me(two.there, two.first)) == (401, "SESSION_REUSED")
        async with asyncio.timeout(60):
            seen += [event async for event in events]
    assert seen[-1].data["reason"] == "TOKEN_REVOKED"
    for client in (two.here, two.there):
        for cookie in (newest, two.first):
            async with asyncio.timeout(60):
                while (answer := await me(client, cookie)).status_code == 200:
                    await asyncio.sleep(0.01)
            assert refusal(answer) == (401, "TOKEN_REVOKED")
    olga = bearer(await (await KeyDesk.open(jetstream)).issue())
    async with asyncio.timeout(60):
        while not (noted := await entries_of(two.here, olga, "login_reused")):
            await asyncio.sleep(0.01)
    assert [(each["subject"], each["address"]) for each in noted] == [("anna", "203.0.113.9")]


async def entries_of(client: httpx.AsyncClient, administrator: dict[str, str], action: str) -> list[dict[str, Any]]:
    """Of the audit log of the caller's tenant."""
    answer = await client.get("/v1/audit", headers=administrator)
    return [entry for entry in map(json.loads, answer.text.splitlines()) if entry["action"] == action]


async def test_a_stream_goes_on_while_its_cookie_is_replaced_and_a_late_answer_sets_none(
    two: Two, settings_of_console: GatewaySettings
) -> None:
    two.wait(ROTATED_EVERY_S + 1)
    async with (
        over_http(settings_of_console, clocks=two.clocks) as streaming,
        streaming.stream("GET", "/v1/events", headers=shows(session=two.first)) as stream,
    ):
        events = received(stream)
        await anext(events)
        new = cookies_of(stream)[SESSION].value
        assert new_cookie(await me(two.here, new)) == ""
        new = await two.rotated(new)
        going_on = asyncio.ensure_future(anext(events))
        await me(two.here, new)
        assert not going_on.done()
        going_on.cancel()
    two.wait(ROTATED_EVERY_S + 1)
    transport: Any = two.here._transport
    admission = await transport.app.state.api_keys.issuers.admit_session(new, "")
    assert admission.next_cookie()
    two.wait(11)
    assert admission.next_cookie() is None


async def test_signing_out_ends_every_cookie_of_the_login(two: Two) -> None:
    new = await two.rotated(two.first)
    two.wait(ROTATED_EVERY_S + 1)
    pending = new_cookie(await me(two.here, new))
    out = await two.there.post("/oidc/logout", headers=shows(session=new))
    assert out.status_code == 200
    for client in (two.there, two.here):
        for cookie in (new, pending, two.first):
            async with asyncio.timeout(60):
                while (answer := await me(client, cookie)).status_code == 200:
                    await asyncio.sleep(0.01)
            assert refusal(answer) == (401, "TOKEN_REVOKED")


async def test_an_answer_after_signing_out_does_not_bring_the_cookie_back(two: Two) -> None:
    two.wait(ROTATED_EVERY_S + 1)
    transport: Any = two.here._transport
    admission = await transport.app.state.api_keys.issuers.admit_session(two.first, "")
    assert admission.next_cookie()
    assert (await two.here.post("/oidc/logout", headers=shows(session=two.first))).status_code == 200
    assert admission.next_cookie() is None


async def test_of_crafted_cookies_none_lets_anybody_in_or_ends_a_login(two: Two) -> None:
    good = await two.rotated(two.first)
    login, _, secret = good.partition(".")
    chance = random.Random(38)
    letters = string.ascii_letters + string.digits + "-_.*>$%"

    def crafted() -> str:
        shown = list(good)
        for _ in range(chance.randint(1, 4)):
            place = chance.randrange(len(shown))
            shown[place] = chance.choice(letters)
        return "".join(shown)[: chance.choice((len(good), chance.randrange(len(good))))]

    cookies = {crafted() for _ in range(500)} | {
        login,
        f"{login}.",
        f".{secret}",
        f"{good}.",
        f"{login}.{login}",
        secret,
    }
    for cookie in cookies - {good, ""}:
        answer = await me(two.here, cookie)
        assert answer.status_code in {401, 429}, cookie
    assert new_cookie(await me(two.here, good)) == new_cookie(await me(two.there, good)) == ""


async def test_while_the_message_store_is_silent_logins_that_are_known_go_on(two: Two, nats: NatsServer) -> None:
    two.wait(ROTATED_EVERY_S + 1)
    pending = new_cookie(await me(two.here, two.first))
    await nats.stop()
    two.wait(6)
    assert new_cookie(await me(two.here, pending)) == ""
    assert new_cookie(await me(two.here, two.first)) == pending
