"""Every operation of the HTTP interface that takes an id, asked by strangers for what is Ann's: status, headers and body are
those of an id that nothing has, and Ann has everything as before. Which parameter or member holds which kind of id is told by the
OpenAPI document, so that a new one is tried too, or this fails and says what to add."""

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from urllib.parse import quote

import httpx
import pytest
import pytest_asyncio

from tests.service.access.asking import NEW, Gateway, Place, ask, gateway_settings, openapi_of, places, told
from tests.service.access.kinds import STRANGERS, UNKNOWN, Stranger
from tests.service.access.world import ANN, SECRET, World
from tests.service.gateway.conftest import over_http
from tests.service.gateway.key_desk import bearer, id_of
from tests.service.gateway.test_openapi_enforced import PATHS

pytestmark = pytest.mark.asyncio(loop_scope="module")

_ENDLESS = "/v1/events"


@pytest_asyncio.fixture(loop_scope="module")
async def gateway(world: World) -> AsyncIterator[Gateway]:
    async with AsyncExitStack() as stack:
        gateway = await Gateway.open(world, stack)
        world.things.ids["api key"] = id_of(await gateway.key(ANN))
        yield gateway


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
    return {**world.things.ids, "subject": ANN.subject, "tenant": ANN.tenant_id}[place.kind]


async def test_each_id_in_the_document_is_of_a_known_kind(gateway: Gateway) -> None:
    kinds = {place.kind for place in places(await openapi_of(await gateway.client(ANN)))}
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
        for place in places(await openapi_of(client))
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
    """Ann's ids and words, but for the one that was asked for; of a response, whose id is that of its run, also without prefix."""
    rest = answer.text.replace(asked_for, "").replace(asked_for.removeprefix("resp_"), "")
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
    for place in places(await openapi_of(client)):
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
    name, read, client = f"{next(NEW)}.md", "", await gateway.client(stranger.principal)
    async with (
        over_http(gateway_settings(world)) as live,
        live.stream("GET", "/v1/events", headers=bearer(await gateway.key(stranger.principal))) as stream,
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
