"""People without an account come in by a proof of work, for a while, and may do little."""

import asyncio
import itertools
import json
import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import httpx
import pytest
from groundwork.orchestrator.v1 import orchestrator_pb2

from kit.access.principal import Principal
from kit.errors import Unavailable
from kit.jetstream import Nats
from services.gateway.access.guests.puzzles import zero_bits
from services.gateway.access.guests.rights import GUEST_ROUTES
from services.gateway.access.guests.sweeping import Sweeper
from services.gateway.settings import GatewaySettings
from tests.service.gateway.conftest import Clocks, Settings, World, in_process, over_http
from tests.service.gateway.oidc.test_login import SESSION, cookies_of, refusal, shows
from tests.service.gateway.sse_reader import received
from tests.service.gateway.test_openapi_enforced import operations

BITS = 6
UPLOAD = ("POST", "/v1/collections/{collection_id}/documents")
Allowing = Callable[..., GatewaySettings]


@pytest.fixture
def allowing(settings: Settings, nats_url: str) -> Allowing:
    """Settings of a gateway that lets guests in."""

    def make(**changes: Any) -> GatewaySettings:
        return settings(
            **{"auth": "api_keys", "nats_url": nats_url, "guests": True, "guests_proof_bits": BITS, **changes}
        )

    return make


def solution_of(challenge: dict[str, Any]) -> str:
    """By counting, as a browser does it."""
    found = (n for n in itertools.count() if zero_bits(f"{challenge['seed']}.{n}") >= challenge["bits"])
    return str(next(found))


async def solved(client: httpx.AsyncClient) -> dict[str, str]:
    challenge = (await client.post("/guests/challenge")).json()
    return {"challenge": challenge["challenge"], "solution": solution_of(challenge)}


async def become_guest(client: httpx.AsyncClient) -> dict[str, str]:
    """The header that shows the cookie of a new guest."""
    answer = await client.post("/guests", json=await solved(client))
    assert answer.status_code == 201, answer.text
    return shows(session=cookies_of(answer)[SESSION].value)


async def test_nobody_is_a_guest_unless_the_operator_says_so(allowing: Allowing) -> None:
    async with in_process(allowing(guests=False)) as client:
        assert (await client.get("/guests")).json()["allowed"] is False
        for answer in (await client.post("/guests/challenge"), await client.delete("/guests")):
            assert refusal(answer) == (404, "ROUTE_NOT_FOUND")


@pytest.mark.parametrize("wrong", [{"auth": "none"}, {"guests_tenant": "local"}, {"guests_limits": "runs=30"}])
def test_settings_that_would_let_guests_in_unbounded_or_among_users_are_refused(
    allowing: Allowing, wrong: dict[str, str]
) -> None:
    with pytest.raises(ValueError, match=r"GROUNDWORK_|no limit"):
        allowing(**wrong)


async def test_a_guest_comes_in_by_a_proof_and_is_known_at_every_gateway_until_the_day_is_over(
    allowing: Allowing, world: World
) -> None:
    clocks = Clocks()
    async with in_process(allowing(), clocks=clocks) as here, in_process(allowing(), clocks=clocks) as there:
        assert (await here.get("/guests")).json() == {"allowed": True, "hours": 24.0}
        answer = await here.post("/guests", json=await solved(here))
        cookie = cookies_of(answer)[SESSION]
        assert (cookie["httponly"], cookie["secure"], cookie["path"], cookie["samesite"]) == (True, True, "/", "lax")
        guest = shows(session=cookie.value)
        async with asyncio.timeout(60):  # the other gateway hears of it in milliseconds
            while (await there.get("/v1/me", headers=guest)).status_code != 200:
                await asyncio.sleep(0.01)
        me = (await there.get("/v1/me", headers=guest)).json()
        assert me == {
            "tenant": "guests",
            "subject": answer.json()["subject"],
            "scopes": ["query", "ingest"],
            "groups": ["guest"],
        }
        assert re.fullmatch("guest-[0-9a-f]{24}", me["subject"])
        clocks.day += timedelta(hours=24, seconds=1)
        assert refusal(await here.get("/v1/me", headers=guest)) == (401, "GUEST_GONE")


