"""Network policies: exactly the arrows of docs/architecture.md connect, and nothing else does."""

from collections.abc import Iterator

from tests.chart.arrows import ARROWS, Arrow, talks_to
from tests.chart.manifests import COMPONENT
from tests.chart.network import End, Network
from tests.chart.release import Release, holds
from tests.chart.services import HTTP_PORT, OPS_PORT, SETTINGS, TOKEN_HOLDERS

HTTPS_PORT = 443
FOREIGN_PORTS = (22, HTTPS_PORT)
"""Besides all ports that any pod of the release has."""
DNS = End("name resolution", "kube-system", {"k8s-app": "kube-dns"})
PUBLIC = End("a public address", address="203.0.113.7")
PRIVATE = End("a private address", address="10.96.0.1")
METADATA = End("the cloud's metadata", address="169.254.169.254")
OUTSIDE = (PUBLIC, PRIVATE, METADATA)


def test_the_page_about_the_architecture_tells_of_every_arrow_of_a_service() -> None:
    drawn = {each: {arrow.target for arrow in ARROWS if arrow.source == each} for each in SETTINGS}
    assert talks_to() == drawn


@holds
def test_exactly_the_arrows_of_the_architecture_connect(release: Release) -> Iterator[str]:
    if not release.case.has_network_policies:
        return
    network, pods = _network(release), _pods(release)
    ports = sorted({port for pod in pods for port in pod.port_names.values()} | set(FOREIGN_PORTS))
    present = {pod.name for pod in pods}
    expected = {arrow for arrow in ARROWS if {arrow.source, arrow.target} <= present}
    found = {
        Arrow(source.name, target.name, port)
        for source in pods
        for target in pods
        for port in ports
        if network.allows(source, target, port)
    }
    for arrow in sorted(expected - found):
        yield f"NetworkPolicy: {arrow} is refused, and docs/architecture.md has it"
    for arrow in sorted(found - expected):
        yield f"NetworkPolicy: {arrow} is allowed, and docs/architecture.md has no such arrow"


@holds
def test_strangers_reach_the_gateway_at_most(release: Release) -> Iterator[str]:
    if not release.case.has_network_policies:
        return
    network = _network(release)
    for source in (*_strangers(release), *OUTSIDE):
        for target in _pods(release):
            for port in (*target.port_names.values(), *FOREIGN_PORTS):
                is_the_way_in = (target.name, port) == ("gateway", HTTP_PORT) and release.case.is_open
                if network.allows(source, target, port) and not is_the_way_in:
                    yield f"NetworkPolicy: {source.name} may connect to {target.name}:{port}"


@holds
def test_clients_reach_the_gateway(release: Release) -> Iterator[str]:
    """Those that the values name, or all."""
    if release.case.has_network_policies:
        for source in (*_strangers(release), PUBLIC) if release.case.is_open else release.case.clients:
            for target in _pods(release):
                if target.name == "gateway" and not _network(release).allows(source, target, HTTP_PORT):
                    yield f"NetworkPolicy: {source.name} may not connect to the gateway:{HTTP_PORT}"


@holds
def test_every_pod_may_resolve_names_and_no_other_pod_of_the_cluster_is_reached(release: Release) -> Iterator[str]:
    if not release.case.has_network_policies:
        return
    network = _network(release)
    for source in _pods(release):
        for protocol in ("UDP", "TCP"):
            if not network.allows(source, DNS, 53, protocol):
                yield f"NetworkPolicy: {source.name} may not resolve names ({protocol} 53)"
        for target in (DNS, *_strangers(release)):
            for port in {80, 443, 4222, OPS_PORT} - _server_ports(release, source.name):
                if network.allows(source, target, port):
                    yield f"NetworkPolicy: {source.name} may connect to {target.name}:{port}"


@holds
def test_only_who_has_business_outside_gets_there(release: Release) -> Iterator[str]:
    if not release.case.has_network_policies:
        return
    network = _network(release)
    for source in _pods(release):
        for target in OUTSIDE:
            for port in {*FOREIGN_PORTS, 80, 993, 6443, 8080} | _server_ports(release, source.name):
                allowed = network.allows(source, target, port)
                further = release.case.source_ports if source.name == "ingest" else frozenset()
                is_internet = (
                    target is PUBLIC and port in {HTTPS_PORT, *further} and source.name in release.case.internet
                )
                is_server = target is not METADATA and port in _server_ports(release, source.name)
                expected = is_internet or is_server
                if allowed != expected:
                    yield f"NetworkPolicy: {source.name} {'may' if allowed else 'may not'} connect to {target.name}:{port}"


@holds
def test_every_pod_is_behind_a_policy_in_both_directions(release: Release) -> Iterator[str]:
    if not release.case.has_network_policies:
        return
    network = _network(release)
    unknown = End("a stranger", "elsewhere", {"app": "stranger"})
    for pod in _pods(release):
        if network.allows(pod, unknown, 12345) or network.allows(unknown, pod, 12345):
            yield f"NetworkPolicy: none selects the pods of {pod.name}"


@holds
def test_scrapers_reach_metrics_and_nothing_else(release: Release) -> Iterator[str]:
    if not release.case.scrapers:
        return
    network = _network(release)
    for scraper in release.case.scrapers:
        for target in _pods(release):
            for name, port in target.port_names.items():
                allowed = network.allows(scraper, target, port)
                is_metrics = target.name in SETTINGS and port == OPS_PORT
                if is_metrics and not allowed:
                    yield f"NetworkPolicy: {scraper.name} may not connect to {target.name}:{port} ({name})"
                is_the_way_in = (target.name, port) == ("gateway", HTTP_PORT) and release.case.is_open
                if allowed and not is_the_way_in and not _tells_metrics(target, port):
                    yield f"NetworkPolicy: {scraper.name} may connect to {target.name}:{port} ({name})"


def _network(release: Release) -> Network:
    return Network([policy.body for policy in release.of_kind("NetworkPolicy")], release.case.namespace)


def _pods(release: Release) -> list[End]:
    """One of each component."""
    namespace = release.case.namespace
    return [
        End(
            pod.component,
            namespace,
            pod.labels,
            port_names={name: port for each in pod.containers() for name, port in each.ports().items()},
        )
        for pod in release.pods()
    ]


def _strangers(release: Release) -> Iterator[End]:
    """Pods that are not of this release, as much as they may look like it."""
    namespace = release.case.namespace
    yield End("a pod without labels", namespace)
    for component in ("gateway", "nats", "test"):
        labels = {"app.kubernetes.io/name": "groundwork", COMPONENT: component}
        other = {**labels, "app.kubernetes.io/instance": "another"}
        yield End(f"{component} of another release", namespace, other)
        same = {**labels, "app.kubernetes.io/instance": release.case.release}
        yield End(f"{component} in another namespace", "elsewhere", same)


def _server_ports(release: Release, component: str) -> set[int]:
    """Of the servers outside that it is told of. Where the API server is no selector can say."""
    api_server = {443, 6443} if component in TOKEN_HOLDERS else set()
    return {*release.case.servers.get(component, ()), *api_server}


def _tells_metrics(target: End, port: int) -> bool:
    return port == OPS_PORT or (target.name, port) in {("nats", 8222), ("qdrant", 6333), ("vllm", 8000)}
