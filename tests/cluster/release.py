"""Groundwork as it is installed by Helm: its release, its gateway's addresses, its users."""

import json
import socket
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import urlsplit

import httpx

from tests.cluster.cluster import Cluster, Json
from tests.cluster.facts import User, facts_of
from tests.cluster.settings import ClusterSettings
from tests.integration.api import Api

CHART = Path(__file__).resolve().parents[2] / "deploy" / "helm" / "groundwork"
NAME = "groundwork"
INSTALL_TIMEOUT_S = 900.0
HTTP_PORT = 8080


@dataclass(frozen=True)
class Release:
    """One release in a namespace of its own."""

    cluster: Cluster
    settings: ClusterSettings

    def install(self, values: Mapping[str, str], *files: str) -> str:
        """`helm install --wait`; what it printed."""
        return self._helm("install", values, *_files(files))

    def upgrade(self, values: Mapping[str, str], *, keeps_values: bool = True) -> str:
        """`helm upgrade --wait` with these values changed."""
        return self._helm("upgrade", values, *(["--reuse-values"] if keeps_values else []))

    def rollback(self) -> str:
        """To the revision before this one."""
        return self.cluster.helm("rollback", NAME, "--wait", *_timeout(), timeout_s=INSTALL_TIMEOUT_S + 30)

    def uninstall(self) -> None:
        self.cluster.helm("uninstall", NAME, "--wait", "--ignore-not-found", timeout_s=INSTALL_TIMEOUT_S)

    def exists(self) -> bool:
        return NAME in self.cluster.helm("list", "-q").split()

    def notes(self) -> str:
        return self.cluster.helm("get", "notes", NAME)

    def test(self) -> str:
        """`helm test`; what it printed, logs of its pods included."""
        return self.cluster.helm("test", NAME, "--logs", *_timeout(), timeout_s=INSTALL_TIMEOUT_S + 30)

    def _helm(self, verb: str, values: Mapping[str, str], *more: str) -> str:
        sets = [
            f"--set-string={name}={value}" if _is_text(value) else f"--set={name}={value}"
            for name, value in values.items()
        ]
        return self.cluster.helm(
            verb, NAME, str(CHART), "--wait", *_timeout(), *more, *sets, timeout_s=INSTALL_TIMEOUT_S + 30
        )

    @property
    def addresses(self) -> list[str]:
        """Base URLs at which the gateway's Service is reached from this machine."""
        if self.settings.gateway_url:
            return [self.settings.gateway_url]
        (port,) = self.cluster.get("service", f"{NAME}-gateway")["spec"]["ports"]
        return [f"http://{address}:{port['nodePort']}" for address in node_addresses(self.cluster).values()]

    def gateway_addresses(self) -> list[str]:
        """Base URLs of the gateways that are ready, each by itself, where pods can be reached from this machine; else those of the
        Service, where another connection leads to another gateway."""
        pods = [pod for pod in self.cluster.pods("gateway") if pod.is_ready and pod.ip]
        urls = [f"http://{pod.ip}:{HTTP_PORT}" for pod in pods if is_open(pod.ip, HTTP_PORT)]
        return urls if len(urls) > 1 else self.addresses

    @contextmanager
    def api(self, key: str, address: str = "") -> Iterator[Api]:
        """The HTTP API with an API key."""
        headers = {"authorization": f"Bearer {key}"}
        with httpx.Client(
            base_url=address or self.addresses[0], headers=headers, timeout=60.0, trust_env=False
        ) as http:
            yield Api(http)

    def users(self, operator_key: str, count: int = 2) -> list[User]:
        """New subjects, each with a key, a collection of their own and its facts, which are ready."""
        return [self._user(operator_key, number) for number in range(count)]

    def _user(self, operator_key: str, number: int) -> User:
        name = f"user-{uuid.uuid4().hex[:8]}"
        with self.api(operator_key) as api:
            scopes = ["query", "ingest"]
            key = str(api.post("/v1/keys", {"name": name, "subject": name, "scopes": scopes})["key"])
        with self.api(key) as api:
            collection_id = api.new_collection()
            facts = facts_of(number)
            sent = [api.upload(collection_id, f"{fact.harbour}.txt", fact.text.encode()) for fact in facts]
            for document in sent:
                assert api.settled(document["id"])["status"] == "ready", document
            known = tuple(replace(fact, document_id=each["id"]) for fact, each in zip(facts, sent, strict=True))
        return User(name, key, collection_id, known)


def node_addresses(cluster: Cluster) -> dict[str, str]:
    """Of each node its address inside the cluster's network."""
    nodes = json.loads(cluster.kubectl("get", "nodes", "-o", "json"))["items"]
    return {node["metadata"]["name"]: _internal_address(node) for node in nodes}


def _internal_address(node: Json) -> str:
    return next(str(each["address"]) for each in node["status"]["addresses"] if each["type"] == "InternalIP")


def own_address(towards: str) -> str:
    """The address of this machine that a node can reach: the one from which this machine speaks to it."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect((urlsplit(f"//{towards}").hostname, 9))
        return str(probe.getsockname()[0])


def is_open(host: str, port: int, timeout_s: float = 1.0) -> bool:
    try:
        socket.create_connection((host, port), timeout=timeout_s).close()
    except OSError:
        return False
    return True


def _is_text(value: str) -> bool:
    return value not in {"true", "false", "null"} and not value.isdecimal()


def _files(files: Sequence[str]) -> list[str]:
    return [word for file in files for word in ("-f", str(CHART / file))]


def _timeout() -> list[str]:
    return ["--timeout", f"{INSTALL_TIMEOUT_S:.0f}s"]
