"""The logs of many pods as one: those that are there, merged by time, or as they come, those of new pods too."""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass, field

from cli.cluster import parsing
from cli.cluster.api import Api, Json
from cli.cluster.concurrency import gathered
from cli.cluster.log_lines import LogLine, Source
from cli.cluster.parsing import COMPONENT_LABEL
from cli.cluster.refusals import Forbidden, NotFound
from cli.cluster.release import Release
from cli.errors import CliError

_LIMIT_BYTES = 32 * 1024 * 1024
"""Of one pod: longer ones are cut at their beginning, by the number of lines, before."""
_HELD_S = 0.4
"""How long a line is held for older ones of other pods, whose way may be longer."""
_AGAIN_AFTER_S = 1.0
_WAITING_LINES = 10_000

Query = dict[str, str | int]


@dataclass(frozen=True)
class Logs:
    """Which logs: of these components (all if none is named), from this many seconds back or the last lines."""

    components: Sequence[str] = ()
    since_s: int | None = None
    tail_lines: int | None = None
    previous: bool = False

    def selector(self, release: Release) -> str:
        named = f",{COMPONENT_LABEL} in ({','.join(self.components)})" if self.components else ""
        return f"{release.selector}{named}"

    @property
    def query(self) -> Query:
        query: Query = {"timestamps": "true"}
        query |= {"sinceSeconds": self.since_s} if self.since_s is not None else {}
        query |= {"tailLines": self.tail_lines} if self.tail_lines is not None else {}
        return query | ({"previous": "true"} if self.previous else {})


async def read_logs(api: Api, release: Release, logs: Logs) -> list[LogLine]:
    """What is there, by time. A container that has not begun, or whose log is gone, has none."""
    pods = await api.list(release.path("v1/pods"), labelSelector=logs.selector(release))
    parts = await gathered(_log(api, release, source, logs) for pod in pods for source in sources_of(pod))
    return list(heapq.merge(*parts, key=lambda line: line.at))


async def _log(api: Api, release: Release, source: Source, logs: Logs) -> list[LogLine]:
    try:
        text = await api.text(_path(release, source), container=source.container, limitBytes=_LIMIT_BYTES, **logs.query)
    except Forbidden:
        raise
    except CliError:
        return []
    return [LogLine.read(source, line) for line in text.splitlines() if line]


def sources_of(pod: Json) -> Iterable[Source]:
    """The containers of a pod that have begun at least once."""
    status = pod.get("status") or {}
    for each in (*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())):
        state = {**(each.get("state") or {}), **(each.get("lastState") or {})}
        if "running" in state or "terminated" in state:
            yield Source(parsing.name_of(pod), parsing.component_of(pod), str(each["name"]))


def _path(release: Release, source: Source) -> str:
    return f"{release.path('v1/pods')}/{source.pod}/log"


async def follow_logs(api: Api, release: Release, logs: Logs) -> AsyncGenerator[LogLine, None]:
    """Lines as they come, by time as far as they come within a moment. Runs until cancelled."""
    follower = _Follower(api, release, logs)
    async with asyncio.TaskGroup() as group:
        group.create_task(follower.find_pods(group))
        async with aclosing(follower.lines()) as lines:
            async for line in lines:
                yield line


@dataclass
class _Follower:
    """Follows each container by a task of its own, into one queue."""

    api: Api
    release: Release
    logs: Logs
    queue: asyncio.Queue[LogLine] = field(default_factory=lambda: asyncio.Queue(_WAITING_LINES))
    followed: set[Source] = field(default_factory=set)

    async def find_pods(self, group: asyncio.TaskGroup) -> None:
        """Begins to follow each container that has begun, now and later."""
        while True:
            changes = self.api.watch(self.release.path("v1/pods"), labelSelector=self.logs.selector(self.release))
            with suppress(NotFound):
                async with aclosing(changes) as events:
                    async for event in events:
                        if event.get("type") in {"ADDED", "MODIFIED"}:
                            self._follow_new(event["object"], group)
            await asyncio.sleep(_AGAIN_AFTER_S)

    def _follow_new(self, pod: Json, group: asyncio.TaskGroup) -> None:
        for source in sources_of(pod):
            if source not in self.followed:
                self.followed.add(source)
                group.create_task(self._follow(source))

    async def _follow(self, source: Source) -> None:
        """Until the pod is gone or has ended. A container that was started again is followed on, and a connection that the server
        has ended is made again, from where the last one was."""
        query, last = self.logs.query, ""
        while True:
            lines = self.api.lines(_path(self.release, source), container=source.container, follow="true", **query)
            with suppress(_NotYet):
                async with aclosing(lines) as blocks:
                    async for block in _whole(blocks):
                        line = LogLine.read(source, block.decode(errors="replace"))
                        if line.at > last:
                            last = line.at
                            await self.queue.put(line)
            if await self._has_ended(source):
                return
            await asyncio.sleep(_AGAIN_AFTER_S)
            query = {"timestamps": "true", "sinceTime": last[:19] + "Z"} if last else query

    async def _has_ended(self, source: Source) -> bool:
        try:
            pod = await self.api.get(f"{self.release.path('v1/pods')}/{source.pod}")
        except NotFound:
            return True
        return (pod.get("status") or {}).get("phase") in {"Succeeded", "Failed"}

    async def lines(self) -> AsyncGenerator[LogLine, None]:
        """From the queue, each held for a moment, so that older ones can overtake it."""
        clock = asyncio.get_running_loop().time
        held: list[tuple[str, int, float, LogLine]] = []
        number = 0
        while True:
            wait_s = max(0.0, held[0][2] + _HELD_S - clock()) if held else None
            with suppress(TimeoutError):
                async with asyncio.timeout(wait_s):
                    line = await self.queue.get()
                    number += 1
                    heapq.heappush(held, (line.at, number, clock(), line))
            while held and held[0][2] + _HELD_S <= clock():
                yield heapq.heappop(held)[3]


class _NotYet(CliError):
    """The container's log cannot be read at the moment."""


async def _whole(blocks: AsyncGenerator[bytes, None]) -> AsyncGenerator[bytes, None]:
    """The lines that say something. A refusal that is not about rights is only for now: the container waits to start."""
    try:
        async for block in blocks:
            if block:
                yield block
    except Forbidden:
        raise
    except CliError as error:
        raise _NotYet(str(error)) from error
