"""What the tables of docs/openai.md promise of each parameter, as requests: a case for each word (honoured, refused, ignored) of a
cell. Where no case says how, a parameter that is ignored is sent with a value of no meaning."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import httpx
from groundwork.orchestrator.v1 import orchestrator_pb2 as pb

from services.gateway.models import Json

Shown = Callable[[pb.StartRunRequest, httpx.Response], Any]
"""Whether a run, or the answer, is as the parameter says."""


@dataclass(frozen=True)
class Case:
    """A request and what becomes of one of its parameters."""

    word: str
    given: Mapping[str, Any]
    shown: Shown = lambda run, answer: True
    """Of one that is honoured."""
    says: str = ""
    """What the error says of one that is refused."""
    header: str = ""
    """How one that is ignored is named, where not by its own name."""


def honoured(shown: Shown, **given: Any) -> Case:
    return Case("honoured", given, shown)


def refused(says: str, **given: Any) -> Case:
    return Case("refused", given, says=says)


def ignored(header: str = "", **given: Any) -> Case:
    return Case("ignored", given, header=header)


@dataclass(frozen=True)
class Column:
    """Parameters of one path."""

    path: str
    minimal: Json
    cases: Mapping[str, list[Case]] = field(default_factory=dict)


RESEARCH = "groundwork/research"
FUNCTION = {"name": "f", "parameters": {"type": "object", "properties": {}}}
OBJECT = {"type": "object", "properties": {"days": {"type": "integer"}}}
ASKED = {"role": "user", "content": "How long?"}
TOLD = {"role": "system", "content": "Be brief."}


def _sampled(name: str, value: Any) -> list[Case]:
    return [honoured(lambda run, _: abs(getattr(run.sampling, name) - value) < 1e-6, **{name: value})]


_BOTH: dict[str, list[Case]] = {
    "model": [
        honoured(
            lambda run, _: (run.agent, list(run.collection_ids)) == ("reasoning", ["handbook"]),
            model="groundwork/reasoning@handbook",
        ),
        refused("GET /v1/models", model="gpt-5"),
    ],
    "stream": [honoured(lambda _, answer: answer.headers["content-type"].startswith("text/event-stream"), stream=True)],
    "temperature": _sampled("temperature", 0.7),
    "top_p": _sampled("top_p", 0.9),
    "parallel_tool_calls": [honoured(lambda run, _: run.one_function_at_a_time, parallel_tool_calls=False)],
    "thread_id": [honoured(lambda run, _: run.thread_id == "0123456789ab", thread_id="0123456789ab")],
    "verify": [honoured(lambda run, _: run.verify == "remove", verify="remove")],
    "guard": [honoured(lambda run, _: run.guard == "block", guard="block")],
}


def _is_told(run: pb.StartRunRequest, _: httpx.Response) -> bool:
    return run.instructions == "Be brief."


def _conversation(name: str) -> dict[str, list[Case]]:
    """Messages, which `name` holds."""
    said = [ASKED, {"role": "assistant", "content": "Four weeks."}, {"role": "user", "content": "Since when?"}]
    of_role = {role: [{"role": role, "content": "Be brief."}, ASKED] for role in ("system", "developer")}
    return {
        name: [
            honoured(
                lambda run, _: (
                    (run.question, [each.role for each in run.history]) == ("Since when?", ["user", "assistant"])
                ),
                **{name: said},
            ),
            refused("only text is read", **{name: [{"role": "user", "content": [{"type": "input_file"}]}]}),
        ],
        **{
            role: [
                honoured(_is_told, **{name: messages}),
                ignored(f"{name}.{role}", **{name: messages, "model": RESEARCH}),
            ]
            for role, messages in of_role.items()
        },
    }


def _format(given: Callable[[Any], dict[str, Any]], schema: Json) -> list[Case]:
    return [
        honoured(lambda run, _: '"days"' in run.answer_schema, **given(schema)),
        refused("is not offered; use text", **given({"type": "xml"})),
    ]


def _effort(name: str, given: dict[str, Any]) -> dict[str, list[Case]]:
    return {
        name: [
            honoured(lambda run, _: run.research.effort == "high", model=RESEARCH, **given),
            ignored(**given),
        ]
    }


def _tokens(name: str) -> list[Case]:
    return [honoured(lambda run, _: run.budgets.answer_tokens == 99, **{name: 99})]


CHAT = Column(
    "/v1/chat/completions",
    {"model": "groundwork", "messages": [ASKED]},
    {
        **_BOTH,
        **_conversation("messages"),
        **_effort("reasoning_effort", {"reasoning_effort": "high"}),
        "stream_options.include_usage": [
            honoured(
                lambda _, answer: '"total_tokens"' in answer.text, stream=True, stream_options={"include_usage": True}
            )
        ],
        "max_tokens": _tokens("max_tokens"),
        "max_completion_tokens": _tokens("max_completion_tokens"),
        "seed": _sampled("seed", 7),
        "stop": [honoured(lambda run, _: list(run.sampling.stop) == ["END", "STOP"], stop=["END", "STOP"])],
        "tools": [
            honoured(
                lambda run, _: [each.name for each in run.functions] == ["f"],
                tools=[{"type": "function", "function": FUNCTION}],
            ),
            refused("give functions", tools=[{"type": "web_search"}]),
        ],
        "tool_choice": [
            honoured(
                lambda run, _: run.function_choice == "f",
                tools=[{"type": "function", "function": FUNCTION}],
                tool_choice={"type": "function", "function": {"name": "f"}},
            ),
            refused("is not offered", tool_choice={"type": "mcp"}),
        ],
        "functions": [refused("use `tools`", functions=[FUNCTION])],
        "function_call": [refused("use `tool_choice`", function_call="auto")],
        "response_format": _format(
            lambda form: {"response_format": form},
            {"type": "json_schema", "json_schema": {"name": "a", "schema": OBJECT, "strict": True}},
        ),
        "modalities": [
            honoured(lambda _, answer: "Four weeks" in answer.text, modalities=["text"]),
            refused("/v1/realtime", modalities=["text", "audio"]),
        ],
        "audio": [refused("/v1/realtime", audio={"voice": "alloy", "format": "wav"})],
        "n": [
            honoured(lambda _, answer: len(answer.json()["choices"]) == 1, n=1),
            refused("leave `n` out", n=2),
        ],
        "collection_ids": [honoured(lambda run, _: list(run.collection_ids) == ["a1"], collection_ids=["a1"])],
    },
)

RESPONSES = Column(
    "/v1/responses",
    {"model": "groundwork", "input": "How long?"},
    {
        **_BOTH,
        **_conversation("input"),
        **_effort("reasoning.effort", {"reasoning": {"effort": "high"}}),
        "instructions": [
            honoured(_is_told, instructions="Be brief."),
            ignored(instructions="Be brief.", model=RESEARCH),
        ],
        "max_output_tokens": _tokens("max_output_tokens"),
        "tools": [
            honoured(
                lambda run, _: ([each.name for each in run.functions], list(run.collection_ids)) == (["f"], ["a1"]),
                tools=[{"type": "function", **FUNCTION}, {"type": "file_search", "vector_store_ids": ["a1"]}],
            ),
            refused("use file_search", tools=[{"type": "web_search"}]),
        ],
        "tool_choice": [
            honoured(
                lambda run, _: run.function_choice == "f",
                tools=[{"type": "function", **FUNCTION}],
                tool_choice={"type": "function", "name": "f"},
            ),
            honoured(lambda run, _: run.function_choice == "auto", tool_choice={"type": "file_search"}),
            refused("is not offered", tool_choice={"type": "mcp"}),
        ],
        "text.format": _format(
            lambda form: {"text": {"format": form}}, {"type": "json_schema", "name": "a", "schema": OBJECT}
        ),
        "previous_response_id": [
            honoured(
                lambda run, answer: (
                    (run.previous_run_id, answer.json()["previous_response_id"]) == ("ab" * 16, "resp_" + "ab" * 16)
                ),
                previous_response_id="resp_" + "ab" * 16,
            )
        ],
        "background": [
            honoured(lambda _, answer: answer.json()["status"] == "in_progress", background=True),
            refused("leave `stream`", background=True, stream=True),
            refused("leave `stream`", background=True, store=False),
        ],
        "store": [honoured(lambda _, answer: answer.json()["store"] is False, store=False)],
        "conversation": [refused("previous_response_id", conversation="conv_1")],
        "prompt": [refused("`instructions` and `input`", prompt={"id": "pmpt_1"})],
    },
)
