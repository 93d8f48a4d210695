"""Following runs: a thousand who follow, over the one subscription that a process has for a run, against a consumer for each of a
few: a thousand of those end in time-outs."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import aclosing
from dataclasses import dataclass
from datetime import UTC, datetime

from bench.report import Figure, Part
from kit.jetstream import Nats, connect
from kit.jetstream.following import follow
from kit.testing.nats import nats_server
from services.orchestrator.adapters.codec import event_from_bytes
from services.orchestrator.adapters.jetstream.event_log import JetStreamEventLog
from services.orchestrator.log.events import Done, RunEvent, RunStatus, Token
from services.orchestrator.models import RunKey
from services.orchestrator.state import RUNS

FOLLOWERS = 1000
REFERENCE_FOLLOWERS = 50
EVENTS = 100
_WORDS = "about twenty characters "


@dataclass(frozen=True)
class _Times:
    """Seconds from the second append to the last follower's last event, and the consumers that the server counted."""

    shared_s: float
    shared_consumers: int
    each_s: float
    one_s: float
    """With a single follower: what the appends alone take."""


def measure() -> Part:
    """The same log, written again for each way of following it."""
    times = asyncio.run(_measure())
    shared = FOLLOWERS * EVENTS / times.shared_s
    each = REFERENCE_FOLLOWERS * EVENTS / times.each_s
    return Part(
        title="Following runs",
        about=(
            f"{FOLLOWERS} followers of one run that is being written ({EVENTS} events of {len(_WORDS)} characters); writer, "
            "followers and a NATS server of their own on this machine, without gRPC; the followers share a connection that is not "
            f"the writer's. The reference is a consumer for each of {REFERENCE_FOLLOWERS} followers."
        ),
        figures=(
            Figure("events delivered to 1 000 followers of a run, events/s", f"{shared:.0f}"),
            Figure("the same / with a consumer for each follower", f"{shared / each:.1f}"),
            Figure("consumers for 1 000 followers", str(times.shared_consumers), "0", times.shared_consumers == 0),
            Figure("time of a run with 1 000 followers / with one", f"{times.shared_s / times.one_s:.1f}"),
        ),
    )


async def _measure() -> _Times:
    async with (
        nats_server() as server,
        connect(server.url, name="bench") as nats,
        connect(server.url, name="bench-followers") as followers,
    ):
        writer, log = [await JetStreamEventLog.open(each, retention_days=1) for each in (nats, followers)]
        tail = asyncio.create_task(log.work())
        try:
            one_s, _ = await _followed(writer, followers, log, 1, run_id="a" * 32)
            shared_s, shared = await _followed(writer, followers, log, FOLLOWERS, run_id="b" * 32)
            each_s, _ = await _followed(writer, followers, None, REFERENCE_FOLLOWERS, run_id="c" * 32)
        finally:
            tail.cancel()
            await asyncio.gather(tail, return_exceptions=True)
    return _Times(shared_s, shared, each_s, one_s)


async def _followed(
    writer: JetStreamEventLog, nats: Nats, log: JetStreamEventLog | None, followers: int, *, run_id: str
) -> tuple[float, int]:
    """Writes a run that so many follow by `log`, or each by a consumer of its own; the seconds it took, and the consumers that
    there were meanwhile."""
    key = RunKey("bench", run_id)
    position = await writer.append(key, _event(key, 1), 0)
    begun = [asyncio.Event() for _ in range(followers)]
    tasks = [
        asyncio.create_task(_until_done(log.follow(key, 0, live=True) if log else _own_consumer(nats, key), each))
        for each in begun
    ]
    await asyncio.gather(*(each.wait() for each in begun))
    consumers = (await nats.js.stream_info(RUNS.stream)).state.consumer_count
    started = time.perf_counter()
    for seq in range(2, EVENTS + 1):
        position = await writer.append(key, _event(key, seq), position)
    return max(await asyncio.gather(*tasks)) - started, consumers


async def _own_consumer(nats: Nats, key: RunKey) -> AsyncIterator[RunEvent]:
    async with aclosing(follow(nats, RUNS.stream, f"runs.{key.name}")) as messages:
        async for message in messages:
            if message is not None:
                yield event_from_bytes(message.data)


async def _until_done(events: AsyncIterator[RunEvent], begun: asyncio.Event) -> float:
    """When the last event came."""
    async for event in events:
        begun.set()
        if isinstance(event.payload, Done):
            return time.perf_counter()
    raise AssertionError("the run has no end")


def _event(key: RunKey, seq: int) -> RunEvent:
    payload = Done(RunStatus.COMPLETED) if seq == EVENTS else Token(_WORDS, seq * len(_WORDS))
    return RunEvent(key.run_id, seq, datetime.now(UTC), payload)
