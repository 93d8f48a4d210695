"""Finds the installation that a command works on, by the labels of its workloads."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from cli.cluster.connection.api import Api, Json
from cli.cluster.connection.concurrency import gathered
from cli.cluster.connection.pods import NAME_LABEL, PRODUCT, RELEASE_LABEL, labels_of
from cli.cluster.connection.refusals import Forbidden
from cli.errors import UsageError

DEFAULT_NAMESPACE = "default"
_OURS = f"{NAME_LABEL}={PRODUCT}"


@dataclass(frozen=True)
class Release:
    """A Helm release in its namespace."""

    namespace: str
    name: str

    @property
    def selector(self) -> str:
        """Of everything that belongs to it."""
        return f"{_OURS},{RELEASE_LABEL}={self.name}"

    def path(self, api_and_kind: str) -> str:
        """Path of a list in its namespace: `apps/v1/deployments`, `v1/pods`."""
        return namespaced(self.namespace, api_and_kind)


def namespaced(namespace: str, api_and_kind: str) -> str:
    """`/apis/apps/v1/namespaces/NAMESPACE/deployments`."""
    version, _, kind = api_and_kind.rpartition("/")
    root = "apis" if "/" in version else "api"
    return f"/{root}/{version}/namespaces/{namespace}/{kind}"


async def find_release(api: Api, namespace: str = "", release: str = "") -> Release:
    """The installation in the namespace that the options or the kubeconfig's context name, as helm and kubectl look.

    Raises UsageError where there is none, and where there are several.
    """
    here = namespace or api.context_namespace or DEFAULT_NAMESPACE
    found = [each for each in await _releases_in(api, here) if release in {"", each.name}]
    if not found:
        named = f"release {release!r} of Groundwork" if release else "installation of Groundwork"
        raise UsageError(
            f"There is no {named} in namespace {here!r}. Name its namespace with -n; helm list -A shows all releases."
        )
    if len(found) > 1:
        names = ", ".join(each.name for each in found)
        raise UsageError(
            f"There are several installations in namespace {here!r}: {names}. Choose one with --release NAME."
        )
    return found[0]


async def _releases_in(api: Api, namespace: str) -> list[Release]:
    paths = [namespaced(namespace, f"apps/v1/{kind}") for kind in ("deployments", "statefulsets")]
    lists = await gathered(api.list(path, labelSelector=_OURS) for path in paths)
    return _releases(each for found in lists for each in found) or await _begun_in(api, namespace)


async def _begun_in(api: Api, namespace: str) -> list[Release]:
    """Releases that have nothing yet but a Job that failed, without which nothing else is installed."""
    try:
        jobs = await api.list(namespaced(namespace, "batch/v1/jobs"), labelSelector=_OURS)
    except Forbidden:
        return []
    return _releases(each for each in jobs if (each.get("status") or {}).get("failed"))


def _releases(workloads: Iterable[Json]) -> list[Release]:
    """In a stable order, each once."""
    found = {
        (each["metadata"]["namespace"], name) for each in workloads if (name := labels_of(each).get(RELEASE_LABEL))
    }
    return [Release(namespace, name) for namespace, name in sorted(found)]
