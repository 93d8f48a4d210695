"""What a caller brings to a run besides a question: functions of its own, what came of calling them, a schema for the answer.
Each is checked before there is a run."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from kit.json_schema import SchemaRefused, check_schema
from services.orchestrator.errors import InvalidRequest, forgotten, not_found
from services.orchestrator.models import HistoryMessage, RunRecord, RunRequest
from services.orchestrator.modes.mode import Mode
from services.orchestrator.modes.serving import Modes

CHOICES = ("", "auto", "none", "required")
_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
_MOST_FUNCTIONS, _MOST_CALLED, _MOST_STOPS = 128, 200, 4
_MOST_FUNCTION_CHARACTERS, _MOST_FUNCTION_SCHEMAS = 100_000, 4_000
_MOST_CALLED_BYTES = 400_000
"""Of what was said and called before, with arguments and ids: room for the 100 000 characters of history in any script."""
_MOST_BYTES = 700_000
"""Of all that is brought: the record with its marks and ids must fit into one message of the store, which is 1 MB."""
_MOST_SCHEMA_CHARACTERS, _MOST_INSTRUCTION_CHARACTERS, _MOST_STOP_CHARACTERS = 50_000, 32_000, 200


def check_brought(request: RunRequest, mode: Mode, modes: Modes) -> None:
    """Raises InvalidRequest."""
    name = mode.name.value
    if (request.functions or request.called) and not mode.takes_functions:
        raise InvalidRequest(f"mode {name} calls no functions; leave them out, or use grounded", field="functions")
    if request.answer_schema and not mode.takes_functions:
        raise InvalidRequest(f"mode {name} follows no schema; leave it out, or use grounded", field="answer_schema")
    agent = modes.agents.get(request.agent)
    if agent and (agent.work or agent.output) and (request.functions or request.called or request.answer_schema):
        raise InvalidRequest(
            f"agent {agent.name} answers in a shape of its own; leave functions and schemas out, or name no agent",
            field="agent",
        )
    if len(request.instructions) > _MOST_INSTRUCTION_CHARACTERS:
        raise InvalidRequest(
            f"the instructions have {len(request.instructions)} characters; at most {_MOST_INSTRUCTION_CHARACTERS} are "
            "read",
            field="instructions",
        )
    _check_functions(request)
    _check_calls([*request.history, *request.called])
    if request.answer_schema:
        schema, _ = _schema(
            request.answer_schema, "the JSON Schema of the answer", "answer_schema", _MOST_SCHEMA_CHARACTERS
        )
        if schema.get("type") != "object":
            raise InvalidRequest('the JSON Schema of the answer describes no object; begin it with {"type": "object"}')
    _check_sampling(request)
    _check_size(request)


def continued(request: RunRequest, previous: RunRecord, subject: str) -> RunRequest:
    """The request as it goes on from the previous run of `subject`. Where that one called functions, what they returned answers it.

    Raises RunNotFound, RunForgotten, InvalidRequest.
    """
    run_id = previous.key.run_id
    if previous.subject != subject:
        raise not_found(run_id)
    if previous.forgotten_at is not None:
        raise forgotten(run_id)
    if request.thread_id:
        raise InvalidRequest("a previous run and a thread are both given; use one of them", field="thread_id")
    if previous.finished_at is None:
        raise InvalidRequest(f"run {run_id} has not ended; wait for its answer", field="previous_run_id")
    if not request.called and request.question.strip():
        return request
    answer = previous.outcome.answer
    if answer is None or not answer.function_calls:
        raise InvalidRequest(f"run {run_id} called no functions; ask a question", field="previous_run_id")
    before, thread_id = previous.request, previous.request.thread_id
    calls = HistoryMessage("assistant", answer.text, tuple(answer.function_calls))
    called = (*before.called, calls, *request.called)
    earlier = before.previous_run_id
    if not request.question.strip():
        return replace(
            request,
            question=before.question,
            history=before.history,
            called=called,
            previous_run_id=earlier,
            thread_id=thread_id,
        )
    history = (*before.history, HistoryMessage("user", before.question), *called, *request.history)
    return replace(request, history=history, called=(), previous_run_id=earlier)


def _check_functions(request: RunRequest) -> None:
    functions, names = request.functions, [each.name for each in request.functions]
    if len(functions) > _MOST_FUNCTIONS:
        raise InvalidRequest(f"{len(functions)} functions are given; give at most {_MOST_FUNCTIONS}", field="functions")
    for name in names:
        if not _NAME.fullmatch(name):
            raise InvalidRequest(
                f"a function is named {name[:80]!r}; use 1 to 64 letters, digits, '-' and '_'", field="functions"
            )
        if names.count(name) > 1:
            raise InvalidRequest(f"two functions are named {name!r}; give each a name of its own", field="functions")
    if sum(len(each.description) + len(each.parameters) for each in functions) > _MOST_FUNCTION_CHARACTERS:
        raise InvalidRequest(
            f"the functions have more than {_MOST_FUNCTION_CHARACTERS} characters; give fewer", field="functions"
        )
    schemas = 0
    for each in functions:
        what = f"the JSON Schema of function {each.name}'s parameters"
        schemas += _schema(each.parameters, what, "functions", _MOST_FUNCTION_CHARACTERS)[1]
        if schemas > _MOST_FUNCTION_SCHEMAS:
            raise InvalidRequest(
                f"the parameters of the functions hold more than {_MOST_FUNCTION_SCHEMAS} schemas; give fewer functions",
                field="functions",
            )
    if request.function_choice not in (*CHOICES, *names):
        raise InvalidRequest(
            f"there is no function {request.function_choice[:80]!r} to call; use auto, none, required or one of the functions",
            field="function_choice",
        )


def _check_calls(messages: Sequence[HistoryMessage]) -> None:
    """Raises InvalidRequest unless each call is answered before anything else is said. Models refuse other conversations."""
    if len(messages) > _MOST_CALLED:
        raise InvalidRequest(f"there are {len(messages)} messages; give at most {_MOST_CALLED}", field="called")
    if (size := _messages_size(messages)) > _MOST_CALLED_BYTES:
        raise InvalidRequest(
            f"the messages, calls and results before the answer have {size} bytes; give at most {_MOST_CALLED_BYTES}",
            field="called",
        )
    open_calls: set[str] = set()
    for each in messages:
        if each.role == "tool":
            if each.call_id not in open_calls:
                raise InvalidRequest(
                    f"a result answers call {each.call_id[:80]!r}, which stands in no message before it", field="called"
                )
            open_calls.discard(each.call_id)
        elif open_calls:
            break
        else:
            open_calls = {call.call_id for call in each.calls}
    if open_calls:
        missing = ", ".join(repr(call_id[:80]) for call_id in sorted(open_calls))
        raise InvalidRequest(f"the result of call {missing} is missing; give one for each call", field="called")


def _messages_size(messages: Sequence[HistoryMessage]) -> int:
    """Bytes that a record keeps of them."""
    calls = [call for each in messages for call in each.calls]
    said = [text for each in messages for text in (each.text, each.call_id)]
    return _bytes_of(*said, *(text for call in calls for text in (call.call_id, call.name, call.arguments)))


def _check_size(request: RunRequest) -> None:
    functions = [text for each in request.functions for text in (each.name, each.description, each.parameters)]
    size = _messages_size([*request.history, *request.called])
    size += _bytes_of(request.question, request.instructions, request.answer_schema, *functions)
    if size > _MOST_BYTES:
        raise InvalidRequest(
            f"the question, instructions, functions, schema and earlier messages have {size} bytes together; give at most "
            f"{_MOST_BYTES}",
            field="called",
        )


def _bytes_of(*texts: str) -> int:
    return sum(len(each.encode("utf-8", "replace")) for each in texts)


def _check_sampling(request: RunRequest) -> None:
    if (sampling := request.sampling) is None:
        return
    if sampling.temperature is not None and not 0 <= sampling.temperature <= 2:
        raise InvalidRequest(f"temperature is {sampling.temperature}; give 0 to 2", field="temperature")
    if sampling.top_p is not None and not 0 < sampling.top_p <= 1:
        raise InvalidRequest(f"top_p is {sampling.top_p}; give more than 0 and at most 1", field="top_p")
    if len(sampling.stop) > _MOST_STOPS or not all(0 < len(each) <= _MOST_STOP_CHARACTERS for each in sampling.stop):
        raise InvalidRequest(
            f"stop has {len(sampling.stop)} texts; give at most {_MOST_STOPS} of 1 to {_MOST_STOP_CHARACTERS} characters",
            field="stop",
        )


def _schema(text: str, what: str, field: str, most: int) -> tuple[Mapping[str, Any], int]:
    """The JSON Schema, and how many it holds. Raises InvalidRequest."""
    try:
        schema = json.loads(text) if len(text) <= most else None
    except (ValueError, RecursionError):
        schema = None
    if not isinstance(schema, dict):
        raise InvalidRequest(f"{what} is no JSON object of at most {most} characters", field=field)
    try:
        return schema, check_schema(schema)
    except SchemaRefused as refused:
        raise InvalidRequest(f"{what} {refused}", field=field) from None
