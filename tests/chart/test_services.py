"""Labels, selectors, ports and addresses: what is to find each other does."""

import re
from collections.abc import Iterator

from tests.chart.manifests import COMPONENT, Manifest, Pod, matches
from tests.chart.release import Release, holds
from tests.chart.services import GRPC_PORT, HTTP_PORT, OPS_PORT, SETTINGS, VLLM_PORT

NAME, INSTANCE = "app.kubernetes.io/name", "app.kubernetes.io/instance"


@holds
def test_every_object_says_what_it_belongs_to(release: Release) -> Iterator[str]:
    for each in release.objects:
        for label, expected in (
            (NAME, "groundwork"),
            (INSTANCE, release.case.release),
            ("app.kubernetes.io/managed-by", "Helm"),
        ):
            if each.labels.get(label) != expected:
                yield f"{each}: metadata.labels has {label}={each.labels.get(label)!r}; should be {expected!r}"
        if not each.labels.get("helm.sh/chart", "").startswith("groundwork-"):
            yield f"{each}: metadata.labels has no helm.sh/chart"


@holds
def test_every_pod_says_what_it_belongs_to(release: Release) -> Iterator[str]:
    for pod in release.pods():
        for label, expected in (
            (NAME, "groundwork"),
            (INSTANCE, release.case.release),
            (COMPONENT, pod.owner.component),
        ):
            if not expected or pod.labels.get(label) != expected:
                yield pod.problem("metadata.labels", f"should have {label}={expected}")


@holds
def test_every_workload_selects_its_own_pods_only(release: Release) -> Iterator[str]:
    for pod in release.lasting_pods():
        selector = pod.owner.spec["selector"]
        chosen = {str(other) for other in release.pods() if matches(selector, other.labels)}
        if chosen != {str(pod)}:
            yield pod.owner.problem("spec.selector", f"selects {sorted(chosen)}")
        changing = {"app.kubernetes.io/version", "helm.sh/chart"} & set(selector.get("matchLabels") or ())
        if changing:
            yield pod.owner.problem("spec.selector", f"cannot be changed: an upgrade would fail by {sorted(changing)}")


@holds
def test_every_service_selects_pods_that_have_its_ports(release: Release) -> Iterator[str]:
    for service in release.of_kind("Service"):
        chosen = service_pods(release, service)
        if len({pod.owner.name for pod in chosen}) != 1:
            yield service.problem("spec.selector", f"selects {[str(pod) for pod in chosen]}; should be one workload")
        for pod in chosen:
            for index, port in enumerate(service.spec["ports"]):
                target = port.get("targetPort", port["port"])
                known = {**_ports(pod), **{number: number for number in _ports(pod).values()}}
                if target not in known:
                    yield service.problem(f"spec.ports[{index}]", f"{pod} has {_ports(pod)}")
                elif service.spec.get("clusterIP") == "None" and known[target] != port["port"]:
                    yield service.problem(
                        f"spec.ports[{index}]", f"a headless service does not translate to {known[target]}"
                    )


@holds
def test_every_grpc_service_is_headless_and_tells_of_ready_pods_only(release: Release) -> Iterator[str]:
    """gRPC spreads calls over the addresses that a name has; behind one address all calls go to one pod."""
    for component in {pod.component for pod in release.lasting_pods()} & set(SETTINGS) - {"gateway"}:
        services = [each for each in release.of_kind("Service") if each.component == component]
        grpc = [each for each in services if any(port["port"] == GRPC_PORT for port in each.spec["ports"])]
        if not grpc:
            yield f"Service {release.fullname}-{component}: there is none with port {GRPC_PORT}"
        for service in grpc:
            if service.spec.get("clusterIP") != "None":
                yield service.problem("spec.clusterIP", "should be None (headless)")
            if service.spec.get("publishNotReadyAddresses"):
                yield service.problem("spec.publishNotReadyAddresses", "should be left out")


@holds
def test_a_stateful_set_has_a_headless_service_for_its_names(release: Release) -> Iterator[str]:
    for each in release.of_kind("StatefulSet"):
        service = release.find("Service", each.get("spec.serviceName") or "")
        if service is None or service.spec.get("clusterIP") != "None":
            yield each.problem("spec.serviceName", "should name a headless Service of the release")


@holds
def test_ports_of_a_stateful_sets_peers_are_known_before_they_are_ready(release: Release) -> Iterator[str]:
    """Servers of a cluster find each other by name before the first of them is ready."""
    for pod in release.lasting_pods():
        if pod.component == "nats" and pod.owner.kind == "StatefulSet":
            service = release.find("Service", pod.owner.spec["serviceName"])
            if service is not None and not service.spec.get("publishNotReadyAddresses"):
                yield service.problem("spec.publishNotReadyAddresses", "should be true")


@holds
def test_port_names_are_unique_and_short(release: Release) -> Iterator[str]:
    for container in release.containers():
        ports = container.body.get("ports") or ()
        names = [port.get("name", "") for port in ports]
        if len(set(names)) != len(names) or not all(
            re.fullmatch(r"(?=.*[a-z])[a-z0-9]([a-z0-9-]{0,13}[a-z0-9])?", name) for name in names
        ):
            yield container.problem("ports", "names should be unique, of at most 15 characters")


