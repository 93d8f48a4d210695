"""Agents are switched off and on for all replicas, over a real NATS server."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import pytest

from kit.jetstream import Nats
from services.orchestrator.adapters.jetstream.agent_switches import AgentSwitches
from services.orchestrator.errors import InvalidRequest
from tests.service.orchestrator.conftest import now, within


@asynccontextmanager
async def following(nats: Nats) -> AsyncIterator[AgentSwitches]:
    switches = await AgentSwitches.open(nats, now)
    task = asyncio.ensure_future(switches.settings.follow())
    try:
        yield switches
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def heard(switches: AgentSwitches, *, is_on: bool) -> None:
    async with within(30.0):
        await switches.settings.wait_for(lambda: switches.is_on("research") is is_on)


async def test_agent_is_switched_on_all_replicas_and_after_a_restart(jetstream: Nats) -> None:
    async with following(jetstream) as one, following(jetstream) as other:
        assert one.is_on("research")
        await one.set("research", enabled=False, by="ann")
        assert not one.is_on("research")
        assert one.off["research"].by == "ann"
        await heard(other, is_on=False)
    later = await AgentSwitches.open(jetstream, now)
    assert not later.is_on("research")
    async with following(jetstream) as one:
        await one.set("research", enabled=True, by="ann")
        await one.set("research", enabled=True, by="ann")
        assert one.is_on("research")
    assert (await AgentSwitches.open(jetstream, now)).is_on("research")


async def test_agent_that_cannot_be_switched_is_refused(jetstream: Nats) -> None:
    async with following(jetstream) as switches:
        with pytest.raises(InvalidRequest, match="research"):
            await switches.set("chat", enabled=False, by="ann")
