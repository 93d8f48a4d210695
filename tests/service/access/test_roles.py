"""The matrix of roles: every RPC, HTTP operation and WebSocket that names something of a collection, asked by those who have a role
on it, as a subject or by a group, and by those who have none. One that no table lists fails it."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from typing import Any, TypeVar

import pytest
import pytest_asyncio
from websockets.asyncio.client import connect

from kit.access.principal import use_principal
from kit.access.scopes import scope_of
from kit.stores.collections import Role
from tests.service.access import asking, contracts, test_foreign_ids
from tests.service.access.asking import Gateway, openapi_of
from tests.service.access.contracts import call_name
from tests.service.access.kinds import OPEN_TO_TENANT, UNKNOWN, masked
from tests.service.access.role_tables import (
    ALONE,
    LISTED,
    OPERATIONS,
    RPCS,
    RPCS_WITHOUT_IDS,
    SAME,
    SILENT,
    USED_UP,
    WITHOUT_IDS,
)
from tests.service.access.roles import HOLDERS, SHARED, Holder, Spares, expected, outcome, share
from tests.service.access.world import ANN, TIMEOUT_S, World
from tests.service.gateway.conftest import over_http
from tests.service.gateway.key_desk import bearer

pytestmark = pytest.mark.asyncio(loop_scope="module")

_ENDLESS = "GET /v1/events"
"""Its stream has a test of its own."""
PlaceT = TypeVar("PlaceT", test_foreign_ids.Place, asking.Place)
Ask = Callable[[Holder, PlaceT, str, Mapping[PlaceT, str]], Awaitable[str]]
"""What a holder is told of an id at a place, beside others."""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared(world: World) -> World:
    """Ann's collection has a member of each role."""
    await share(world, world.things.ids["collection"])
    world.things.ids |= await Spares(world).make("source")  # one that takes no scope, but a role
    return world


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def gateway(shared: World) -> AsyncIterator[Gateway]:
    async with AsyncExitStack() as stack:
        yield await Gateway.open(shared, stack)


async def _deviations(
    world: World,
    places: Sequence[PlaceT],
    operation: Callable[[PlaceT], str],
    roles: Mapping[Role, set[str]],
    ask: Ask[PlaceT],
    cast: Callable[[int, Role], Sequence[Holder]] = lambda _number, _role: HOLDERS,
) -> list[str]:
    """Where somebody gets more or less than their role gives."""
    needed = {each: role for role, names in roles.items() for each in names}
    served = {operation(each) for each in places if str(each) not in OPEN_TO_TENANT}
    wrong = [f"{each} is in no table of role_tables.py" for each in sorted(served - needed.keys())]
    wrong += [f"{each} is in role_tables.py and not served" for each in sorted(needed.keys() - served)]
    spares = Spares(world)
    for number, place in enumerate(places):
        role = needed.get(operation(place))
        if str(place) in OPEN_TO_TENANT or role is None:
            continue
        others = [each for each in places if operation(each) == operation(place) and each != place]
        unknown: dict[Role | None, str] = {}
        for holder in cast(number, role):
            ids = dict(world.things.ids)
            if operation(place) in USED_UP and holder.has(role):
                ids |= await spares.make(USED_UP[operation(place)])
            beside = {} if operation(place) in ALONE else {each: ids[each.kind] for each in others}
            of_nobodys = unknown.get(holder.role if beside else None) or await ask(
                holder, place, UNKNOWN[place.kind], beside
            )
            unknown[holder.role if beside else None] = of_nobodys
            of_theirs = await ask(holder, place, ids[place.kind], beside)
            right = expected(holder, None if str(place) in SAME else role, is_silent=operation(place) in SILENT)
            if (got := outcome(of_theirs, of_nobodys)) is not right:
                wrong.append(f"{place} {holder.name}: {got} instead of {right}: {of_theirs[-200:]}")
    return wrong


