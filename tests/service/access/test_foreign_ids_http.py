"""Every operation of the HTTP interface that takes an id, asked by strangers for what is Ann's: status, headers and body are
those of an id that nothing has, and Ann has everything as before. Which parameter or member holds which kind of id is told by the
OpenAPI document, so that a new one is tried too, or this fails and says what to add."""

import asyncio
import itertools
import json
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, unquote

import httpx
import pytest
import pytest_asyncio

from kit.principal import Principal
from services.gateway.api import create_api
from services.gateway.backends import Backends, open_backends
from services.gateway.settings import GatewaySettings
from tests.service.access.kinds import STRANGERS, UNKNOWN, Stranger, kind_of, masked
from tests.service.access.world import ANN, SECRET, World
from tests.service.gateway.conftest import act_as, over_http
from tests.service.gateway.test_openapi_enforced import BODIES, PATHS, resolved

pytestmark = pytest.mark.asyncio(loop_scope="module")

_NEW = itertools.count()
"""For names that nothing has yet."""
_OWN_HEADERS = {"date", "x-trace-id", "content-length", "server"}
"""Headers that differ between any two answers, or follow from the body."""
_ENDLESS = "/v1/events"
_UPLOAD = "/v1/collections/{collection_id}/documents"


@dataclass(frozen=True)
class Place:
    """A parameter, or a member of a body, that holds an id."""

    method: str
    path: str
    where: str
    """path, query, header, or body."""
    names: tuple[str, ...]
    kind: str
    body: str = ""
    """Name of the body's schema."""

    def __str__(self) -> str:
        return f"{self.method} {self.path} {self.where}:{'.'.join(self.names)}"


def places(openapi: dict[str, Any]) -> list[Place]:
    """All places of all operations that hold an id."""
    return [
        Place(method.upper(), path, where, names, kind, body)
        for path, methods in openapi["paths"].items()
        for method, operation in methods.items()
        for where, names, body in _places_of(operation, openapi)
        if (kind := kind_of(names[-1]))
    ]


def _places_of(operation: dict[str, Any], openapi: dict[str, Any]) -> Iterator[tuple[str, tuple[str, ...], str]]:
    content = operation.get("requestBody", {}).get("content", {})
    schema = content.get("application/json", {}).get("schema", {})
    name = next((each["$ref"] for each in (schema, *schema.get("anyOf", ())) if "$ref" in each), "").rpartition("/")[2]
    for parameter in operation.get("parameters", ()):
        if _holds_text(parameter["schema"], openapi):
            yield parameter["in"], (parameter["name"],), name
    for names in _members(schema, openapi) if schema else ():
        yield "body", names, name


def _members(schema: dict[str, Any], openapi: dict[str, Any]) -> Iterator[tuple[str, ...]]:
    """Paths of all members of a body that hold text."""
    for each in resolved(schema, openapi):
        for name, member in each.get("properties", {}).items():
            if _holds_text(member, openapi):
                yield (name,)
            for names in _members(member, openapi):
                yield name, *names


def _holds_text(schema: dict[str, Any], openapi: dict[str, Any]) -> bool:
    for each in resolved(schema, openapi):
        if each.get("type") == "string" and not {"enum", "const"} & each.keys():
            return True
        if each.get("type") == "array" and _holds_text(each["items"], openapi):
            return True
    return False


class Gateway:
    """One gateway over the services, asked by anybody."""

    def __init__(self, backends: Backends, stack: AsyncExitStack) -> None:
        self._backends = backends
        self._stack = stack

    async def client(self, principal: Principal) -> httpx.AsyncClient:
        """Asks as `principal`."""
        transport = httpx.ASGITransport(create_api(self._backends))
        client = httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:8080", timeout=60)
        act_as(client, principal)
        return await self._stack.enter_async_context(client)


def _settings(world: World) -> GatewaySettings:
    addresses = {f"{room.replace('-', '_')}_address": address for room, address in world.addresses.items()}
    return GatewaySettings(port=0, **addresses)  # type: ignore[arg-type] # only addresses are text


@pytest_asyncio.fixture(loop_scope="module")
async def gateway(world: World) -> AsyncIterator[Gateway]:
    async with AsyncExitStack() as stack:
        yield Gateway(await open_backends(stack, _settings(world), asyncio.Event(), asyncio.Event()), stack)


async def _openapi(client: httpx.AsyncClient) -> dict[str, Any]:
    document: dict[str, Any] = (await client.get("/openapi.json")).json()
    return document