async def test_a_proof_is_good_for_one_guest_though_it_is_shown_to_all_gateways_at_once(allowing: Allowing) -> None:
    async with in_process(allowing()) as here, in_process(allowing()) as there:
        proof = await solved(here)
        answers = await asyncio.gather(*(client.post("/guests", json=proof) for client in (here, there) * 4))
        assert sorted(answer.status_code for answer in answers) == [201] + [400] * 7
        assert {answer.json()["reason"] for answer in answers if answer.status_code == 400} == {"PROOF_REFUSED"}


async def test_a_proof_that_is_wrong_late_or_forged_lets_nobody_in(allowing: Allowing) -> None:
    clocks = Clocks()
    async with in_process(allowing(), clocks=clocks) as client:
        challenge = (await client.post("/guests/challenge")).json()
        seed, bits, rest = challenge["challenge"].split(".", 2)
        good = solution_of(challenge)
        wrong = next(str(n) for n in itertools.count() if zero_bits(f"{seed}.{n}") < int(bits))
        proofs = [
            {"challenge": challenge["challenge"], "solution": wrong},
            {"challenge": challenge["challenge"], "solution": f"{good}x"},
            {"challenge": f"{seed}.1.{rest}", "solution": wrong},
            {"challenge": f"{'0' * 24}.{bits}.{rest}", "solution": good},
            {"challenge": "gw", "solution": "1"},
        ]
        for proof in proofs:
            answer = await client.post("/guests", json=proof)
            assert refusal(answer) == (400, "PROOF_REFUSED")
            assert "set-cookie" not in answer.headers
        proof = {"challenge": challenge["challenge"], "solution": good}
        for body in (
            {},
            {**proof, "more": 1},
            {**proof, "challenge": "a" * 201},
            {**proof, "solution": ""},
            {**proof, "solution": 7},
        ):
            assert refusal(await client.post("/guests", json=body)) == (400, "VALIDATION_FAILED")
        clocks.day += timedelta(seconds=301)
        late = await client.post("/guests", json={"challenge": challenge["challenge"], "solution": good})
        assert "expired" in late.json()["detail"]


async def test_work_grows_with_the_guests_and_who_leaves_early_frees_no_place(allowing: Allowing) -> None:
    clocks = Clocks()
    async with in_process(allowing(guests_max=3), clocks=clocks) as client:
        bits, guests = [], []
        for _ in range(3):
            bits.append((await client.post("/guests/challenge")).json()["bits"])
            guests.append(await become_guest(client))
        assert bits == [BITS, BITS + 1, BITS + 2]
        kept = await client.post("/guests/challenge")
        assert refusal(kept) == (429, "TOO_MANY_GUESTS")
        assert int(kept.headers["retry-after"]) > 0
        assert (await client.delete("/guests", headers=guests[0])).status_code == 204
        assert refusal(await client.get("/v1/me", headers=guests[0])) == (401, "GUEST_GONE")
        assert refusal(await client.post("/guests/challenge")) == (429, "TOO_MANY_GUESTS")
        clocks.day += timedelta(hours=24, seconds=1)
        await become_guest(client)


class _Watched(Sweeper):
    """Removes nothing; when it would is all that is looked at."""

    async def _remove_all(self, guest: Principal) -> None:
        assert guest.tenant_id == "guests"


class _WithoutRuns(Sweeper):
    """The orchestrator is away."""

    async def _remove_runs(self) -> None:
        raise Unavailable("the orchestrator is away")

    async def _remove_threads(self) -> None:
        """There is none."""


async def test_what_cannot_be_removed_keeps_nothing_else_of_a_guest(allowing: Allowing) -> None:
    clocks = Clocks()
    async with in_process(allowing(), clocks=clocks) as client:
        await become_guest(client)
        app: Any = client._transport
        door = app.app.state.api_keys.guests
        sweeper = _WithoutRuns(door, app.app.state.backends, lambda: clocks.now().timestamp())
        clocks.day += timedelta(hours=24, seconds=1)
        removed: list[str] = []

        async def note(collection_id: str) -> None:
            removed.append(collection_id.partition("-")[0])

        sweeper._remove_documents = note  # type: ignore[method-assign] # the fake lists the same page for ever
        with pytest.raises(Unavailable):
            await sweeper.sweep()
        assert removed == ["default", "notes", "files"]
        assert [guest.swept_at for guest in (await door.guests()).gone()] == [0]