def _around(number: int, role: Role) -> Sequence[Holder]:
    """Who has no role, who has the last that is too little, and who has the one that is needed; as subjects and by groups in turn.
    The services judge, and are asked by all."""
    by_kind = [each for each in HOLDERS if each.kind == ("subject", "group")[number % 2]]
    needed = next(index for index, each in enumerate(by_kind) if each.role is role)
    return [by_kind[index] for index in sorted({0, needed - 1, needed})]


def _rpc(place: test_foreign_ids.Place) -> str:
    return call_name(place.method)


def _operation(place: asking.Place) -> str:
    return f"{place.method} {place.path}"


async def test_each_rpc_gives_each_role_what_it_should(shared: World) -> None:
    async def ask(
        holder: Holder, place: test_foreign_ids.Place, id_: str, beside: Mapping[test_foreign_ids.Place, str]
    ) -> str:
        with use_principal(holder.principal):
            others = {each.path: other for each, other in beside.items()}
            return masked(await test_foreign_ids.told(shared, place, id_, others), id_)

    places = [each for each in test_foreign_ids.places() if each.kind in SHARED and not each.is_internal]
    wrong = await _deviations(shared, places, _rpc, RPCS, ask)
    assert not wrong, "\n".join(wrong)


async def test_each_operation_gives_each_role_what_it_should(shared: World, gateway: Gateway) -> None:
    clients = {holder: await gateway.client(holder.principal) for holder in HOLDERS}

    async def ask(holder: Holder, place: asking.Place, id_: str, beside: Mapping[asking.Place, str]) -> str:
        return asking.told(await asking.ask(clients[holder], place, id_, shared, beside=beside), id_)

    found = asking.places(await openapi_of(clients[HOLDERS[0]]))
    places = [each for each in found if each.kind in SHARED and _operation(each) != _ENDLESS]
    wrong = await _deviations(shared, places, _operation, OPERATIONS, ask, _around)
    assert not wrong, "\n".join(wrong)


async def test_no_rpc_or_operation_is_missing(shared: World, gateway: Gateway) -> None:
    methods = {call_name(each) for each in contracts.methods() if scope_of(contracts.path_of(each)) is not None}
    assert methods == RPCS_WITHOUT_IDS | {_rpc(each) for each in test_foreign_ids.places() if not each.is_internal}
    openapi = await openapi_of(await gateway.client(ANN))
    operations = {f"{method.upper()} {path}" for path, methods in openapi["paths"].items() for method in methods}
    assert operations <= WITHOUT_IDS | {*map(_operation, asking.places(openapi))}


async def test_no_role_opens_what_belongs_to_a_subject(shared: World, gateway: Gateway) -> None:
    """Threads, runs, memory, approvals and the like, asked for by owners of the collection that they are about."""
    wrong = []
    ids = {**shared.things.ids, "subject": ANN.subject, "call": f"{shared.things.ids['waiting run']}/step1/call1"}
    for place in test_foreign_ids.places():
        if place.kind in {*SHARED, "page token"} or place.is_internal:
            continue
        with use_principal(HOLDERS[-1].principal):
            told = [
                masked(await test_foreign_ids.told(shared, place, id_), id_)
                for id_ in (ids[place.kind], UNKNOWN[place.kind])
            ]
        wrong += [f"{place}: {told[0][:300]}"] if told[0] != told[1] else []
    client = await gateway.client(HOLDERS[-2].principal)
    for path in asking.places(await openapi_of(client)):
        if path.kind in {
            *SHARED,
            "page token",
            "tenant",
            "api key",
        }:  # a tenant is its members', and keys are administrators'
            continue
        answers = [
            asking.told(await asking.ask(client, path, id_, shared), id_)
            for id_ in (ids[path.kind], UNKNOWN[path.kind])
        ]
        wrong += [f"{path}: {answers[0][:300]}"] if answers[0] != answers[1] else []
    assert not wrong, "\n".join(wrong)


