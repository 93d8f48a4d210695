"""Reads the snapshot of an installation: everything at once, each answer with a deadline. What may not be looked at, or does not
answer, is noted and left out; only a silent API server ends it."""

from __future__ import annotations

import base64
from collections.abc import Awaitable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TypeVar

from cli.cluster import parsing, parsing_controllers
from cli.cluster.api import Api, Json
from cli.cluster.concurrency import gathered
from cli.cluster.pages import Pages, read_pages
from cli.cluster.refusals import NotFound, certificate_end
from cli.cluster.release import Release
from cli.cluster.snapshot import BackupRuns, Certificate, Claim, Container, Pod, Snapshot
from cli.cluster.volumes import with_usage
from cli.errors import CliError

T = TypeVar("T")

_EVENTS_OF = timedelta(hours=1)
_LAST_WORDS = 8
"""Lines of a log that say why a process ended."""
_LAST_WORDS_BYTES = 4000
_ESSENTIAL = {"Deployments", "StatefulSets", "pods"}
"""Without these there is nothing to say."""
_FAILED_WAITS = {"CrashLoopBackOff"}
_METRICS_PATH = "metrics.k8s.io/v1beta1/pods"


async def read_snapshot(api: Api, release: Release, *, in_depth: bool = False) -> Snapshot:
    """The installation now. `in_depth`: also what only explains troubles (the ends of logs, certificates)."""
    return await _Reader(api, release, in_depth=in_depth).read()


