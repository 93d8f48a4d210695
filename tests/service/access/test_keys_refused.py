"""Every operation that needs a caller, asked without a good API key: refused in the same words whatever it is asked for, before
anything else is looked at. No services are behind this gateway: whoever got past the key would be told so."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pytest

from kit.access.api_keys import new_text
from kit.access.principal import ADMIN, Principal
from tests.service.access.asking import BOOTSTRAP_KEY, Gateway, ask, openapi_of, operations_below_v1, places, told
from tests.service.access.kinds import UNKNOWN
from tests.service.access.world import ANN, World
from tests.service.gateway.key_desk import bearer, id_of

ROOT = Principal("acme", "root", frozenset({ADMIN}))


@dataclass(frozen=True)
class Case:
    """A kind of key, and the reason with which it is refused."""

    kind: str
    reason: str


CASES = [
    Case("none", "API_KEY_MISSING"),
    Case("garbage", "API_KEY_MALFORMED"),
    Case("other_scheme", "API_KEY_MALFORMED"),
    Case("almost_the_bootstrap_key", "API_KEY_MALFORMED"),
    Case("wrong_secret", "API_KEY_INVALID"),
    Case("unknown_id", "API_KEY_INVALID"),
    Case("revoked", "API_KEY_REVOKED"),
    Case("expired", "API_KEY_EXPIRED"),
]


@pytest.fixture
async def gateway(nats_url: str) -> AsyncIterator[Gateway]:
    async with AsyncExitStack() as stack:
        yield await Gateway.open(World(nats_url, {}, {}), stack, connection_patience_s=0.1)


async def _headers(gateway: Gateway, kind: str) -> dict[str, str]:
    """Of a request that shows a key of this kind."""
    good = await gateway.key(ANN)
    shown = {
        "garbage": "garbage",
        "almost_the_bootstrap_key": BOOTSTRAP_KEY.get_secret_value()[:-1],
        "wrong_secret": new_text(id_of(good)).get_secret_value(),
        "unknown_id": new_text(UNKNOWN["api key"]).get_secret_value(),
        "revoked": good,
        "expired": await gateway.key(ANN, expires_at=datetime.now(UTC) - timedelta(hours=1)),
    }
    if kind == "revoked":
        root = await gateway.client(ROOT)
        assert (await root.delete(f"/v1/keys/{id_of(good)}")).status_code == 204
    return (
        {"Authorization": f"Basic {good}"} if kind == "other_scheme" else bearer(shown[kind]) if kind in shown else {}
    )


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.kind)
async def test_without_a_good_key_everything_is_refused_in_the_same_words(gateway: Gateway, case: Case) -> None:
    client = await gateway.client_with(await _headers(gateway, case.kind))
    openapi, words = await openapi_of(client), set()
    for method, path in operations_below_v1(openapi):
        answer = await client.request(method, path, content=b"{", headers={"Content-Type": "application/json"})
        assert (answer.status_code, answer.json()["reason"]) == (401, case.reason), (method, path, answer.text)
        words.add(told(answer))
    for place in places(openapi):
        words.add(told(await ask(client, place, UNKNOWN.get(place.kind, "t"), World("", {}, {}))))
    assert len(words) == 1, words


async def test_by_the_bootstrap_key_everything_is_reached(gateway: Gateway) -> None:
    client = await gateway.client_with(bearer(BOOTSTRAP_KEY.get_secret_value()))

    async def check(method: str, path: str) -> None:
        answer = await client.request(method, path, content=b"{", headers={"Content-Type": "application/json"})
        assert answer.status_code not in (401, 403), (method, path, answer.text)

    # At once: some wait for services that are not there.
    await asyncio.gather(*(check(*each) for each in operations_below_v1(await openapi_of(client))))


async def test_wrong_secret_and_unknown_id_are_told_the_same(gateway: Gateway) -> None:
    words = set()
    for kind in ("wrong_secret", "unknown_id"):
        headers = await _headers(gateway, kind)
        answer = await (await gateway.client_with(headers)).get("/v1/runs")
        words.add(told(answer, id_of(headers["Authorization"].removeprefix("Bearer "))))
    assert len(words) == 1, words


async def test_what_is_not_there_is_not_told_either(gateway: Gateway) -> None:
    client = await gateway.client_with({})
    for path in ("/v1", "/v1/nothing", "/v1/runs/x/y", "/v1/documents/%2e%2e/keys"):
        assert (await client.get(path)).json()["reason"] == "API_KEY_MISSING", path