async def test_listings_show_each_role_what_they_should(shared: World, gateway: Gateway) -> None:
    openapi = await openapi_of(await gateway.client(ANN))
    paths = [
        path
        for path, methods in openapi["paths"].items()
        if "get" in methods and "{" not in path and path != "/v1/events"
    ]
    await Spares(shared).make("dead letter")  # others may have been queued again
    ids = shared.things.ids
    theirs = [ids["document"], ids["source"], *(f'"{name}":"{ids["collection"]}"' for name in ("id", "collection_id"))]
    for holder in (HOLDERS[0], HOLDERS[3], HOLDERS[-2]):
        client = await gateway.client(holder.principal)
        for path in paths:
            answer = (await client.get(path)).text
            assert any(each in answer for each in theirs) is holder.has(LISTED.get(f"GET {path}")), (
                path,
                holder.name,
                answer,
            )


_BEFORE_THE_ANSWER = ("ready", "session.", "conversation.", "response.created")
_ASKED: dict[str, Callable[[str], tuple[str, list[dict[str, Any]], str]]] = {
    "/ws/voice-chat": lambda id_: (
        "",
        [{"type": "message", "message": "What is planned?", "language": "en", "collection_ids": [id_]}],
        "event",
    ),
    "/v1/realtime": lambda id_: (
        f"?model=groundwork@{id_}",
        [
            {
                "type": "conversation.item.create",
                "item": {
                    "type": "message",
                    "role": "user",
                    "content": [{"type": "input_text", "text": "What is planned?"}],
                },
            },
            {"type": "response.create", "response": {"output_modalities": ["text"]}},
        ],
        "type",
    ),
}
"""Of each WebSocket: the query, and messages that ask about a collection, and the member that names an answer's kind."""


async def test_each_websocket_answers_members_of_a_collection_alone(shared: World, gateway: Gateway) -> None:
    assert gateway.websockets() == _ASKED.keys()
    async with asyncio.timeout(TIMEOUT_S), over_http(asking.gateway_settings(shared)) as http:
        for holder in (HOLDERS[0], HOLDERS[3]):
            key = await gateway.key(holder.principal)
            for path, asked in _ASKED.items():
                query, messages, kind = asked(shared.things.ids["collection"])
                address = f"ws://{http.base_url.host}:{http.base_url.port}{path}{query}"
                async with connect(address, additional_headers=bearer(key)) as socket:
                    for each in messages:
                        await socket.send(json.dumps(each))
                    while (answer := json.loads(await socket.recv()))[kind].startswith(_BEFORE_THE_ANSWER):
                        pass
                is_answered = answer[kind] not in ("error", "response.done")  # done at once: it has failed
                assert is_answered is holder.has(Role.VIEWER), (path, holder.name, answer)


async def test_writers_of_a_list_at_once_undo_nothing_of_each_other(shared: World, gateway: Gateway) -> None:
    client = await gateway.client(ANN)
    document_id = (await Spares(shared).make("document"))["document"]
    members, access = (
        f"/v1/collections/{shared.things.ids['collection']}/members",
        f"/v1/documents/{document_id}/access",
    )
    names = [f"writer-{number}" for number in range(6)]

    async def let_in(name: str) -> int:
        """How often somebody else was first."""
        attempt = 0
        while True:
            read = await client.get(access)
            body = {"subjects": [*read.json()["subjects"], name], "groups": []}
            answer = await client.put(access, json=body, headers={"If-Match": read.headers["ETag"]})
            if answer.status_code == 200:
                return attempt
            assert (answer.status_code, answer.json()["reason"]) == (412, "ACCESS_CHANGED")
            attempt += 1

    lost = await asyncio.gather(*map(let_in, names))
    assert sorted((await client.get(access)).json()["subjects"]) == names
    assert any(lost), "nobody was ever late, so this shows nothing"
    stale = {"If-Match": (await client.get(members)).headers["ETag"]}
    member = {"kind": "subject", "name": "writer-0", "role": "viewer"}
    assert (await client.put(members, json=member, headers=stale)).status_code == 200
    assert (
        await client.delete(members, params={"kind": "subject", "name": "writer-0"}, headers=stale)
    ).status_code == 412
