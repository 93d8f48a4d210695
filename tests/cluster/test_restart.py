"""Everything restarted at once by the cluster, as an operator would, while people use it."""

import pytest

from tests.cluster.release import Release
from tests.cluster.report import Report
from tests.cluster.unbroken import used_meanwhile

pytestmark = pytest.mark.timeout(1500)


def test_no_request_fails_while_every_workload_is_restarted(
    release: Release, operator_key: str, report: Report
) -> None:
    about = (
        "`kubectl rollout restart` of every Deployment and StatefulSet at once, while two ask, one talks and two upload; nobody "
        "tries again."
    )
    cluster = release.cluster
    before = {pod.uid for pod in cluster.pods()}

    def restart() -> None:
        cluster.kubectl("rollout", "restart", "deployment,statefulset")
        cluster.until_rolled_out(timeout_s=600)

    with report.section("Rolling restart", about) as section:
        used_meanwhile(release, operator_key, restart, section)
        assert not before & {pod.uid for pod in cluster.pods()}
