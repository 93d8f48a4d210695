"""What the OpenAPI document says of a request is what is enforced: for each parameter and each member of a body, values on either
side of its bounds are sent, and the answer agrees with the schema. Behind the gateway stand the services' own checks."""

import copy
import json
import re
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import httpx
import pytest
from google.protobuf.duration_pb2 import Duration
from groundwork.ingest.v1 import ingest_pb2
from groundwork.memory.v1 import memory_pb2
from jsonschema import Draft202012Validator, validators
from jsonschema.exceptions import ValidationError

from kit.errors import Internal
from kit.jetstream import Nats
from services.ingest.documents.uploads import naming
from services.memory import threads
from services.orchestrator import handlers as orchestrator
from services.orchestrator.modes.serving import Modes, discover_modes
from services.orchestrator.runs import approvals, requests
from services.orchestrator.settings import OrchestratorSettings
from services.retriever import validation
from services.retriever.adapters import search_wire
from tests.service.gateway.conftest import Settings, World, in_process
from tests.service.gateway.fakes import (
    APPROVAL_ID,
    ARGUMENTS_HASH,
    FACT_ID,
    RUN_ID,
    FakeIngest,
    FakeMemory,
    FakeOrchestrator,
    FakeRetriever,
    document,
)
from tests.service.gateway.key_desk import KeyDesk
from tests.unit.orchestrator.serving import mode_services

PATHS = {
    "collection_id": "contracts",
    "document_id": "d0000001",
    "run_id": RUN_ID,
    "response_id": f"resp_{RUN_ID}",
    "approval_id": APPROVAL_ID,
    "thread_id": "0123456789ab",
    "quiz_id": RUN_ID,
    "fact_id": FACT_ID,
    "chunk_id": "c1",
    "server": "crm",
    "tool": "find",
    "service": "github",
    "dead_letter_id": "1e000001",
    "source_id": "5d0c7be9f2c1",
    "file_id": "f11e0001",
    "vector_store_id": "contracts",
    "batch_id": f"vsfb_{'b' * 32}",
    "operation": "answer",
    "name": "research",
    "key_id": "0" * 24,
    "whose": "subject:*",
}
QUERIES = {("DELETE", "/v1/collections/{collection_id}/members"): {"kind": "group", "name": "sales"}}
"""Parameters without which an operation is refused."""
BODIES: dict[str, dict[str, Any]] = {
    "RunInput": {"text": "The plant in Leeds"},
    "FactChange": {"text": "Likes coffee."},
    "MemoryPause": {"paused": True},
    "MemoryQuery": {"query": "tea"},
    "MemoryForgetting": {"text": "tea"},
    "NewToolServer": {"url": "https://mcp.example.com/mcp", "headers": {"Authorization": "Bearer 1"}},
    "NewToolServerLogin": {"scope": "crm"},
    "ToolServerLoginAnswer": {"state": "crm.1", "code": "c1", "iss": "https://login.example.com"},
    "ToolApproval": {"digest": "ab" * 32, "reads_only": True},
    "SearchRequest": {"query": "notice"},
    "QaRequest": {"question": "How long?"},
    "ResearchRequest": {"question": "How long?"},
    "ChatRequest": {"message": "How long?"},
    "ExtractRequest": {"schema": {"type": "object", "properties": {"total": {"type": "number"}}}},
    "ToolChatRequest": {"message": "How long?"},
    "ChangedCollection": {"name": "Contracts", "visibility": "tenant"},
    "NewCollection": {"id": "contracts"},
    "NewDocumentAccess": {"groups": ["sales"]},
    "NewCollectionMember": {"kind": "group", "name": "sales", "role": "viewer"},
    "NewThread": {},
    "ThreadTitle": {"title": "Notice"},
    "RequeueMany": {},
    "NewSource": {"kind": "folder", "settings": {"folder": "contracts"}},
    "ChangedSource": {"paused": True},
    "SourceRun": {},
    "EmbeddingChange": {"model": "new-model"},
    "EvaluationOrder": {},
    "EmbeddingSwap": {},
    "NewToolConnection": {"secret": "github_pat_1"},
    "NewConnectionLogin": {},
    "WaitingConnectionLogin": {"login": "waiting"},
    "AgentSwitch": {"enabled": False},
    "NewLimits": {"limits": [{"what": "tokens", "amount": 1000, "per": "hour"}]},
    "GivenAnswers": {"answers": [{"question_id": "q1", "given": "B"}]},
    "ModelChoice": {"provider": "gpu", "model": "qwen"},
    "ApiKeyChange": {"memory": "off"},
    "NewApiKey": {"name": "Laptop", "scopes": ["query"]},
    "Rotation": {},
    "ChatCompletionRequest": {"model": "groundwork", "messages": [{"role": "user", "content": "How long?"}]},
    "ResponsesRequest": {"model": "groundwork", "input": "How long?"},
    "NewVectorStore": {"name": "Contracts"},
    "ChangedVectorStore": {"name": "Contracts"},
    "NewStoreFile": {"file_id": "d0000001"},
    "ChangedStoreFile": {"attributes": {"year": "2026"}},
    "NewFileBatch": {"file_ids": ["d0000001"]},
    "StoreSearch": {"query": "notice"},
    "EmbeddingsRequest": {"model": "groundwork/embedding", "input": "Notice"},
    "ApprovalChoice": {"decision": "allow", "arguments_hash": ARGUMENTS_HASH},
}
"""A small body of each kind that is accepted; members are replaced one at a time."""

