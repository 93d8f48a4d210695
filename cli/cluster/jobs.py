"""A job that is made by hand from a CronJob of the chart, as `kubectl create job --from` does, and waited for."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Mapping, Sequence

from cli.cluster.connection.api import Api, Json
from cli.cluster.connection.pods import COMPONENT_LABEL, condition, name_of
from cli.cluster.connection.release import Release
from cli.cluster.errors import ClusterError
from cli.display.terminal import harmless
from cli.errors import CliError

_AGAIN_AFTER_S = 1.0


class JobFailed(ClusterError):
    """The job ended without success; its log was shown."""


async def run_job(
    api: Api,
    release: Release,
    cron_job: Json,
    report: Callable[[str], None],
    *,
    more_arguments: Sequence[str] = (),
    environment: Mapping[str, str] | None = None,
) -> None:
    """Makes a job of it, waits for its end and reports its log. Raises JobFailed."""
    job = await api.create(release.path("batch/v1/jobs"), _job_of(cron_job, more_arguments, environment or {}))
    name = name_of(job)
    report(f"Job {name} is made. kubectl logs -f job/{name} -n {release.namespace} follows it.")
    while not (end := _end(job)):
        await asyncio.sleep(_AGAIN_AFTER_S)
        job = await api.get(f"{release.path('batch/v1/jobs')}/{name}")
    await _report_logs(api, release, name, report)
    if end["type"] != "Complete":
        why = end.get("message") or end.get("reason") or "no reason given"
        raise JobFailed(f"Job {name} failed ({why}); its log is above.")


async def cron_job_of(api: Api, release: Release, component: str, missing: str) -> Json:
    """The CronJob of a component. Raises ClusterError that says `missing` when there is none."""
    selector = f"{release.selector},{COMPONENT_LABEL}={component}"
    found = await api.list(release.path("batch/v1/cronjobs"), labelSelector=selector)
    if not found:
        raise ClusterError(missing)
    return found[0]


def _job_of(cron_job: Json, more_arguments: Sequence[str], environment: Mapping[str, str]) -> Json:
    metadata, template = cron_job["metadata"], cron_job["spec"]["jobTemplate"]
    job: Json = {"metadata": dict(template.get("metadata") or {}), "spec": template["spec"]}
    job["metadata"]["name"] = f"{metadata['name'][:50]}-{secrets.token_hex(4)}"
    job["metadata"]["labels"] = dict(metadata.get("labels") or {})
    job["metadata"]["annotations"] = {"cronjob.kubernetes.io/instantiate": "manual"}
    owner = {"apiVersion": "batch/v1", "kind": "CronJob", "name": metadata["name"], "uid": metadata["uid"]}
    job["metadata"]["ownerReferences"] = [{**owner, "controller": True}]
    container = job["spec"]["template"]["spec"]["containers"][0]
    container["args"] = [*(container.get("args") or ()), *more_arguments]
    others = [each for each in container.get("env") or () if each["name"] not in environment]
    container["env"] = [*others, *({"name": name, "value": value} for name, value in environment.items())]
    return job


def _end(job: Json) -> Json:
    """The condition in which it ended; empty while it goes on."""
    ends = (condition(job, kind) for kind in ("Complete", "Failed"))
    return next((end for end in ends if end.get("status") == "True"), {})


async def _report_logs(api: Api, release: Release, job: str, report: Callable[[str], None]) -> None:
    """The logs of its pods, the first first."""
    pods = await api.list(release.path("v1/pods"), labelSelector=f"batch.kubernetes.io/job-name={job}")
    for pod in map(name_of, sorted(pods, key=lambda each: str(each["metadata"].get("creationTimestamp")))):
        try:
            report(harmless((await api.text(f"{release.path('v1/pods')}/{pod}/log")).rstrip()))
        except CliError as error:
            report(f"The log of pod {pod} cannot be read: {error}")
