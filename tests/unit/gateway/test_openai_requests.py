"""Requests in OpenAI's shape become runs: how words are chosen, pieces of messages, and calls with what they returned."""

from typing import Any

import pytest
from pydantic import ValidationError

from services.gateway.errors import UnsupportedParameter
from services.gateway.openai.asking import run_request
from services.gateway.openai.messages import words_of
from services.gateway.openai.requests import ChatCompletionRequest
from services.gateway.openai.response_requests import ResponsesRequest

ASKED = {"role": "user", "content": "How long?"}


def chat(**members: Any) -> ChatCompletionRequest:
    return ChatCompletionRequest.model_validate({"model": "groundwork", "messages": [ASKED], **members})


def responses(*items: Any) -> ChatCompletionRequest:
    return ResponsesRequest.model_validate({"model": "groundwork", "input": list(items)}).as_chat()


@pytest.mark.parametrize(
    ("given", "field", "becomes"),
    [
        ({"temperature": 0}, "temperature", 0.0),
        ({"temperature": 2.0}, "temperature", 2.0),
        ({"top_p": 1}, "top_p", 1.0),
        ({"seed": -1}, "seed", -1),
        ({"stop": "END"}, "stop", ["END"]),
        ({"stop": ["END", "\n"]}, "stop", ["END", "\n"]),
    ],
)
def test_words_are_chosen_as_the_request_says(given: dict[str, Any], field: str, becomes: Any) -> None:
    sampling = run_request(chat(**given), ["default"], "").sampling
    assert getattr(sampling, field) == becomes
    assert [each.name for each, _ in sampling.ListFields()] == [field]


def test_what_is_not_said_is_left_to_the_operator() -> None:
    assert not run_request(chat(temperature=None, stop=[]), ["default"], "").HasField("sampling")


@pytest.mark.parametrize(
    "given",
    [
        {"temperature": 2.1},
        {"temperature": "0.5"},
        {"temperature": float("nan")},
        {"top_p": 0},
        {"seed": 2**63},
        {"stop": ["a"] * 5},
        {"stop": ""},
        {"max_tokens": 0},
    ],
)
def test_values_out_of_bounds_are_refused(given: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        chat(**given)


def test_pieces_of_text_are_lines_of_a_message() -> None:
    pieces = [{"type": "text", "text": "How"}, {"type": "input_text", "text": "long?"}]
    (message,) = chat(messages=[{"role": "user", "content": pieces}]).messages
    assert message.words() == "How\nlong?"
    assert (words_of(None), words_of("")) == ("", "")


@pytest.mark.parametrize("kind", ["image_url", "input_audio", "input_file", "file", "unknown"])
def test_piece_that_is_no_text_is_refused_by_its_name(kind: str) -> None:
    (message,) = chat(messages=[{"role": "user", "content": [{"type": kind}]}]).messages
    with pytest.raises(UnsupportedParameter, match=kind):
        message.words()


def test_calls_of_one_answer_are_one_message_with_its_results() -> None:
    calls = [{"type": "function_call", "call_id": name, "name": "f", "arguments": "{}"} for name in "ab"]
    results = [{"type": "function_call_output", "call_id": name, "output": f"{name}!"} for name in "ab"]
    run = run_request(responses(ASKED, {"type": "reasoning", "id": "r"}, *calls, *results), ["default"], "")
    assert run.question == "How long?"
    assert [(each.role, each.call_id, each.text) for each in run.called] == [
        ("assistant", "", ""),
        ("tool", "a", "a!"),
        ("tool", "b", "b!"),
    ]
    assert [each.call_id for each in run.called[0].calls] == ["a", "b"]