async def test_a_guest_is_known_until_the_day_is_over_and_is_swept_after_again_and_again(allowing: Allowing) -> None:
    clocks = Clocks()
    async with in_process(allowing(), clocks=clocks) as client:
        guest = await become_guest(client)
        app: Any = client._transport
        door = app.app.state.api_keys.guests
        sweeper = _Watched(door, app.app.state.backends, lambda: clocks.now().timestamp())
        clocks.day += timedelta(hours=30)
        for _ in range(2):
            await sweeper.sweep()
        clocks.day -= timedelta(hours=30)  # the clock was wrong
        assert (await client.get("/v1/me", headers=guest)).status_code == 200
        await client.delete("/guests", headers=guest)
        swept = []
        for hours in (0, 0.5, 1, 1):
            clocks.day += timedelta(hours=hours)
            await sweeper.sweep()
            swept.append([clocks.now().timestamp() - each.swept_at for each in (await door.guests()).gone()])
        assert swept == [[0], [1800], [0], [3600]]
        clocks.day += timedelta(hours=22)
        await sweeper.sweep()
        async with asyncio.timeout(60):
            while (await door.guests()).gone():
                await asyncio.sleep(0.01)


async def test_guests_are_swept_after_in_their_tenant_though_no_more_are_let_in(allowing: Allowing) -> None:
    clocks, swept = Clocks(), list[Principal]()

    class Noting(Sweeper):
        async def _remove_all(self, guest: Principal) -> None:
            swept.append(guest)

    async with in_process(allowing(), clocks=clocks) as client:
        guest = await become_guest(client)
    clocks.day += timedelta(hours=1)
    async with in_process(allowing(guests=False, guests_tenant="visitors"), clocks=clocks) as client:
        app: Any = client._transport
        sweeper = Noting(app.app.state.api_keys.guest_door, app.app.state.backends, lambda: clocks.now().timestamp())
        await sweeper.sweep()
        assert swept == []
        assert (await client.get("/v1/me", headers=guest)).status_code == 401
        clocks.day += timedelta(hours=24)
        await sweeper.sweep()
    assert [(each.tenant_id, each.subject.partition("-")[0]) for each in swept] == [("guests", "guest")]


async def test_proofs_that_were_gathered_in_advance_let_no_more_guests_in(allowing: Allowing) -> None:
    async with in_process(allowing(guests_per_address=2)) as client:
        transport: Any = client._transport
        transport.client = ("203.0.113.9", 1)
        proofs = [await solved(client) for _ in range(6)]
        answers = await asyncio.gather(*(client.post("/guests", json=proof) for proof in proofs))
        assert sorted(answer.status_code for answer in answers) == [201] * 2 + [429] * 4


async def test_an_address_pays_for_its_own_guests_and_is_slowed_in_its_tries(
    allowing: Allowing,
) -> None:
    async with in_process(allowing(guests_per_address=4)) as client:
        transport: Any = client._transport
        transport.client = ("203.0.113.9", 1)
        bits = []
        for _ in range(4):
            bits.append((await client.post("/guests/challenge")).json()["bits"])
            await become_guest(client)
        assert bits == [BITS, BITS + 1, BITS + 2, BITS + 2]
        assert refusal(await client.post("/guests/challenge")) == (429, "TOO_MANY_GUESTS")
        transport.client = ("198.51.100.9", 1)
        stolen = await solved(client)
        transport.client = ("198.51.100.10", 1)
        assert refusal(await client.post("/guests", json=stolen)) == (400, "PROOF_REFUSED")  # of another address
        answers = [await client.post("/guests", json={**stolen, "solution": "1"}) for _ in range(70)]
        assert refusal(answers[-1]) == (429, "TOO_MANY_WRONG_API_KEYS")
        transport.client = ("198.51.100.11", 1)
        assert (await client.post("/guests/challenge")).json()["bits"] == BITS


