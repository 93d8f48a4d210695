"""Waiting until all pods work with the keys that they were given. The kubelet renews what is mounted within a minute or two, each
node in its own time, and a process looks at its files when it is asked."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from cli.cluster import parsing
from cli.cluster.api import Api
from cli.cluster.concurrency import gathered
from cli.cluster.errors import ClusterError
from cli.cluster.metrics import Metrics
from cli.cluster.pages import OPS_PORT
from cli.cluster.port_forward import ask
from cli.cluster.refusals import Forbidden
from cli.cluster.release import namespaced
from cli.cluster.snapshot import Pod
from cli.cluster.standstill import SERVICES
from cli.errors import CliError
from kit.access.key_metrics import METRIC

_AGAIN_AFTER_S = 2.0


@dataclass(frozen=True)
class TakingOver:
    """Of the services' pods of one release."""

    api: Api
    namespace: str
    release: str
    timeout_s: float
    told: Callable[[str], None]

    async def wait(self, what: str, kind: str, expected: Callable[[str], int | None]) -> None:
        """Returns when every pod that runs shows the fingerprint that its component should have, None standing for any. Raises
        ClusterError that names those which do not when the time is up."""
        said = ""
        behind: list[Pod] = []
        try:
            async with asyncio.timeout(self.timeout_s):
                while True:
                    pods = [pod for pod in await self._pods() if expected(pod.component) is not None]
                    shown = await gathered(self._fingerprint(pod, kind) for pod in pods)
                    behind = [pod for pod, has in zip(pods, shown, strict=True) if has != expected(pod.component)]
                    now = f"{len(pods) - len(behind)} of {len(pods)} pods have {what}."
                    if now != said:
                        said = now
                        self.told(now)
                    if not behind:
                        return
                    await asyncio.sleep(_AGAIN_AFTER_S)
        except TimeoutError as error:
            raise ClusterError(_late(behind, what, self.timeout_s)) from error

    async def _pods(self) -> list[Pod]:
        """Those whose process runs. One that is yet to start reads its files then."""
        selector = f"{parsing.NAME_LABEL}={parsing.PRODUCT},{parsing.RELEASE_LABEL}={self.release}"
        found = await self.api.list(namespaced(self.namespace, "v1/pods"), labelSelector=selector)
        pods = [parsing.pod(each) for each in found]
        return [pod for pod in pods if pod.component in SERVICES and pod.runs]

    async def _fingerprint(self, pod: Pod, kind: str) -> int | None:
        """None of a pod that does not tell it: it may be starting, or its node may be away."""
        try:
            page = await ask(self.api, self.namespace, pod.name, OPS_PORT, "/metrics")
        except Forbidden:
            raise
        except CliError:
            return None
        value = Metrics.parse(page.text).value(METRIC, keys=kind)
        return None if value is None else int(value)


def _late(pods: list[Pod], what: str, timeout_s: float) -> str:
    named = ", ".join(f"{pod.name} on {pod.node or 'no node'}" for pod in pods) or "nobody answered"
    return (
        f"After {timeout_s:g} s some pods do not have {what}: {named}. Nothing is refused as it is. See what keeps them "
        "(groundwork cluster doctor), delete a pod that hangs, and run the command again."
    )
