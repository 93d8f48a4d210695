"""Questions and answers without a language model: citations that point to the right place, honest refusals, conversations."""

import concurrent.futures
from dataclasses import dataclass

import pytest

from tests.integration.api import Api, Json, assert_complete, only, problem, shown_text
from tests.integration.conftest import Library

pytestmark = pytest.mark.integration


@dataclass(frozen=True)
class Asked:
    """A question, and where its answer stands."""

    question: str
    document: str
    page: int | None
    words: str
    """What the cited words must hold."""


QUESTIONS = (
    Asked("How long is the notice period during probation?", "handbook.md", None, "two weeks"),
    Asked("When was the light switched off?", "lighthouse.txt", None, "1986"),
    Asked("How long do I bake the loaf?", "recipe.html", None, "45 minutes"),
    Asked("Who is the keeper of Borkum Pier?", "stations.csv", None, "Wiebke Dirks"),
    Asked("Why was the ferry Wangerooge docked?", "report.pdf", 2, "propeller shaft"),
    Asked("How many passengers did the fleet carry in the first quarter?", "report.pdf", 1, "4812"),
)


def cited_words(citation: Json) -> str:
    """The quote, or the whole passage when it is meant."""
    text: str = citation["text"]
    return text[citation["quote_start"] : citation["quote_end"]] or text


@pytest.mark.parametrize("asked", QUESTIONS, ids=lambda asked: asked.document)
def test_an_answer_cites_the_right_document_page_and_words(api: Api, library: Library, asked: Asked) -> None:
    answer = api.qa(library.collection_id, asked.question)
    assert answer["status"] == "completed"
    assert answer["support_status"] == "supported"
    assert answer["method"] == "extractive"
    assert answer["degraded"] == []
    assert asked.words in answer["answer"]
    first = answer["citations"][0]
    assert first["document_id"] == library.id_of(asked.document)
    assert first["page"] == asked.page
    assert asked.words in cited_words(first)
    assert f"[{first['number']}]" in answer["answer"]


def test_a_citation_opens_its_passage(api: Api, library: Library) -> None:
    citation = api.qa(library.collection_id, QUESTIONS[0].question)["citations"][0]
    window = api.get(f"/v1/chunks/{citation['chunk_id']}", window=1)
    assert window["chunk"]["text"] == citation["text"]
    assert window["chunk"]["document_id"] == citation["document_id"]


def test_the_same_question_as_a_stream_tells_every_step(api: Api, library: Library) -> None:
    events = list(api.ask(library.collection_id, QUESTIONS[4].question))
    assert_complete(events)
    kinds = [event.kind for event in events]
    assert [kind for kind in dict.fromkeys(kinds) if kind != "thinking"] == [
        *("run", "plan", "retrieval", "token", "verification", "answer", "usage", "done"),
    ]
    assert events[-1].data["status"] == "completed"
    answer = only(events, "answer").data
    assert answer["text"] == api.qa(library.collection_id, QUESTIONS[4].question)["answer"]
    assert (answer["citations"][0]["document_name"], answer["citations"][0]["page"]) == ("report.pdf", 2)
    evidence = {each["number"]: each["chunk_id"] for each in only(events, "retrieval").data["evidence"]}
    assert all(evidence[each["number"]] == each["chunk_id"] for each in answer["citations"])
    assert api.get(f"/v1/runs/{events[0].data['run_id']}")["status"] == "completed"
    assert api.replay(events[0].data["run_id"]) == events


@pytest.mark.parametrize(
    "question",
    ["Who won the football world cup in 1974?", "What is the boiling point of helium?", "asdf qwer zxcv", "?"],
)
def test_a_question_that_the_documents_do_not_answer_is_refused_honestly(
    api: Api, library: Library, question: str
) -> None:
    answer = api.qa(library.collection_id, question)
    assert answer["status"] == "refused"
    assert answer["support_status"] == "insufficient"
    assert answer["citations"] == []
    assert answer["answer"] == ("I found no sure answer." if answer["closest"] else "The documents do not say.")
    assert len(answer["closest"]) <= 3


def test_an_empty_collection_answers_honestly(api: Api, collection: str) -> None:
    answer = api.qa(collection, "How long is the notice period?")
    assert (answer["status"], answer["citations"]) == ("refused", [])


def test_evidence_can_be_restricted_to_documents(api: Api, library: Library) -> None:
    question = QUESTIONS[0].question
    elsewhere = api.qa(library.collection_id, question, document_ids=[library.id_of("lighthouse.txt")])
    assert library.id_of("handbook.md") not in {each["document_id"] for each in elsewhere["citations"]}
    there = api.qa(library.collection_id, question, document_ids=[library.id_of("handbook.md")])
    assert {each["document_id"] for each in there["citations"]} == {library.id_of("handbook.md")}


def test_a_follow_up_is_understood_from_the_thread(api: Api, library: Library) -> None:
    thread_id = api.post("/v1/threads")["id"]
    first = list(
        api.chat(library.collection_id, "When was the lighthouse of Roter Sand finished?", thread_id=thread_id)
    )
    assert_complete(first)
    second = list(api.chat(library.collection_id, "And when was it switched off?", thread_id=thread_id))
    assert_complete(second)
    assert "1986" in shown_text(second)
    assert only(second, "answer").data["citations"][0]["document_name"] == "lighthouse.txt"
    thread = api.get(f"/v1/threads/{thread_id}")
    assert [message["role"] for message in thread["messages"]] == ["user", "assistant", "user", "assistant"]
    assert thread["messages"][2]["text"] == "And when was it switched off?"
    assert thread["messages"][3]["text"] == shown_text(second)
    said = only(second, "answer").data
    for name in ("method", "answer_confidence", "answer_status"):
        assert thread["messages"][3][name] == said[name]
    assert thread["title"].startswith("When was the lighthouse")


def test_a_chat_on_a_thread_that_does_not_exist_says_so(api: Api, library: Library) -> None:
    path = f"/v1/collections/{library.collection_id}/chat"
    response = api.http.post(path, json={"message": "How long is the notice?", "thread_id": "0" * 12})
    problem(response, 404, "THREAD_NOT_FOUND")


def test_many_questions_at_once_are_all_answered(api: Api, library: Library) -> None:
    def ask(asked: Asked) -> str:
        with Api.open(str(api.http.base_url)) as own:
            answer: str = own.qa(library.collection_id, asked.question)["answer"]
        return answer

    with concurrent.futures.ThreadPoolExecutor(12) as pool:
        answers = list(pool.map(ask, QUESTIONS * 4))
    for asked, answer in zip(QUESTIONS * 4, answers, strict=True):
        assert asked.words in answer


def test_runs_are_listed_newest_first(api: Api, library: Library) -> None:
    mine = [api.qa(library.collection_id, asked.question)["run_id"] for asked in QUESTIONS[:3]]
    listed = [run["id"] for run in api.get("/v1/runs", page_size=3)["runs"]]
    assert listed == mine[::-1]
