"""A collection that allows local models only, on a system whose only model is outside: no operation on it asks that model."""

from collections.abc import Iterator

import pytest

from kit.testing.openai import Reply
from tests.integration.api import Api, Json, ok
from tests.integration.conftest import Model
from tests.integration.scripting import data_of
from tests.integration.system import wait_until

pytestmark = pytest.mark.integration

TEXT = """# Buildings

The tower was built in 1889 by Gustave Eiffel for the world exhibition in Paris.

The harbour bridge was opened in 1932 by Jack Lang after eight years of work in Sydney.

The great dam was finished in 1936 by Frank Crowe two years ahead of the plan in Nevada.

The long canal was opened in 1914 by George Goethals when the locks were ready in Panama.
"""
QUESTION = "When was the harbour bridge opened?"


def _asked(api: Api, path: str, body: Json) -> Json:
    return ok(api.http.post(path, json=body, headers={"Accept": "application/json"}))


@pytest.fixture(scope="module")
def bound(model_system: object, scripted: Model) -> Iterator[str]:
    """A collection with a document, made while the model would answer. Others would be bound by it too: it goes at the end."""
    scripted.will(Reply(["The model outside has answered."]))
    with Api.open(model_system.base_url) as api:  # type: ignore[attr-defined]
        made = api.post("/v1/collections", {"id": "only-local", "name": "Only local", "local_models_only": True})
        assert made["local_models_only"] is True
        api.ingest("only-local", "buildings.md", TEXT.encode())
        yield "only-local"
        ok(api.http.delete("/v1/collections/only-local"))

        def is_asked() -> bool:
            scripted.will(Reply(["The model outside has answered."]))
            return "outside" in _asked(api, "/v1/chat", {"message": "Hello, how are you?"})["answer"]

        wait_until(is_asked, "a question that names no collection is answered by the model again")


OPERATIONS: dict[str, tuple[str, Json]] = {
    "question": ("/v1/qa", {"question": QUESTION}),
    "question checked": ("/v1/qa", {"question": QUESTION, "verify": "remove"}),
    "research": ("/v1/agent", {"question": QUESTION}),
    "chat": ("/v1/chat", {"message": QUESTION, "memory": "auto"}),
    "answer": ("chat", {"message": QUESTION, "agent": "reasoning"}),
    "routing": ("chat", {"message": QUESTION}),
    "summary": ("chat", {"message": "Summarise buildings.md", "agent": "summary"}),
    "quiz": ("chat", {"message": "A quiz of 2 questions", "agent": "quiz"}),
    "drawing": ("chat", {"message": "A timeline of the buildings", "agent": "visualisation"}),
    "extraction": ("extract", {"schema": {"type": "object", "properties": {"year": {"type": "integer"}}}}),
}


@pytest.mark.parametrize("operation", OPERATIONS)
def test_no_operation_asks_the_model_outside(model_api: Api, bound: str, scripted: Model, operation: str) -> None:
    path, body = OPERATIONS[operation]
    scripted.will(Reply(["The model outside has answered."]))
    if path.startswith("/v1"):
        answer = _asked(model_api, path, {**body, "collection_ids": [bound]})
    else:
        answer = _asked(model_api, f"/v1/collections/{bound}/{path}", body)
    assert "outside" not in answer["answer"]
    assert answer["answer"]
    assert scripted.scripted.requests == []


def test_lack_of_a_local_model_is_said(model_api: Api, bound: str, scripted: Model) -> None:
    events = list(model_api.chat(bound, QUESTION))
    told = [each["degraded"]["reason"] for each in data_of(events, "thinking") if each.get("degraded")]
    assert "LOCAL_MODELS_ONLY" in told


def test_one_such_collection_binds_a_run_over_several(
    model_api: Api, handbook: str, bound: str, scripted: Model
) -> None:
    scripted.will(Reply(["The model outside has answered."]))
    _asked(model_api, "/v1/qa", {"question": QUESTION, "collection_ids": [handbook, bound]})
    assert scripted.scripted.requests == []
    _asked(model_api, "/v1/qa", {"question": QUESTION, "collection_ids": [handbook]})
    assert scripted.scripted.requests


def test_model_that_a_user_brings_is_refused_at_once(model_api: Api, bound: str) -> None:
    body = {
        "question": QUESTION,
        "collection_ids": [bound],
        "model": {"base_url": "https://8.8.8.8/v1", "model": "mine"},
    }
    refused = model_api.http.post("/v1/qa", json=body)
    assert refused.json()["reason"] == "LOCAL_MODELS_ONLY"


def test_turn_and_quiz_of_such_a_collection_are_read_without_the_model(
    model_api: Api, bound: str, scripted: Model
) -> None:
    scripted.will(Reply(["The model outside has answered."]))
    thread_id = model_api.post("/v1/threads", {})["id"]
    chat = f"/v1/collections/{bound}/chat"
    said = {"message": "I live in Petrelstadt.", "collection_ids": [bound], "thread_id": thread_id, "memory": "auto"}
    _asked(model_api, "/v1/chat", said)
    wait_until(
        lambda: any("Petrelstadt" in each["text"] for each in model_api.get("/v1/memory/facts")["facts"]),
        "the turn is learnt from by rules",
    )
    asked = "Make a quiz of 2 questions about when buildings were built"
    made = _asked(model_api, chat, {"message": asked, "thread_id": thread_id})
    body = made["artefacts"][0]["body"]
    answers = [{"question_id": each["id"], "given": "some other words"} for each in body["questions"]]
    path = f"/v1/threads/{thread_id}/quizzes/{made['run_id']}/answers"
    assert ok(model_api.http.post(path, json={"answers": answers}))["questions"]
    assert scripted.scripted.requests == []


def test_collection_may_ask_other_models_again(model_api: Api, scripted: Model) -> None:
    collection_id = model_api.new_collection()
    path = f"/v1/collections/{collection_id}"
    for is_only in (True, False):
        changed = ok(model_api.http.patch(path, json={"local_models_only": is_only}))
        assert changed["local_models_only"] is model_api.get(path)["local_models_only"] is is_only
    model_api.ingest(collection_id, "buildings.md", TEXT.encode())
    scripted.will(Reply(["The harbour bridge was opened in 1932 [1]."]))
    _asked(model_api, "/v1/qa", {"question": QUESTION, "collection_ids": [collection_id]})
    assert scripted.scripted.requests
