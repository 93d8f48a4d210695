"""Images: all come from the values, with a version, and those that are ours are built by our Dockerfile."""

import re
from collections.abc import Iterator
from pathlib import Path

from tests.chart.manifests import Container
from tests.chart.release import Release, holds

DOCKERFILE = Path(__file__).resolve().parents[2] / "deploy" / "images" / "Dockerfile"
REFERENCE = re.compile(
    r"(?P<registry>[a-z0-9.-]+(?::[0-9]+)?)/(?P<name>[a-z0-9._/-]+):(?P<tag>[\w.-]+)(?:@sha256:[0-9a-f]{64})?"
)
OURS = "groundwork-"


@holds
def test_every_image_has_a_registry_and_a_version(release: Release) -> Iterator[str]:
    """Without a registry each node decides whose image it is, and `latest` is another one tomorrow."""
    for container in release.containers():
        found = REFERENCE.fullmatch(container.body["image"])
        if found is None or found["tag"] == "latest":
            yield container.problem("image", "should be REGISTRY/NAME:TAG, and the tag not `latest`")


@holds
def test_every_image_of_ours_is_a_target_of_the_dockerfile(release: Release) -> Iterator[str]:
    targets = set(re.findall(r"^FROM \S+ AS (\S+)$", DOCKERFILE.read_text(), re.MULTILINE))
    for container in release.containers():
        name = container.body["image"].rpartition("/")[2].partition(":")[0]
        is_given = release.case.name == "images of one's own"
        if name.startswith(OURS) and not is_given and name.removeprefix(OURS) not in targets:
            yield container.problem("image", f"{DOCKERFILE.name} has no target {name.removeprefix(OURS)}")


@holds
def test_registry_and_tag_of_our_images_are_those_of_the_values(release: Release) -> Iterator[str]:
    values = release.case.values.get("image", {"registry": "localhost", "tag": "dev"})
    for container in _ours(release):
        own = release.case.values.get(container.pod.component, {}).get("image", {})
        registry, tag = own.get("registry", values["registry"]), own.get("tag", values["tag"])
        if not (container.body["image"].startswith(f"{registry}/") and container.body["image"].endswith(f":{tag}")):
            yield container.problem("image", f"should be {registry}/…:{tag}")


@holds
def test_pull_secrets_and_the_pull_policy_are_those_of_the_values(release: Release) -> Iterator[str]:
    values = release.case.values.get("image", {})
    secrets = [{"name": name} for name in values.get("pullSecrets", ())]
    for pod in release.pods():
        if (pod.spec.get("imagePullSecrets") or []) != secrets:
            yield pod.problem("spec.imagePullSecrets", f"should be {secrets}")
    for container in release.containers():
        if container.body.get("imagePullPolicy") != values.get("pullPolicy", "IfNotPresent"):
            yield container.problem("imagePullPolicy", "should be that of image.pullPolicy")


def _ours(release: Release) -> Iterator[Container]:
    return (each for each in release.containers() if f"/{OURS}" in each.body["image"])
