"""Everybody's `default` is their own, wherever it stands in a request; and who listens is told of what they may read."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

import httpx
import pytest

from kit.access.principal import INGEST, QUERY, Principal, current_principal, use_principal
from kit.stores.collections import own_id
from services.gateway.access.auth import authenticated
from services.gateway.adapters.ingest import document_state
from services.gateway.api import create_api
from services.gateway.backends import open_backends
from services.gateway.streams.document_feed import DocumentFeeds, DocumentState
from tests.service.gateway.conftest import Settings, World
from tests.service.gateway.fakes import document

LOCAL = Principal("local", "local-user")
BOB = Principal("local", "bob", frozenset({QUERY, INGEST}))
BOBS = own_id("default", BOB, LOCAL)


@pytest.fixture
async def bob(settings: Settings) -> AsyncIterator[httpx.AsyncClient]:
    """A client that the gateway takes for Bob."""

    async def as_bob() -> AsyncIterator[Principal]:
        with use_principal(BOB):
            yield BOB

    async with AsyncExitStack() as stack:
        app = create_api(await open_backends(stack, settings(), asyncio.Event(), asyncio.Event()))
        app.dependency_overrides[authenticated] = as_bob
        transport = httpx.ASGITransport(app)
        yield await stack.enter_async_context(httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:8080"))


async def test_default_in_a_path_is_the_callers_own(bob: httpx.AsyncClient, world: World) -> None:
    assert (await bob.get("/v1/collections/default")).json()["id"] == BOBS
    await bob.get("/v1/collections/default/documents")
    await bob.post("/v1/collections/default/documents", files={"file": ("a.txt", b"hello")})
    await bob.patch("/v1/collections/default", json={"name": "Mine"})
    assert world.ingest.named == [BOBS, BOBS]
    assert world.ingest.headers[-1].collection_id == BOBS
    assert world.ingest.updates[-1].collection_id == BOBS
    assert (await bob.get("/v1/collections/contracts")).json()["id"] == "contracts"


async def test_default_in_a_body_is_the_callers_own(bob: httpx.AsyncClient, world: World) -> None:
    await bob.post("/v1/search", json={"query": "notice period"})
    await bob.post("/v1/search", json={"query": "notice period", "collection_ids": ["contracts", "default"]})
    searched = [list(each.collection_ids) for each in world.retriever.requests]
    assert searched == [[BOBS], ["contracts", BOBS]]
    await bob.post("/v1/qa", json={"question": "How long?"})
    message = {"message": "How long?", "collection_ids": ["default"]}
    await bob.post("/v1/chat", json=message, headers={"Accept": "application/json"})
    await bob.post("/v1/collections/default/chat", json={"message": "And then?"})
    assert [list(each.collection_ids) for each in world.orchestrator.requests] == [[BOBS]] * 3
    assert set(world.ingest.named) == {BOBS, "contracts"}
    await bob.post("/v1/jobs/dead/requeue", json={"collection_id": "default"})
    assert world.ingest.requeues[-1].collection_id == BOBS


class Watches:
    """Ingest's watch, which shows each subject a document of their own."""

    def __init__(self) -> None:
        self.opened: list[str] = []

    async def open(self) -> AsyncIterator[DocumentState | None]:
        subject = current_principal().subject
        self.opened.append(subject)
        yield document_state(document("d000000a" if subject == "ann" else "d000000b"))
        yield None
        await asyncio.Event().wait()


@asynccontextmanager
async def listening(feeds: DocumentFeeds, subject: str) -> AsyncIterator[list[str]]:
    """Ids of the documents in the snapshot that a new listener of this subject gets."""
    found: list[str] = []
    with use_principal(Principal("local", subject)):
        async with feeds.listen(lambda _: True) as listener:
            async for event in listener.events():
                if isinstance(event, DocumentState):
                    found.append(event.document_id)
                elif event.event == "snapshot_complete":
                    break
            yield found


async def test_listeners_share_a_watch_with_their_own_subject_alone() -> None:
    watches = Watches()
    feeds = DocumentFeeds(watches.open, reattach_for_s=5.0)  # type: ignore[arg-type]
    async with AsyncExitStack() as stack:
        stack.push_async_callback(feeds.close)
        for subject, expected in (("ann", "d000000a"), ("bob", "d000000b"), ("ann", "d000000a"), ("bob", "d000000b")):
            assert await stack.enter_async_context(listening(feeds, subject)) == [expected]
        assert watches.opened == ["ann", "bob"]
