"""Every method of every service that takes an id, asked by strangers for what is Ann's: they are told what they would be told of an
id that nothing has, and Ann has everything as before. Which field holds which kind of id is told by the descriptors, so that a new
method or field is tried too, or this fails and says what to add."""

import itertools
import json
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import pytest
from google.protobuf import json_format
from google.protobuf.descriptor import Descriptor, FieldDescriptor, MethodDescriptor
from google.protobuf.message import Message
from groundwork.common.v1 import common_pb2
from groundwork.ingest.v1 import ingest_pb2
from groundwork.memory.v1 import memory_pb2
from groundwork.orchestrator.v1 import orchestrator_pb2
from groundwork.retriever.v1 import retriever_pb2
from groundwork.tools.v1 import tools_pb2, tools_pb2_grpc

from kit.access.principal import ADMIN, INGEST, QUERY, Principal, use_principal
from kit.access.scopes import scope_of
from kit.errors import GroundworkError
from tests.service.access.contracts import call_name, methods, path_of, request_class, stub_of
from tests.service.access.kinds import STRANGERS, UNKNOWN, Stranger, kind_of, masked, without_progress
from tests.service.access.world import ANN, SECRET, TIMEOUT_S, World, upload_parts

pytestmark = pytest.mark.asyncio(loop_scope="module")

FAKES = {"reranker"}
"""Rooms that a double stands for here. None of their methods takes an id of anything that belongs to somebody."""

OF_TENANTS = {"retriever", "tools", "store", "ingest"}
"""Rooms in which what only services call names a tenant and no subject: services ask for all subjects."""

_NEW = itertools.count()
"""For names that nothing has yet."""

BASES: dict[str, Callable[[], dict[str, Any]]] = {
    "ingest/CreateCollection": lambda: {"collection_id": f"new-{next(_NEW)}"},
    "ingest/UpdateCollection": lambda: {"name": "Mine"},
    "ingest/SetCollectionMember": lambda: {
        "member": {"kind": "COLLECTION_MEMBER_KIND_SUBJECT", "name": "eve", "role": "COLLECTION_ROLE_OWNER"}
    },
    "ingest/RemoveCollectionMember": lambda: {"kind": "COLLECTION_MEMBER_KIND_SUBJECT", "name": "ann"},
    "ingest/CreateSource": lambda: {"kind": "feed", "settings": {"url": "http://127.0.0.1:9/feed.xml"}},
    "ingest/IndexSourceFile": lambda: {"path": "spare-1/plan.md"},
    "memory/RenameThread": lambda: {"title": "Mine"},
    "memory/AppendMessages": lambda: {"messages": [{"message_id": "m1", "role": "ROLE_USER", "text": "Hello"}]},
    "orchestrator/StartRun": lambda: {"mode": "RUN_MODE_QA", "question": "What is planned?"},
    "orchestrator/ResolveApproval": lambda: {"decision": "APPROVAL_DECISION_ALLOWED"},
    "orchestrator/AnswerInput": lambda: {"text": "The new one"},
    "retriever/Search": lambda: {"queries": ["plan"]},
    "retriever/ActivateRevision": lambda: {"document_id": "d1", "collection_id": "default", "revision_id": "r1"},
    "retriever/FetchVectors": lambda: {"embedding_model": "fake-model"},
    "tools/CallTool": lambda: {"name": "rag_search", "arguments": {"query": "plan"}},
}
"""What else a request has to say to be taken seriously, as JSON."""


@dataclass(frozen=True)
class Place:
    """A field of a request that holds an id."""

    method: MethodDescriptor
    path: tuple[str, ...]
    kind: str

    def __str__(self) -> str:
        return f"{call_name(self.method)}:{'.'.join(self.path)}"

    @property
    def room(self) -> str:
        return call_name(self.method).partition("/")[0]

    @property
    def is_internal(self) -> bool:
        return scope_of(path_of(self.method)) is None


