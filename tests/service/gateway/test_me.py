"""The route that says who is asking, and what they may do."""

import httpx


async def test_caller_is_told_who_they_are_and_all_that_they_may(client: httpx.AsyncClient) -> None:
    answer = await client.get("/v1/me")
    assert answer.status_code == 200
    told = answer.json()
    assert set(told) == {"tenant", "subject", "scopes", "groups"}
    assert told["scopes"][:2] == ["query", "ingest"]