async def test_no_guest_comes_in_without_a_budget(allowing: Allowing, world: World) -> None:
    async with in_process(allowing(guests_limits="runs=7/day tokens=100/hour", rpc_timeout_s=0.2)) as client:
        await become_guest(client)
        (together,) = world.orchestrator.set_limits  # of each guest there is a rule of the operator's
        assert (together.whose, [(each.what, each.amount, each.per) for each in together.limits]) == (
            "tenant:guests",
            [("dollars", 20, "day"), ("storage", 10_000_000_000, "ever")],
        )
        of_each_tenant = ("tenant:*", [orchestrator_pb2.Limit(what="dollars", amount=5, per="day")])
        world.orchestrator.set_limits, world.orchestrator.limit_rules = [], [of_each_tenant]
        await become_guest(client)
        (rule,) = world.orchestrator.set_limits
        assert rule.whose == "subject:*"
        assert [(each.what, each.amount, each.per) for each in rule.limits] == [
            ("runs", 7, "day"),
            ("tokens", 100, "hour"),
        ]
        proof = await solved(client)
        await world.kill()
        answer = await client.post("/guests", json=proof)
        assert answer.status_code in {503, 504}
        assert "set-cookie" not in answer.headers


async def test_each_route_is_open_to_guests_by_the_list_alone(allowing: Allowing) -> None:
    async with in_process(allowing()) as client:
        guest = await become_guest(client)
        openapi = (await client.get("/openapi.json")).json()
        client.headers.update(guest)
        places = {(each.method, each.path) for each in operations(openapi, streams=True)} | {UPLOAD}
        assert set(GUEST_ROUTES) <= places
        for each in operations(openapi, streams=True):
            if each.path.startswith("/v1/") and (each.method, each.path) not in GUEST_ROUTES:
                assert refusal(await each.ask(client)) == (403, "NOT_FOR_GUESTS"), each
        assert (await client.get("/v1/collections")).status_code == 200
        assert (await client.post("/v1/collections/default/documents")).json()["reason"] != "NOT_FOR_GUESTS"
        for path in ("/mcp", "/scim/v2/Users", "/ws/voice-chat", "/v1/collections/"):
            assert refusal(await client.get(path)) in {(403, "NOT_FOR_GUESTS"), (400, "WEBSOCKET_NOT_SERVED")}


async def test_what_guests_change_does_not_fill_the_audit_log(allowing: Allowing) -> None:
    async with in_process(allowing()) as client:
        guest = await become_guest(client)
        subject = (await client.get("/v1/me", headers=guest)).json()["subject"]
        for _ in range(30):
            assert (await client.delete(f"/v1/runs/{'0' * 32}", headers=guest)).status_code < 300
        app: Any = client._transport
        store = app.app.state.api_keys.audit.store
        entries = [json.loads(line) async for line in store.lines("guests")]
        actions = [entry["action"] for entry in entries if entry["subject"] == subject]
        assert actions == ["login"] + ["request"] * 20


async def test_a_guest_brings_no_model(allowing: Allowing) -> None:
    async with in_process(allowing()) as client:
        guest = await become_guest(client)
        model = {"base_url": "https://models.example/v1", "model": "m"}
        for path, said in (("/v1/chat", "message"), ("/v1/qa", "question"), ("/v1/agent", "question")):
            body = {said: "Hello", "model": model}
            assert refusal(await client.post(path, json=body, headers=guest)) == (403, "NOT_FOR_GUESTS"), path


async def test_a_stream_ends_when_its_guest_leaves(allowing: Allowing) -> None:
    async with over_http(allowing()) as client:
        guest = await become_guest(client)
        async with client.stream("GET", "/v1/events", headers=guest) as answer:
            events = received(answer)
            await anext(events)
            await client.delete("/guests", headers=guest)
            async with asyncio.timeout(60):
                last = [event async for event in events][-1]
        assert last.data["reason"] == "GUEST_GONE"


async def test_guests_are_told_from_logins_and_wrong_cookies_are_slowed(allowing: Allowing, jetstream: Nats) -> None:
    async with in_process(allowing(wrong_api_keys_per_minute=3)) as client:
        guest = await become_guest(client)
        wrong = {"Cookie": guest["Cookie"][:-4] + "aaaa"}
        answers = [await client.get("/v1/me", headers=wrong) for _ in range(5)]
        assert [refusal(answer)[1] for answer in answers] == ["GUEST_GONE"] * 3 + ["TOO_MANY_WRONG_API_KEYS"] * 2
        assert (await client.get("/v1/me", headers=guest)).status_code == 200
        for origin in ({"Origin": "https://evil.example"}, {"Sec-Fetch-Site": "cross-site"}):
            for method in ("POST", "DELETE"):
                assert refusal(await client.request(method, "/guests", headers={**guest, **origin})) == (
                    403,
                    "CROSS_ORIGIN",
                )
