"""Endpoints that tests script, and catalogs of them."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from kit.jetstream import Nats
from kit.llm import Delta, Finish, FinishReason, ModelInfo, Operation, Request, TextDelta, TokenUsage
from kit.llm.endpoints import Address
from kit.llm.models import Models, open_models
from kit.llm.providers import Catalog, Choice, Provider
from kit.llm.switching import ModelSwitch

Step = Delta | Exception | asyncio.Event
USAGE = TokenUsage(10, 2)
SET_AT = datetime(2026, 1, 1, tzinfo=UTC)
END = Finish(FinishReason.STOP, USAGE)


@dataclass
class Script:
    """What the models do: by `provider/model`, a reply for each time it is asked; the last one repeats. An exception is raised, an
    event awaited."""

    replies: dict[str, list[Sequence[Step]]] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    opened: list[Address] = field(default_factory=list)
    closed: list[str] = field(default_factory=list)

    @asynccontextmanager
    async def open(self, address: Address) -> AsyncIterator["FakeEndpoint"]:
        self.opened.append(address)
        try:
            yield FakeEndpoint(self, address)
        finally:
            self.closed.append(f"{address.provider}/{address.model}")


@dataclass
class FakeEndpoint:
    script: Script
    address: Address

    @property
    def name(self) -> str:
        return f"{self.address.provider}/{self.address.model}"

    def info(self, operation: Operation) -> ModelInfo:
        return ModelInfo(self.address.provider, self.address.model, self.address.context_tokens or 4096)

    async def complete(self, request: Request) -> AsyncGenerator[Delta, None]:
        self.script.asked.append(self.name)
        replies = self.script.replies[self.name]
        for step in replies.pop(0) if len(replies) > 1 else replies[0]:
            if isinstance(step, Exception):
                raise step
            if isinstance(step, asyncio.Event):
                await step.wait()
            else:
                yield step

    async def count_tokens(self, texts: Sequence[str], operation: Operation) -> Sequence[int]:
        return [len(text) for text in texts]


def says(text: str) -> list[Step]:
    return [TextDelta(text), END]


def provider(**settings: Any) -> Provider:
    return Provider(**{"base_url": "http://127.0.0.1:1/v1", "any_model": True, **settings})


def catalog(*chain: str, providers: Mapping[str, Provider] | None = None) -> Catalog:
    """Every operation has this chain."""
    choices = tuple(Choice.parse(each) for each in chain)
    made = {choice.provider: provider() for choice in choices}
    return Catalog({**made, **(providers or {})}, dict.fromkeys(Operation, choices))


@asynccontextmanager
async def models_of(
    script: Script, catalog: Catalog | None, *, waits: list[float] | None = None
) -> AsyncIterator[Models]:
    """The models, whose retries note their waits instead of waiting."""
    noted: list[float] = [] if waits is None else waits

    async def note(seconds: float) -> None:
        noted.append(seconds)

    async with open_models(catalog, script.open, jitter=lambda: 0.5, sleep=note) as models:
        yield models


async def collect(models: Models, operation: Operation = Operation.ANSWER) -> list[Delta]:
    return [delta async for delta in models.complete(Request((), max_tokens=16, operation=operation))]


@asynccontextmanager
async def following_switch(nats: Nats, script: Script, catalog: Catalog | None) -> AsyncIterator[ModelSwitch]:
    """The switch of a process, which follows what is set."""
    async with models_of(script, catalog) as models:
        switch = await ModelSwitch.open(nats, models, lambda: SET_AT)
        following = asyncio.create_task(switch.settings.follow())
        try:
            yield switch
        finally:
            following.cancel()
            await asyncio.gather(following, return_exceptions=True)
