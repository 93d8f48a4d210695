"""Waiting until a Deployment or StatefulSet is as its spec says."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from cli.cluster.connection.api import Api, Json
from cli.cluster.connection.pods import Pod, component_of, name_of, parse_pod
from cli.cluster.connection.release import Release
from cli.cluster.errors import ClusterError
from cli.cluster.installation import read_installation
from cli.cluster.troubles import find_troubles

_AGAIN_AFTER_S = 2.0
_SAID_MAX = 3
_RESTARTS_MAX = 2


async def wait_until_ready(
    api: Api,
    release: Release,
    kind: str,
    name: str,
    timeout_s: float,
    report: Callable[[str], None],
    known: frozenset[str] = frozenset(),
) -> None:
    """Returns once all its pods are new and ready, and the former ones are gone. `report` hears how many, at each change.

    Raises ClusterError with what is wrong when the time is up, or as soon as a pod has ended several times that is not among those
    `known` before (uids).
    """
    last = ""
    try:
        async with asyncio.timeout(timeout_s):
            while True:
                workload = await api.get(f"{release.path(kind)}/{name}")
                if (now := progress(workload)) != last:
                    last = now
                    report(f"{component_of(workload)}: {now}")
                if is_settled(workload):
                    return
                await _require_hope(api, release, name, known)
                await asyncio.sleep(_AGAIN_AFTER_S)
    except TimeoutError as error:
        raise ClusterError(await _why(api, release, name, f"After {timeout_s:g} s")) from error


async def _require_hope(api: Api, release: Release, name: str, known: frozenset[str]) -> None:
    """Raises ClusterError where a pod ends again and again: waiting longer would change nothing."""
    pods = await api.list(release.path("v1/pods"), labelSelector=release.selector)
    for each in (parse_pod(thing) for thing in pods if thing["metadata"].get("uid") not in known):
        if each.owner == name and not each.is_leaving and _is_hopeless(each):
            raise ClusterError(await _why(api, release, name, f"Since pod {each.name} ends again and again"))


def _is_hopeless(pod: Pod) -> bool:
    return any(each.waiting == "CrashLoopBackOff" and each.restarts >= _RESTARTS_MAX for each in pod.containers)


def is_settled(workload: Json) -> bool:
    """Whether a Deployment or StatefulSet is what its specification says."""
    spec, status = workload["spec"], workload.get("status") or {}
    wanted = int(spec.get("replicas", 1))
    if int(status.get("observedGeneration") or 0) < int(workload["metadata"].get("generation") or 0):
        return False
    counts = [int(status.get(key) or 0) for key in ("replicas", "readyReplicas", "updatedReplicas")]
    return counts == [wanted] * 3


def progress(workload: Json) -> str:
    """`2 of 3 ready`."""
    status = workload.get("status") or {}
    return f"{int(status.get('readyReplicas') or 0)} of {int(workload['spec'].get('replicas', 1))} ready"


async def _why(api: Api, release: Release, name: str, when: str) -> str:
    """What the doctor says about it, and if it says nothing that it takes long."""
    seen = await read_installation(api, release)
    workload = next((each for each in seen.workloads if name_of(each) == name), None)
    component = component_of(workload) if workload else name
    names = (component, *(pod.name for pod in seen.pods if pod.component == component))
    said = [
        each.text for each in find_troubles(seen) if any(about in f"{each.about} {each.sentence}" for about in names)
    ]
    why = " ".join(said[:_SAID_MAX]) or "Nothing is found wrong with them: wait longer (--timeout)."
    now = progress(workload) if workload else "none ready"
    return f"{when}, {now} of the pods of {component}. {why}"
