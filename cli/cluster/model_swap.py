"""Exchanges the model that vLLM serves: rolls its pods, has each complete something, and goes back when that fails."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass

from cli.cluster import served_model
from cli.cluster.connection.api import STRATEGIC_PATCH, Api, Json
from cli.cluster.connection.pods import COMPONENT_LABEL, name_of
from cli.cluster.connection.port_forward import PortUnreachable, ask
from cli.cluster.connection.release import Release
from cli.cluster.errors import ClusterError
from cli.cluster.rollout import wait_until_ready
from cli.cluster.served_model import ASKING, COMPONENT, Serving
from cli.errors import CliError, UsageError

_PORT = 8000
_COMPLETION_TIMEOUT_S = 120.0
_KINDS = ("apps/v1/deployments", "apps/v1/statefulsets")
_OK = 200

Report = Callable[[str], None]


class NotExchanged(ClusterError):
    """The new model does not serve; the former one is back, or is not."""


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
        """What is served afterwards. Raises UsageError where nothing can be exchanged, and NotExchanged when it was undone."""
        vllm = await self._require(COMPONENT)
        arguments = served_model.arguments_of(vllm.workload)
        before = served_model.serving(arguments)
        if before.model == model:
            raise UsageError(f"vLLM serves {model} already.")
        wanted = before.exchanged(model)
        self._report(f"{before.model} gives way to {model}, which is asked for as {wanted.asked}.")
        if not served_model.has_surge(vllm.workload):
            self._report("The old pod ends before the new one begins: answers quote the documents until it is ready.")
        try:
            await self._serve(vllm, served_model.arguments_for(arguments, wanted), wanted)
        except CliError as error:
            await self._go_back(vllm, arguments, before, error)
        return wanted if before.has_lasting_name else await self._ask_by_own_name(wanted)

    async def _serve(self, vllm: _Place, arguments: list[str], wanted: Serving) -> None:
        """Returns once every pod has completed something under the name that it is asked for. Raises CliError."""
        known = await self._uids()
        await self._patch(vllm, served_model.arguments_patch(vllm.workload, arguments))
        await self._wait(vllm, COMPONENT, known)
        for pod in await self._pods():
            await self._complete(name_of(pod), wanted.asked)

    async def _complete(self, pod: str, name: str) -> None:
        body = json.dumps({"model": name, "prompt": "1", "max_tokens": 1, "temperature": 0}).encode()
        answer = await ask(
            self._api,
            self._release.namespace,
            pod,
            _PORT,
            "/v1/completions",
            body=body,
            timeout_s=_COMPLETION_TIMEOUT_S,
        )
        if answer.status != _OK or b'"choices"' not in answer.body:
            raise PortUnreachable(
                f"Pod {pod} is ready and completes nothing: HTTP {answer.status}, {answer.text[:200]}"
            )
        self._report(f"{pod} completes.")

    async def _go_back(self, vllm: _Place, arguments: list[str], before: Serving, error: CliError) -> None:
        """Raises NotExchanged."""
        self._report(f"It failed: {error} Going back to {before.model}.")
        failed = await self._uids()
        await self._patch(vllm, served_model.arguments_patch(vllm.workload, arguments))
        try:
            await self._wait(vllm, COMPONENT, failed)
        except CliError as again:
            raise NotExchanged(f"{error} {before.model} was put back and is not ready either: {again}") from error
        raise NotExchanged(f"{error} {before.model} is served as before.") from error

    async def _ask_by_own_name(self, wanted: Serving) -> Serving:
        """Has the orchestrators ask for the new model by its name, one after the other; until then they ask by the former one's,
        which vLLM still answers to."""
        place = await self._require(ASKING)
        before = _environment(place.workload).get(served_model.ASKED_NAME)
        if before != wanted.asked:
            return wanted  # it asks another server, or by a name of its own
        await self._patch(place, served_model.asked_name_patch(place.workload, wanted.model))
        try:
            await self._wait(place, ASKING)
        except CliError as error:
            await self._patch(place, served_model.asked_name_patch(place.workload, before))
            raise NotExchanged(
                f"vLLM serves {wanted.model}, and the orchestrators did not become ready with its name, so they ask "
                f"for it as {wanted.asked}: {error}"
            ) from error
        return Serving(wanted.model, (wanted.model, wanted.asked))

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

    async def _wait(self, place: _Place, component: str, known: frozenset[str] = frozenset()) -> None:
        """`known`: pods that were there before; nothing is expected of them."""

        def report(now: str) -> None:
            self._report(f"{component}: {now}")

        await wait_until_ready(self._api, self._release, place.kind, place.name, self._timeout_s, report, known)

    async def _uids(self) -> frozenset[str]:
        return frozenset(str(pod["metadata"].get("uid")) for pod in await self._pods())

    async def _pods(self) -> list[Json]:
        selector = f"{self._release.selector},{COMPONENT_LABEL}={COMPONENT}"
        pods = await self._api.list(self._release.path("v1/pods"), labelSelector=selector)
        return [pod for pod in pods if not pod["metadata"].get("deletionTimestamp")]


def _environment(workload: Json) -> dict[str, str]:
    container = workload["spec"]["template"]["spec"]["containers"][0]
    return {each["name"]: each["value"] for each in container.get("env") or () if "value" in each}
