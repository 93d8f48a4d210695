"""Servers that others make: Elasticsearch outside of the cluster; Qdrant, Elasticsearch and vLLM inside of it."""

import time
from pathlib import Path

import httpx
import pytest

from kit.testing.openai import ScriptedModel
from kit.testing.pdf_files import pdf_of
from tests.cluster.breaking import about_killing, kill_and_wait, staying, used_while_broken
from tests.cluster.cluster import COMPONENT, Pod
from tests.cluster.facts import User
from tests.cluster.outside import elasticsearch_node, forwarded
from tests.cluster.release import Release, node_addresses, own_address
from tests.cluster.report import Report
from tests.cluster.traffic import Load
from tests.integration.conftest import REPORT_PAGES

pytestmark = [pytest.mark.timeout(3600), pytest.mark.long]
LOAD = Load(uploaders=2, uploads=100_000, askers=2, readers=8)
SERVERS = {
    "qdrant.enabled": "true",
    "qdrant.replicas": "3",
    "qdrant.persistence.size": "2Gi",
    "elasticsearch.enabled": "true",
    "elasticsearch.persistence.size": "2Gi",
    "elasticsearch.resources.requests.memory": "1Gi",
    "elasticsearch.resources.limits.memory": "2Gi",
    "retriever.replicas": "2",
    "retriever.env.GROUNDWORK_QDRANT_REPLICAS": "2",
    "retriever.env.GROUNDWORK_ELASTICSEARCH_REPLICAS": "1",
}
EMBEDDED = {"qdrant.enabled": "false", "elasticsearch.enabled": "false", "retriever.replicas": "1"}
REFILLED_WITHIN_S = 300.0
READY_WITHIN_S = 900.0


def test_texts_are_indexed_by_an_elasticsearch_outside_of_the_cluster(
    release: Release, users: list[User], tmp_path: Path, report: Report
) -> None:
    program = release.settings.elasticsearch_node
    if program is None:
        pytest.skip("no Elasticsearch: set GROUNDWORK_TEST_ELASTICSEARCH_NODE to a program that starts one")
    host = own_address(next(iter(node_addresses(release.cluster).values())))
    about = "The retriever's texts go to a real Elasticsearch node outside of the cluster; what was there before is indexed anew."
    with (
        report.section("Elasticsearch outside", about) as section,
        elasticsearch_node(program, tmp_path) as loopback_port,
        forwarded(host, loopback_port) as port,
    ):
        began = time.monotonic()
        release.upgrade({"elasticsearch.external.url": f"http://{host}:{port}"})
        try:
            for user in users:
                _until_searched(release, user)
            section.figure("seconds until all that was there before is found by it", time.monotonic() - began)
            with release.api(users[0].key) as api:
                document = api.ingest(users[0].collection_id, "report.pdf", pdf_of(REPORT_PAGES))
                hits = api.search(users[0].collection_id, "propeller shaft", strategy="lexical")["hits"]
            assert hits[0]["document_id"] == document["id"]
            counted = httpx.get(f"http://127.0.0.1:{loopback_port}/groundwork-v4/_count", trust_env=False).json()[
                "count"
            ]
            assert counted >= sum(len(user.facts) for user in users) + 1
            section.figure("passages in Elasticsearch", counted)
        finally:
            release.upgrade({"elasticsearch.external.url": ""})
            for user in users:
                _until_searched(release, user)


