"""Waiting until a Deployment or StatefulSet is as its spec says."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import aclosing
from typing import Any

from cli.cluster.connection.api import Api, Json
from cli.cluster.connection.pods import Pod, component_of, name_of, parse_pod
from cli.cluster.connection.release import Release
from cli.cluster.errors import ClusterError
from cli.cluster.installation import read_installation
from cli.cluster.troubles import find_troubles

_AGAIN_AFTER_S = 0.5
_SAID_MAX = 3
_LOOK_EVERY_S = 5.0
_RESTARTS_MAX = 2


class NotReadyInTime(ClusterError):
    """The pods did not become ready within the time that was given."""


class GaveUp(ClusterError):
    """A pod ends again and again: waiting longer would change nothing."""


async def wait_until_ready(
    api: Api,
    release: Release,
    kind: str,
    name: str,
    timeout_s: float,
    report: Callable[[str], None] = lambda _: None,
    *,
    gives_up: bool = False,
    known: frozenset[str] = frozenset(),
) -> None:
    """Returns once all its pods are new and ready, and the former ones are gone. `report` hears how many, at each change.

    Raises NotReadyInTime with what is wrong, and with `gives_up` GaveUp as soon as a pod has ended several times that is not among
    those `known` before (uids).
    """
    try:
        async with asyncio.timeout(timeout_s):
            await _first_of(
                _watch(api, release, kind, name, report),
                *([_until_hopeless(api, release, name, known)] if gives_up else []),
            )
    except TimeoutError as error:
        raise NotReadyInTime(await _why(api, release, name, f"After {timeout_s:g} s")) from error


async def _first_of(*parts: Coroutine[Any, Any, None]) -> None:
    """Ends with the first of them; what it raises is raised."""
    tasks = [asyncio.ensure_future(part) for part in parts]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _until_hopeless(api: Api, release: Release, name: str, known: frozenset[str]) -> None:
    """Raises GaveUp."""
    while True:
        await asyncio.sleep(_LOOK_EVERY_S)
        pods = await api.list(release.path("v1/pods"), labelSelector=release.selector)
        for each in (parse_pod(thing) for thing in pods if thing["metadata"].get("uid") not in known):
            if each.owner == name and not each.is_leaving and _is_hopeless(each):
                raise GaveUp(await _why(api, release, name, f"Since pod {each.name} ends again and again"))


def _is_hopeless(pod: Pod) -> bool:
    return any(each.waiting == "CrashLoopBackOff" and each.restarts >= _RESTARTS_MAX for each in pod.containers)


async def _watch(api: Api, release: Release, kind: str, name: str, report: Callable[[str], None]) -> None:
    last = ""
    while True:
        watching = api.watch(release.path(kind), fieldSelector=f"metadata.name={name}")
        async with aclosing(watching) as events:
            async for event in events:
                if event.get("type") not in {"ADDED", "MODIFIED"}:
                    continue
                now = progress(event["object"])
                if now != last:
                    last = now
                    report(now)
                if is_settled(event["object"]):
                    return
        await asyncio.sleep(_AGAIN_AFTER_S)  # the server ends watches now and then


def is_settled(workload: Json) -> bool:
    """Whether a Deployment or StatefulSet is what its specification says."""
    spec, status = workload["spec"], workload.get("status") or {}
    wanted = int(spec.get("replicas", 1))
    if int(status.get("observedGeneration") or 0) < int(workload["metadata"].get("generation") or 0):
        return False
    counts = [int(status.get(key) or 0) for key in ("replicas", "readyReplicas", "updatedReplicas")]
    if wanted == 0:
        return counts[0] == 0
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
