"""A chat whose model wants to do what a person must allow: its run waits, is found again, and decided about from a terminal."""

import httpx
import pytest

from kit.testing.openai import Reply
from tests.integration.api import Api
from tests.integration.conftest import Model
from tests.integration.system import Groundwork
from tests.integration.test_cli import groundwork

pytestmark = pytest.mark.integration

FORGET = {"name": "rag_forget", "arguments": '{"document": "handbook.md"}'}


def test_call_waits_for_a_person_and_its_run_goes_on_after_the_decision(
    model_system: Groundwork, model_api: Api, handbook: str, scripted: Model
) -> None:
    call = {"tool_calls": [{"index": 0, "id": "c1", "function": FORGET}]}
    scripted.will(Reply([call], finish_reason="tool_calls"), Reply(["Nothing was removed."]))
    message = {"message": "Forget the handbook", "collection_ids": [handbook], "tools": ["rag_forget"]}
    with httpx.Client(base_url=model_system.base_url, trust_env=False, timeout=300) as http:
        answer = http.post("/v1/chat", json=message, headers={"Accept": "application/json"})
    waiting = answer.json()
    assert (answer.status_code, waiting["status"]) == (202, "waiting"), waiting
    (asked,) = waiting["approvals"]
    assert (asked["tool"], asked["arguments"]) == ("rag_forget", {"document": "handbook.md"})

    port = model_system.port
    assert asked["id"] in groundwork(port, "approvals").stdout
    denied = groundwork(port, "approvals", "deny", asked["id"])
    assert "delete a document waits for a decision" in denied.stderr
    followed = groundwork(port, "runs", "follow", waiting["run_id"])
    assert "Nothing was removed." in followed.stdout
    assert "delete a document: denied by" in followed.stderr
    assert asked["id"] not in groundwork(port, "approvals").stdout
    assert [each["name"] for each in model_api.get(f"/v1/collections/{handbook}/documents")["documents"]] == [
        "handbook.md"
    ]
