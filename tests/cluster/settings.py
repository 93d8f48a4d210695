"""What the tests of a cluster are told by the environment."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

ASKED = "GROUNDWORK_TEST_CLUSTER"


@dataclass(frozen=True)
class Images:
    """Where the cluster pulls our images from, and their tag."""

    registry: str
    tag: str

    @classmethod
    def of(cls, text: str) -> "Images":
        """Of REGISTRY:TAG; the registry may have a port and a path."""
        registry, _, tag = text.rpartition(":")
        if not registry or not tag or "/" in tag:
            raise ValueError(f"{text!r} names no images: write REGISTRY:TAG, for example localhost:dev")
        return cls(registry, tag)

    def name(self, service: str) -> str:
        """The image of one service."""
        return f"{self.registry}/groundwork-{service}:{self.tag}"

    @property
    def values(self) -> dict[str, str]:
        return {"image.registry": self.registry, "image.tag": self.tag}


@dataclass(frozen=True)
class ClusterSettings:
    """All of it."""

    images: Images
    """GROUNDWORK_TEST_IMAGES, `localhost:dev` unless set."""

    next_images: Images | None
    """GROUNDWORK_TEST_NEXT_IMAGES: what `helm upgrade` goes to. They may hold the same files."""

    switch: Path | None
    """GROUNDWORK_TEST_CLUSTER_TOOL: a program that cuts the power of node N (`stop N`) and gives it back (`start N`)."""

    namespace: str
    """GROUNDWORK_TEST_NAMESPACE, `groundwork-test` unless set. It is removed before and after the tests."""

    keeps: bool
    """GROUNDWORK_TEST_KEEP: the installation stays there after the tests, and one that is there is tested as it is. For those who
    write tests."""

    gateway_url: str
    """GROUNDWORK_TEST_GATEWAY_URL: where the gateway is reached. Unset: at a port of the nodes."""

    elasticsearch_node: Path | None
    """GROUNDWORK_TEST_ELASTICSEARCH_NODE: a program that starts an Elasticsearch node on this machine."""

    engine_tags: tuple[str, str] | None
    """GROUNDWORK_TEST_ENGINE_TAGS: of the images of Qdrant and Elasticsearch that the cluster can pull, as `v1.20.0,9.5.0`."""

    vllm_image: str
    """GROUNDWORK_TEST_VLLM_IMAGE: an image whose entry point is `vllm` and that holds the model at /model."""

    @classmethod
    def of(cls, environment: Mapping[str, str]) -> "ClusterSettings":
        def path(name: str) -> Path | None:
            return Path(environment[name]) if environment.get(name) else None

        qdrant, _, elasticsearch = environment.get("GROUNDWORK_TEST_ENGINE_TAGS", "").partition(",")
        following = environment.get("GROUNDWORK_TEST_NEXT_IMAGES")
        return cls(
            images=Images.of(environment.get("GROUNDWORK_TEST_IMAGES", "localhost:dev")),
            next_images=Images.of(following) if following else None,
            switch=path("GROUNDWORK_TEST_CLUSTER_TOOL"),
            namespace=environment.get("GROUNDWORK_TEST_NAMESPACE", "groundwork-test"),
            keeps=bool(environment.get("GROUNDWORK_TEST_KEEP")),
            gateway_url=environment.get("GROUNDWORK_TEST_GATEWAY_URL", ""),
            elasticsearch_node=path("GROUNDWORK_TEST_ELASTICSEARCH_NODE"),
            engine_tags=(qdrant, elasticsearch) if qdrant else None,
            vllm_image=environment.get("GROUNDWORK_TEST_VLLM_IMAGE", ""),
        )


def why_skipped(environment: Mapping[str, str] = os.environ) -> str:
    """Why the tests of a cluster do not run now; "" when they do. They install, kill and remove: nobody's cluster by accident."""
    if not environment.get(ASKED):
        return "not asked for: these tests install on the cluster of KUBECONFIG, kill and remove there; run make test-cluster"
    if not environment.get("KUBECONFIG"):
        return "KUBECONFIG is not set: it names the cluster to test on"
    return ""
