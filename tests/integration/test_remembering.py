"""What is remembered of a person in chats: their notes among the hints, and gone from runs when they are deleted."""

import json
import secrets

import pytest

from kit.testing.openai import Reply
from tests.integration.api import Api, Json, only
from tests.integration.conftest import Model
from tests.integration.scripting import data_of, question_in
from tests.integration.system import Groundwork, wait_until
from tests.integration.test_forgetting import is_forgotten, run_of, stored

pytestmark = pytest.mark.integration

NOTE = "memories/boat.md"
QUESTION = "What is my sailing boat called, did I tell you?"


def test_note_is_a_hint_of_a_chat_and_goes_from_its_run_when_it_is_deleted(
    model_system: Groundwork, model_api: Api, scripted: Model
) -> None:
    secret = f"zq{secrets.token_hex(8).translate(str.maketrans('0123456789', 'ghijklmnop'))}"
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
