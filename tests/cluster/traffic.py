"""People who use the system while it is broken on purpose, at work on an event loop of their own."""

import asyncio
import random
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass

import httpx

from tests.cluster.clients import Asker, Client, Reader, Uploader
from tests.cluster.facts import User
from tests.cluster.journal import Journal

TIMEOUT = httpx.Timeout(30.0, connect=3.0)
"""A node without power answers nothing, not even that it is gone. An event stream is never silent for longer than 15 s."""
BETWEEN_S = 0.3


@dataclass(frozen=True)
class Load:
    """Who does what at the same time."""

    uploaders: int = 4
    uploads: int = 200
    """Of all uploaders together; then they rest."""
    askers: int = 2
    readers: int = 50


class Traffic:
    """Users at work. `addresses` are those of the gateways as clients know them."""

    def __init__(self, addresses: Callable[[], Sequence[str]], users: Sequence[User], load: Load) -> None:
        self.journal = Journal()
        self._addresses = addresses
        self._users = users
        self._load = load
        self._enough = asyncio.Event()
        self._failed: BaseException | None = None

    @contextmanager
    def running(self) -> Iterator["Traffic"]:
        """For the block, and until everybody has an answer to what they had in hand. Raises what broke a client."""
        loop = asyncio.new_event_loop()
        thread = threading.Thread(target=self._run, args=(loop,), name="traffic")
        thread.start()
        try:
            yield self
        finally:
            loop.call_soon_threadsafe(self._enough.set)
            thread.join()
            loop.close()
        if self._failed is not None:
            raise self._failed

    def until(self, condition: Callable[[Journal], bool], what: str, timeout_s: float = 300.0) -> None:
        """Until the users have seen enough. Raises AssertionError."""
        is_met = self.journal.wait_for(lambda: self._failed is not None or condition(self.journal), timeout_s)
        seen = self.journal.failures_by_reason().most_common(5)
        assert is_met, f"not within {timeout_s:.0f} s: {what}; failed meanwhile: {seen}"

    def _run(self, loop: asyncio.AbstractEventLoop) -> None:
        try:
            loop.run_until_complete(self._work())
        except BaseException as error:
            self._failed = error
            self.journal.noted()

    async def _work(self) -> None:
        load, quota = self._load, iter(range(self._load.uploads))
        kinds: list[tuple[Callable[[User, int], Client], int]] = [
            (lambda user, number: Uploader(self._addresses, self.journal, user, number, quota), load.uploaders),
            (lambda user, number: Asker(self._addresses, self.journal, user, self._others(user)), load.askers),
            (lambda user, number: Reader(self._addresses, self.journal, user, self._others(user)), load.readers),
        ]
        async with asyncio.TaskGroup() as group:
            for kind, count in kinds:
                for number in range(count):
                    group.create_task(self._keep(kind(self._users[number % len(self._users)], number)))

    def _others(self, user: User) -> list[User]:
        return [each for each in self._users if each is not user]

    async def _keep(self, client: Client) -> None:
        limits, headers = httpx.Limits(max_keepalive_connections=4), client.user.headers
        async with httpx.AsyncClient(timeout=TIMEOUT, limits=limits, headers=headers, trust_env=False) as http:
            while not self._enough.is_set() and await client.act(http, self._enough):
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._enough.wait(), random.uniform(0.0, BETWEEN_S))
