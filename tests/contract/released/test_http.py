"""Clients of the last release's HTTP API work with this one's."""

import json
from collections.abc import Callable
from copy import deepcopy
from typing import Any

import pytest

from tests.contract.released.http_changes import breaking_changes
from tests.contract.released.recording import OPENAPI, openapi, versions

RELEASED = json.loads((versions()[-1] / OPENAPI).read_text("utf-8"))


def test_nothing_that_clients_of_the_last_release_use_is_gone() -> None:
    assert breaking_changes(RELEASED, json.loads(openapi())) == []


def schema(document: Any, name: str) -> Any:
    return document["components"]["schemas"][name]


def remove_path(document: Any) -> None:
    del document["paths"]["/v1/search"]


def remove_field_of_answer(document: Any) -> None:
    del schema(document, "Hit")["properties"]["text"]


def remove_field_of_request(document: Any) -> None:
    del schema(document, "SearchRequest")["properties"]["top_k"]


def require_field_of_request(document: Any) -> None:
    schema(document, "SearchRequest").setdefault("required", []).append("top_k")


def require_new_field(document: Any) -> None:
    schema(document, "NewCollection")["properties"]["colour"] = {"type": "string"}
    schema(document, "NewCollection").setdefault("required", []).append("colour")


def remove_event(document: Any) -> None:
    del document["paths"]["/v1/chat"]["post"]["responses"]["200"]["content"]["text/event-stream"]["x-event-schemas"][
        "tool"
    ]


def change_field_of_event(document: Any) -> None:
    schema(document, "TokenEvent")["properties"]["seq"]["type"] = "string"


def require_parameter(document: Any) -> None:
    document["paths"]["/v1/events"]["get"].setdefault("parameters", []).append(
        {"in": "query", "name": "colour", "required": True, "schema": {"type": "string"}}
    )


def leave_out_what_was_promised(document: Any) -> None:
    schema(document, "Citation")["required"].remove("document_id")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (remove_path, "POST /v1/search is gone"),
        (remove_field_of_answer, "the field text is gone"),
        (remove_field_of_request, "the field top_k is gone"),
        (require_field_of_request, "the field top_k is required now"),
        (require_new_field, "the field colour is required now"),
        (remove_event, "the event tool is gone"),
        (change_field_of_event, "type integer is string now"),
        (require_parameter, "the parameter colour is required now"),
        (leave_out_what_was_promised, "the field document_id may be missing now"),
    ],
)
def test_change_that_breaks_clients_is_told(change: Callable[[Any], None], said: str) -> None:
    document = deepcopy(RELEASED)
    change(document)
    assert any(said in line for line in breaking_changes(RELEASED, document))


def test_additions_break_nobody() -> None:
    document = deepcopy(RELEASED)
    schema(document, "SearchRequest")["properties"]["colour"] = {"type": "string"}
    schema(document, "Hit")["properties"]["colour"] = {"type": "string"}
    schema(document, "Hit").setdefault("required", []).append("colour")
    document["paths"]["/v1/colours"] = deepcopy(document["paths"]["/v1/search"])
    assert breaking_changes(RELEASED, document) == []
