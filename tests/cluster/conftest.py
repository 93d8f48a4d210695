"""One installation of the small values for all tests of a cluster, in a namespace that enforces the standard `restricted`.

The tests run in the order of ORDER: what leaves the installation as it is comes first, what takes it down last. Those marked `long`
run with `make test-cluster ARGS=--long` and write docs/cluster-report.md."""

import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from kit.testing.openai import Reply, ScriptedModel, scripted_model
from tests.cluster.cluster import NAMESPACE_LABELS, Cluster, command
from tests.cluster.facts import User, reply_from_sources
from tests.cluster.faults import PowerSwitch
from tests.cluster.release import INSTALL_TIMEOUT_S, Release, node_addresses, own_address
from tests.cluster.report import Report
from tests.cluster.settings import ClusterSettings, why_skipped
from tests.in_a_thread import in_a_thread

HERE = Path(__file__).resolve().parent
ORDER = (
    "install",
    "commands",
    "network",
    "restart",
    "upgrade",
    "kill",
    "scaling",
    "drain",
    "power",
    "engines",
    "backup",
)
LONG = "takes minutes: make test-cluster ARGS=--long"
KEY = "a-first-key-for-the-tests"
MODEL_PAUSE_S = 1.0
"""Between two words of the model: an answer takes a quarter of a minute, so that a fault meets many of them half said."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--long", action="store_true", help="the tests that take minutes too, and their report")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    ours = [item for item in items if HERE in item.path.parents]
    reason = why_skipped()
    for item in ours:
        item.add_marker(pytest.mark.cluster)
        item.add_marker(pytest.mark.integration)
        if reason:
            item.add_marker(pytest.mark.skip(reason=reason))
        elif item.get_closest_marker("long") and not config.getoption("--long", default=False):
            item.add_marker(pytest.mark.skip(reason=LONG))
    ours.sort(key=_place)
    items[:] = [item for item in items if HERE not in item.path.parents] + ours


def _place(item: pytest.Item) -> int:
    name = item.path.stem.removeprefix("test_")
    return ORDER.index(name) if name in ORDER else len(ORDER)


@dataclass(frozen=True)
class Installed:
    """The release, and how long it took to be ready."""

    release: Release
    ready_s: float
    notes: str


@pytest.fixture(scope="session")
def settings() -> ClusterSettings:
    return ClusterSettings.of(os.environ)


@pytest.fixture(scope="session")
def cluster(settings: ClusterSettings) -> Iterator[Cluster]:
    """A namespace of the tests' own, empty."""
    cluster = Cluster(settings.namespace)
    if not (settings.keeps and cluster.exists()):
        remove_namespace(cluster)
        create_namespace(cluster)
    yield cluster
    if not settings.keeps:
        remove_namespace(cluster)


def create_namespace(cluster: Cluster) -> None:
    command("kubectl", "create", "namespace", cluster.namespace)
    labels = [f"{name}={value}" for name, value in NAMESPACE_LABELS.items()]
    command("kubectl", "label", "namespace", cluster.namespace, *labels)


def remove_namespace(cluster: Cluster) -> None:
    """With everything in it, volumes too."""
    command("kubectl", "delete", "namespace", cluster.namespace, "--ignore-not-found", timeout_s=INSTALL_TIMEOUT_S)


@pytest.fixture(scope="session")
def installed(cluster: Cluster, settings: ClusterSettings) -> Installed:
    release, began = Release(cluster, settings), time.monotonic()
    if settings.keeps and release.exists():
        return Installed(release, 0.0, release.notes())
    notes = release.install(
        {**settings.images.values, "auth.bootstrapKey": KEY, "gateway.service.type": "NodePort"}, "values-small.yaml"
    )
    return Installed(release, time.monotonic() - began, notes)


@pytest.fixture(scope="session")
def release(installed: Installed) -> Release:
    return installed.release


@pytest.fixture(scope="session")
def operator_key() -> str:
    return KEY


@pytest.fixture(scope="session")
def model(cluster: Cluster) -> Iterator[ScriptedModel]:
    """A language model on this machine that answers from its sources, slowly, at an address that pods can reach."""
    host = own_address(next(iter(node_addresses(cluster).values())))
    with in_a_thread(scripted_model(Reply(["Nothing is scripted."]), host=host)) as (scripted, _):
        scripted.reply_to = lambda request: reply_from_sources(request, MODEL_PAUSE_S)
        yield scripted


@pytest.fixture(scope="session")
def with_model(release: Release, model: ScriptedModel) -> ScriptedModel:
    """The installation asks the model from now on: its answers are long enough to be broken in the middle."""
    release.upgrade(model_values(model))
    return model


def model_values(model: ScriptedModel) -> dict[str, str]:
    """Values with which the orchestrators ask the model."""
    return {"llm.baseUrl": model.base_url, "llm.model": "scripted"}


@pytest.fixture(scope="session")
def users(release: Release, operator_key: str) -> list[User]:
    """Two who ask the same and know different things."""
    return release.users(operator_key)


@pytest.fixture(scope="session")
def switch(cluster: Cluster, settings: ClusterSettings) -> PowerSwitch:
    if settings.switch is None:
        pytest.skip(
            "no power switch: set GROUNDWORK_TEST_CLUSTER_TOOL to a program with the verbs `stop N` and `start N`"
        )
    return PowerSwitch(settings.switch, cluster)


@pytest.fixture(scope="session")
def report(request: pytest.FixtureRequest, cluster: Cluster) -> Iterator[Report]:
    """Written when the long tests were asked for."""
    report = Report.opened(_conditions(cluster))
    yield report
    if request.config.getoption("--long"):
        report.write()


def _conditions(cluster: Cluster) -> dict[str, str]:
    versions = {node["status"]["nodeInfo"]["kubeletVersion"] for node in cluster.objects("nodes")}
    return {
        "Kubernetes": ", ".join(sorted(versions)),
        "nodes": str(len(cluster.objects("nodes"))),
        "cores of this machine": str(os.cpu_count()),
    }
