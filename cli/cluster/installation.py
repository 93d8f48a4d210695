"""An installation at one moment: its objects, the troubles that its processes report, and the last words of those that ended."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from cli.cluster.connection.api import Api, Json
from cli.cluster.connection.concurrency import gathered
from cli.cluster.connection.pods import OPS_PORT, Pod, parse_pod
from cli.cluster.connection.port_forward import fetch_page
from cli.cluster.connection.refusals import Forbidden, NotFound
from cli.cluster.connection.release import Release
from cli.errors import CliError

_LAST_WORDS = 8
"""Lines of a log that say why a process ended."""
_LAST_WORDS_BYTES = 4000


@dataclass(frozen=True)
class Installation:
    """What the doctor looks at."""

    read_at: datetime
    pods: Sequence[Pod] = ()
    workloads: Sequence[Json] = ()
    """Deployments and StatefulSets."""
    claims: Sequence[Json] = ()
    cron_jobs: Sequence[Json] = ()
    jobs: Sequence[Json] = ()
    warnings: Sequence[Json] = ()
    """Events of the type Warning."""
    nodes: Sequence[Json] = ()
    troubles: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Lines of `/readyz` by pod: `PART: MESSAGE`."""
    last_words: Mapping[str, str] = field(default_factory=dict)
    """The end of the log by pod, of pods with a container that failed."""
    unseen: Sequence[str] = ()
    """What could not be looked at, and why."""


async def read_installation(api: Api, release: Release) -> Installation:
    """Reads everything at once. Parts that are refused or do not answer are named in `unseen`.

    Raises CliError when pods or workloads cannot be read.
    """
    return await _Reader(api, release).read()


class _Reader:
    def __init__(self, api: Api, release: Release) -> None:
        self._api = api
        self._release = release
        self._unseen: list[str] = []

    async def read(self) -> Installation:
        own = self._release.selector
        listed = self._listed
        things, deployments, stateful_sets, claims, cron_jobs, jobs, warnings, nodes = await gathered(
            [
                listed("v1/pods", labelSelector=own),
                listed("apps/v1/deployments", labelSelector=own),
                listed("apps/v1/statefulsets", labelSelector=own),
                self._seen("volume claims", listed("v1/persistentvolumeclaims")),
                self._seen("CronJobs", listed("batch/v1/cronjobs", labelSelector=own)),
                self._seen("Jobs", listed("batch/v1/jobs", labelSelector=own)),
                self._seen("events", listed("v1/events", fieldSelector="type=Warning")),
                self._seen("nodes", self._api.list("/api/v1/nodes")),
            ]
        )
        pods = [parse_pod(each) for each in things]
        return Installation(
            datetime.now(UTC),
            pods,
            [*deployments, *stateful_sets],
            claims,
            cron_jobs,
            jobs,
            warnings,
            nodes,
            await self._troubles(pods),
            await self._last_words(pods),
            tuple(dict.fromkeys(self._unseen)),
        )

    def _listed(self, kind: str, **query: str) -> Awaitable[list[Json]]:
        return self._api.list(self._release.path(kind), **query)

    async def _seen(self, what: str, asked: Awaitable[list[Json]]) -> list[Json]:
        try:
            return await asked
        except NotFound:
            return []
        except CliError as error:
            self._unseen.append(f"{what} ({_in_a_sentence(error)})")
            return []

    async def _troubles(self, pods: Sequence[Pod]) -> dict[str, Sequence[str]]:
        ours = [pod for pod in pods if pod.runs and OPS_PORT in pod.ports and not pod.is_of_job]
        try:
            said = await gathered(self._readiness(pod) for pod in ours)
        except Forbidden as error:
            self._unseen.append(f"what the pods say of themselves ({_in_a_sentence(error)})")
            return {}
        return {pod.name: lines for pod, lines in zip(ours, said, strict=True)}

    async def _readiness(self, pod: Pod) -> Sequence[str]:
        """The lines behind the first of `/readyz`."""
        try:
            page = await fetch_page(self._api, self._release.namespace, pod.name, OPS_PORT, "/readyz")
        except Forbidden:
            raise
        except CliError as error:
            return [f"operations port: it does not answer through the API server ({_in_a_sentence(error)})"]
        return page.splitlines()[1:]

    async def _last_words(self, pods: Sequence[Pod]) -> dict[str, str]:
        failed = [(pod, each) for pod in pods for each in pod.containers if each.has_failed]
        said = await gathered(
            self._log(pod.name, each.name, previous=each.waiting == "CrashLoopBackOff") for pod, each in failed
        )
        return {pod.name: words for (pod, _), words in zip(failed, said, strict=True)}

    async def _log(self, pod: str, container: str, *, previous: bool) -> str:
        """The end of a log; empty where it is gone."""
        query: dict[str, str | int] = {
            "tailLines": _LAST_WORDS,
            "limitBytes": _LAST_WORDS_BYTES,
            "container": container,
        }
        query |= {"previous": "true"} if previous else {}
        try:
            return (await self._api.text(f"{self._release.path('v1/pods')}/{pod}/log", **query)).strip()
        except CliError:
            return ""


def _in_a_sentence(error: CliError) -> str:
    return str(error).partition(". ")[0].rstrip(".")