def test_chart_runs_qdrant_and_elasticsearch_for_several_retrievers(
    release: Release, users: list[User], with_model: ScriptedModel, report: Report
) -> None:
    tags = release.settings.engine_tags
    if tags is None:
        pytest.skip("no servers: set GROUNDWORK_TEST_ENGINE_TAGS to tags of their images that the cluster can pull")
    assert with_model.base_url
    about = (
        "Three Qdrant and three Elasticsearch servers and two retrievers, by the chart, each shard with a copy, take the place "
        "of the embedded engines. Then every pod of the three is killed in turn: " + about_killing(LOAD)
    )
    cluster = release.cluster
    with report.section("Qdrant and Elasticsearch by the chart", about) as section:
        section.figure("images of Qdrant and Elasticsearch", " and ".join(tags))
        began = time.monotonic()
        release.upgrade({**SERVERS, "qdrant.image.tag": tags[0], "elasticsearch.image.tag": tags[1]})
        try:
            section.figure("seconds until all are ready", time.monotonic() - began)
            for user in users:
                _until_searched(release, user)
            section.figure("seconds until all that was there before is found by them", time.monotonic() - began)
            with used_while_broken(release, users, LOAD, section) as traffic:
                for component in ("qdrant", "elasticsearch", "retriever"):
                    for pod in staying(cluster, component):
                        kill_and_wait(cluster, pod, traffic)
        finally:
            release.upgrade(EMBEDDED)
            for component in ("qdrant", "elasticsearch"):
                cluster.kubectl("delete", "pvc", "-l", f"{COMPONENT}={component}")
            for user in users:
                _until_searched(release, user)


def _until_searched(release: Release, user: User) -> None:
    """Until each of the user's documents is found by its words and nothing is degraded. The index is filled in the background, of
    which a search is the only word."""
    deadline = time.monotonic() + REFILLED_WITHIN_S
    with release.api(user.key) as api:
        for fact in user.facts:
            while not _is_found(
                api.search(user.collection_id, fact.harbour, strategy="lexical", cache=False), fact.document_id
            ):
                assert time.monotonic() < deadline, f"{fact.harbour} is not found by its words"
                time.sleep(1)


def _is_found(answer: dict[str, object], document_id: str) -> bool:
    hits = answer["hits"]
    assert isinstance(hits, list)
    return not answer["degraded"] and document_id in {hit["document_id"] for hit in hits}


def test_question_is_answered_by_a_vllm_of_the_chart(
    release: Release, users: list[User], operator_key: str, report: Report
) -> None:
    image = release.settings.vllm_image
    if not image:
        pytest.skip("no vLLM: set GROUNDWORK_TEST_VLLM_IMAGE to an image of it")
    repository, _, tag = image.rpartition(":")
    registry, _, name = repository.rpartition("/")
    values = {
        "vllm.enabled": "true",
        "vllm.model": "/model",
        "vllm.servedName": "smollm2",
        "vllm.image.registry": registry,
        "vllm.image.name": name,
        "vllm.image.tag": tag,
        "vllm.gpu.enabled": "false",
        "vllm.maxModelLen": "2048",
        "vllm.extraArgs[0]": "--enforce-eager",
        "vllm.resources.requests.cpu": "200m",
        "vllm.resources.requests.memory": "1Gi",
        "vllm.sharedMemorySize": "1Gi",
    }
    about = "A real vLLM server on processors, installed by the chart, with SmolLM2-135M."
    with report.section("vLLM in the cluster", about) as section:
        began = time.monotonic()
        release.upgrade(values)
        try:
            release.cluster.until_pods(
                lambda pods: any(map(_is_ready, pods)), "vLLM is ready", component="vllm", timeout_s=READY_WITHIN_S
            )
            section.figure("seconds until it is ready", time.monotonic() - began)
            with release.api(operator_key) as api:
                providers = api.get("/v1/models")["providers"]
                assert any(each["state"] == "serving" or each.get("models") for each in providers), providers
            began = time.monotonic()
            with release.api(users[0].key) as api:
                answer = api.qa(users[0].collection_id, users[0].facts[0].question)
            section.figure("seconds of a question", time.monotonic() - began)
            assert answer["usage"]["completion_tokens"] > 0, answer
        finally:
            release.upgrade({"vllm.enabled": "false"})


def _is_ready(pod: Pod) -> bool:
    return pod.is_ready
