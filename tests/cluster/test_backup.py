"""A backup by the chart's CronJob, everything else lost, and the restore that the documentation describes."""

import time
from dataclasses import dataclass

import pytest

from tests.cluster.cluster import Cluster, Json, command
from tests.cluster.conftest import KEY
from tests.cluster.facts import User
from tests.cluster.release import NAME, Release
from tests.cluster.report import Report
from tests.integration.api import Api, Event, shown_text
from tests.integration.system import groundwork_command

pytestmark = [pytest.mark.timeout(3600), pytest.mark.long]
CLAIM = f"{NAME}-backup"
JOB = "backup-by-the-test"
INDEXED_WITHIN_S = 400.0


@dataclass(frozen=True)
class Before:
    """What a user has before everything is lost."""

    documents: list[Json]
    thread: Json
    events: list[Event]

    @property
    def run_id(self) -> str:
        return str(self.events[0].data["run_id"])


def test_everything_is_there_again_after_uninstall_and_restore(
    release: Release, users: list[User], report: Report
) -> None:
    cluster, user = release.cluster, users[0]
    about = (
        "A job of the CronJob, `helm uninstall`, volumes, Secrets and keys deleted but for the backups' volume, `helm install`, "
        "`groundwork cluster restore`."
    )
    with report.section("Backup and restore", about) as section:
        release.upgrade({"backup.enabled": "true", "backup.persistence.size": "5Gi"})
        before = _used(release, user)
        began = time.monotonic()
        cluster.kubectl("create", "job", JOB, f"--from=cronjob/{NAME}-backup")
        cluster.until("jobs", _has_ended, f"job {JOB} has ended")
        section.figure("seconds of a backup", time.monotonic() - began)
        _lose_everything(release)
        began = time.monotonic()
        values = {**release.settings.images.values, "auth.bootstrapKey": KEY, "gateway.service.type": "NodePort"}
        release.install({**values, "backup.enabled": "true", "backup.persistence.size": "5Gi"}, "values-small.yaml")
        said = command(groundwork_command(), "cluster", "restore", "--yes", "-n", cluster.namespace, timeout_s=900)
        assert "started again" in said
        cluster.until_rolled_out()
        section.figure("seconds of an installation and the restore", time.monotonic() - began)
        _assert_the_same(release, user, before)
        _until_answered(release, user)
        section.figure("seconds until questions are answered as before", time.monotonic() - began)


def _used(release: Release, user: User) -> Before:
    with release.api(user.key) as api:
        thread_id = api.post("/v1/threads", {"title": "Berths"})["id"]
        told = list(api.chat(user.collection_id, user.facts[0].question, thread_id=thread_id))
        assert str(user.facts[0].berths) in shown_text(told)
        return Before(_documents(api, user), api.get(f"/v1/threads/{thread_id}"), told)


def _documents(api: Api, user: User) -> list[Json]:
    """What of each document a restore brings back: not how it was indexed."""
    found = api.get(f"/v1/collections/{user.collection_id}/documents", page_size=1000)["documents"]
    kept = ("id", "name", "size_bytes", "sha256", "collection_id")
    return sorted(({name: each[name] for name in kept if name in each} for each in found), key=lambda each: each["id"])


def _has_ended(jobs: list[Json]) -> bool:
    (job,) = [each for each in jobs if each["metadata"]["name"] == JOB]
    assert not job["status"].get("failed"), job["status"]
    return bool(job["status"].get("succeeded"))


def _lose_everything(release: Release) -> None:
    cluster = release.cluster
    release.uninstall()
    for kind in ("persistentvolumeclaims", "secrets", "configmaps"):
        names = [each["metadata"]["name"] for each in cluster.objects(kind, f"app.kubernetes.io/instance={NAME}")]
        if lost := [name for name in names if name != CLAIM]:
            cluster.kubectl("delete", kind, *lost)
    assert _claims(cluster) == [CLAIM]


def _claims(cluster: Cluster) -> list[str]:
    return [each["metadata"]["name"] for each in cluster.objects("persistentvolumeclaims")]


def _assert_the_same(release: Release, user: User, before: Before) -> None:
    with release.api(user.key) as api:
        assert _documents(api, user) == before.documents
        assert api.get(f"/v1/threads/{before.thread['id']}") == before.thread
        assert api.replay(before.run_id) == before.events


def _until_answered(release: Release, user: User) -> None:
    """The indexes are made again in the background, of which an answer is the only word."""
    deadline = time.monotonic() + INDEXED_WITHIN_S
    with release.api(user.key) as api:
        for fact in user.facts:
            while str(fact.berths) not in (answer := api.qa(user.collection_id, fact.question))["answer"]:
                assert time.monotonic() < deadline, answer
                time.sleep(1)
