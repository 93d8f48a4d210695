"""The routes of limits, and what a refused client is told."""

from urllib.parse import quote

import httpx
import pytest

from kit.errors import GroundworkError, PermissionDenied, ResourceExhausted, Unavailable, Unimplemented
from tests.service.gateway.conftest import World

TOKENS = {"what": "tokens", "amount": 1000, "per": "hour"}


async def test_limits_and_rules_are_shown_and_set(client: httpx.AsyncClient) -> None:
    state, stored = (await client.get("/v1/limits")).json()["limits"]
    storage = {"what": "storage", "amount": 1_000_000, "per": "ever"}
    assert stored == {"whose": "tenant", "limit": storage, "used": 600, "free_at": None}
    assert (state["whose"], state["limit"], state["used"]) == ("subject", TOKENS, 10)
    (rule,) = (await client.get("/v1/limits/rules")).json()["rules"]
    assert rule["whose"] == "subject:*"
    for whose in ("all", "tenant:*", "subject:*", "subject:auth0|62.a@b", "group:/staff/EMEA é", f"key:{'0f' * 12}"):
        answer = await client.put(f"/v1/limits/rules/{quote(whose)}", json={"limits": [TOKENS]})
        assert answer.json() == {"whose": whose, "limits": [TOKENS], "tenant_id": None}
    assert (await client.put("/v1/limits/rules/all", json={"limits": []})).json()["limits"] == []


@pytest.mark.parametrize("away", [Unavailable("away"), Unimplemented("of an earlier version")])
async def test_limits_of_one_service_are_shown_while_the_other_is_away(
    client: httpx.AsyncClient, world: World, away: GroundworkError
) -> None:
    world.ingest.limits_failure = away
    found = (await client.get("/v1/limits")).json()
    assert ([each["limit"]["what"] for each in found["limits"]], found["missing"]) == (["tokens"], ["ingest"])
    world.orchestrator.limits_failure = away
    assert (await client.get("/v1/limits")).status_code in {501, 503}
    world.ingest.limits_failure = None
    found = (await client.get("/v1/limits")).json()
    assert ([each["limit"]["what"] for each in found["limits"]], found["missing"]) == (["storage"], ["orchestrator"])
    world.orchestrator.limits_failure = PermissionDenied("not you")
    assert (await client.get("/v1/limits")).status_code == 403


@pytest.mark.parametrize(
    ("whose", "limit"),
    [("everybody", TOKENS), ("subject:*", {**TOKENS, "what": "cups"}), ("subject:*", {**TOKENS, "amount": -1})],
)
async def test_rule_that_says_nothing_is_refused(
    client: httpx.AsyncClient, whose: str, limit: dict[str, object]
) -> None:
    answer = await client.put(f"/v1/limits/rules/{whose}", json={"limits": [limit]})
    assert answer.status_code == 400


async def test_question_beyond_a_limit_is_told_which_whose_and_when_it_is_free_again(
    client: httpx.AsyncClient, world: World
) -> None:
    told = {"limit": "tokens", "whose": "subject", "amount": "1000", "per": "hour"}
    world.orchestrator.start_failure = ResourceExhausted(
        "you may use 1000 tokens an hour", reason="LIMIT_REACHED", retry_after_s=60.0, free_in_s="2400", **told
    )
    answer = await client.post("/v1/qa", json={"question": "How long?", "collection_ids": ["default"]})
    assert (answer.status_code, answer.headers["Retry-After"]) == (429, "60")
    assert answer.headers["RateLimit-Policy"] == '"subject-tokens-hour";q=1000;w=3600'
    assert answer.headers["RateLimit"] == '"subject-tokens-hour";r=0;t=2400'
    assert told.items() <= answer.json().items()


async def test_name_of_a_group_is_told_in_the_problem_and_kept_out_of_the_headers(
    client: httpx.AsyncClient, world: World
) -> None:
    told = {"limit": "tokens", "whose": "group:Vertrieb Süd", "amount": "1000", "per": "hour", "free_in_s": "9"}
    world.orchestrator.start_failure = ResourceExhausted("reached", reason="LIMIT_REACHED", retry_after_s=9.0, **told)
    answer = await client.post("/v1/qa", json={"question": "How long?", "collection_ids": ["default"]})
    assert answer.headers["RateLimit"] == '"group-tokens-hour";r=0;t=9'
    assert answer.json()["whose"] == "group:Vertrieb Süd"
