"""All services of an installation stopped, so that nothing writes while its message store is exchanged, and started again.

What ran is noted on the objects themselves, so that a command that was interrupted starts the same again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from cli.cluster.connection.api import Api, Json
from cli.cluster.connection.concurrency import gathered
from cli.cluster.connection.pods import COMPONENT_LABEL, component_of, name_of
from cli.cluster.connection.refusals import NotFound
from cli.cluster.connection.release import Release
from cli.cluster.errors import ClusterError
from services.standalone.topology import GRPC_SERVICES

SERVICES = frozenset({"gateway", *(service.name for service in GRPC_SERVICES)})
WORKLOADS = ("apps/v1/deployments", "apps/v1/statefulsets")
NOTED_REPLICAS = "groundwork/replicas-before"
NOTED_SUSPENSION = "groundwork/suspended-for-restore"
_SCALED_OBJECTS, _CRON_JOBS = "keda.sh/v1alpha1/scaledobjects", "batch/v1/cronjobs"
_KEDA_PAUSE = "autoscaling.keda.sh/paused-replicas"
_AGAIN_AFTER_S = 1.0


@dataclass(frozen=True)
class Standstill:
    """Of one installation."""

    api: Api
    release: Release
    report: Callable[[str], None]

    async def begin(self, timeout_s: float) -> None:
        """Stops everything but servers, and returns when no pod of a service is left. Raises ClusterError when some remain."""
        await self._suspend_backups()
        for path, thing in await self._scaled_objects():
            if _KEDA_PAUSE not in _annotations(thing):
                await self._annotate(path, {_KEDA_PAUSE: "0", NOTED_REPLICAS: "keda"})
        for path, thing in await self._workloads():
            if NOTED_REPLICAS in _annotations(thing):
                continue  # an interrupted one noted it
            noted = {NOTED_REPLICAS: str(thing["spec"].get("replicas", 1))}
            await self.api.patch(path, {"metadata": {"annotations": noted}, "spec": {"replicas": 0}})
        self.report("Stopping the services.")
        try:
            async with asyncio.timeout(timeout_s):
                await self._until_gone()
        except TimeoutError as error:
            names = ", ".join(await self._pods())
            raise ClusterError(
                f"After {timeout_s:g} s there are still pods: {names}. See why with kubectl describe, and run the command again."
            ) from error
        self.report("All services have stopped.")

    async def end(self) -> int:
        """Starts again what was stopped; how many workloads that are."""
        stopped = [(path, thing) for path, thing in await self._workloads() if NOTED_REPLICAS in _annotations(thing)]
        for path, thing in stopped:
            replicas = int(_annotations(thing)[NOTED_REPLICAS])
            forgotten = {"metadata": {"annotations": {NOTED_REPLICAS: None}}, "spec": {"replicas": replicas}}
            await self.api.patch(path, forgotten)
        for path, thing in await self._scaled_objects():
            if NOTED_REPLICAS in _annotations(thing):
                await self._annotate(path, {_KEDA_PAUSE: None, NOTED_REPLICAS: None})
        for path, thing in await self._cron_jobs():
            if NOTED_SUSPENSION in _annotations(thing):
                resumed = {"metadata": {"annotations": {NOTED_SUSPENSION: None}}, "spec": {"suspend": False}}
                await self.api.patch(path, resumed)
        return len(stopped)

    async def _suspend_backups(self) -> None:
        """A copy made meanwhile would be of half a store."""
        for path, thing in await self._cron_jobs():
            if component_of(thing) == "backup" and not thing["spec"].get("suspend"):
                noted = {"metadata": {"annotations": {NOTED_SUSPENSION: "true"}}, "spec": {"suspend": True}}
                await self.api.patch(path, noted)

    async def _until_gone(self) -> None:
        while True:
            if not await self._pods():
                return
            await asyncio.sleep(_AGAIN_AFTER_S)

    async def _pods(self) -> list[str]:
        pods = await self.api.list(self.release.path("v1/pods"), labelSelector=self._of_services())
        return [name_of(each) for each in pods]

    async def _workloads(self) -> list[tuple[str, Json]]:
        found = await gathered(self._listed(kind, self._of_services()) for kind in WORKLOADS)
        return [each for some in found for each in some]

    async def _scaled_objects(self) -> list[tuple[str, Json]]:
        """None where KEDA is not installed."""
        with suppress(NotFound):
            return await self._listed(_SCALED_OBJECTS, self._of_services())
        return []

    async def _cron_jobs(self) -> list[tuple[str, Json]]:
        return await self._listed(_CRON_JOBS, self.release.selector)

    async def _listed(self, kind: str, selector: str) -> list[tuple[str, Json]]:
        path = self.release.path(kind)
        found = await self.api.list(path, labelSelector=selector)
        return [(f"{path}/{name_of(each)}", each) for each in found]

    async def _annotate(self, path: str, annotations: dict[str, str | None]) -> None:
        await self.api.patch(path, {"metadata": {"annotations": annotations}})

    def _of_services(self) -> str:
        return f"{self.release.selector},{COMPONENT_LABEL} in ({','.join(sorted(SERVICES))})"


def _annotations(thing: Json) -> dict[str, str]:
    return thing["metadata"].get("annotations") or {}
