"""A node is emptied for maintenance, in good order, and comes back."""

import time

import pytest

from kit.testing.openai import ScriptedModel
from tests.cluster.breaking import used_while_broken
from tests.cluster.cluster import Json
from tests.cluster.facts import User
from tests.cluster.release import Release, node_addresses
from tests.cluster.report import Report
from tests.cluster.traffic import Load

pytestmark = [pytest.mark.timeout(1800), pytest.mark.long]
LOAD = Load(uploaders=3, uploads=100_000, askers=2, readers=20)
DRAIN_TIMEOUT_S = 400.0


def test_drain_of_a_node_keeps_to_the_disruption_budgets(
    release: Release, users: list[User], with_model: ScriptedModel, report: Report
) -> None:
    assert with_model.base_url
    cluster, node = release.cluster, min(node_addresses(release.cluster))
    cluster.until_rolled_out()
    about = (
        f"`kubectl drain {node}`, and `kubectl uncordon` when it is empty, while three upload, two ask and twenty "
        "follow streams."
    )
    with (
        report.section(f"Drain of {node}", about) as section,
        used_while_broken(release, users, LOAD, section) as traffic,
        cluster.recorded("poddisruptionbudgets") as budgets,
    ):
        began = time.monotonic()
        try:
            words = "--ignore-daemonsets", "--delete-emptydir-data", f"--timeout={DRAIN_TIMEOUT_S:.0f}s"
            cluster.kubectl("drain", node, *words, timeout_s=DRAIN_TIMEOUT_S + 30)
            section.figure("seconds until it was empty", time.monotonic() - began)
            assert not [pod.name for pod in cluster.pods() if pod.node == node]
            uploads = traffic.journal.acknowledged
            traffic.until(lambda _: traffic.journal.acknowledged > uploads + 10, "uploads without the node")
        finally:
            cluster.kubectl("uncordon", node)
        cluster.until_rolled_out()
        answers = traffic.journal.answers - traffic.journal.unavailable
        traffic.until(
            lambda journal: journal.answers - journal.unavailable > answers + 5, "answers with the node again"
        )
    failed_uploads = [each for each in traffic.journal.failures if each.what == "upload"]
    assert not failed_uploads, failed_uploads[:10]
    broken = [name for name, status in map(_status, budgets) if status["currentHealthy"] < status["desiredHealthy"]]
    assert not broken, f"fewer pods than their budgets allow: {broken}"
    assert budgets


def _status(budget: Json) -> tuple[str, Json]:
    return budget["metadata"]["name"], budget["status"]
