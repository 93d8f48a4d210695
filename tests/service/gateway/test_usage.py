"""The route of costs."""

import httpx
import pytest

from tests.service.gateway.conftest import World


async def test_costs_are_shown_by_row_with_their_sum(client: httpx.AsyncClient, world: World) -> None:
    answer = await client.get("/v1/usage?since=2026-01-01&until=2026-01-31&group_by=model&subject=ann")
    row = {"key": "qwen", "runs": 2, "prompt_tokens": 100, "completion_tokens": 10, "cost_usd": 0.5}
    assert answer.json() == {"rows": [row], "total": {**row, "key": ""}}
    (asked,) = world.orchestrator.usage_requests
    assert (asked.since, asked.until, asked.group_by, asked.subject) == ("2026-01-01", "2026-01-31", "model", "ann")


@pytest.mark.parametrize(("query", "everybody"), [("", False), ("?subject=*", True)])
async def test_a_star_means_all_users_and_nothing_the_caller(
    client: httpx.AsyncClient, world: World, query: str, everybody: bool
) -> None:
    assert (await client.get(f"/v1/usage{query}")).status_code == 200
    (asked,) = world.orchestrator.usage_requests
    assert (asked.subject, asked.all_subjects) == ("", everybody)
