"""Each node loses its power once, in the midst of 200 uploads and 50 streams, and comes back."""

import time

import httpx
import pytest

from kit.testing.openai import ScriptedModel
from tests.cluster.breaking import used_while_broken
from tests.cluster.cluster import Cluster, CommandFailed
from tests.cluster.facts import User
from tests.cluster.faults import PowerSwitch
from tests.cluster.release import Release, node_addresses
from tests.cluster.report import Report, Section
from tests.cluster.traffic import Load, Traffic

pytestmark = [pytest.mark.timeout(3600), pytest.mark.long]
LOAD = Load(uploaders=4, uploads=200, askers=2, readers=50)
UPLOADS_BEFORE, UPLOADS_WITHOUT = 40, 120
STREAMS_BEFORE = 25


@pytest.mark.parametrize("number", range(3))
def test_power_cut_of_a_node(
    number: int,
    release: Release,
    users: list[User],
    with_model: ScriptedModel,
    switch: PowerSwitch,
    report: Report,
) -> None:
    assert with_model.base_url
    cluster = release.cluster
    nodes = sorted(node_addresses(cluster))
    if number >= len(nodes):
        pytest.skip(f"the cluster has {len(nodes)} nodes")
    node = nodes[number]
    cluster.until_rolled_out()
    had = what_was_on(cluster, node)
    about = (
        f"{LOAD.uploads} uploads by {LOAD.uploaders}, {LOAD.askers} ask, {LOAD.readers} streams of a slow language model. The "
        f"node ran {had}; it gets its power back when most of the uploads have been acknowledged without it."
    )
    with (
        report.section(f"Power cut of {node}", about) as section,
        used_while_broken(release, users, LOAD, section) as traffic,
    ):
        traffic.until(lambda journal: journal.open_streams >= STREAMS_BEFORE, "streams are open")
        _until_acknowledged(traffic, UPLOADS_BEFORE)
        began = time.monotonic()
        switch.off(node)
        try:
            switch.until_noticed(node)
            section.figure("seconds until the cluster noticed", time.monotonic() - began)
            _until_acknowledged(traffic, UPLOADS_WITHOUT)
            section.figure(
                f"seconds until {UPLOADS_WITHOUT} of the uploads were acknowledged", time.monotonic() - began
            )
            _answers_or_says_why_not(traffic, is_searching="retriever" not in had)
        finally:
            switch.on(node)
        _back(release, traffic, switch, node, section)


def _back(release: Release, traffic: Traffic, switch: PowerSwitch, node: str, section: Section) -> None:
    began = time.monotonic()
    switch.until_back(node)
    release.cluster.until_rolled_out(timeout_s=600)
    section.figure("seconds from its return until every pod is ready", time.monotonic() - began)
    _until_acknowledged(traffic, LOAD.uploads)
    _answers_or_says_why_not(traffic, is_searching=True)


def _answers_or_says_why_not(traffic: Traffic, *, is_searching: bool) -> None:
    """With the retriever's node search goes: questions are answered by saying so until it is back."""
    seen = traffic.journal
    told, good = seen.unavailable, seen.answers - seen.unavailable
    if is_searching:
        traffic.until(lambda journal: journal.answers - journal.unavailable > good + 2, "answers from documents")
    else:
        traffic.until(lambda journal: journal.unavailable > told + 2, "answers that say that search is away")


def _until_acknowledged(traffic: Traffic, count: int) -> None:
    traffic.until(lambda _: traffic.journal.acknowledged >= count, f"{count} acknowledged uploads", timeout_s=600)


def what_was_on(cluster: Cluster, node: str) -> str:
    """Components on the node, and of how many streams its message store was the leader."""
    pods = [pod for pod in cluster.pods() if pod.node == node]
    names = sorted({pod.component for pod in pods})
    led = sum(led_by(cluster, pod.name) for pod in pods if pod.component == "nats")
    return f"{', '.join(names)} (leader of {led} streams)"


def led_by(cluster: Cluster, pod: str) -> int:
    """Streams whose leader is the server in that pod, as it says itself."""
    try:
        with cluster.forwarded(pod, 8222) as url:
            said = httpx.get(f"{url}/jsz", params={"streams": "true"}, timeout=20).raise_for_status().json()
    except (CommandFailed, httpx.HTTPError):
        return 0
    streams = [stream for account in said.get("account_details", []) for stream in account.get("stream_detail", [])]
    return sum(stream.get("cluster", {}).get("leader") == said.get("server_name", pod) for stream in streams)
