"""Following a run across broken streams, without a network."""

from collections.abc import AsyncIterator

import pytest

from kit.errors import DeadlineExceeded, GroundworkError, NotFound, Unavailable
from services.gateway.errors import StreamInterrupted
from services.gateway.models import RunEvent
from services.gateway.streams.following import ReattachPolicy, follow


class FakeRunLog:
    """RunLog whose streams are scripted: seqs to send, then an error or the end."""

    def __init__(self, *streams: list[int | GroundworkError], last: int = 5) -> None:
        self.streams = list(streams)
        self.last = last
        self.attached: list[int] = []

    async def _next(self) -> AsyncIterator[RunEvent]:
        for step in self.streams.pop(0):
            if isinstance(step, GroundworkError):
                raise step
            yield RunEvent("r1", step, "done" if step == self.last else "token", {})

    def attach(self, run_id: str, after_seq: int) -> AsyncIterator[RunEvent]:
        self.attached.append(after_seq)
        return self._next()

    async def seen(self, *, run_id: str = "", after_seq: int = 0, policy: ReattachPolicy | None = None) -> list[int]:
        policy = policy or ReattachPolicy(first_backoff_s=0.0)
        events = follow(self._next(), self.attach, run_id=run_id, after_seq=after_seq, policy=policy)
        return [event.seq async for event in events]


BROKEN = Unavailable("connection reset")


async def test_every_event_is_seen_once_across_breaks_and_repeats() -> None:
    log = FakeRunLog([1, 2, BROKEN], [BROKEN], [2, 3, BROKEN], [1, 2, 3, 4, 5])
    assert await log.seen() == [1, 2, 3, 4, 5]
    assert log.attached == [2, 2, 3]


async def test_stream_that_ends_before_the_run_is_taken_up_again() -> None:
    assert await FakeRunLog([1, 2], [3, 4, 5]).seen() == [1, 2, 3, 4, 5]


async def test_attachment_that_has_nothing_more_is_the_end() -> None:
    assert await FakeRunLog([], last=5).seen(run_id="r1", after_seq=5) == []


async def test_nothing_is_read_after_the_last_event() -> None:
    log = FakeRunLog([1, 5, 6])
    assert await log.seen() == [1, 5]


async def test_error_before_the_first_event_is_the_callers() -> None:
    log = FakeRunLog([BROKEN])
    with pytest.raises(Unavailable, match="connection reset"):
        await log.seen()
    assert log.attached == []


async def test_error_that_waiting_cannot_cure_is_raised_at_once() -> None:
    with pytest.raises(NotFound):
        await FakeRunLog([1, BROKEN], [NotFound("no such run")]).seen()


async def test_gives_up_when_nothing_comes_for_too_long_and_says_how_to_resume() -> None:
    now = iter(range(0, 1000, 4))
    log = FakeRunLog([1, 2, BROKEN], *([BROKEN] for _ in range(9)))
    policy = ReattachPolicy(give_up_after_s=10, first_backoff_s=0.0, clock=lambda: float(next(now)))
    with pytest.raises(StreamInterrupted, match=r"GET /v1/runs/r1/events\?after=2") as raised:
        await log.seen(policy=policy)
    assert raised.value.metadata == {"run_id": "r1", "after_seq": "2"}


class SlowRunLog(FakeRunLog):
    """Each attachment takes its time before it tells anything."""

    def __init__(self, attachment_s: float, *streams: list[int | GroundworkError]) -> None:
        super().__init__(*streams)
        self.policy = ReattachPolicy(give_up_after_s=10, first_backoff_s=0.0, clock=lambda: self.now)
        self.now = 0.0
        self._attachment_s = attachment_s

    async def _next(self) -> AsyncIterator[RunEvent]:
        self.now += self._attachment_s
        async for event in super()._next():
            yield event


def _silent(times: int) -> list[list[int | GroundworkError]]:
    return [[DeadlineExceeded("its time is over")] for _ in range(times)]


async def test_stream_of_a_run_that_waits_for_days_is_opened_again_whenever_its_life_is_over() -> None:
    log = SlowRunLog(3600.0, [1, 2, BROKEN], *_silent(50), [3, 4, 5])
    assert await log.seen(policy=log.policy) == [1, 2, 3, 4, 5]


async def test_deadline_that_comes_soon_is_a_break_like_any_other() -> None:
    log = SlowRunLog(1.0, [1, 2, BROKEN], *_silent(50))
    with pytest.raises(StreamInterrupted):
        await log.seen(policy=log.policy)
