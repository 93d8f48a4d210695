"""What a rendering of the chart is given, and what follows from that."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from scripts.helm import CHART
from tests.chart.network import End

KUBERNETES = ("1.30", "1.36")
"""The oldest that Chart.yaml allows, and the one of the cluster that the chart is seen running on."""

KEDA = "keda.sh/v1alpha1"
CERT_MANAGER = "cert-manager.io/v1"
GATEWAY_API = "gateway.networking.k8s.io/v1"
PROMETHEUS = "monitoring.coreos.com/v1"


@dataclass(frozen=True)
class Given:
    """A Secret that is there before the release."""

    keys: tuple[str, ...]
    holders: tuple[str, ...]
    """Components that may see it."""


@dataclass(frozen=True, eq=False)
class Case:
    """What helm is given."""

    name: str
    values_file: str = "values.yaml"
    values: Mapping[str, Any] = field(default_factory=dict)
    api_versions: tuple[str, ...] = ()
    """What the cluster offers besides Kubernetes itself."""
    given_secrets: Mapping[str, Given] = field(default_factory=dict)
    """By name."""
    is_redundant: bool = True
    """Whether the loss of a node may be no outage."""
    release: str = "groundwork"
    namespace: str = "team-a"
    given_names: frozenset[tuple[str, str]] = frozenset()
    """Kind and name of objects that the values name."""
    has_network_policies: bool = True
    is_open: bool = True
    """Whether any client may connect to the gateway, as far as network policies say."""
    internet: frozenset[str] = frozenset({"orchestrator", "ingest"})
    """Components that may connect to port 443 of public addresses."""
    source_ports: frozenset[int] = frozenset()
    """Further ports of public addresses, for ingest alone."""
    servers: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    """Ports of servers outside that a component is told of: they may be anywhere, in another namespace or a private network."""
    on_gpus: frozenset[str] = frozenset()
    """Components that have one."""
    runtime_class: str | None = None
    """By which those get them."""
    clients: tuple[End, ...] = ()
    """Pods that may connect to the gateway, where not everybody may."""
    scrapers: tuple[End, ...] = ()
    """Pods that may read metrics."""

    def options(self, folder: Path, kubernetes: str = KUBERNETES[-1]) -> list[str | Path]:
        """Of `helm template`; `folder` is for the file of values."""
        own = folder / f"{self.name}.yaml"
        own.write_text(yaml.safe_dump(dict(self.values)))
        files: list[str | Path] = ["--values", CHART / self.values_file, "--values", own]
        return [*files, "--kube-version", kubernetes, *(f"--api-versions={each}" for each in self.api_versions)]