class _Reader:
    """One reading. `_unseen` collects what could not be looked at."""

    def __init__(self, api: Api, release: Release, *, in_depth: bool) -> None:
        self._api = api
        self._release = release
        self._in_depth = in_depth
        self._unseen: list[str] = []
        self._now = datetime.now(UTC)

    async def read(self) -> Snapshot:
        found = await self._objects()
        snapshot = self._parsed(*found)
        pages = await self._pages(snapshot)
        claims = await self._claims(snapshot)
        pods = await self._with_last_words(snapshot.pods)
        backups = await self._with_reason(snapshot.backups, found[1])
        return replace(
            snapshot,
            claims=claims,
            pods=pods,
            backups=backups,
            ops=pages.ops,
            nats=pages.nats,
            streams=pages.streams,
            served=pages.served,
            unseen=tuple(dict.fromkeys(self._unseen)),
        )

    async def _objects(self) -> list[list[Json]]:
        """Lists of objects, in the order in which `_parsed` takes them."""
        own = {"labelSelector": self._release.selector}
        everywhere: dict[str, str] = {}
        kinds = (
            ("Deployments", "apps/v1/deployments", own),
            ("pods", "v1/pods", own),
            ("StatefulSets", "apps/v1/statefulsets", own),
            ("disruption budgets", "policy/v1/poddisruptionbudgets", own),
            ("autoscalers", "autoscaling/v2/horizontalpodautoscalers", everywhere),
            ("KEDA's ScaledObjects", "keda.sh/v1alpha1/scaledobjects", own),
            ("CronJobs", "batch/v1/cronjobs", own),
            ("Jobs", "batch/v1/jobs", own),
            ("events", "v1/events", {"fieldSelector": "type=Warning"}),
            ("processor and memory use", _METRICS_PATH, own),
        )
        nodes = self._seen("nodes", self._api.list("/api/v1/nodes"))
        certificates = self._certificates() if self._in_depth else _nothing()
        paths = ((what, self._api.list(self._release.path(path), **query)) for what, path, query in kinds)
        lists = [asked if what in _ESSENTIAL else self._seen(what, asked) for what, asked in paths]
        return await gathered([*lists, nodes, certificates])

    def _parsed(
        self,
        deployments: Sequence[Json],
        pods: Sequence[Json],
        stateful_sets: Sequence[Json],
        budgets: Sequence[Json],
        hpas: Sequence[Json],
        scaled_objects: Sequence[Json],
        cron_jobs: Sequence[Json],
        jobs: Sequence[Json],
        events: Sequence[Json],
        usages: Sequence[Json],
        nodes: Sequence[Json],
        certificates: Sequence[Json],
    ) -> Snapshot:
        workloads = [parsing.workload({"kind": "Deployment", **each}) for each in deployments]
        workloads += [parsing.workload({"kind": "StatefulSet", **each}) for each in stateful_sets]
        named = {each.name for each in workloads}
        scalers = parsing_controllers.autoscalers(hpas, scaled_objects)
        warnings = [parsing.warned(each) for each in events]
        return Snapshot(
            namespace=self._release.namespace,
            release=self._release.name,
            taken_at=self._now,
            workloads=sorted(workloads, key=lambda each: each.component),
            pods=sorted(map(parsing.pod, pods), key=lambda each: each.name),
            nodes=[parsing.node(each) for each in nodes],
            budgets=[parsing.budget(each) for each in budgets],
            autoscalers=[each for each in scalers if each.target in named],
            warnings=[each for each in warnings if each.at is None or self._now - each.at < _EVENTS_OF],
            certificates=[each for secret in certificates if (each := _certificate(secret))],
            backups=parsing_controllers.backup_runs(cron_jobs, jobs),
            usage={parsing.name_of(each): parsing.usage(each) for each in usages},
        )

    async def _pages(self, snapshot: Snapshot) -> Pages:
        return await read_pages(self._api, snapshot, self._unseen, with_logs=self._in_depth)

    async def _claims(self, snapshot: Snapshot) -> list[Claim]:
        """The volumes of the release's pods and StatefulSets, with what is used of them where the kubelet says it."""
        lists = await gathered(
            [
                self._seen("volume claims", self._api.list(self._release.path("v1/persistentvolumeclaims"))),
                self._seen("volumes", self._api.list("/api/v1/persistentvolumes")),
            ]
        )
        volumes = {parsing.name_of(each): each for each in lists[1]}
        wanted = {claim for pod in snapshot.pods for claim in pod.claims}
        claims = [parsing.claim(each, volumes) for each in lists[0] if parsing.name_of(each) in wanted]
        return await with_usage(self._api, snapshot, claims, self._unseen)

    async def _certificates(self) -> list[Json]:
        path = self._release.path("v1/secrets")
        return await self._seen("certificates", self._api.list(path, fieldSelector="type=kubernetes.io/tls"))

    async def _with_last_words(self, pods: Sequence[Pod]) -> list[Pod]:
        if not self._in_depth:
            return list(pods)
        return await gathered([self._pod_with_last_words(pod) for pod in pods])

    async def _pod_with_last_words(self, pod: Pod) -> Pod:
        containers = [
            replace(each, last_words=await self._log(pod.name, each.name, previous=each.waiting in _FAILED_WAITS))
            if _has_failed(each)
            else each
            for each in pod.containers
        ]
        return replace(pod, containers=tuple(containers))

    async def _with_reason(self, backups: BackupRuns | None, pods: Sequence[Json]) -> BackupRuns | None:
        """With the last words of the Job that failed."""
        if backups is None or not backups.failed_job or not self._in_depth:
            return backups
        own = [each for each in pods if parsing.labels_of(each).get("job-name") == backups.failed_job]
        if not own:
            return backups
        newest = max(own, key=lambda each: str(each["metadata"].get("creationTimestamp")))
        return replace(backups, last_words=await self._log(parsing.name_of(newest), "", previous=False))

    async def _log(self, pod: str, container: str, *, previous: bool) -> str:
        """The end of a log; empty where it is gone."""
        query: dict[str, str | int] = {"tailLines": _LAST_WORDS, "limitBytes": _LAST_WORDS_BYTES}
        query |= {"container": container} if container else {}
        query |= {"previous": "true"} if previous else {}
        try:
            return (await self._api.text(f"{self._release.path('v1/pods')}/{pod}/log", **query)).strip()
        except CliError:
            return ""

    async def _seen(self, what: str, asked: Awaitable[list[Json]]) -> list[Json]:
        """Nothing where the cluster has no such thing; nor where it may not be looked at, or the server behind it (of metrics, of
        KEDA) is away: that is noted."""
        try:
            return await asked
        except NotFound:
            return []
        except CliError as error:
            self._unseen.append(f"{what} ({unfinished(error)})")
            return []


def unfinished(error: CliError) -> str:
    """What an error says, for the middle of a sentence."""
    return str(error).partition(". ")[0].rstrip(".")


async def _nothing() -> list[Json]:
    return []


def _has_failed(container: Container) -> bool:
    ended = container.ended is not None and container.ended.exit_code != 0
    return ended and (container.waiting in _FAILED_WAITS or not container.ready)


def _certificate(secret: Json) -> Certificate | None:
    pem = base64.b64decode((secret.get("data") or {}).get("tls.crt") or "")
    ends_at = certificate_end(pem)
    return Certificate(parsing.name_of(secret), ends_at) if ends_at else None
