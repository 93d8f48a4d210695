"""Exchanges the model that vLLM serves: rolls its pods, waits until each is ready, and goes back when that fails.

A pod is ready once it has completed something: the chart's readiness probe asks for that.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from cli.cluster import served_model
from cli.cluster.connection.api import STRATEGIC_PATCH, Api, Json
from cli.cluster.connection.pods import COMPONENT_LABEL, name_of
from cli.cluster.connection.release import Release
from cli.cluster.errors import ClusterError
from cli.cluster.rollout import wait_until_ready
from cli.cluster.served_model import ASKING, COMPONENT, Serving
from cli.errors import CliError, UsageError

_KINDS = ("apps/v1/deployments", "apps/v1/statefulsets")

Report = Callable[[str], None]


@dataclass(frozen=True)
class _Place:
    """A Deployment or StatefulSet, as it was."""

    kind: str
    workload: Json

    @property
    def name(self) -> str:
        return name_of(self.workload)


class ModelSwap:
    """One exchange. `report` hears of each step."""

    def __init__(self, api: Api, release: Release, report: Report, *, timeout_s: float) -> None:
        self._api = api
        self._release = release
        self._report = report
        self._timeout_s = timeout_s

    async def run(self, model: str) -> Serving:
        """What is served afterwards. Raises UsageError where nothing can be exchanged, and ClusterError when it was undone."""
        vllm = await self._require(COMPONENT)
        arguments = served_model.arguments_of(vllm.workload)
        before = served_model.serving(arguments)
        if before.model == model:
            raise UsageError(f"vLLM serves {model} already.")
        orchestrator = await self._require(ASKING)
        asked = _environment(orchestrator.workload).get(served_model.ASKED_NAME, "")
        wanted = before.exchanged(model, asked)
        self._report(f"{before.model} gives way to {model}, which answers to {', '.join(wanted.names)}.")
        if not served_model.has_surge(vllm.workload):
            self._report("The old pod ends before the new one begins: answers quote the documents until it is ready.")
        try:
            await self._serve(vllm, served_model.arguments_for(arguments, wanted))
        except CliError as error:
            await self._go_back(vllm, arguments, before, error)
        if asked != before.model:
            return wanted  # its name is no model's and stays, or another server is asked
        return await self._ask_by_own_name(orchestrator, asked, wanted)

    async def _serve(self, vllm: _Place, arguments: list[str]) -> None:
        """Returns once the pods with these arguments are ready and the former ones gone. Raises CliError."""
        known = await self._uids()
        await self._patch(vllm, served_model.container_patch(vllm.workload, {"args": arguments}))
        await self._wait(vllm, known)

    async def _go_back(self, vllm: _Place, arguments: list[str], before: Serving, error: CliError) -> None:
        """Raises ClusterError that says which model is served."""
        self._report(f"It failed: {error} Going back to {before.model}.")
        try:
            await self._serve(vllm, arguments)
        except CliError as again:
            raise ClusterError(f"{error} Going back to {before.model} failed too: {again}") from error
        raise ClusterError(f"{error} {before.model} is served as before.") from error

    async def _ask_by_own_name(self, place: _Place, before: str, wanted: Serving) -> Serving:
        """Has the orchestrators ask for the new model by its name, one after the other; until then they ask by the former one's,
        which vLLM still answers to."""
        await self._ask_as(place, wanted.model)
        try:
            await self._wait(place)
        except CliError as error:
            await self._ask_as(place, before)
            raise ClusterError(
                f"vLLM serves {wanted.model}, and the orchestrators did not become ready with its name, so they ask "
                f"for it as {before}: {error}"
            ) from error
        return Serving(wanted.model, (wanted.model, before))

    async def _ask_as(self, place: _Place, name: str) -> None:
        asked = {"name": served_model.ASKED_NAME, "value": name}
        await self._patch(place, served_model.container_patch(place.workload, {"env": [asked]}))

    async def _require(self, component: str) -> _Place:
        selector = f"{self._release.selector},{COMPONENT_LABEL}={component}"
        for kind in _KINDS:
            found = await self._api.list(self._release.path(kind), labelSelector=selector)
            if found:
                return _Place(kind, found[0])
        raise UsageError(
            f"Release {self._release.name} runs no {component}: groundwork models set changes which model is asked "
            "elsewhere."
        )

    async def _patch(self, place: _Place, patch: Json) -> None:
        await self._api.patch(f"{self._release.path(place.kind)}/{place.name}", patch, STRATEGIC_PATCH)

    async def _wait(self, place: _Place, known: frozenset[str] = frozenset()) -> None:
        """`known`: pods that were there before; nothing is expected of them."""
        await wait_until_ready(self._api, self._release, place.kind, place.name, self._timeout_s, self._report, known)

    async def _uids(self) -> frozenset[str]:
        selector = f"{self._release.selector},{COMPONENT_LABEL}={COMPONENT}"
        pods = await self._api.list(self._release.path("v1/pods"), labelSelector=selector)
        return frozenset(str(pod["metadata"].get("uid")) for pod in pods)


def _environment(workload: Json) -> dict[str, str]:
    container = workload["spec"]["template"]["spec"]["containers"][0]
    return {each["name"]: each["value"] for each in container.get("env") or () if "value" in each}
