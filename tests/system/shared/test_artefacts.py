"""What agents make, asked for over HTTP on a running system: summary, quiz, drawings, and fields of a schema."""

import json
from collections.abc import Callable

import pytest

from kit.testing.openai import Reply
from tests.integration.api import Api, Json, ok
from tests.integration.conftest import Model

pytestmark = pytest.mark.integration
TEAMS = "Team,Wins\n" + "\n".join(f"Team {chr(65 + number)},{60 + number}" for number in range(26))
DUCKS = """# Ducks

Ducks are birds that live on every continent except Antarctica.

## Food

The tufted duck dives to a depth of 14 metres for mussels and snails.

## History

The first farm for ducks in the valley was opened in 1873 by Anna Miller. The second farm was opened in 1921.
"""


BUILDINGS = """The tower was built in 1889 by Gustave Eiffel for the world exhibition in Paris.

The harbour bridge was opened in 1932 by Jack Lang after eight years of work in Sydney.

The great dam was finished in 1936 by Frank Crowe two years ahead of the plan in Nevada.

The long canal was opened in 1914 by George Goethals when the locks were ready in Panama.
"""


@pytest.fixture
def ask(api: Api, collection: str) -> Callable[..., Json]:
    """Asks over a collection with a table and an article."""
    api.ingest(collection, "teams.csv", TEAMS.encode())
    api.ingest(collection, "ducks.md", DUCKS.encode())

    def asked(message: str, **more: object) -> Json:
        path = f"/v1/collections/{collection}/chat"
        return ok(api.http.post(path, json={"message": message, **more}, headers={"Accept": "application/json"}))

    return asked


def made(answer: Json) -> Json:
    (artefact,) = answer["artefacts"]
    quotes = {each["number"]: each["text"][each["quote_start"] : each["quote_end"]] for each in artefact["citations"]}
    return {**artefact, "cited": {item["path"]: quotes[item["citations"][0]] for item in artefact["items"]}}


def test_agents_make_what_a_message_asks_for(ask: Callable[..., Json]) -> None:
    summary = ask("Summarise ducks.md")
    assert {each["document_name"] for each in summary["citations"]} == {"ducks.md"}
    assert summary["support_status"] == "supported"

    chart = made(ask("Bar chart of wins by team"))
    assert (chart["kind"], len(chart["body"]["labels"])) == ("chart", 26)
    assert chart["cited"]["/series/0/values/25"] == "Team: Team Z; Wins: 85"

    table = made(ask("Table of teams with their wins"))
    assert (table["kind"], len(table["body"]["rows"])) == ("table", 26)

    mind_map = made(ask("Mind map of ducks.md"))
    assert [each["label"] for each in mind_map["body"]["nodes"]] == ["ducks.md", "Ducks", "Food", "History"]

    timeline = made(ask("Timeline of the farms in ducks.md"))
    assert [each["when"] for each in timeline["body"]["events"]] == ["1873", "1921"]


def test_quiz_is_graded_and_goes_on(api: Api, collection: str, ask: Callable[..., Json]) -> None:
    api.ingest(collection, "buildings.txt", BUILDINGS.encode())
    thread = api.post("/v1/threads", {})["id"]
    first = ask("Make a quiz of 2 questions about when buildings were built", thread_id=thread)
    questions = made(first)["body"]["questions"]
    path = f"/v1/threads/{thread}/quizzes/{first['run_id']}"
    answers = [{"question_id": each["id"], "given": each["answer"]} for each in questions]
    api.post(f"{path}/answers", {"answers": answers})
    graded = api.get(path)
    assert (graded["answered"], graded["right"]) == (2, 2), graded
    more = made(ask("one more", thread_id=thread))["body"]["questions"]
    assert len(more) == 1
    assert more[0]["question"] not in [each["question"] for each in questions]


def test_fields_of_a_schema_are_rows_with_citations_and_the_run_is_read_again(api: Api, collection: str) -> None:
    api.ingest(collection, "teams.csv", TEAMS.encode())
    api.ingest(collection, "ducks.md", DUCKS.encode())
    schema = {"type": "object", "properties": {"team": {"type": "string"}, "wins": {"type": "integer"}}}
    path = f"/v1/collections/{collection}/extract"
    events = list(api.events("POST", path, {"schema": schema}))
    assert any("teams.csv (2 of 2)" in each.data.get("text", "") for each in events if each.kind == "thinking")
    assert events[-1].kind == "done"
    (answer,) = [each.data for each in api.replay(events[0].data["run_id"]) if each.kind == "answer"]
    table = made(answer)
    rows = table["body"]["rows"]
    assert (rows[0], rows[1], len(rows)) == (["ducks.md", None, None], ["teams.csv", "Team A", 60], 27)
    assert table["cited"]["/rows/1/2"] == "60"
    refused = api.http.post(path, json={"schema": {"type": "string"}})
    assert (refused.status_code, refused.json()["reason"]) == (400, "VALIDATION_FAILED")


def test_model_fills_in_a_chart_and_what_stands_nowhere_is_left_out(
    model_api: Api, handbook: str, scripted: Model
) -> None:
    points = [
        {"series": "", "label": "notice period during probation in weeks", "value": 2, "source": 1},
        {"series": "", "label": "notice period", "value": 777, "source": 1},
    ]
    chart = {"title": "Notice", "unit": "weeks", "points": points}
    scripted.will(Reply([json.dumps(chart)]))
    body = {"message": "Bar chart of the notice period", "agent": "visualisation"}
    path = f"/v1/collections/{handbook}/chat"
    answer = ok(model_api.http.post(path, json=body, headers={"Accept": "application/json"}))
    (artefact,) = answer["artefacts"]
    assert "777" not in json.dumps(artefact["body"].get("series", []))
    assert scripted.scripted.requests
