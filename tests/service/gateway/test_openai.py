"""OpenAI's API over the gateway, with the official client: answers, streams, citations and errors in the types that it knows."""

from collections.abc import AsyncIterator

import httpx
import openai
import pytest
from groundwork.common.v1 import common_pb2
from groundwork.orchestrator.v1 import orchestrator_pb2 as run_pb
from openai import AsyncOpenAI
from openai.types.chat import ChatCompletion, ChatCompletionChunk
from openai.types.responses import Response

from kit.errors import InvalidArgument, ResourceExhausted
from tests.service.gateway.conftest import Live, World
from tests.service.gateway.fakes import RUN_ID, answered_run, event

ASKED = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "Is there a notice period?"},
    {"role": "assistant", "content": "There is."},
    {"role": "user", "content": [{"type": "text", "text": "How long?"}]},
]


@pytest.fixture
async def api(live: Live) -> AsyncIterator[AsyncOpenAI]:
    async with live() as client, AsyncOpenAI(api_key="any", base_url=f"{client.base_url}/v1", max_retries=0) as api:
        yield api


async def test_completion_has_the_answer_with_its_citations(api: AsyncOpenAI, world: World) -> None:
    answer = await api.chat.completions.create(model="groundwork@handbook", messages=ASKED)  # type: ignore[arg-type]
    ChatCompletion.model_validate(answer.model_dump(), strict=True)
    (choice,) = answer.choices
    assert (choice.message.content, choice.finish_reason) == ("Four weeks [1].", "stop")
    (annotation,) = choice.message.annotations or ()
    cited = annotation.url_citation
    assert (choice.message.content or "")[cited.start_index : cited.end_index] == "[1]"
    assert (cited.title, cited.url) == ("handbook.pdf", f"http://{api.base_url.host}:{api.base_url.port}/passages/c1")
    assert annotation.to_dict()["groundwork"]["text"] == "Four weeks."  # type: ignore[index]
    (request,) = world.orchestrator.requests
    assert (request.mode, request.question, list(request.collection_ids)) == (
        run_pb.RUN_MODE_GROUNDED,
        "How long?",
        ["handbook"],
    )
    assert [(each.role, each.text) for each in request.history] == [
        ("user", "Is there a notice period?"),
        ("assistant", "There is."),
    ]


async def test_links_of_citations_lead_to_the_public_address_and_to_pages_of_the_web(live: Live, world: World) -> None:
    log = answered_run()
    (cited,) = log[5].answer.citations
    cited.quote_start, cited.quote_end = 0, 4
    log[5].answer.citations.add(
        number=2, document_id="web-1", chunk_id="w1", origin=common_pb2.Origin(channel="https://example.org/a")
    )
    log[5].answer.text = "Four weeks [1][2]."
    world.orchestrator.log = log
    async with live(public_url="https://docs.example.com") as client:
        said = await client.post("/v1/chat/completions", json={"model": "groundwork", "messages": ASKED})
        made = await client.post("/v1/responses", json={"model": "groundwork", "input": "How long?"})
    expected = ["https://docs.example.com/passages/c1?from=0&to=4", "https://example.org/a"]
    annotations = said.json()["choices"][0]["message"]["annotations"]
    assert [each["url_citation"]["url"] for each in annotations] == expected
    (part,) = made.json()["output"][0]["content"]
    assert [each["groundwork"]["url"] for each in part["annotations"]] == expected


async def test_guard_of_the_request_reaches_the_run(api: AsyncOpenAI, world: World) -> None:
    asked = {"extra_body": {"guard": "block"}}
    await api.chat.completions.create(model="groundwork", messages=ASKED, **asked)  # type: ignore[call-overload]
    await api.responses.create(model="groundwork/research", input="How long?", **asked)  # type: ignore[call-overload]
    assert [each.guard for each in world.orchestrator.requests] == ["block", "block"]


async def test_chunks_add_up_to_the_answer_and_end_with_citations_and_usage(api: AsyncOpenAI) -> None:
    stream = await api.chat.completions.create(
        model="groundwork",
        messages=ASKED,  # type: ignore[arg-type]
        stream=True,
        stream_options={"include_usage": True},
    )
    chunks = [ChatCompletionChunk.model_validate(each.model_dump(), strict=True) async for each in stream]
    text = "".join(each.choices[0].delta.content or "" for each in chunks if each.choices)
    assert text == "Four weeks [1]."
    last = chunks[-2].choices[0]
    assert last.finish_reason == "stop"
    assert last.delta.to_dict()["annotations"][0]["url_citation"]["start_index"] == text.index("[1]")  # type: ignore[index]
    assert chunks[-1].usage is not None
    assert {each.id for each in chunks} == {f"chatcmpl-{RUN_ID}"}


