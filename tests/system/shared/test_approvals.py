"""Calls that wait for a person: the run survives the end of every process, and what is allowed is done exactly once."""

import json
import re

import pytest

from kit.testing.openai import Reply
from tests.integration.api import Api, Event, Json, assert_complete, only, problem
from tests.integration.conftest import Model
from tests.integration.scripting import calling, data_of, kinds, observations_in, question_in, rounds_in
from tests.integration.system import Groundwork, wait_until
from tests.integration.test_cli import groundwork
from tests.service.tools.mail_server import MailServer

pytestmark = [pytest.mark.integration]

ANN, BOB = "ann.harbour@example.com", "bob.harbour@example.com"
"""No other test writes to them."""


def message_to(address: str) -> str:
    return f"Please write to {address} that the ferry is late."


def writes_as_asked(request: Json) -> Reply:
    """One e-mail to whoever the question names, then an answer."""
    if rounds_in(request) > 0:
        return Reply(["That is ", "what I could do."])
    (address,) = re.findall(r"\S+@example\.com", question_in(request))
    return calling(("send_email", {"to": [address], "subject": "Ferry", "text": "The ferry is late."}))


def sent_to(mailbox: MailServer, address: str) -> int:
    return sum(address in recipients for recipients, _ in mailbox.delivered)


def listed(api: Api) -> dict[str, str]:
    """Ids of what waits, with the hashes of the arguments."""
    return {each["id"]: each["arguments_hash"] for each in api.get("/v1/approvals")["approvals"]}


def without_parked(events: list[Event]) -> list[str]:
    """Kinds of the events of a run that has waited: once more when its orchestrator was killed while it parked it."""
    assert "parked" in kinds(events)
    return [kind for kind in kinds(events) if kind != "parked"]


def to_its_end(api: Api, run_id: str) -> list[Event]:
    """All events of a run, once it has ended."""
    events = api.replay(run_id)
    assert_complete(events)
    return events


def test_allowed_call_is_made_once_and_denied_one_never_also_after_a_restart_of_everything(
    model_system: Groundwork, model_api: Api, scripted: Model, mailbox: MailServer
) -> None:
    scripted.will_by_request(writes_as_asked)
    waiting = {address: model_api.converse_json(message_to(address), status=202) for address in (ANN, BOB)}
    assert [run["status"] for run in waiting.values()] == ["waiting", "waiting"]
    approvals = {address: run["approvals"][0] for address, run in waiting.items()}
    assert approvals[ANN]["arguments"]["to"] == [ANN]

    model_system.kill()
    model_system.start()
    wait_until(lambda: len(listed(model_api)) == 2, "both calls wait again")
    assert listed(model_api) == {each["id"]: each["arguments_hash"] for each in approvals.values()}
    assert (sent_to(mailbox, ANN), sent_to(mailbox, BOB)) == (0, 0)

    for _ in range(2):
        assert model_api.decide(approvals[ANN], "allow")["decision"] == "allowed", "harmless when repeated"
    shown = groundwork(model_system.port, "approvals", "--json").stdout
    assert [each["id"] for each in json.loads(shown)["approvals"]] == [approvals[BOB]["id"]]
    groundwork(model_system.port, "approvals", "deny", approvals[BOB]["id"])

    allowed, denied = (to_its_end(model_api, waiting[address]["run_id"]) for address in (ANN, BOB))
    asked = ["run", "plan", "approval", "approval"]
    assert without_parked(allowed) == [*asked, "tool", "tool_result", "answer", "usage", "done"]
    assert without_parked(denied) == [*asked, "answer", "usage", "done"]
    assert [each["decision"] for each in data_of(allowed, "approval")] == ["pending", "allowed"]
    assert [each["decision"] for each in data_of(denied, "approval")] == ["pending", "denied"]
    assert only(allowed, "tool_result").data["ok"]
    for events in (allowed, denied):
        assert events[-1].data["status"] == "completed"
        assert only(events, "answer").data["text"] == "That is what I could do."
    (observation,) = next(
        observations_in(request) for request in scripted.scripted.requests if rounds_in(request) and BOB in str(request)
    )
    assert "APPROVAL_DENIED" in observation

    assert (sent_to(mailbox, ANN), sent_to(mailbox, BOB)) == (1, 0)
    assert listed(model_api) == {}
    body = {"decision": "deny", "arguments_hash": approvals[ANN]["arguments_hash"]}
    refused = model_api.http.post(f"/v1/approvals/{approvals[ANN]['id']}", json=body)
    assert problem(refused, 412, "APPROVAL_CLOSED")["decision"] == "allowed"
