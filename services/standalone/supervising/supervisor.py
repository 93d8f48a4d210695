"""Starts all children, keeps them alive, and stops them in the order that loses nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from itertools import groupby

from services.standalone.errors import PortLost, StandaloneError
from services.standalone.storage.disk import Disk
from services.standalone.supervising.child import Child
from services.standalone.supervising.forking import fork_server
from services.standalone.supervising.models import ChildSpec, RestartPolicy
from services.standalone.supervising.ports import Announcer, HealthProbe, LogSink

CANCEL_AGAIN_S = 0.2


class Supervisor:
    """The life of all children together."""

    def __init__(
        self,
        specs: Sequence[ChildSpec],
        policy: RestartPolicy,
        *,
        probe: HealthProbe,
        open_log: Callable[[str], LogSink],
        announce: Announcer,
        on_all_ready: Callable[[], None],
        disk: Disk,
        on_stage_ready: Callable[[int], Awaitable[None]],
        on_stage_stopping: Callable[[int], Awaitable[None]],
    ) -> None:
        self._on_stage_stopping = on_stage_stopping
        self._disk = disk
        self._on_stage_ready = on_stage_ready
        self._on_all_ready = on_all_ready
        self._hopeless: StandaloneError | None = None
        self._stop = asyncio.Event()
        self._fork_server = fork_server(specs)
        self._children = [
            Child(
                spec,
                policy,
                probe=probe,
                log=open_log(spec.name),
                announce=announce,
                on_hopeless=self._give_up,
                disk=disk,
                fork_server=self._fork_server,
            )
            for spec in specs
        ]
        self._started: list[Child] = []

    async def run(self) -> None:
        """Until :meth:`request_stop`. Raises what a child gave up with, a StandaloneError, after stopping the others in order."""
        async with asyncio.TaskGroup() as tasks:
            watch = tasks.create_task(self._disk.watch())
            if self._fork_server:
                tasks.create_task(self._fork_server.prepare())
            start = tasks.create_task(self._start(tasks))
            try:
                await self._stop.wait()
            finally:
                watch.cancel()
                await _cancelled(start)
                await self._stop_in_order()
                if self._fork_server:
                    await self._fork_server.close()
                for child in self._children:
                    child.close()
        if self._hopeless is not None:
            raise self._hopeless

    def request_stop(self) -> None:
        """Drain and stop; asked a second time, kill."""
        if not self._stop.is_set():
            self._stop.set()
            return
        for child in self._started:
            child.kill()

    @property
    def lost_port(self) -> bool:
        """Whether it ends because another program took a port of a child."""
        return isinstance(self._hopeless, PortLost)

    async def restart(self, name: str, between: Callable[[], None]) -> None:
        """Ends a child, does something while it is away, and returns when it is ready again."""
        await next(child for child in self._children if child.spec.name == name).restart(between)

    def is_ready(self, name: str) -> bool:
        """Whether this child has been ready once."""
        return any(child.spec.name == name and child.ready.is_set() for child in self._children)

    async def _start(self, tasks: asyncio.TaskGroup) -> None:
        for stage in _by_stage(self._children, lambda child: child.spec.start_stage):
            for child in stage:
                self._started.append(child)
                tasks.create_task(child.run())
            for child in stage:
                await child.ready.wait()
            try:
                await self._on_stage_ready(stage[0].spec.start_stage)
            except StandaloneError as error:
                self._give_up(error)
                return
        self._on_all_ready()

    async def _stop_in_order(self) -> None:
        for stage in _by_stage(self._started, lambda child: child.spec.stop_stage):
            await self._on_stage_stopping(stage[0].spec.stop_stage)
            await asyncio.gather(*(child.stop() for child in stage))

    def _give_up(self, error: StandaloneError) -> None:
        self._hopeless = self._hopeless or error
        self._stop.set()


async def _cancelled(task: asyncio.Task[None]) -> None:
    """Until the task has ended: what it began must not go on while children stop. Asked again and again, since before Python 3.12
    a wait that ends at the same moment forgets that it was cancelled."""
    while not task.done():
        task.cancel()
        await asyncio.wait({task}, timeout=CANCEL_AGAIN_S)


def _by_stage(children: Sequence[Child], stage_of: Callable[[Child], int]) -> list[list[Child]]:
    return [list(stage) for _, stage in groupby(sorted(children, key=stage_of), key=stage_of)]
