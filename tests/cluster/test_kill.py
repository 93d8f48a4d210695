"""SIGKILL to one pod after the other in the midst of uploads, questions and streams."""

import pytest

from kit.testing.openai import ScriptedModel
from tests.cluster.breaking import used_while_broken
from tests.cluster.cluster import Cluster, Pod
from tests.cluster.facts import User
from tests.cluster.faults import kill_processes
from tests.cluster.network import ARROWS
from tests.cluster.release import Release
from tests.cluster.report import Report
from tests.cluster.traffic import Load, Traffic

pytestmark = pytest.mark.timeout(2400)
SHORT = Load(uploaders=2, uploads=100_000, askers=2, readers=8)
FULL = Load(uploaders=3, uploads=100_000, askers=2, readers=30)
ANSWERS_BETWEEN = 3


def test_one_pod_of_each_kind_is_killed(
    release: Release, users: list[User], with_model: ScriptedModel, report: Report
) -> None:
    assert with_model.base_url
    first = {pod.component: pod for pod in reversed(_staying(release.cluster))}
    with (
        report.section("SIGKILL, one pod of each kind", _about(SHORT)) as section,
        used_while_broken(release, users, SHORT, section) as traffic,
    ):
        for component in ARROWS:
            _kill_and_wait(release.cluster, first[component], traffic)
        section.figure("pods killed", len(ARROWS))


@pytest.mark.long
def test_every_pod_is_killed_in_turn(
    release: Release, users: list[User], with_model: ScriptedModel, report: Report
) -> None:
    assert with_model.base_url
    pods = _staying(release.cluster)
    with (
        report.section("SIGKILL, every pod in turn", _about(FULL)) as section,
        used_while_broken(release, users, FULL, section) as traffic,
    ):
        for pod in pods:
            _kill_and_wait(release.cluster, pod, traffic)
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


def _about(load: Load) -> str:
    return (
        f"{load.uploaders} upload without a pause, {load.askers} ask, and {load.readers} follow answers of a slow language "
        "model as event streams; who fails tries again at another gateway. The next pod is killed when the last one is ready "
        "again."
    )


def _staying(cluster: Cluster, component: str = "") -> list[Pod]:
    """Without those that a roll-out just before has replaced and that still serve what they had in hand."""
    return [pod for pod in cluster.pods(component) if not pod.is_ending]


def _kill_and_wait(cluster: Cluster, pod: Pod, traffic: Traffic) -> None:
    staying = _staying(cluster, pod.component)
    (now,) = [one for one in staying if one.uid == pod.uid]
    count = len(staying)
    kill_processes(cluster, now)

    def is_back(pods: list[Pod]) -> bool:
        same = [one for one in pods if one.uid == pod.uid]
        has_restarted = not same or same[0].restarts > now.restarts
        return has_restarted and len(pods) == count and all(one.is_ready for one in pods)

    cluster.until_pods(is_back, f"{pod.name} is back", component=pod.component)
    answers = traffic.journal.answers
    traffic.until(lambda journal: journal.answers >= answers + ANSWERS_BETWEEN, f"answers after {pod.name} was killed")


def _until_replaced(cluster: Cluster, gone: Pod) -> None:
    def is_replaced(pods: list[Pod]) -> bool:
        return len(pods) == 3 and all(pod.is_ready and pod.uid != gone.uid for pod in pods)

    cluster.until_pods(is_replaced, f"{gone.name} is back", component=gone.component)


def _upload_more(traffic: Traffic, count: int) -> None:
    target = traffic.journal.acknowledged + count
    traffic.until(lambda _: traffic.journal.acknowledged >= target, f"{count} more uploads")
