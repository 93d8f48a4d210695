"""The routes of calls that wait for a person."""

import httpx
import pytest
from groundwork.orchestrator.v1 import orchestrator_pb2 as pb

from kit.errors import FailedPrecondition, GroundworkError, NotFound, PermissionDenied, Unavailable
from tests.service.gateway.conftest import World
from tests.service.gateway.fakes import APPROVAL_ID, ARGUMENTS_HASH, RUN_ID

PATH = f"/v1/approvals/{APPROVAL_ID}"
SHOWN = {
    "id": APPROVAL_ID,
    "run_id": RUN_ID,
    "subject": "ann",
    "tool": "send_email",
    "arguments": {"to": "bob@example.com"},
    "arguments_hash": ARGUMENTS_HASH,
    "may_decide": [],
    "yours_to_decide": True,
    "expires_at": "2025-06-15T15:06:40.000Z",
    "decision": "pending",
    "decided_by": "",
    "is_tainted": False,
    "tainted_arguments": [],
}


async def test_what_waits_is_shown_in_its_public_shape_and_paged(client: httpx.AsyncClient, world: World) -> None:
    answer = await client.get("/v1/approvals", params={"page_size": 7, "page_token": "there"})
    assert answer.json() == {"approvals": [SHOWN], "next_page_token": "next"}
    (asked,) = world.orchestrator.approval_pages
    assert (asked.page.page_size, asked.page.page_token) == (7, "there")


@pytest.mark.parametrize(
    ("word", "decision", "told"),
    [("allow", pb.APPROVAL_DECISION_ALLOWED, "allowed"), ("deny", pb.APPROVAL_DECISION_DENIED, "denied")],
)
async def test_call_is_decided(client: httpx.AsyncClient, world: World, word: str, decision: int, told: str) -> None:
    answer = await client.post(PATH, json={"decision": word, "arguments_hash": ARGUMENTS_HASH})
    assert answer.status_code == 200
    assert answer.json() == {**SHOWN, "decision": told, "decided_by": "local-user"}
    (request,) = world.orchestrator.decisions
    assert (request.approval_id, request.decision, request.arguments_hash) == (APPROVAL_ID, decision, ARGUMENTS_HASH)


@pytest.mark.parametrize(
    ("failure", "status"),
    [
        (NotFound("there is none", reason="APPROVAL_NOT_FOUND"), 404),
        (PermissionDenied("it is Bob's", reason="NOT_YOURS_TO_DECIDE"), 403),
        (FailedPrecondition("it was denied", reason="APPROVAL_CLOSED", decision="denied"), 412),
        (Unavailable("NATS does not answer", reason="NATS_UNAVAILABLE"), 503),
    ],
    ids=lambda value: getattr(value, "reason", None),
)
async def test_each_refusal_is_a_problem(
    client: httpx.AsyncClient, world: World, failure: GroundworkError, status: int
) -> None:
    world.orchestrator.decision_failure = failure
    answer = await client.post(PATH, json={"decision": "allow", "arguments_hash": ARGUMENTS_HASH})
    assert answer.headers["content-type"] == "application/problem+json"
    body = answer.json()
    assert (answer.status_code, body["reason"], body["detail"]) == (status, failure.reason, failure.message)
    assert body.get("decision") == failure.metadata.get("decision")


@pytest.mark.parametrize(
    "body",
    [
        {"decision": "allow"},
        {"decision": "allowed", "arguments_hash": ARGUMENTS_HASH},
        {"decision": "allow", "arguments_hash": "abc"},
        {"decision": True, "arguments_hash": ARGUMENTS_HASH},
        {"decision": "allow", "arguments_hash": ARGUMENTS_HASH, "arguments": {}},
    ],
)
async def test_decision_that_is_none_reaches_nobody(
    client: httpx.AsyncClient, world: World, body: dict[str, object]
) -> None:
    answer = await client.post(PATH, json=body)
    assert (answer.status_code, answer.json()["reason"]) == (400, "VALIDATION_FAILED")
    assert not world.orchestrator.decisions