async def ask(client: httpx.AsyncClient, place: Place, value: str, world: World, written: str = "") -> httpx.Response:
    """A request that is complete but for being a stranger's. `written` stands for the value in the path, encoded in some way."""
    defaults = {
        **PATHS,
        **{name: UNKNOWN[kind] for name in PATHS if (kind := kind_of(name))},
        "collection_id": "default",
    }
    in_path = {name: quote(each, safe="") for name, each in defaults.items()}
    if place.where == "path":
        in_path[place.names[0]] = written or quote(value, safe="")
    headers = {"Accept": "application/json"} | ({place.names[0]: value} if place.where == "header" else {})
    return await client.request(
        place.method,
        place.path.format(**in_path),
        params={place.names[0]: value} if place.where == "query" else None,
        headers=headers,
        **_content(place, value, world),
    )


def _content(place: Place, value: str, world: World) -> dict[str, Any]:
    if place.method == "POST" and place.path == _UPLOAD:
        return {"files": {"file": (f"{next(_NEW)}.md", b"# Mine\n\nNothing.")}}
    if not place.body:
        return {}
    body = json.loads(json.dumps(BODIES[place.body]))
    if place.body == "NewCollection":
        body["id"] = f"new-{next(_NEW)}"
    if place.kind == "approval":
        body["arguments_hash"] = world.things.arguments_hash
    if place.where == "body":
        _put(body, place.names, value)
    return {"json": body}


def _put(body: dict[str, Any], names: tuple[str, ...], value: str) -> None:
    """Sets a member; one whose name is of several ids to a list of one."""
    name, *rest = names
    if rest:
        _put(body.setdefault(name, {}), tuple(rest), value)
    else:
        body[name] = [value] if name.endswith("s") else value


def told(answer: httpx.Response, *forms: str) -> str:
    """Status, headers and body as one text, without what differs between any two answers."""
    headers = {name: each for name, each in answer.headers.items() if name not in _OWN_HEADERS}
    text = f"{answer.status_code} {sorted(headers.items())} {_body(answer)}"
    for form in sorted({*forms, *map(unquote, forms)}, key=len, reverse=True):
        text = text.replace(form, "<id>")
    return masked(text, "")


def _body(answer: httpx.Response) -> str:
    """Of an event stream only how the run ended: the rest comes in as many pieces as it likes."""
    if not answer.headers.get("content-type", "").startswith("text/event-stream"):
        return answer.text
    return "\n".join(line for line in answer.text.splitlines() if '"status"' in line or '"citations"' in line)


async def _state(client: httpx.AsyncClient, world: World) -> dict[str, str]:
    """All that Ann can see."""
    ids = world.things.ids
    paths = [
        "/v1/collections",
        f"/v1/collections/{ids['collection']}",
        f"/v1/collections/{ids['collection']}/documents",
        f"/v1/documents/{ids['document']}",
        f"/v1/documents/{ids['document']}/content",
        f"/v1/chunks/{ids['chunk']}",
        "/v1/jobs/dead",
        "/v1/threads",
        f"/v1/threads/{ids['thread']}",
        "/v1/runs",
        f"/v1/runs/{ids['run']}",
        f"/v1/runs/{ids['run']}/events",
        f"/v1/runs/{ids['waiting run']}",
        "/v1/approvals",
        "/v1/usage",
    ]
    answers = {path: await client.get(path) for path in paths}
    assert all(answer.status_code == 200 for answer in answers.values()), answers
    return {path: answer.text for path, answer in answers.items()}


def _id(world: World, place: Place) -> str:
    return {**world.things.ids, "subject": ANN.subject}[place.kind]


async def test_each_id_in_the_document_is_of_a_known_kind(gateway: Gateway) -> None:
    kinds = {place.kind for place in places(await _openapi(await gateway.client(ANN)))}
    assert kinds == {*UNKNOWN, "page token"} - {"revision", "message", "call"}


@pytest.mark.parametrize("stranger", STRANGERS, ids=lambda stranger: stranger.name)
async def test_stranger_is_told_of_ids_of_others_what_is_told_of_ids_of_nothing(
    world: World, gateway: Gateway, stranger: Stranger
) -> None:
    ann, client = await gateway.client(ANN), await gateway.client(stranger.principal)
    before = await _state(ann, world)
    wrong: list[str] = []
    tried = [
        place
        for place in places(await _openapi(client))
        if place.path != _ENDLESS and not stranger.may_know(place.kind, str(place))
    ]
    for place in tried:
        wrong += await _difference(client, place, world)
    assert not wrong, "\n\n".join(wrong)
    assert await _state(ann, world) == before
    assert len(tried) > 20


