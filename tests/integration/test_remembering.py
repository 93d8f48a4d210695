"""What is remembered of a person in chats: it is among the hints, and gone from runs once it is forgotten."""

import json
import secrets

import pytest

from kit.testing.openai import Reply
from tests.integration.api import Api, Json, ok, only
from tests.integration.conftest import Model
from tests.integration.scripting import calling, data_of, observations_in, question_in, rounds_in
from tests.integration.system import Groundwork, wait_until
from tests.integration.test_forgetting import is_forgotten, run_of, stored

pytestmark = pytest.mark.integration

NOTE = "memories/boat.md"
QUESTION = "What is my sailing boat called, did I tell you?"
LOOKED_UP = "Where do I live, do you remember?"
ROOMS = ("gateway", "orchestrator", "memory", "retriever", "reranker", "tools")


def _secret() -> str:
    """A word that nothing else holds."""
    return f"zq{secrets.token_hex(8).translate(str.maketrans('0123456789', 'ghijklmnop'))}"


def test_note_is_a_hint_of_a_chat_and_goes_from_its_run_when_it_is_deleted(
    model_system: Groundwork, model_api: Api, scripted: Model
) -> None:
    secret = _secret()
    notes = model_api.get("/v1/memory/summary")["notes_collection_id"]
    if notes not in {each["id"] for each in model_api.get("/v1/collections")["collections"]}:
        model_api.post("/v1/collections", {"id": notes, "name": "Notes"})
    document = model_api.ingest(notes, NOTE, f"My sailing boat is called {secret}.".encode())
    asked: list[Json] = []

    def reply(request: Json) -> Reply:
        if question_in(request) != QUESTION:  # what the turn says of the person is read after it
            return Reply([json.dumps({"facts": []})])
        asked.append(request)
        return Reply(["As you wrote."])

    scripted.will_by_request(reply)
    events = list(model_api.converse(QUESTION, memory="auto"))
    assert secret in str(asked), "the model has read the note"
    (told,) = [each["text"] for each in data_of(events, "thinking") if each["phase"] == "memory"]
    assert f"{secret}. (from the note {NOTE})" in told
    assert only(events, "answer").data["citations"] == []
    found = model_api.post("/v1/memory/search", {"query": "sailing boat", "source": "note"})["hits"]
    assert [(each["document_id"], each["document_name"]) for each in found] == [(document["id"], NOTE)]

    assert model_api.http.delete(f"/v1/documents/{document['id']}").status_code == 204
    wait_until(lambda: is_forgotten(model_api, run_of(events)), "the run is forgotten")
    assert model_api.post("/v1/memory/search", {"query": "sailing boat", "source": "note"})["hits"] == []
    wait_until(lambda: stored(model_system, secret) == [], "nothing of its text is left")


def test_hint_of_a_fact_says_in_the_stream_on_which_day_it_was_said(model_api: Api, scripted: Model) -> None:
    home = _secret()
    said = f"I live in {home}"
    fact = {"said": said, "text": said, "kind": "profile", "change": "add", "fact": 0, "until": ""}

    def reply(request: Json) -> Reply:
        asked = question_in(request)
        if "Known facts" in asked:
            return Reply([json.dumps({"facts": [fact] if said in asked else []})])
        return Reply(["I see."])

    scripted.will_by_request(reply)
    list(model_api.converse(f"{said}.", memory="auto"))
    wait_until(lambda: _facts(model_api, home), "the fact is learnt")
    (learnt,) = _facts(model_api, home)
    events = list(model_api.converse(f"Is {home} where I live?", memory="auto", tools=["time_now"]))
    (told,) = [each["text"] for each in data_of(events, "thinking") if each["phase"] == "memory"]
    assert f"{said} (you said so on {learnt['learnt_at'][:10]})" in told
    assert only(events, "answer").data["citations"] == []
    assert model_api.http.delete(f"/v1/memory/facts/{learnt['id']}").status_code == 204


def _facts(api: Api, text: str) -> list[Json]:
    """What is known that holds the words, with what holds no more."""
    return [each for each in api.get("/v1/memory/facts", with_past=True)["facts"] if text in each["text"]]


@pytest.mark.parametrize("what", ["fact", "words", "everything", "thread"])
def test_run_that_looked_a_fact_up_loses_it_when_it_is_forgotten(
    model_system: Groundwork, model_api: Api, scripted: Model, what: str
) -> None:
    secret, home = _secret(), _secret()
    # What is sought stands in the first hit: of others the prompt may have no room, after tests that make the context small.
    sought = home if what == "thread" else secret

    def reply(request: Json) -> Reply:
        asked = question_in(request)
        if asked == LOOKED_UP:
            search = ("memory_search", {"query": sought, "top_k": 3})
            return Reply([f"In {sought}."]) if rounds_in(request) else calling(search)
        said = f"I live in {home}"
        fact = {"said": said, "text": said, "kind": "profile", "change": "add", "fact": 0, "until": ""}
        return Reply([json.dumps({"facts": [fact] if said in asked else []}) if "Known facts" in asked else "I see."])

    scripted.will_by_request(reply)
    thread_id = model_api.post("/v1/threads", {})["id"]
    list(model_api.converse(f"I live in {home}.", thread_id=thread_id, memory="auto"))
    wait_until(lambda: _facts(model_api, home), "the fact is learnt")
    (fact,) = _facts(model_api, home)
    # The conversation stays when a fact is forgotten: what its owner makes of the fact stands nowhere else.
    ok(model_api.http.patch(f"/v1/memory/facts/{fact['id']}", json={"text": f"I live in {secret}, by {home}."}))
    events = list(model_api.converse(LOOKED_UP, memory="agentic", tools=["memory_search"]))
    assert sought in str([observations_in(each) for each in scripted.scripted.requests]), "the model has read it"
    assert sought in only(events, "answer").data["text"]
    assert stored(model_system, sought)

    match what:
        case "fact":
            assert model_api.http.delete(f"/v1/memory/facts/{fact['id']}").status_code == 204
        case "words":
            assert model_api.post("/v1/memory/forget", {"text": sought.upper()})["forgotten"] == 1
        case "everything":
            assert model_api.post("/v1/memory/forget", {"everything": True})["forgotten"] >= 1
        case "thread":
            assert model_api.http.delete(f"/v1/threads/{thread_id}", params={"forget": True}).status_code == 204
    wait_until(lambda: is_forgotten(model_api, run_of(events)), "the run is forgotten")
    wait_until(lambda: stored(model_system, sought) == [], "nothing of its text is left in the message store")
    assert model_api.get(f"/v1/runs/{run_of(events)}")["question"] == LOOKED_UP
    assert _facts(model_api, sought) == []
    found = {"query": "where I live, in what place"}
    wait_until(lambda: sought not in str(model_api.post("/v1/memory/search", found)), "it is not found")
    assert sought not in str(model_api.get("/v1/memory/summary"))
    assert sought not in str(model_api.get("/v1/memory/export"))
    for name in ROOMS:
        assert sought not in model_system.log(name)
