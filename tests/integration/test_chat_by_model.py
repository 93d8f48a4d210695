"""Chats whose model calls tools: what is called, what the model is told, what is shown and paid, and what is forgotten."""

import secrets
from dataclasses import dataclass

import pytest

from kit.testing.openai import Reply
from tests.integration.api import Api, Json, assert_complete, only
from tests.integration.conftest import Model
from tests.integration.scripting import calling, data_of, kinds, observations_in
from tests.integration.system import Groundwork, wait_until
from tests.integration.test_forgetting import is_forgotten, run_of, stored

pytestmark = pytest.mark.integration

QUESTION = "What is the password of the lighthouse, and what is 6 times 7?"
SEARCH = ("search", {"queries": ["password of the lighthouse on Wangerooge"]})
FOUR_CALLS = calling(SEARCH, ("math_eval", {"expression": "6*7"}), ("math_eval", "six by seven"), ("launch_rocket", {}))
HERMES = Reply(
    ["Let me see.\n<tool_", 'call>{"name": "math_eval", ', '"arguments": {"expression": "2**10"}}</tool_call>']
)


@dataclass(frozen=True)
class Lighthouse:
    """A document with a secret of the test's own."""

    secret: str
    document: Json

    @property
    def collections(self) -> list[str]:
        return [self.document["collection_id"]]

    @property
    def answer(self) -> list[str]:
        """As the model writes it."""
        return [f"The password of the lighthouse on Wangerooge is {self.secret} ", "[1]."]


@pytest.fixture
def lighthouse(model_api: Api) -> Lighthouse:
    secret = f"zq{secrets.token_hex(8).translate(str.maketrans('0123456789', 'ghijklmnop'))}"
    text = f"The password of the lighthouse on Wangerooge is {secret}. The lighthouse is red and white."
    return Lighthouse(secret, model_api.ingest(model_api.new_collection(), "lighthouse.txt", text.encode()))


def test_calls_are_made_told_shown_and_paid(model_api: Api, lighthouse: Lighthouse, scripted: Model) -> None:
    scripted.will(FOUR_CALLS, HERMES, Reply(lighthouse.answer))
    events = list(model_api.converse(QUESTION, collection_ids=lighthouse.collections))
    assert_complete(events)

    order = kinds(events)
    assert order[:2] == ["run", "plan"]
    assert sorted(order[2:6]) == ["tool", "tool", "tool_result", "tool_result"], "beside each other"
    assert order[6:9] == ["retrieval", "tool", "tool_result"]
    assert order[-5:] == ["claim", "verification", "answer", "usage", "done"]
    called = {each["call_id"]: (each["name"], each["arguments"]) for each in data_of(events, "tool")}
    assert list(called.values())[-1] == ("math_eval", {"expression": "2**10"})
    assert ("search", SEARCH[1]) in called.values()
    assert {each["call_id"]: each["ok"] for each in data_of(events, "tool_result")} == dict.fromkeys(called, True)

    after_calls, after_hermes = (observations_in(request) for request in scripted.scripted.requests[1:])
    found, computed, unreadable, unknown = after_calls
    assert "[1]" in found
    assert lighthouse.secret in found
    assert '"42"' in computed
    assert "must be one JSON object" in unreadable
    assert "There is no tool named 'launch_rocket'" in unknown
    assert '"1024"' in after_hermes[-1]

    answer = only(events, "answer").data
    assert (answer["text"], answer["method"], answer["support_status"]) == (
        "".join(lighthouse.answer),
        "model",
        "similar_wording",
    )
    assert [(each["number"], each["document_id"]) for each in answer["citations"]] == [(1, lighthouse.document["id"])]
    assert "tool_call" not in answer["text"]
    usage = only(events, "usage").data
    assert (usage["model"], usage["prompt_tokens"]) == ("scripted", 30)
    written = len(FOUR_CALLS.pieces) + len(HERMES.pieces) + len(lighthouse.answer)
    assert usage["completion_tokens"] == sum(each["completion_tokens"] for each in usage["steps"]) == written
    assert model_api.replay(run_of(events)) == events


@pytest.mark.parametrize("verify", ["mark", "remove"])
def test_action_that_did_not_happen_is_said_to(model_api: Api, scripted: Model, verify: str) -> None:
    scripted.will(Reply(["Done: the note is kept."]))
    events = list(model_api.converse("Hello, keep a note of this", verify=verify))
    answer = only(events, "answer").data
    (claim,) = [each for each in answer["verification"]["sentences"] if each["is_action"]]
    assert (claim["verdict"], claim["checked_by"]["name"]) == ("contradicted", "effects")
    assert answer["support_status"] == "insufficient"
    assert ("kept" in answer["text"]) is (verify == "mark")
    assert answer["text"]


def test_deleted_document_is_forgotten_by_the_chat_and_by_the_tools(
    model_system: Groundwork, model_api: Api, lighthouse: Lighthouse, scripted: Model
) -> None:
    thread_id = model_api.post("/v1/threads")["id"]
    fetch = calling(
        ("fetch_docs", {"document_id": lighthouse.document["id"]}), ("verify", {"claim": lighthouse.answer[0]})
    )
    scripted.will(calling(SEARCH), fetch, Reply(lighthouse.answer))
    asked = {"thread_id": thread_id, "collection_ids": lighthouse.collections}
    events = list(model_api.converse(QUESTION, **asked))
    assert [each["ok"] for each in data_of(events, "tool_result")] == [True, True, True]
    assert lighthouse.secret in only(events, "answer").data["text"]
    assert stored(model_system, lighthouse.secret)

    assert model_api.http.delete(f"/v1/documents/{lighthouse.document['id']}").status_code == 204
    wait_until(lambda: is_forgotten(model_api, run_of(events)), "the run is forgotten")
    _, notice = model_api.get(f"/v1/threads/{thread_id}")["messages"]
    assert notice["forgotten"]
    wait_until(lambda: stored(model_system, lighthouse.secret) == [], "nothing of its text is left")
    for name in ("gateway", "orchestrator", "tools", "memory", "retriever"):
        assert lighthouse.secret not in model_system.log(name)

    scripted.will(calling(SEARCH), Reply(["The documents do not say."]))
    list(model_api.converse("And now?", **asked))
    assert lighthouse.secret not in str(scripted.scripted.requests)