def _leaves(message: Descriptor, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Paths of all fields that hold text."""
    for each in message.fields:
        if each.message_type is not None and not each.message_type.full_name.startswith("google."):
            yield from _leaves(each.message_type, (*path, each.name))
        elif each.type in (FieldDescriptor.TYPE_STRING, FieldDescriptor.TYPE_BYTES):
            yield *path, each.name


def places() -> list[Place]:
    """All fields of all requests that hold an id."""
    return [
        Place(method, path, kind)
        for method in methods()
        for path in _leaves(method.input_type)
        if (kind := kind_of(path[-1])) and call_name(method).partition("/")[0] not in FAKES
    ]


def concerns(place: Place, stranger: Stranger) -> bool:
    """Whether the stranger is one at this place."""
    of_tenant = stranger.principal.tenant_id == ANN.tenant_id and place.is_internal and place.room in OF_TENANTS
    return not of_tenant and not stranger.may_know(place.kind, str(place))


def put(message: Message, path: tuple[str, ...], value: str) -> None:
    """Sets the field at `path`; of a repeated one its first entry."""
    name, *rest = path
    inner = getattr(message, name)
    is_repeated = message.DESCRIPTOR.fields_by_name[name].is_repeated
    if rest:
        if is_repeated:
            inner = inner[0] if inner else inner.add()
        put(inner, tuple(rest), value)
    elif is_repeated:
        del inner[:]
        inner.append(value)
    else:
        setattr(message, name, value)


def request_of(place: Place, value: str, world: World, beside: Mapping[tuple[str, ...], str]) -> Any:
    """A request that is complete but for being a stranger's. `beside` are ids at other places of it."""
    name = call_name(place.method)
    if name == "ingest/UploadDocument":
        parts = upload_parts("default", f"{next(_NEW)}.md", b"# Mine\n\nNothing.")
        put(parts[0], place.path, value)
        return iter(parts)
    message = request_class(place.method)()
    json_format.ParseDict(BASES.get(name, dict)(), message)
    if name == "retriever/FetchChunks" and place.kind == "document":
        message.chunk_count = 1
    if place.kind == "approval":
        message.arguments_hash = world.things.arguments_hash
    for path, id_ in ({**beside, place.path: value}).items():
        put(message, path, id_)
    return iter([message]) if place.method.client_streaming else message


async def told(
    world: World, place: Place, value: str, beside: Mapping[tuple[str, ...], str] = MappingProxyType({})
) -> str:
    """All that the caller is told, as text."""
    stub = stub_of(world.channels[place.room], place.method)
    answer = getattr(stub, place.method.name)(request_of(place, value, world, beside), timeout=TIMEOUT_S)
    try:
        if not place.method.server_streaming:
            return json.dumps(without_progress(json.loads(_text(await answer))), ensure_ascii=False)
        return "\n".join([_text(each) async for each in _to_the_end(answer)])
    except GroundworkError as error:
        return f"{error.code.name} {error.reason} {error.message} {error.metadata}"


async def _to_the_end(answers: Any) -> AsyncIterator[Message]:
    """Of a watch, which has none, the present state; of a run what came out."""
    async with aclosing(answers) as stream:
        async for each in stream:
            if getattr(each, "snapshot_complete", False):
                return
            if not hasattr(each, "event") or each.event.WhichOneof("payload") in ("answer", "error", "done"):
                yield each


def _text(message: Message) -> str:
    return json_format.MessageToJson(message, preserving_proto_field_name=True, sort_keys=True)


async def _state(world: World) -> dict[str, str]:
    """All that Ann can see."""
    ids, found = world.things.ids, {}
    page = common_pb2.PageRequest(page_size=100)
    asked: list[tuple[str, str, Message]] = [
        ("ingest", "ListCollections", ingest_pb2.ListCollectionsRequest()),
        ("ingest", "GetCollection", ingest_pb2.GetCollectionRequest(collection_id=ids["collection"])),
        ("ingest", "ListDocuments", ingest_pb2.ListDocumentsRequest(collection_id=ids["collection"], page=page)),
        ("ingest", "GetDocument", ingest_pb2.GetDocumentRequest(document_id=ids["document"])),
        ("ingest", "ListDeadLetters", ingest_pb2.ListDeadLettersRequest(page=page)),
        ("memory", "ListThreads", memory_pb2.ListThreadsRequest(page=page)),
        ("memory", "GetHistory", memory_pb2.GetHistoryRequest(thread_id=ids["thread"], limit=100)),
        ("memory", "ListFacts", memory_pb2.ListFactsRequest(with_past=True)),
        ("orchestrator", "ListRuns", orchestrator_pb2.ListRunsRequest(page=page)),
        ("orchestrator", "GetRun", orchestrator_pb2.GetRunRequest(run_id=ids["run"])),
        ("orchestrator", "GetRun", orchestrator_pb2.GetRunRequest(run_id=ids["waiting run"])),
        ("orchestrator", "ListApprovals", orchestrator_pb2.ListApprovalsRequest(page=page)),
        ("orchestrator", "GetUsage", orchestrator_pb2.GetUsageRequest()),
        ("retriever", "FetchChunks", retriever_pb2.FetchChunksRequest(chunk_ids=[ids["chunk"]])),
    ]
    for room, name, request in asked:
        answer = await getattr(world.stub(room), name)(request, timeout=TIMEOUT_S)
        found[f"{name} {request}"] = _text(answer)
    return found


async def test_each_kind_of_id_is_known_and_tried() -> None:
    kinds = {place.kind for place in places()}
    assert kinds == {*UNKNOWN, "page token"} - {"tenant", "api key", "response"}  # of HTTP alone


@pytest.mark.parametrize("stranger", STRANGERS, ids=lambda stranger: stranger.name)
async def test_stranger_is_told_of_ids_of_others_what_is_told_of_ids_of_nothing(
    world: World, stranger: Stranger
) -> None:
    with use_principal(ANN):
        before = await _state(world)
    wrong: list[str] = []
    tried = [place for place in places() if concerns(place, stranger)]
    for place in tried:
        with use_principal(stranger.principal):
            wrong += await _difference(world, place)
    assert not wrong, "\n\n".join(wrong)
    with use_principal(ANN):
        assert await _state(world) == before
    assert len(tried) > 20


async def _difference(world: World, place: Place) -> list[str]:
    """What gives away that Ann's thing exists, if anything."""
    if place.kind == "page token":
        token = world.things.page_tokens.get(place.method.name, "")
        return _leaks(world, place, token, await told(world, place, token)) if token else []
    theirs, nobodys = _id(world, place), UNKNOWN[place.kind]
    of_theirs, of_nobodys = await told(world, place, theirs), await told(world, place, nobodys)
    leaks = _leaks(world, place, theirs, of_theirs)
    if masked(of_theirs, theirs) != masked(of_nobodys, nobodys):
        leaks.append(f"{place}: of Ann's\n  {of_theirs}\nof nobody's\n  {of_nobodys}")
    return leaks


def _id(world: World, place: Place) -> str:
    ids = {**world.things.ids, "subject": ANN.subject, "call": f"{world.things.ids['waiting run']}/step1/call1"}
    return ids[place.kind]


def _leaks(world: World, place: Place, asked_for: str, answer: str) -> list[str]:
    """Ann's ids and words, but for the one that was asked for."""
    rest = answer.replace(asked_for, "")
    told_of = [kind for kind, id_ in world.things.ids.items() if id_ in rest]
    return [f"{place} tells of {told_of}: {answer}"] if told_of or SECRET in rest else []


async def test_administrator_of_the_tenant_sees_what_is_anns(world: World) -> None:
    ids = world.things.ids
    with use_principal(Principal(ANN.tenant_id, "root", frozenset({ADMIN}))):
        for room, name, request in (
            ("ingest", "GetCollection", ingest_pb2.GetCollectionRequest(collection_id=ids["collection"])),
            ("ingest", "GetDocument", ingest_pb2.GetDocumentRequest(document_id=ids["document"])),
            ("ingest", "ListDeadLetters", ingest_pb2.ListDeadLettersRequest()),
            ("orchestrator", "GetRun", orchestrator_pb2.GetRunRequest(run_id=ids["run"])),
            ("orchestrator", "ListApprovals", orchestrator_pb2.ListApprovalsRequest()),
            ("orchestrator", "GetUsage", orchestrator_pb2.GetUsageRequest(subject=ANN.subject, group_by="subject")),
            ("retriever", "FetchChunks", retriever_pb2.FetchChunksRequest(chunk_ids=[ids["chunk"]])),
        ):
            answer = _text(await getattr(world.stub(room), name)(request, timeout=TIMEOUT_S))
            assert SECRET in answer or ANN.subject in answer, (name, answer)


@pytest.mark.parametrize(("scopes", "is_offered"), [({QUERY}, False), ({QUERY, INGEST}, True)])
async def test_tool_that_changes_documents_is_for_callers_who_may_themselves(
    world: World, scopes: set[str], is_offered: bool
) -> None:
    with use_principal(Principal("acme", "carol", frozenset(scopes))):
        request = orchestrator_pb2.ListToolsRequest()
        offered = (await world.stub("orchestrator").ListTools(request, timeout=TIMEOUT_S)).tools
        call = tools_pb2.CallToolRequest(name="rag_forget", call_id="run/1")
        call.arguments.update({"document": "nothing.md"})
        stub = tools_pb2_grpc.ToolsServiceStub(world.channels["tools"])
        (result,) = [each.result async for each in stub.CallTool(call, timeout=TIMEOUT_S) if each.HasField("result")]
    names = {tool.name for tool in offered}
    assert "search" in names
    assert ({"rag_index", "rag_forget"} <= names) is is_offered
    assert (result.error_reason == "SCOPE_MISSING") is not is_offered
