"""SIGKILL to one pod after the other in the midst of uploads, questions and streams."""

import pytest

from kit.testing.openai import ScriptedModel
from tests.cluster.breaking import about_killing, kill_and_wait, staying, used_while_broken
from tests.cluster.cluster import Cluster, Pod
from tests.cluster.facts import User
from tests.cluster.network import COMPONENTS
from tests.cluster.release import Release
from tests.cluster.report import Report
from tests.cluster.traffic import Load, Traffic

pytestmark = pytest.mark.timeout(2400)
SHORT = Load(uploaders=2, uploads=100_000, askers=2, readers=8)
FULL = Load(uploaders=3, uploads=100_000, askers=2, readers=30)


def test_one_pod_of_each_kind_is_killed(
    release: Release, users: list[User], with_model: ScriptedModel, report: Report
) -> None:
    assert with_model.base_url
    first = {pod.component: pod for pod in reversed(staying(release.cluster))}
    with (
        report.section("SIGKILL, one pod of each kind", about_killing(SHORT)) as section,
        used_while_broken(release, users, SHORT, section) as traffic,
    ):
        for component in COMPONENTS:
            kill_and_wait(release.cluster, first[component], traffic)
        section.figure("pods killed", len(COMPONENTS))


@pytest.mark.long
def test_every_pod_is_killed_in_turn(
    release: Release, users: list[User], with_model: ScriptedModel, report: Report
) -> None:
    assert with_model.base_url
    pods = staying(release.cluster)
    with (
        report.section("SIGKILL, every pod in turn", about_killing(FULL)) as section,
        used_while_broken(release, users, FULL, section) as traffic,
    ):
        for pod in pods:
            kill_and_wait(release.cluster, pod, traffic)
        section.figure("pods killed", len(pods))


@pytest.mark.long
def test_message_store_servers_are_removed_in_turn_during_writes(
    release: Release, users: list[User], report: Report
) -> None:
    load = Load(uploaders=6, uploads=100_000, askers=1, readers=4)
    about = "The pods of the three NATS servers, removed without notice one after the other while six upload."
    with (
        report.section("NATS servers removed during writes", about) as section,
        used_while_broken(release, users, load, section) as traffic,
    ):
        for pod in release.cluster.pods("nats"):
            _upload_more(traffic, 10)
            release.cluster.kubectl("delete", "pod", pod.name, "--grace-period=0", "--force")
            _upload_more(traffic, 10)
            _until_replaced(release.cluster, pod)


def _until_replaced(cluster: Cluster, gone: Pod) -> None:
    def is_replaced(pods: list[Pod]) -> bool:
        return len(pods) == 3 and all(pod.is_ready and pod.uid != gone.uid for pod in pods)

    cluster.until_pods(is_replaced, f"{gone.name} is back", component=gone.component)


def _upload_more(traffic: Traffic, count: int) -> None:
    target = traffic.journal.acknowledged + count
    traffic.until(lambda _: traffic.journal.acknowledged >= target, f"{count} more uploads")
