"""What an upgrade replaces: the pods that a change is about, and no others."""

import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from scripts.helm import CHART, Helm
from tests.chart.case import Case
from tests.chart.manifests import parse
from tests.chart.release import Release, holds
from tests.chart.services import SETTINGS

Render = Callable[[Mapping[str, Any]], Release]
ALL = set(SETTINGS)


@dataclass(frozen=True)
class Change:
    name: str
    values: Mapping[str, Any]
    replaces: set[str] = field(default_factory=set)


CHANGES = (
    Change("nothing", {}),
    Change("how many", {"tools": {"replicas": 5}, "memory": {"autoscaling": {"enabled": True}}}),
    Change("who may connect", {"networkPolicy": {"enabled": False}}),
    Change("how it is reached", {"ingress": {"enabled": True, "hosts": ["a.example.com"]}}, {"gateway"}),
    Change("the bootstrap key", {"auth": {"bootstrapKey": "another-key-of-mine"}}),
    Change("the version", {"image": {"tag": "2"}}, {*ALL, "nats"}),
    Change("the version of one", {"tools": {"image": {"tag": "2"}}}, {"tools"}),
    Change("the model", {"llm": {"baseUrl": "http://llm:8000/v1", "model": "b"}}, {"orchestrator"}),
    Change("a setting of one", {"memory": {"env": {"GROUNDWORK_LOG_LEVEL": "DEBUG"}}}, {"memory"}),
    Change("what is logged", {"telemetry": {"logLevel": "DEBUG"}}, ALL),
    Change("how the message store syncs", {"nats": {"syncInterval": "10s"}}, {"nats"}),
    Change("backups", {"backup": {"enabled": True}}),
    Change("an evaluation", {"evaluation": {"enabled": True, "existingConfigMap": "my-questions"}}),
)


@pytest.fixture(scope="module")
def render(helm: Helm, tmp_path_factory: pytest.TempPathFactory) -> Render:
    folder = tmp_path_factory.mktemp("changes")

    def rendered(values: Mapping[str, Any]) -> Release:
        case = Case("change", values=values)
        return Release(case, parse(helm.template(case.release, case.namespace, case.options(folder))))

    return rendered


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.name)
def test_a_change_replaces_the_pods_that_it_is_about(change: Change, render: Render) -> None:
    before, after = (
        {pod.component: pod.body for pod in render(values).lasting_pods()} for values in ({}, change.values)
    )
    assert {component for component in before if after[component] != before[component]} == change.replaces


@holds
def test_pods_have_a_checksum_of_the_configuration_that_they_read_once(release: Release) -> Iterator[str]:
    """Kubernetes changes the files of a running pod, and its process may never look again."""
    made = {each.name for each in release.of_kind("ConfigMap")}
    for pod in release.lasting_pods():
        mounted = {(volume.get("configMap") or {}).get("name") for volume in pod.volumes().values()}
        if mounted & made and not any(name.startswith("checksum/") for name in pod.annotations):
            yield pod.problem("metadata.annotations", f"should have a checksum of {', '.join(mounted & made)}")


def test_other_permissions_of_nats_users_replace_its_servers(helm: Helm, tmp_path: Path) -> None:
    """They are a file of the chart, which a new version brings."""
    chart = tmp_path / "groundwork"
    shutil.copytree(CHART, chart)
    users = chart / "files" / "nats-users.conf"
    users.write_text(users.read_text() + "# changed\n")
    before, after = (
        {
            pod.component: pod.annotations
            for pod in Release(Case("files"), parse(helm.template(chart=each))).lasting_pods()
        }
        for each in (CHART, chart)
    )
    assert {component for component in before if after[component] != before[component]} == {"nats"}