OPEN_BODIES = {
    "ChatCompletionRequest",
    "ResponsesRequest",
    "NewVectorStore",
    "ChangedVectorStore",
    "NewStoreFile",
    "ChangedStoreFile",
    "NewFileBatch",
    "StoreSearch",
    "EmbeddingsRequest",
}
"""Bodies of OpenAI's API: what is not known in them is named in a header, and no error."""

NOT_IN_SCHEMA = {
    ("SearchRequest", "queries"),  # with `query` eight at most
    ("SearchRequest", "query_weights"),  # as many as queries
    ("SearchRequest", "must"),  # a phrase of words
    ("ChatRequest", "agent"),  # one of those that are listed
    ("ChatRequest", "mode"),  # the same
    ("ExtractRequest", "schema"),  # of an object with fields
    ("FactChange", "text"),  # something changes
    *(("MemoryForgetting", name) for name in ("fact_ids", "text", "thread_id", "everything")),  # one of the four
    *(
        ("ChatCompletionRequest", name)
        for name in ("model", "messages", "tools", "n", "response_format", "tool_choice")
    ),  # one answer, functions and schemas of objects
    *(("ChatCompletionRequest", name) for name in ("modalities", "audio", "functions", "function_call")),  # not offered
    *(
        ("NewFileBatch", name) for name in ("file_ids", "files", "attributes")
    ),  # one of the first two, attributes of some length
    ("NewVectorStore", "file_ids"),  # files that are there
    ("NewStoreFile", "file_id"),  # the same
    ("StoreSearch", "filters"),  # what the index can do
    *(("EmbeddingsRequest", name) for name in ("model", "input", "dimensions")),  # one that is there, and texts
    *(
        ("ResponsesRequest", name)
        for name in ("model", "input", "tools", "text", "tool_choice", "background", "conversation", "prompt")
    ),  # the same
}
"""Members whose accepted values are refused in combination with others: only what the schema refuses is tried."""


class CheckedIngest(FakeIngest):
    async def CreateCollection(self, request: Any, context: Any) -> ingest_pb2.CreateCollectionResponse:
        naming.collection_id(request.collection_id or naming.collection_id_from(request.name))
        return await super().CreateCollection(request, context)

    async def GetCollection(self, request: Any, context: Any) -> ingest_pb2.GetCollectionResponse:
        naming.collection_id(request.collection_id)
        return await super().GetCollection(request, context)

    def _known(self, document_id: str) -> ingest_pb2.Document:
        _must_be_one(naming.is_document_id(document_id))
        return super()._known(document_id)

    async def RequeueDeadLetter(self, request: Any, context: Any) -> Any:
        _must_be_one(naming.is_document_id(request.dead_letter_id))
        return await super().RequeueDeadLetter(request, context)

    def _source(self, request: Any) -> ingest_pb2.Source:
        _must_be_one(naming.is_document_id(request.source_id))
        return super()._source(request)

    async def DeleteSource(self, request: Any, context: Any) -> ingest_pb2.DeleteSourceResponse:
        self._source(request)
        return ingest_pb2.DeleteSourceResponse()