async def test_last_chunk_has_the_checked_text_where_a_claim_lost_its_mark(api: AsyncOpenAI, world: World) -> None:
    log = answered_run()
    log[5].answer.text = "Four weeks."
    world.orchestrator.log = log
    stream = await api.chat.completions.create(model="groundwork", messages=ASKED, stream=True)  # type: ignore[arg-type]
    chunks = [each async for each in stream]
    assert "".join(each.choices[0].delta.content or "" for each in chunks) == "Four weeks [1]."
    assert chunks[-1].to_dict()["groundwork"]["text"] == "Four weeks."  # type: ignore[index]


async def test_response_has_file_citations_whole_and_streamed(api: AsyncOpenAI, world: World) -> None:
    tools = [{"type": "file_search", "vector_store_ids": ["handbook"]}]
    whole = await api.responses.create(model="groundwork/reasoning", input="How long?", tools=tools)  # type: ignore[arg-type]
    Response.model_validate(whole.model_dump(), strict=True)
    assert whole.output_text == "Four weeks [1]."
    (cited,) = whole.output[0].content[0].annotations  # type: ignore[union-attr]
    assert (cited.type, cited.file_id, cited.index) == ("file_citation", "d0000001", 11)
    async with api.responses.stream(model="groundwork", input="How long?", tools=tools) as events:  # type: ignore[arg-type]
        kinds = [each.type async for each in events]
        final = await events.get_final_response()
    assert final.output_text == "Four weeks [1]."
    assert kinds.count("response.output_text.delta") == 2
    first, _ = world.orchestrator.requests
    assert (first.agent, list(first.collection_ids)) == ("reasoning", ["handbook"])


async def test_research_is_a_model_of_its_own(api: AsyncOpenAI, world: World) -> None:
    names = [each.id async for each in await api.models.list()]
    assert {"groundwork", "groundwork/research"} <= set(names)
    await api.chat.completions.create(
        model="groundwork/research",
        messages=ASKED,  # type: ignore[arg-type]
        reasoning_effort="high",
        max_completion_tokens=50,
    )
    (request,) = world.orchestrator.requests
    assert (request.mode, request.agent, request.research.effort) == (run_pb.RUN_MODE_AGENT, "", "high")
    assert request.budgets.answer_tokens == 50


