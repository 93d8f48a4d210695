"""The gateway with scripted services behind it, on a loop of its own, for pages in a real browser."""

import asyncio
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from groundwork.ingest.v1 import ingest_pb2
from groundwork.orchestrator.v1 import orchestrator_pb2 as run_pb
from playwright.sync_api import Page, Route, expect

from services.gateway.settings import GatewaySettings
from tests.service.gateway.conftest import SERVICES, World, over_http
from tests.service.gateway.fakes import RUN_ID, document

MAIL = {"to": "<b>ann@example.org", "retries": 2}
ASKED = {
    "id": "ap1",
    "run_id": RUN_ID,
    "tool": "send_email",
    "arguments": MAIL,
    "arguments_hash": "ab" * 32,
    "expires_at": "2099-01-01T00:00:00.000Z",
}
"""What waits for a decision, as /v1/approvals lists it."""


@dataclass
class Site:
    """The gateway and the world behind it."""

    world: World
    base_url: str
    loop: asyncio.AbstractEventLoop

    def soon(self, do: Callable[[], object]) -> None:
        """On the world's loop."""
        self.loop.call_soon_threadsafe(do)


@dataclass
class Desk:
    """Answers GET and POST of /v1/approvals in the browser."""

    waiting: list[dict[str, Any]] = field(default_factory=list)
    decisions: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    on_decision: Callable[[], object] = lambda: None
    refusal: str = ""

    def answer(self, route: Route) -> None:
        if route.request.method == "GET":
            route.fulfill(json={"approvals": self.waiting})
        elif self.refusal:
            problem = {"reason": "APPROVAL_CLOSED", "detail": self.refusal}
            route.fulfill(status=412, content_type="application/problem+json", body=json.dumps(problem))
        else:
            self.decisions.append((route.request.url.rpartition("/")[2], json.loads(route.request.post_data or "{}")))
            self.waiting = []
            route.fulfill(json=ASKED)
            self.on_decision()


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


def artefact(kind: str, body: dict[str, Any], outline: str = "", **cited: int) -> run_pb.Artefact:
    """Its parts at these places cite these passages: `rows_0_1` is /rows/0/1."""
    made = run_pb.Artefact(artefact_id=f"{kind} {outline}", kind=kind, title=f"A {kind}", outline=outline)
    made.body.update(body)
    for place, number in cited.items():
        made.items.add(path="/" + place.replace("_", "/"), citations=[number])
        made.citations.add(
            number=number, document_id="d0000001", document_name="handbook.pdf", chunk_id="c1", text="It is so."
        )
    return made
