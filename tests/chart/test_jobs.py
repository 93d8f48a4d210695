"""The jobs of the chart run the command `groundwork`: it knows what they tell it, and they have the rights that it asks for."""

import asyncio
import functools
import re
import shlex
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from cli.main import app
from cli.settings import CliSettings
from services.standalone.settings import StandaloneSettings
from tests.chart.manifests import Container, Manifest
from tests.chart.prepared import made_by_prepare
from tests.chart.release import Release, holds
from tests.doubles.http_double import Recorded
from tests.doubles.kubernetes import KubernetesDouble

COMMAND_IMAGE = "groundwork-cli"
VERBS = {"POST": "create", "PATCH": "patch", "PUT": "update", "DELETE": "delete"}
Right = tuple[str, str, str]
"""Verb, resource and name; making has no name."""


@holds
def test_every_job_gives_the_command_arguments_that_it_knows(release: Release) -> Iterator[str]:
    for container in _commanded(release):
        for arguments in _calls(container):
            if refusal := _refusal(tuple(arguments)):
                yield f"{container}: groundwork {shlex.join(arguments)}: {refusal}"


@holds
def test_every_job_gives_the_command_settings_that_it_knows(release: Release) -> Iterator[str]:
    known = {f"GROUNDWORK_{name}".upper() for kind in (CliSettings, StandaloneSettings) for name in kind.model_fields}
    for container in _commanded(release):
        script = " ".join(map(str, (*container.body.get("command", ()), *container.body.get("args", ()))))
        for name in container.environment():
            if name.startswith("GROUNDWORK_") and name not in known and f"${name}" not in script:
                yield container.variable_problem(name, "the command has no such setting")


@pytest.fixture
async def kubernetes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[KubernetesDouble]:
    """An empty cluster, to which KUBECONFIG leads."""
    double = KubernetesDouble()
    async with double.running():
        double.write_kubeconfig(tmp_path / "kubeconfig")
        monkeypatch.setenv("KUBECONFIG", str(tmp_path / "kubeconfig"))
        yield double


@pytest.mark.parametrize("name", ["defaults", "gpu", "a bootstrap key", "external", "a long name", "backups"])
async def test_prepare_makes_what_pods_name_and_asks_for_what_it_may(
    name: str, kubernetes: KubernetesDouble, releases: Sequence[Release]
) -> None:
    release = next(each for each in releases if each.case.name == name)
    job = release.find("Job", f"{release.fullname}-prepare")
    assert job is not None
    pod = job.pod()
    assert pod is not None
    done = await asyncio.to_thread(CliRunner().invoke, app, pod.main().body["args"])
    assert done.exit_code == 0, done.output

    made = {path.rpartition("/")[2]: set(each.get("data", ())) for path, each in kubernetes.objects.items()}
    promised = {each.name: set(each.keys) for each in made_by_prepare(release)}
    assert made.items() <= promised.items()
    assert all(f"/namespaces/{release.case.namespace}/" in path for path in kubernetes.objects)

    asked = {_right(request) for request in kubernetes.requests}
    role = release.find("Role", f"{release.fullname}-prepare")
    assert role is not None
    rights = set(_rights(role))
    assert asked <= rights
    assert {right for right in rights if right[0] == "get"} == {
        ("get", *_kind_and_name(each)) for each in made_by_prepare(release)
    }


def test_prepare_makes_all_that_the_table_promises(releases: Sequence[Release]) -> None:
    """Where there is everything to make: a Qdrant, and no key of the user's."""
    release = next(each for each in releases if each.case.name == "gpu")
    (job,) = (each for each in release.of_kind("Job") if each.component == "prepare")
    pod = job.pod()
    assert pod is not None
    assert "--qdrant-key" in pod.main().body["args"]
    assert "--no-bootstrap-key" not in pod.main().body["args"]


@functools.cache
def _refusal(arguments: tuple[str, ...]) -> str:
    """What the command says against its arguments, if anything. It is not run: it reads all of them before it shows its help."""
    asked = CliRunner().invoke(app, [*arguments, "--help"])
    return "" if asked.exit_code == 0 and "Usage" in asked.output else asked.output.strip()


def _commanded(release: Release) -> list[Container]:
    return [each for each in release.containers() if COMMAND_IMAGE in each.body["image"]]


def _calls(container: Container) -> Iterator[list[str]]:
    """The arguments of each call of the command, in a script too."""
    if "command" not in container.body:
        yield container.body["args"]
        return
    (script,) = container.body["args"]
    for line in script.splitlines():
        words = shlex.split(line.removeprefix("exec "))
        if words and words[0] == "groundwork":
            yield words[1:]


def _right(request: Recorded) -> Right:
    parts = re.fullmatch(r"/api/v1/namespaces/[^/]+/(\w+)(?:/([^/]+))?", request.path)
    assert parts, request.path
    verb = VERBS.get(request.method, "get" if parts[2] else "list")
    return verb, parts[1], "" if verb == "create" else parts[2] or ""


def _rights(role: Manifest) -> Iterator[Right]:
    for rule in role.body["rules"]:
        for verb in rule["verbs"]:
            for resource in rule["resources"]:
                for name in rule.get("resourceNames") or [""]:
                    yield verb, resource, name


def _kind_and_name(made: Any) -> tuple[str, str]:
    return f"{made.kind.lower()}s", made.name