@pytest.mark.parametrize(
    ("changed", "code", "words"),
    [
        ({"model": "gpt-5"}, "model_not_found", "GET /v1/models"),
        ({"tools": [{"type": "web_search"}]}, "unsupported_parameter", "give functions"),
        (
            {"model": "groundwork/research", "tools": [{"type": "function", "function": {"name": "f"}}]},
            "unsupported_parameter",
            "leave `tools` out",
        ),
        ({"tool_choice": {"type": "mcp"}}, "unsupported_parameter", "tool_choice"),
        ({"n": 2}, "unsupported_parameter", "leave `n` out"),
        ({"response_format": {"type": "xml"}}, "unsupported_parameter", "response_format"),
        ({"response_format": {"type": "json_schema", "json_schema": {}}}, "unsupported_parameter", "no schema"),
        ({"messages": [{"role": "tool", "content": "9"}]}, "unsupported_parameter", "tool_call_id"),
        ({"messages": [{"role": "assistant", "content": "Hi"}]}, "unsupported_parameter", "the last message"),
        ({"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}, "unsupported_parameter", "image_url"),
        ({"messages": []}, "validation_failed", "messages"),
    ],
)
async def test_what_is_not_offered_is_refused_in_the_shape_that_clients_know(
    api: AsyncOpenAI, changed: dict[str, object], code: str, words: str
) -> None:
    with pytest.raises(openai.APIStatusError, match=words) as refused:
        await api.post("/chat/completions", body={"model": "groundwork", "messages": ASKED, **changed}, cast_to=object)
    assert refused.value.code == code
    assert refused.value.type in ("invalid_request_error", "not_found_error")


async def test_refusals_of_services_are_errors_that_clients_know(api: AsyncOpenAI, world: World) -> None:
    world.orchestrator.start_failure = ResourceExhausted("too many runs; ask again later", reason="TOO_MANY_RUNS")
    with pytest.raises(openai.RateLimitError, match="too many runs"):
        await api.chat.completions.create(model="groundwork", messages=ASKED, stream=True)  # type: ignore[arg-type]
    world.orchestrator.start_failure = InvalidArgument("no")
    with pytest.raises(openai.BadRequestError):
        await api.responses.create(model="groundwork", input="How long?")


async def test_failed_run_ends_its_stream_in_an_error(api: AsyncOpenAI, world: World) -> None:
    world.orchestrator.log = [
        *answered_run()[:1],
        event(2, error=run_pb.RunError(code="UNAVAILABLE", reason="LLM_DOWN", message="the model is away")),
        event(3, done=run_pb.Done(status=run_pb.RUN_STATUS_FAILED)),
    ]
    stream = await api.chat.completions.create(model="groundwork", messages=ASKED, stream=True)  # type: ignore[arg-type]
    with pytest.raises(openai.APIError, match="the model is away"):
        [each async for each in stream]


async def test_only_the_latest_messages_that_fit_are_handed_on(client: httpx.AsyncClient, world: World) -> None:
    said = [{"role": role, "content": f"{n}{'x' * 30_000}"} for n in range(4) for role in ("user", "assistant")]
    body = {"model": "groundwork", "messages": [*said, {"role": "user", "content": "And then?"}]}
    await client.post("/v1/chat/completions", json=body)
    (request,) = world.orchestrator.requests
    assert [each.text[0] for each in request.history] == ["2", "3", "3"]


async def test_what_changes_nothing_is_named(client: httpx.AsyncClient) -> None:
    body = {"model": "groundwork/research", "messages": ASKED, "temperature": 0.2, "logit_bias": {}, "user": "ann"}
    answer = await client.post("/v1/chat/completions", json=body)
    assert answer.headers["x-groundwork-ignored"] == "logit_bias, messages.system, user"


@pytest.mark.parametrize(
    ("path", "body", "field", "param"),
    [
        ("chat/completions", {"messages": ASKED}, "answer_schema", "response_format"),
        ("chat/completions", {"messages": ASKED}, "called", "messages"),
        ("responses", {"input": "How long?"}, "answer_schema", "text.format"),
        ("responses", {"input": "How long?"}, "called", "input"),
        ("responses", {"input": "How long?"}, "previous_run_id", "previous_response_id"),
    ],
)
async def test_error_of_a_service_names_the_parameter_that_the_client_has_sent(
    client: httpx.AsyncClient, world: World, path: str, body: dict[str, object], field: str, param: str
) -> None:
    world.orchestrator.start_failure = InvalidArgument("it is wrong", reason="INVALID_REQUEST", field=field)
    answer = await client.post(f"/v1/{path}", json={"model": "groundwork", **body})
    assert (answer.status_code, answer.json()["error"]["param"]) == (400, param)


@pytest.mark.parametrize(
    "changed",
    [
        {"input": [{"role": "user", "content": "Hi"}] * 1000, "instructions": "Be brief."},
        {
            "input": [
                {
                    "type": "function_call_output",
                    "call_id": "c1",
                    "output": [{"type": "input_text", "text": "x" * 60_000}] * 2,
                }
            ]
        },
        {"input": [{"role": "user", "content": [{"type": "input_image"}]}]},
        {"text": {"format": {"type": "xml"}}},
    ],
    ids=["too many", "too long together", "a picture", "an unknown format"],
)
async def test_refusals_of_responses_name_parameters_of_responses(
    client: httpx.AsyncClient, changed: dict[str, object]
) -> None:
    answer = await client.post("/v1/responses", json={"model": "groundwork", "input": "How long?", **changed})
    assert answer.status_code == 400, answer.text
    assert answer.json()["error"]["param"] in ("input", "text.format")


async def test_input_of_a_response_is_listed_in_pages(api: AsyncOpenAI, world: World) -> None:
    call = run_pb.FunctionCall(call_id="call1", name="weather", arguments="{}")
    world.orchestrator.input = [
        run_pb.HistoryMessage(role="user", text="How long?"),
        run_pb.HistoryMessage(role="assistant", text="I look.", calls=[call]),
        run_pb.HistoryMessage(role="tool", text="Rain.", call_id="call1"),
    ]
    items = [each async for each in api.responses.input_items.list(f"resp_{RUN_ID}", order="asc", limit=3)]
    assert [each.type for each in items] == ["message", "message", "function_call", "function_call_output"]
    newest_first = await api.responses.input_items.list(f"resp_{RUN_ID}")
    assert [each.id for each in newest_first.data] == [each.id for each in reversed(items)]
    assert not newest_first.has_more
    with pytest.raises(openai.NotFoundError, match="has no input item"):
        await api.responses.input_items.list(f"resp_{RUN_ID}", after=f"msg_{RUN_ID}_in9")


async def test_response_is_cancelled(api: AsyncOpenAI, world: World) -> None:
    stopped = await api.responses.cancel(f"resp_{RUN_ID}")
    assert (stopped.id, world.orchestrator.cancelled) == (f"resp_{RUN_ID}", [RUN_ID])


async def test_stored_response_is_not_streamed(api: AsyncOpenAI) -> None:
    with pytest.raises(openai.BadRequestError, match="/events"):
        await api.responses.retrieve(f"resp_{RUN_ID}", stream=True)
