"""Limits of requests over a real message store: several gateways count as one."""

import asyncio

import httpx
import pytest
from nats.js import api
from pydantic import SecretStr

from kit.errors import Unavailable
from kit.jetstream import KeyValue, Nats
from kit.limits.counters import Counter
from kit.limits.rules import EACH, Limit, Per, Scope, What, Whose
from kit.limits.store import JetStreamCounters, LimitRules
from kit.shared_state import LIMIT_RATES, LIMIT_RULES, LIMIT_SECONDS
from services.gateway.serving import request_limits
from tests.service.gateway.conftest import Clocks, Settings, in_process

TEXT = "a-bootstrap-key-of-these-tests"
EACH_USER = Whose(Scope.SUBJECT, "acme", EACH)


async def ask(client: httpx.AsyncClient) -> httpx.Response:
    return await client.get("/v1/runs")


async def learn_rules(client: httpx.AsyncClient) -> httpx.Response:
    """The first answer of a gateway that knows the rules: it counts no request before."""
    async with asyncio.timeout(60):
        while "RateLimit" not in (answer := await ask(client)).headers:
            pass
    return answer


async def test_two_gateways_count_as_one_and_tell_which_limit_is_reached(
    settings: Settings, nats_url: str, jetstream: Nats, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(request_limits, "_ANSWERS_WITHIN_S", 60.0)
    monkeypatch.setattr(request_limits, "_SLOW_S", 60.0)
    clocks = Clocks()
    bucket = await KeyValue.open(jetstream, LIMIT_RULES.name)
    await bucket.put("subject.acme.=", b'[{"what": "requests", "amount": 6, "per": "month"}]')
    keyed = settings(auth="api_keys", nats_url=nats_url, bootstrap_key=SecretStr(TEXT), local_tenant_id="acme")
    async with in_process(keyed, clocks=clocks, key=TEXT) as one, in_process(keyed, clocks=clocks, key=TEXT) as two:
        assert (await learn_rules(one)).headers["RateLimit-Policy"].startswith('"subject-requests-month";q=6;w=')
        await learn_rules(two)
        answers = [await ask(client) for client in (one, one, one, two, two, one)]
        assert [answer.status_code for answer in answers] == [200] * 4 + [429] * 2
        assert answers[2].headers["RateLimit"].startswith('"subject-requests-month";r=1;t=')
        told = answers[-1].json()
        assert (told["reason"], told["limit"], told["whose"], told["amount"]) == (
            "LIMIT_REACHED",
            "requests",
            "subject",
            "6",
        )
        assert answers[-1].headers["RateLimit"].startswith('"subject-requests-month";r=0;t=')
        assert int(answers[-1].headers["Retry-After"]) > 0
        assert (await one.get("/v1/limits")).status_code == 200
        raised = await one.put(
            "/v1/limits/rules/subject:*", json={"limits": [{"what": "requests", "amount": 7, "per": "month"}]}
        )
        assert raised.status_code == 200


async def test_requests_are_not_limited_where_nobody_says_who_they_are(settings: Settings) -> None:
    async with in_process(settings(auth="none")) as client:
        limits = [{"what": "requests", "amount": 7, "per": "second"}]
        answer = await client.put("/v1/limits/rules/subject:*", json={"limits": limits})
        assert (answer.status_code, answer.json()["reason"]) == (412, "REQUESTS_NOT_COUNTED")
        assert "GROUNDWORK_AUTH=api_keys" in answer.json()["detail"]


@pytest.mark.parametrize("per", [Per.SECOND, Per.MINUTE])
async def test_counting_goes_on_when_the_store_has_lost_what_was_in_its_memory(jetstream: Nats, per: Per) -> None:
    counters = await JetStreamCounters.open(jetstream)
    counter = Counter(EACH_USER, What.REQUESTS, f"{per.value}-2026-01-31T13:20:05")
    assert [await counters.add(counter, 2), await counters.add(counter, 3)] == [2, 5]
    assert await counters.value(counter) == 5
    await jetstream.js.delete_stream((LIMIT_SECONDS if per is Per.SECOND else LIMIT_RATES).stream)
    assert await counters.value(counter) == 0
    assert await counters.add(counter, 4) == 4


async def test_counts_of_seconds_are_kept_for_seconds(jetstream: Nats) -> None:
    await JetStreamCounters.open(jetstream)
    config = (await jetstream.js.stream_info(LIMIT_SECONDS.stream)).config
    assert (config.max_age, config.storage) == (LIMIT_SECONDS.kept_for_s, api.StorageType.MEMORY)
    assert (config.max_age or 0) <= 10


async def test_store_that_refuses_to_count_is_told_as_one_that_is_not_there(jetstream: Nats) -> None:
    counters = await JetStreamCounters.open(jetstream)
    await jetstream.js.delete_stream(LIMIT_SECONDS.stream)
    await jetstream.js.add_stream(name=LIMIT_SECONDS.stream, subjects=[LIMIT_SECONDS.subjects])
    try:
        with pytest.raises(Unavailable, match="LIMIT_SECONDS: the message store does not count"):
            await counters.add(Counter(EACH_USER, What.REQUESTS, "second-2026-01-31T13:20:05"), 1)
    finally:
        await jetstream.js.delete_stream(LIMIT_SECONDS.stream)


async def test_rule_of_a_newer_version_holds_as_far_as_its_words_are_known(jetstream: Nats) -> None:
    bucket = await KeyValue.open(jetstream, LIMIT_RULES.name)
    await bucket.put(
        "subject.acme.=",
        b'[{"what": "cups", "amount": 1, "per": "day"}, {"what": "runs", "amount": 2, "per": "decade"},'
        b' {"what": "runs", "amount": 3, "per": "day"}]',
    )
    rules = (await LimitRules.open(jetstream)).rules
    assert rules.listed()[EACH_USER] == (Limit(What.RUNS, 3, Per.DAY),)
