"""Waiting until all pods work with the keys that they were given. The kubelet renews what is mounted within a minute or two, each
node in its own time, and a process looks at its files when it is asked."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from cli.cluster.connection.api import Api
from cli.cluster.connection.concurrency import gathered
from cli.cluster.connection.pods import OPS_PORT, Pod, parse_pod
from cli.cluster.connection.port_forward import fetch_page
from cli.cluster.connection.refusals import Forbidden
from cli.cluster.connection.release import Release
from cli.cluster.errors import ClusterError
from cli.cluster.standstill import SERVICES
from cli.errors import CliError
from kit.access.key_metrics import METRIC

_AGAIN_AFTER_S = 2.0


@dataclass(frozen=True)
class TakingOver:
    """Of the services' pods of one release."""

    api: Api
    release: Release
    timeout_s: float
    report: Callable[[str], None]

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
                        self.report(now)
                    if not behind:
                        return
                    await asyncio.sleep(_AGAIN_AFTER_S)
        except TimeoutError as error:
            raise ClusterError(_late(behind, what, self.timeout_s)) from error

    async def _pods(self) -> list[Pod]:
        """Those whose process runs. One that is yet to start reads its files then."""
        found = await self.api.list(self.release.path("v1/pods"), labelSelector=self.release.selector)
        pods = [parse_pod(each) for each in found]
        return [pod for pod in pods if pod.component in SERVICES and pod.runs]

    async def _fingerprint(self, pod: Pod, kind: str) -> int | None:
        """None of a pod that does not tell it: it may be starting, or its node may be away."""
        try:
            page = await fetch_page(self.api, self.release.namespace, pod.name, OPS_PORT, "/metrics")
        except Forbidden:
            raise
        except CliError:
            return None
        return _value(page, kind)


def _value(page: str, kind: str) -> int | None:
    """What a /metrics page says of the keys of a kind."""
    from prometheus_client.parser import text_string_to_metric_families  # noqa: PLC0415 - clients should start fast

    try:
        samples = [each for family in text_string_to_metric_families(page) for each in family.samples]
    except ValueError:  # not in the format
        return None
    return next((int(each.value) for each in samples if each.name == METRIC and each.labels.get("keys") == kind), None)


def _late(pods: list[Pod], what: str, timeout_s: float) -> str:
    named = ", ".join(f"{pod.name} on {pod.node or 'no node'}" for pod in pods) or "nobody answered"
    return (
        f"After {timeout_s:g} s some pods do not have {what}: {named}. Nothing is refused as it is. See what keeps them "
        "(groundwork cluster doctor), delete a pod that hangs, and run the command again."
    )