class CheckedMemory(FakeMemory):
    async def GetThread(self, request: Any, context: Any) -> memory_pb2.GetThreadResponse:
        _must_be_one(threads._THREAD_ID.fullmatch(request.thread_id))
        return await super().GetThread(request, context)


class CheckedRetriever(FakeRetriever):
    async def Search(self, request: Any, context: Any) -> Any:
        validation.check_search(search_wire.search_request(request, "local"))
        return await super().Search(request, context)

    async def FetchChunks(self, request: Any, context: Any) -> Any:
        if not request.document_id:
            validation.check_fetch(list(request.chunk_ids), request.window)
        return await super().FetchChunks(request, context)


class CheckedOrchestrator(FakeOrchestrator):
    @cached_property
    def modes(self) -> Modes:
        return discover_modes(mode_services(), OrchestratorSettings())

    async def StartRun(self, request: Any, context: Any) -> AsyncIterator[Any]:
        requests.check(orchestrator._request(request, self.modes), self.modes)
        async for each in super().StartRun(request, context):
            yield each

    def _run(self, run_id: str) -> Any:
        """With an answer, of which a report can be made."""
        run = super()._run(run_id)
        run.answer.text = "Six weeks."
        return run

    async def GetRun(self, request: Any, context: Any) -> Any:
        _must_be_one(orchestrator._RUN_ID.fullmatch(request.run_id))
        return await super().GetRun(request, context)

    async def ResolveApproval(self, request: Any, context: Any) -> Any:
        _must_be_one(approvals._ID.fullmatch(request.approval_id))
        return await super().ResolveApproval(request, context)


def reason_of(body: Any) -> str:
    """The reason of a refusal, also in OpenAI's shape."""
    return str(body.get("reason") or body["error"]["code"].upper())


def _must_be_one(is_one: object) -> None:
    """What a service finds to be no id at all has not got past the gateway. Raises Internal, which no test expects."""
    if not is_one:
        raise Internal("the gateway passed on what is no id")


@pytest.fixture
async def world() -> AsyncIterator[World]:
    world = World(
        ingest=CheckedIngest(), retriever=CheckedRetriever(), memory=CheckedMemory(), orchestrator=CheckedOrchestrator()
    )
    world.ingest.documents = {
        "d0000001": document(
            "d0000001",
            status=ingest_pb2.DOCUMENT_STATUS_READY,
        ),
        PATHS["file_id"]: document(PATHS["file_id"], copies={PATHS["vector_store_id"]: "c0d10001"}),
        "c0d10001": document("c0d10001", copy_of=PATHS["file_id"], batch=PATHS["batch_id"]),
    }
    world.ingest.files = {"d0000001": b"text", PATHS["file_id"]: b"text"}
    world.ingest.sources = {
        "5d0c7be9f2c1": ingest_pb2.Source(source_id="5d0c7be9f2c1", every=Duration(seconds=900), state=1)
    }
    world.ingest.dead_letters = {"1e000001": ingest_pb2.DeadLetter(dead_letter_id="1e000001", document_id="d0000001")}
    await world.start()
    yield world
    await world.kill()


@pytest.fixture
async def client(settings: Settings, world: World, nats_url: str, jetstream: Nats) -> AsyncIterator[httpx.AsyncClient]:
    """An operator's, of a gateway that asks for keys."""
    desk = await KeyDesk.open(jetstream)
    operator = await desk.issue()
    await desk.issue(key_id=PATHS["key_id"])
    async with in_process(settings(auth="api_keys", nats_url=nats_url), key=operator) as client:
        yield client


