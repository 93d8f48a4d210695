"""What a call may take: its time, its turn, the size of what it answers."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from kit.deadline import bounded_timeout_s, limited_to
from services.tools.calling.bounds import bounded
from services.tools.calling.progress import Tell
from services.tools.errors import ToolError, ToolsBusy
from services.tools.models import Call, Effect, Tool, ToolOutput
from services.tools.sources.source import ToolSource, Wrapper

TOO_MANY = "too many tool calls wait already; try again in a moment"


def limit_s(tool: Tool) -> float:
    """The time of a call. What changes something goes on when its caller hangs up, so the caller's deadline is not its own."""
    own_s = tool.policy.timeout_s
    if tool.policy.effect is not Effect.NONE:
        return own_s
    shorter_s = bounded_timeout_s(own_s)
    return own_s if shorter_s is None else shorter_s


class Deadline(Wrapper):
    """Ends a call when its time is over, with a TimeoutError, and passes the time left on to services that the tool asks."""

    async def call(self, tool: Tool, call: Call, tell: Tell) -> ToolOutput:
        time_s = limit_s(tool)
        with limited_to(time_s):
            async with asyncio.timeout(time_s):
                return await super().call(tool, call, tell)


class Bounded(Wrapper):
    """Refuses outputs that are too large to pass on."""

    async def call(self, tool: Tool, call: Call, tell: Tell) -> ToolOutput:
        output = await super().call(tool, call, tell)
        try:
            return bounded(tool.name, output)
        except ToolError as error:
            if tool.policy.effect is Effect.NONE:
                raise
            raise type(error)(f"{tool.name} was done, but what it says cannot be passed on: {error}") from error


class Turns:
    """The calls that run beside each other, and those that wait."""

    def __init__(self, at_once: int, waiting: int) -> None:
        self._gate = asyncio.Semaphore(at_once)
        self._calls_max = at_once + waiting
        self._calls = 0

    @property
    def is_full(self) -> bool:
        """Whether the next call would be turned away."""
        return self._calls >= self._calls_max

    @asynccontextmanager
    async def turn(self, wait_s: float) -> AsyncIterator[None]:
        """Waits for a turn, which is the block. Raises ToolsBusy."""
        if self.is_full:
            raise ToolsBusy(TOO_MANY)
        self._calls += 1
        try:
            try:
                async with asyncio.timeout(wait_s):
                    await self._gate.acquire()
            except TimeoutError as error:
                raise ToolsBusy("the call has waited for its turn for too long; try again in a moment") from error
            try:
                yield
            finally:
                self._gate.release()
        finally:
            self._calls -= 1


class InTurn(Wrapper):
    """Lets few calls run at once, and few wait."""

    def __init__(self, inside: ToolSource, turns: Turns) -> None:
        super().__init__(inside)
        self._turns = turns

    async def call(self, tool: Tool, call: Call, tell: Tell) -> ToolOutput:
        async with self._turns.turn(limit_s(tool)):
            return await super().call(tool, call, tell)
