"""Asking the gateway: which operations take an id and where, a request that holds one, and what it is told as a text that can be
compared. Each caller shows an API key of their own."""

import asyncio
import itertools
import json
from collections.abc import Iterator, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Self
from urllib.parse import quote, unquote

import httpx
from fastapi.routing import iter_route_contexts
from pydantic import SecretStr
from starlette.routing import WebSocketRoute

from kit.access.principal import Principal
from kit.jetstream import connect
from services.gateway.api import create_api
from services.gateway.backends import open_backends
from services.gateway.settings import GatewaySettings
from tests.service.access.kinds import UNKNOWN, kind_of, masked, without_progress
from tests.service.access.world import World
from tests.service.gateway.conftest import keys_of
from tests.service.gateway.key_desk import KeyDesk, bearer
from tests.service.gateway.test_openapi_enforced import BODIES, PATHS, QUERIES, resolved

BOOTSTRAP_KEY = SecretStr("correct-horse-battery-staple")
"""A key by setting, besides those in the store."""
NEW = itertools.count()
"""For names that nothing has yet."""
UPLOAD = "/v1/collections/{collection_id}/documents"
_NO_IDS_HERE = {"groups"}
"""Members that hold ids in calls between services and mere names here: those of groups of people."""
_OWN_HEADERS = {"date", "x-trace-id", "content-length", "server"}
"""Headers that differ between any two answers, or follow from the body."""


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
        if names[-1] not in _NO_IDS_HERE and (kind := kind_of(names[-1]))
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
    for each in _alternatives(schema, openapi):
        for name, member in each.get("properties", {}).items():
            if _holds_text(member, openapi):
                yield (name,)
            for names in _members(member, openapi):
                yield name, *names


def _alternatives(schema: dict[str, Any], openapi: dict[str, Any]) -> list[dict[str, Any]]:
    """With the schema itself where it has both members and alternatives."""
    if "$ref" in schema:
        schema = openapi["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    return [*([schema] if "properties" in schema and "anyOf" in schema else []), *resolved(schema, openapi)]


def _holds_text(schema: dict[str, Any], openapi: dict[str, Any]) -> bool:
    for each in resolved(schema, openapi):
        if each.get("type") == "string" and not {"enum", "const"} & each.keys():
            return True
        if each.get("type") == "array" and _holds_text(each["items"], openapi):
            return True
    return False


def gateway_settings(world: World, **changes: Any) -> GatewaySettings:
    """Of a gateway over the services, which asks for API keys."""
    addresses: dict[str, Any] = {f"{room.replace('-', '_')}_address": each for room, each in world.addresses.items()}
    return GatewaySettings(
        port=0,
        auth="api_keys",
        nats_url=world.nats_url,
        wrong_api_keys_per_minute=1_000_000,
        health_timeout_s=60,  # whether there is such a collection is asked for so long, and left open then
        bootstrap_key=BOOTSTRAP_KEY,
        **addresses,
        **changes,
    )


class Gateway:
    """One gateway over the services, asked by anybody."""

    def __init__(self, app: Any, desk: KeyDesk, stack: AsyncExitStack) -> None:
        self._app = app
        self._stack = stack
        self.desk = desk

    @classmethod
    async def open(cls, world: World, stack: AsyncExitStack, **changes: Any) -> Self:
        """Runs until the stack is closed. `changes` are settings."""
        settings = gateway_settings(world, **changes)
        backends = await open_backends(stack, settings, asyncio.Event(), asyncio.Event())
        app = create_api(backends, await keys_of(stack, settings))
        nats = await stack.enter_async_context(connect(world.nats_url, name="test"))
        return cls(app, await KeyDesk.open(nats), stack)

    def websockets(self) -> set[str]:
        """The paths of all that are served."""
        routes = (each.original_route for each in iter_route_contexts(self._app.routes))
        return {each.path for each in routes if isinstance(each, WebSocketRoute)}

    async def client(self, principal: Principal) -> httpx.AsyncClient:
        """Asks with a key of the principal's."""
        return await self.client_with(bearer(await self.key(principal)))

    async def client_with(self, headers: dict[str, str]) -> httpx.AsyncClient:
        transport = httpx.ASGITransport(self._app)
        client = httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:8080", timeout=60, headers=headers)
        return await self._stack.enter_async_context(client)

    async def key(self, principal: Principal, **changes: Any) -> str:
        """The text of a new key of the principal's."""
        scopes, who = sorted(principal.scopes), {"subject": principal.subject, "tenant_id": principal.tenant_id}
        return await self.desk.issue(*scopes, **who, groups=sorted(principal.groups), **changes)


async def openapi_of(client: httpx.AsyncClient) -> dict[str, Any]:
    """The document that all places are found in."""
    document: dict[str, Any] = (await client.get("/openapi.json")).json()
    return document


def operations_below_v1(openapi: dict[str, Any]) -> list[tuple[str, str]]:
    """Method and path of every operation that needs a caller, about ids of nothing."""
    return [
        (method.upper(), path.format(**PATHS))
        for path, methods in openapi["paths"].items()
        for method in methods
        if path.startswith("/v1/")
    ]


async def ask(
    client: httpx.AsyncClient,
    place: Place,
    value: str,
    world: World,
    written: str = "",
    beside: Mapping[Place, str] = MappingProxyType({}),
) -> httpx.Response:
    """A request that is complete but for being a stranger's. `written` stands for the value in the path, encoded in some way;
    `beside` are ids at other places of the operation."""
    defaults = {
        **PATHS,
        **{name: UNKNOWN[kind] for name in PATHS if (kind := kind_of(name))},
        "collection_id": "default",
    }
    in_path = {name: quote(each, safe="") for name, each in defaults.items()}
    if place.where == "path":
        in_path[place.names[0]] = written or quote(value, safe="")
    in_path |= {each.names[0]: id_ for each, id_ in beside.items() if each.where == "path"}
    headers = {"Accept": "application/json"} | ({place.names[0]: value} if place.where == "header" else {})
    return await client.request(
        place.method,
        place.path.format(**in_path),
        params=QUERIES.get((place.method, place.path), {})
        | ({place.names[0]: value} if place.where == "query" else {}),
        headers=headers,
        **_content(place, value, world, beside),
    )


def _content(place: Place, value: str, world: World, beside: Mapping[Place, str]) -> dict[str, Any]:
    if place.method == "POST" and place.path == UPLOAD:
        return {"files": {"file": (f"{next(NEW)}.md", b"# Mine\n\nNothing.")}}
    if not place.body:
        return {}
    body = json.loads(json.dumps(BODIES[place.body]))
    if place.body == "NewCollection":
        body["id"] = f"new-{next(NEW)}"
    if place.body == "NewSource":
        body |= {
            "kind": "feed",
            "name": f"feed-{next(NEW)}",
            "settings": {"url": "http://127.0.0.1:9/feed.xml"},
        }  # one that takes no scope
    if place.kind == "approval":
        body["arguments_hash"] = world.things.arguments_hash
    for each, id_ in beside.items():
        if each.where == "body":
            _put(body, each.names, id_)
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
    """Of an event stream only how the run ended: the rest comes in as many pieces as it likes. Of a new document what was uploaded:
    it is being read already."""
    content_type = answer.headers.get("content-type", "")
    if content_type == "application/json" and answer.content:
        return json.dumps(without_progress(answer.json()), ensure_ascii=False)
    if not content_type.startswith("text/event-stream"):
        return answer.text
    return "\n".join(line for line in answer.text.splitlines() if '"status"' in line or '"citations"' in line)