@dataclass(frozen=True)
class Operation:
    """One method of one path."""

    method: str
    path: str
    parameters: list[dict[str, Any]] = field(default_factory=list)
    body: str | None = None
    """Name of the body's schema."""

    async def ask(self, client: httpx.AsyncClient, body: object = None, **changes: str) -> httpx.Response:
        """A request that is accepted, with these changes."""
        names = {parameter["name"]: parameter["in"] for parameter in self.parameters}
        headers = {name: value for name, value in changes.items() if names[name] == "header"}
        query = QUERIES.get((self.method, self.path), {}) | {
            name: value for name, value in changes.items() if names[name] == "query"
        }
        values = {**PATHS, **{name: value for name, value in changes.items() if names[name] == "path"}}
        path = re.sub(r"{(\w+)}", lambda match: _quoted(values[match[1]]), self.path)
        content = None if self.body is None else json.dumps(BODIES[self.body] if body is None else body)
        if content is not None:
            headers["Content-Type"] = "application/json"
        return await client.request(self.method, path, params=query, headers=headers, content=content)


def _quoted(value: str) -> str:
    return "".join(f"%{byte:02X}" for byte in value.encode())


def operations(openapi: dict[str, Any], *, streams: bool = False) -> Iterator[Operation]:
    """All but uploads, and but the stream that does not end unless `streams`. Guests come in only where keys are asked for:
    tests/service/gateway/guests asks their routes."""
    for path, methods in openapi["paths"].items():
        if path.startswith("/guests"):
            continue
        for method, each in methods.items():
            content = each.get("requestBody", {}).get("content", {})
            if "multipart/form-data" in content or (path == "/v1/events" and not streams):
                continue
            schema = content.get("application/json", {}).get("schema", {})
            body = schema.get("$ref") or next((one["$ref"] for one in schema.get("anyOf", []) if "$ref" in one), None)
            yield Operation(method.upper(), path, each.get("parameters", []), body and body.rpartition("/")[2])


def _pattern(_: Any, pattern: str, text: Any, __: Any) -> Iterator[ValidationError]:
    """As ECMA-262 has it, where `$` does not match before a line break at the end."""
    ecma = pattern.removesuffix("$") + r"\Z" if pattern.endswith("$") else pattern
    if isinstance(text, str) and not re.search(ecma, text):
        yield ValidationError(f"{text!r} does not match {pattern!r}")


Validator = validators.extend(Draft202012Validator, {"pattern": _pattern})


def is_valid(value: object, schema: dict[str, Any], openapi: dict[str, Any]) -> bool:
    return bool(Validator({**schema, "components": openapi["components"]}).is_valid(value))


def resolved(schema: dict[str, Any], openapi: dict[str, Any]) -> list[dict[str, Any]]:
    """The schema's alternatives, references followed."""
    if "$ref" in schema:
        return resolved(openapi["components"]["schemas"][schema["$ref"].rpartition("/")[2]], openapi)
    if "anyOf" in schema:
        return [each for one in schema["anyOf"] for each in resolved(one, openapi)]
    return [schema]


_TEXTS = ("", " ", "a b", "a\n", "\na", "contracts\n", "A", "ä", "*", "../x", "a" * 32, "a" * 64, "a" * 65, "a" * 300)
_NO_NUMBERS = ("1_0", "+1", " 1", "1 ", "1.0", "1e1", "0x1", "\u0661", "1\n")
"""What Python takes for a whole number, or might."""


def candidates(schema: dict[str, Any], openapi: dict[str, Any]) -> Iterator[Any]:
    """Values around the bounds of a schema, on both sides, and of other types."""
    yield from (None, True, 0, 1, "1", "true", 0.5, "a", [], {}, [None], {"unknown": 1})
    yield from schema.get("examples", [])
    for each in resolved(schema, openapi):
        yield from each.get("enum", [])
        yield from ([each["const"]] if "const" in each else [])
        match each.get("type"):
            case "integer" | "number":
                yield from (value for _, value in around(each, "minimum", "maximum"))
            case "string":
                yield from _TEXTS
                yield from ("a" * max(0, length) for _, length in around(each, "minLength", "maxLength"))
            case "array":
                yield from arrays(each, openapi)
            case "object":
                yield from objects(each, openapi)