@holds
def test_our_containers_listen_where_their_ports_say(release: Release) -> Iterator[str]:
    for pod in release.lasting_pods():
        if pod.component in SETTINGS:
            yield from _listens(pod)


@holds
def test_the_gateways_service_has_port_80(release: Release) -> Iterator[str]:
    service = release.find("Service", f"{release.fullname}-gateway")
    if service is None:
        yield f"Service/{release.fullname}-gateway: is not there"
    elif 80 not in [port["port"] for port in service.spec["ports"]]:
        yield service.problem("spec.ports", "should have port 80")


@holds
def test_every_route_leads_to_a_service_port(release: Release) -> Iterator[str]:
    for route in release.of_kind("Ingress", "HTTPRoute"):
        backends = list(_backends(route))
        if not backends:
            yield f"{route}: leads nowhere"
        for name, port in backends:
            service = release.find("Service", name)
            ports = [
                part for each in (service.spec["ports"] if service else ()) for part in (each["port"], each.get("name"))
            ]
            if port not in ports:
                yield f"{route}: leads to {name}:{port}, where there is {ports or 'nothing'}"


@holds
def test_every_monitor_selects_a_service_port(release: Release) -> Iterator[str]:
    for monitor in release.of_kind("ServiceMonitor"):
        chosen = [each for each in release.of_kind("Service") if matches(monitor.spec["selector"], each.labels)]
        names = {port["name"] for service in chosen for port in service.spec["ports"]}
        for index, endpoint in enumerate(monitor.spec["endpoints"]):
            if endpoint.get("port") not in names:
                yield monitor.problem(f"spec.endpoints[{index}].port", f"the selected Services have {sorted(names)}")
    for monitor in release.of_kind("PodMonitor"):
        pods = [pod for pod in release.lasting_pods() if matches(monitor.spec["selector"], pod.labels)]
        told = {"vllm": VLLM_PORT} if monitor.component == "vllm" else dict.fromkeys(SETTINGS, OPS_PORT)
        for index, endpoint in enumerate(monitor.spec["podMetricsEndpoints"]):
            found = {pod.component: port for pod in pods if (port := _ports(pod).get(endpoint.get("port")))}
            if found != told:
                missing = ", ".join(sorted(told.keys() - found))
                yield monitor.problem(f"spec.podMetricsEndpoints[{index}].port", f"finds nothing of {missing}")


@holds
def test_who_speaks_to_prometheus_is_found_by_its_annotations(release: Release) -> Iterator[str]:
    ports = {**dict.fromkeys(SETTINGS, OPS_PORT), "vllm": VLLM_PORT}
    for pod in release.pods():
        told, port = pod.annotations.get("prometheus.io/port"), ports.get(pod.component)
        if told != (str(port) if port else None):
            yield pod.problem("metadata.annotations", f"prometheus.io/port is {told}; should be {port}")


def service_pods(release: Release, service: Manifest) -> list[Pod]:
    return [pod for pod in release.pods() if matches({"matchLabels": service.spec["selector"]}, pod.labels)]


def _ports(pod: Pod) -> dict[str, int]:
    return {name: number for container in pod.containers() for name, number in container.ports().items()}


def _listens(pod: Pod) -> Iterator[str]:
    container, environment = pod.main(), pod.main().environment()
    ports = set(container.ports().values())
    expected = {OPS_PORT, HTTP_PORT} if pod.component == "gateway" else {OPS_PORT, GRPC_PORT}
    if not expected <= ports:
        yield container.problem("ports", f"should be {sorted(expected)}")
    told = {"GROUNDWORK_OPS_PORT": str(OPS_PORT)}
    told |= {"GROUNDWORK_PORT": str(HTTP_PORT)} if pod.component == "gateway" else {}
    for name, value in told.items():
        if environment.get(name) != value:
            yield container.variable_problem(name, f"should be {value}")
    hosts = {"GROUNDWORK_OPS_HOST": environment.get("GROUNDWORK_OPS_HOST")}
    if pod.component == "gateway":
        hosts["GROUNDWORK_HOST"] = environment.get("GROUNDWORK_HOST")
    else:
        host, _, port = environment.get("GROUNDWORK_GRPC_ADDRESS", "").rpartition(":")
        hosts["GROUNDWORK_GRPC_ADDRESS"] = host if port == str(GRPC_PORT) else f"{host}:{port}"
    for name, host in hosts.items():
        if host not in {"0.0.0.0", "[::]", "::"}:
            yield container.variable_problem(name, "should be all addresses of the pod, 0.0.0.0")


def _backends(route: Manifest) -> Iterator[tuple[str, int | str]]:
    for rule in route.spec.get("rules") or ():
        for path in (rule.get("http") or {}).get("paths", ()):
            service = path["backend"]["service"]
            yield service["name"], service["port"].get("number") or service["port"]["name"]
        for backend in rule.get("backendRefs") or ():
            yield backend["name"], backend["port"]
