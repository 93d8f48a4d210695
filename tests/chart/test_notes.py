"""What helm says after an install: commands that work as they stand, and what one should know."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from scripts.helm import CHART, Helm

Notes = Callable[..., str]


@pytest.fixture(scope="module")
def notes(helm: Helm, tmp_path_factory: pytest.TempPathFactory) -> Notes:
    if not helm.version().startswith("v4"):
        pytest.skip("Helm 3 renders the notes only with a cluster")
    folder = tmp_path_factory.mktemp("notes")

    def rendered(release: str = "groundwork", namespace: str = "team-a", **values: Any) -> str:
        file = folder / "values.yaml"
        file.write_text(yaml.safe_dump(values))
        options = ["--namespace", namespace, "--values", file, "--dry-run=client"]
        return helm.run("install", release, CHART, *options).rpartition("NOTES:")[2]

    return rendered


def test_every_command_names_the_namespace(notes: Notes) -> None:
    commands = re.findall(r"^ +(?:kubectl|helm) .*$", notes(namespace="team-b"), re.MULTILINE)
    assert len(commands) >= 3
    assert all("-n team-b" in command for command in commands)


def test_objects_are_called_as_they_are(notes: Notes) -> None:
    text = notes("b")
    assert "service/b-groundwork-gateway" in text
    assert "secret b-groundwork-bootstrap-key" in text
    assert "instance=b" in text


def test_objects_are_called_as_the_values_say(notes: Notes) -> None:
    text = notes("b", fullnameOverride="search")
    assert "service/search-gateway" in text
    assert "secret search-bootstrap-key" in text
    assert "b-groundwork" not in text


def test_a_given_key_is_not_shown(notes: Notes) -> None:
    text = notes(auth={"bootstrapKey": "a-key-of-my-own"})
    assert "a-key-of-my-own" not in text
    assert "auth.bootstrapKey" in text


def test_a_given_secret_is_named(notes: Notes) -> None:
    assert "get secret my-key" in notes(auth={"existingSecret": "my-key"})


def test_the_public_address_is_told(notes: Notes) -> None:
    text = notes(ingress={"enabled": True, "hosts": ["a.example.com"], "tlsSecret": "a"})
    assert "https://a.example.com/v1/qa" in text
    assert "port-forward" not in text
    assert "127.0.0.1" not in text


@pytest.mark.parametrize(
    ("values", "warning"),
    [
        ({"ingress": {"enabled": True, "hosts": ["a.example.com"]}}, "ingress.tlsSecret is empty"),
        ({"ingress": {"enabled": True, "hosts": ["a.example.com"]}}, "gateway.proxies is empty"),
        ({"gateway": {"service": {"type": "LoadBalancer"}}}, "gateway.service.type is LoadBalancer"),
        ({"networkPolicy": {"enabled": False}}, "networkPolicy.enabled is false"),
        ({"nats": {"replicas": 1}}, "nats.replicas is 1"),
        ({"metrics": {"podMonitor": {"enabled": True}}}, "networkPolicy.scrapers is empty"),
        ({"tools": {"replicas": 1}}, "tools.replicas is 1"),
        ({"telemetry": {"logLevel": "DEBUG"}}, "telemetry.logLevel is DEBUG"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_one_should_know_is_said(values: dict[str, Any], warning: str, notes: Notes) -> None:
    assert warning in notes(**values)


def test_there_is_nothing_to_warn_of_in_the_small_values(notes: Notes) -> None:
    small = yaml.safe_load((CHART / "values-small.yaml").read_text())
    assert "To know:" not in notes(**small)


def test_every_page_that_is_named_exists(notes: Notes) -> None:
    pages = re.findall(r"docs/[\w/-]+\.md", notes())
    assert pages
    assert all((Path(__file__).resolve().parents[2] / page).is_file() for page in pages)