def around(schema: dict[str, Any], least: str, most: str) -> Iterator[tuple[str, Any]]:
    """The bounds, and one beyond each."""
    for name, step in ((least, -1), (most, 1)):
        if name in schema:
            yield from ((name, schema[name]), (name, schema[name] + step))


def arrays(schema: dict[str, Any], openapi: dict[str, Any]) -> Iterator[list[Any]]:
    items = schema["items"]
    inside = next(one for one in candidates(items, openapi) if is_valid(one, items, openapi))
    yield from ([one] for one in candidates(items, openapi))
    yield from ([inside] * max(0, count) for _, count in around(schema, "minItems", "maxItems"))


def objects(schema: dict[str, Any], openapi: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Objects with one member each that is tried, and for a map with keys and sizes around the bounds."""
    members = schema.get("properties", {})
    required = {name: _accepted(members[name], openapi) for name in schema.get("required", [])}
    for name, member in members.items():
        yield from ({**required, name: value} for value in candidates(member, openapi))
        yield {key: value for key, value in required.items() if key != name}
    if isinstance(values := schema.get("additionalProperties"), dict):
        yield from ({"year": value} for value in candidates(values, openapi))
        keys = schema.get("propertyNames", {})
        yield from ({"k" * length: "v"} for length in (0, 1, keys["maxLength"], keys["maxLength"] + 1))
        most = schema["maxProperties"]
        yield from ({f"k{n}": "v" for n in range(count)} for count in (most, most + 1))


def _accepted(schema: dict[str, Any], openapi: dict[str, Any]) -> Any:
    found = [each for each in candidates(schema, openapi) if is_valid(each, schema, openapi)]
    return next(each for each in reversed(found) if each)


async def test_each_request_that_is_changed_from_here_on_is_accepted(client: httpx.AsyncClient) -> None:
    openapi = (await client.get("/openapi.json")).json()
    found = list(operations(openapi))
    assert len(found) >= 25
    assert {each.body for each in found if each.body} == BODIES.keys()
    for each in sorted(found, key=lambda each: len(each.path) if each.method == "DELETE" else 1000, reverse=True):
        assert (await each.ask(client)).status_code < 300, each


async def test_each_member_of_a_body_is_accepted_and_refused_as_the_schema_says(client: httpx.AsyncClient) -> None:
    openapi = (await client.get("/openapi.json")).json()
    wrong, tried = [], {True: 0, False: 0}
    for each in operations(openapi):
        if each.body is None:
            continue
        schema = openapi["components"]["schemas"][each.body]
        for name, member in schema["properties"].items():
            for value in candidates(member, openapi):
                body = {**copy.deepcopy(BODIES[each.body]), name: value}
                allowed = is_valid(body, schema, openapi)
                if allowed and (each.body, name) in NOT_IN_SCHEMA:
                    continue
                answer = await each.ask(client, body)
                tried[allowed] += 1
                if not _agrees(answer, allowed=allowed):
                    wrong.append((each.path, name, repr(value)[:80], allowed, answer.status_code, answer.text[:200]))
    assert not wrong, "\n".join(map(str, wrong))
    assert min(tried.values()) > 100, tried


async def test_each_body_is_refused_without_what_it_needs_and_with_what_it_does_not_know(
    client: httpx.AsyncClient,
) -> None:
    openapi = (await client.get("/openapi.json")).json()
    for each in operations(openapi):
        if each.body is None:
            continue
        schema = openapi["components"]["schemas"][each.body]
        is_open = each.body in OPEN_BODIES
        assert schema["additionalProperties"] is is_open, each.body
        whole = BODIES[each.body]
        bodies: list[object] = [*([] if is_open else [{**whole, "unknown": 1}]), [], "text", 1, True]
        bodies += [{key: whole[key] for key in whole.keys() - {name}} for name in schema.get("required", [])]
        bodies += [{}] if "anyOf" in schema else []
        for body in bodies:
            assert not is_valid(body, schema, openapi)
            assert (await each.ask(client, body)).status_code == 400, (each.path, body)


async def test_each_parameter_is_accepted_and_refused_as_its_schema_says(client: httpx.AsyncClient) -> None:
    openapi = (await client.get("/openapi.json")).json()
    wrong, tried = [], {True: 0, False: 0}
    for each in operations(openapi):
        for parameter in each.parameters:
            name, schema = parameter["name"], parameter["schema"]
            for value in (*candidates(schema, openapi), *_NO_NUMBERS):
                text = _as_text(value, parameter["in"])
                if text is None:
                    continue
                allowed = any(is_valid(one, schema, openapi) for one in _readings(text))
                answer = await each.ask(client, **{name: text})
                tried[allowed] += 1
                if not _agrees(answer, allowed=allowed, is_parameter=True):
                    wrong.append((each.path, name, repr(text)[:80], allowed, answer.status_code, answer.text[:200]))
    assert not wrong, "\n".join(map(str, wrong))
    assert min(tried.values()) > 100, tried


def _as_text(value: object, place: str) -> str | None:
    """The value as it can be written there; None where it cannot be."""
    if isinstance(value, (list, dict)) or value is None:
        return None
    text = value if isinstance(value, str) else json.dumps(value)
    cannot = (place == "path" and text in ("", "../x")) or (place == "header" and not re.fullmatch(r"[!-~]+", text))
    return None if cannot else text


def _readings(text: str) -> Iterator[Any]:
    """A parameter is a text, a number or a flag where it looks like one, or one value of a list."""
    yield text
    yield [text]
    if text in ("true", "false"):
        yield text == "true"
    if re.fullmatch(r"-?[0-9]+", text):
        yield int(text)


def _agrees(answer: httpx.Response, *, allowed: bool, is_parameter: bool = False) -> bool:
    """An id that is well-formed may be unknown, and an idempotency key spent; a path that ends with a line break is nobody's."""
    if allowed:
        return answer.status_code < 300 or (is_parameter and answer.status_code in {404, 409})
    ends_with_line_break = answer.request.url.path.endswith("\n")
    return answer.status_code == (404 if ends_with_line_break else 400)


async def test_bounds_are_written_in_the_words_of_json_schema(client: httpx.AsyncClient) -> None:
    document = (await client.get("/openapi.json")).text
    Draft202012Validator.check_schema(json.loads(document)["components"]["schemas"]["SearchRequest"])
    assert not re.search(r'"(?:ge|gt|le|lt|min_length|max_length)":', document)


async def test_names_of_agents_and_modes_are_known_by_the_orchestrator_alone(client: httpx.AsyncClient) -> None:
    schemas = (await client.get("/openapi.json")).json()["components"]["schemas"]
    assert schemas["ChatRequest"]["properties"]["mode"]["default"] == "grounded"
    del schemas["ResponsesRequest"]  # has a member `reasoning`, as OpenAI's API does
    assert not [name for name in ("chat", "qa", "reasoning") if f'"{name}"' in json.dumps(schemas)]


@pytest.mark.parametrize("path", ["/v1/qa", "/v1/search", "/v1/collections/default/chat"])
async def test_thousand_long_ids_are_refused_by_name(client: httpx.AsyncClient, world: World, path: str) -> None:
    for ids in (["ü" * 150 + str(n) for n in range(1000)], ["a" * 296 + f"{n:04}" for n in range(1000)]):
        body = {"/v1/qa": {"question": "q"}, "/v1/search": {"query": "q"}}.get(path, {"message": "q"})
        filters = {"filters": {"document_ids": ids}} if path == "/v1/search" else {"document_ids": ids}
        answer = await client.post(path, json={**body, **filters})
        assert (answer.status_code, reason_of(answer.json())) == (400, "VALIDATION_FAILED")
        assert len(answer.content) < 16_000