async def _difference(client: httpx.AsyncClient, place: Place, world: World) -> list[str]:
    """What gives away that Ann's thing exists, if anything."""
    if place.kind == "page token":
        tokens = world.things.page_tokens.values()
        return [leak for each in tokens for leak in _leaks(await ask(client, place, each, world), place, each, world)]
    theirs, nobodys, leaks = _id(world, place), UNKNOWN[place.kind], []
    for write in WRITTEN if place.where == "path" else (_plainly,):
        of_theirs = await ask(client, place, theirs, world, write(theirs))
        of_nobodys = await ask(client, place, nobodys, world, write(nobodys))
        leaks += _leaks(of_theirs, place, theirs, world)
        if told(of_theirs, theirs, write(theirs)) != told(of_nobodys, nobodys, write(nobodys)):
            leaks.append(f"{place}: of Ann's\n  {of_theirs.text}\nof nobody's\n  {of_nobodys.text}")
    return leaks


def _leaks(answer: httpx.Response, place: Place, asked_for: str, world: World) -> list[str]:
    """Ann's ids and words, but for the one that was asked for."""
    rest = answer.text.replace(asked_for, "")
    told_of = [kind for kind, id_ in world.things.ids.items() if id_ in rest]
    return [f"{place} tells of {told_of}: {answer.text}"] if told_of or SECRET in rest else []


def _plainly(id_: str) -> str:
    return quote(id_, safe="")


def _in_percents(id_: str) -> str:
    return "".join(f"%{byte:02x}" for byte in id_.encode())


def _in_wide_letters(id_: str) -> str:
    """Digits and letters of another block, which some take for the same."""
    return quote("".join(chr(ord(each) + 0xFEE0) if each.isalnum() else each for each in id_))


WRITTEN: tuple[Callable[[str], str], ...] = (
    _plainly,
    _in_percents,
    lambda id_: quote(_in_percents(id_)),
    _in_wide_letters,
    lambda id_: id_.upper(),
    lambda id_: f"{id_}%20",
    lambda id_: f"{id_}%00",
    lambda id_: f"./{id_}",
    lambda id_: f"x%2F..%2F{id_}",
    lambda id_: f"{id_}.",
    lambda id_: f"{id_};x=1",
)
"""Ways to write an id in a path."""


@pytest.mark.parametrize("stranger", STRANGERS, ids=lambda stranger: stranger.name)
async def test_nothing_is_told_by_methods_that_no_route_has_nor_by_where_a_stream_is_to_go_on(
    world: World, gateway: Gateway, stranger: Stranger
) -> None:
    client = await gateway.client(stranger.principal)
    for place in places(await _openapi(client)):
        if place.where != "path" or stranger.may_know(place.kind, str(place)):
            continue
        theirs, nobodys = _id(world, place), UNKNOWN[place.kind]
        for method in ("HEAD", "OPTIONS", "TRACE"):
            pair = [
                await client.request(method, place.path.format(**{**PATHS, place.names[0]: id_}))
                for id_ in (theirs, nobodys)
            ]
            assert told(pair[0], theirs) == told(pair[1], nobodys), (method, place)
    for last in ("0", "1", "3", "999999"):
        pair = [
            await client.get(f"/v1/runs/{id_}/events", headers={"Last-Event-ID": last})
            for id_ in (world.things.ids["run"], UNKNOWN["run"])
        ]
        assert pair[0].status_code == 404
        assert told(pair[0], world.things.ids["run"]) == told(pair[1], UNKNOWN["run"])


@pytest.mark.parametrize("stranger", STRANGERS, ids=lambda stranger: stranger.name)
async def test_stream_of_all_documents_tells_a_stranger_of_their_own_alone(
    world: World, gateway: Gateway, stranger: Stranger
) -> None:
    name, read = f"{next(_NEW)}.md", ""
    async with (
        over_http(_settings(world), principal=stranger.principal) as client,
        client.stream("GET", "/v1/events") as stream,
    ):
        lines = stream.aiter_lines()
        async for line in lines:
            read += line
            if line == "event: snapshot_complete":
                break
        await _upload(await gateway.client(ANN), world.things.ids["collection"], f"{SECRET}-{name}")
        await _upload(client, "default", name)
        async for line in lines:
            read += line
            if name in line:
                break
    assert SECRET not in read
    assert not [kind for kind, id_ in world.things.ids.items() if id_ in read]


async def _upload(client: httpx.AsyncClient, collection_id: str, name: str) -> None:
    files = {"file": (name, f"# {name}\n\nSomething.".encode())}
    answer = await client.post(f"/v1/collections/{collection_id}/documents", files=files)
    assert answer.status_code == 202, answer.text
