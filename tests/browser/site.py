"""The gateway with scripted services behind it, on a loop of its own, for pages in a real browser."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from groundwork.ingest.v1 import ingest_pb2
from playwright.sync_api import Page, expect

from services.gateway.settings import GatewaySettings
from tests.service.gateway.conftest import SERVICES, World, over_http
from tests.service.gateway.fakes import document


@dataclass
class Site:
    """The gateway and the world behind it."""

    world: World
    base_url: str
    loop: asyncio.AbstractEventLoop

    def soon(self, do: Callable[[], object]) -> None:
        """On the world's loop."""
        self.loop.call_soon_threadsafe(do)


@contextmanager
def serving(**settings: Any) -> Iterator[Site]:
    """A site that ends with its context. `settings` are those of the gateway."""
    ready: list[Site] = []
    is_ready, leave = threading.Event(), asyncio.Event()

    async def serve() -> None:
        world = World()
        await world.start()
        addresses = {f"{name}_address": f"127.0.0.1:{world.port}" for name in SERVICES}
        async with over_http(GatewaySettings(**{"port": 0, **addresses, **settings})) as client:
            ready.append(Site(world, str(client.base_url), asyncio.get_running_loop()))
            is_ready.set()
            await leave.wait()
            world.orchestrator.resume.set()
        await world.kill()

    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    assert is_ready.wait(60)
    try:
        yield ready[0]
    finally:
        ready[0].soon(leave.set)
        thread.join(60)
        assert not thread.is_alive()


def put(site: Site, *documents: ingest_pb2.Document) -> None:
    """Stores them before the page is opened."""
    site.world.ingest.documents = {each.document_id: each for each in documents}


def ready(number: int, **fields: Any) -> ingest_pb2.Document:
    """A document that can be searched."""
    return document(document_id=f"d{number:07}", status=ingest_pb2.DOCUMENT_STATUS_READY, **fields)


def asked(site: Site) -> list[tuple[str, str, str]]:
    """What was asked: words, collection and thread."""
    return [(each.question, each.collection_ids[0], each.thread_id) for each in site.world.orchestrator.requests]


def ask(page: Page, text: str = "How long?", way: str = "documents") -> None:
    """Sends a question and waits until its answer is whole."""
    begin(page, text, way)
    expect(page.get_by_test_id("answer").last).to_have_attribute("aria-busy", "false")


def begin(page: Page, text: str, way: str = "documents") -> None:
    """Sends a question."""
    page.get_by_test_id(f"mode-{way}").check(force=True)
    page.get_by_test_id("question-input").fill(text)
    page.get_by_test_id("ask-button").click()
