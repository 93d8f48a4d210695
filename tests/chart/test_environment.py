"""What each of our containers is told: settings that it has, values that it takes, and addresses where somebody listens."""

from collections.abc import Iterator
from pathlib import PurePosixPath
from urllib.parse import urlsplit

from pydantic import ValidationError

from kit.process.configuration import setting_problems
from tests.chart.manifests import Container
from tests.chart.release import Release, holds
from tests.chart.services import GRPC_PORT, SETTINGS, callees, stores
from tests.chart.settings import SECRET, from_elsewhere, settings_of

WEB_PORTS = {"http": 80, "https": 443, "nats": 4222}


@holds
def test_every_variable_is_a_setting_of_its_component(release: Release) -> Iterator[str]:
    for container in _ours(release):
        known = {f"GROUNDWORK_{name}".upper() for name in SETTINGS[container.pod.component].model_fields}
        for name in sorted(container.environment()):
            if name.startswith("GROUNDWORK_") and name not in known:
                yield container.variable_problem(name, f"{container.pod.component} has no such setting")


@holds
def test_no_variable_is_given_twice(release: Release) -> Iterator[str]:
    for container in release.containers():
        names = [entry["name"] for entry in container.body.get("env") or ()]
        for name in sorted({name for name in names if names.count(name) > 1}):
            yield container.variable_problem(name, "it is given twice")


@holds
def test_every_reference_to_a_variable_is_to_one_listed_before(release: Release) -> Iterator[str]:
    """Kubernetes passes `$(NAME)` on as it is when NAME comes later or not at all."""
    for container in release.containers():
        for name, value in container.environment(from_elsewhere(container)).items():
            if "$(" in value:
                yield container.variable_problem(name, "what it refers to is not known by then")


@holds
def test_every_service_takes_its_settings(release: Release) -> Iterator[str]:
    for container in _ours(release):
        try:
            with settings_of(container) as settings:
                settings.public_keys()
                settings.signing_key()
        except ValidationError as error:
            for line in setting_problems(error, SETTINGS[container.pod.component]):
                yield f"{container}: {line}"


@holds
def test_every_service_has_the_files_that_its_settings_name(release: Release) -> Iterator[str]:
    for container in _ours(release):
        for name, value in container.environment().items():
            if name.endswith("_FILE") and not _mounted(container, value):
                yield container.variable_problem(name, "should be a key of a volume that is mounted there")


@holds
def test_what_changes_in_a_file_reaches_the_process(release: Release) -> Iterator[str]:
    """The kubelet keeps a mounted volume up to date, but never a file that is mounted by `subPath`."""
    for container in _ours(release):
        for index, mount in enumerate(container.mounts()):
            if mount.get("subPath"):
                yield container.problem(f"volumeMounts[{index}].subPath", "mount the whole volume")


@holds
def test_folders_of_services_are_writable_volumes(release: Release) -> Iterator[str]:
    for container in _ours(release):
        folder = container.environment().get("GROUNDWORK_DATA_DIR")
        if folder and not any(
            mount["mountPath"] == folder and not mount.get("readOnly") for mount in container.mounts()
        ):
            yield container.problem("volumeMounts", f"should have a writable volume at {folder} (GROUNDWORK_DATA_DIR)")


@holds
def test_every_service_is_told_whom_it_calls(release: Release) -> Iterator[str]:
    """A default would be the loopback address of one machine."""
    for container in _ours(release):
        environment = container.environment()
        for callee in callees(container.pod.component):
            variable = f"GROUNDWORK_{callee}_ADDRESS".upper().replace("-", "_")
            if variable not in environment:
                yield container.variable_problem(variable, "should be set")
        if stores(container.pod.component) and "GROUNDWORK_NATS_URL" not in environment:
            yield container.variable_problem("GROUNDWORK_NATS_URL", "should be set")


@holds
def test_every_address_is_a_service_of_the_release_with_that_port(release: Release) -> Iterator[str]:
    for container in _ours(release):
        for name, value in container.environment().items():
            if name.startswith("GROUNDWORK_") and name.endswith("_ADDRESS") and name != "GROUNDWORK_GRPC_ADDRESS":
                component = name.removeprefix("GROUNDWORK_").removesuffix("_ADDRESS").lower().replace("_", "-")
                if value.partition(":")[0].partition(".")[0] != f"{release.fullname}-{component}":
                    yield container.variable_problem(name, f"that is not {component}")
                if not value.endswith(f":{GRPC_PORT}"):
                    yield container.variable_problem(name, f"gRPC has port {GRPC_PORT}")
        for name, host, port in _web_addresses(container):
            reason = _unknown(release, host, port)
            if reason:
                yield container.variable_problem(name, f"at {host}:{port} is nobody: {reason}")


@holds
def test_the_message_store_is_named_with_all_its_servers_and_the_pods_own_user(release: Release) -> Iterator[str]:
    servers = [pod.replicas for pod in release.pods_of("nats") if pod.lasts]
    for container in _ours(release):
        environment = container.environment(from_elsewhere(container))
        if "GROUNDWORK_NATS_URL" not in environment:
            continue
        urls = [urlsplit(url) for url in environment["GROUNDWORK_NATS_URL"].split(",")]
        for url in urls:
            if servers and (url.username, url.password) != (container.pod.component, SECRET):
                yield container.variable_problem(
                    "GROUNDWORK_NATS_URL", f"has the user {url.username} with {url.password!r}"
                )
        if servers and len({url.hostname for url in urls}) != servers[0]:
            yield container.variable_problem(
                "GROUNDWORK_NATS_URL", f"names {len(urls)} servers; there are {servers[0]}"
            )
        replicas = environment.get("GROUNDWORK_NATS_REPLICAS")
        if servers and replicas != ("3" if servers[0] >= 3 else "1"):
            yield container.variable_problem("GROUNDWORK_NATS_REPLICAS", f"there are {servers[0]} servers")


@holds
def test_settings_that_services_must_agree_on_are_the_same(release: Release) -> Iterator[str]:
    same = (
        "GROUNDWORK_LOCAL_TENANT_ID",
        "GROUNDWORK_LOCAL_SUBJECT",
        "GROUNDWORK_NATS_REPLICAS",
        "GROUNDWORK_AUTH_PUBLIC_KEYS_FILE",
    )
    first: dict[str, tuple[str, Container]] = {}
    for container in _ours(release):
        for name, value in container.environment().items():
            if name in same and first.setdefault(name, (value, container))[0] != value:
                yield container.variable_problem(name, f"{first[name][1]} has {first[name][0]}")


def _ours(release: Release) -> list[Container]:
    return [pod.main() for pod in release.lasting_pods() if pod.component in SETTINGS]


def _mounted(container: Container, path: str) -> bool:
    """Whether a volume of the container has a file at the path, as far as the manifest says which keys it has."""
    file = PurePosixPath(path)
    for mount in container.mounts():
        if PurePosixPath(mount["mountPath"]) in file.parents:
            volume = container.pod.volumes().get(mount["name"], {})
            items = (volume.get("secret") or volume.get("configMap") or {}).get("items")
            return items is None or str(file.relative_to(mount["mountPath"])) in {item["path"] for item in items}
    return False


def _web_addresses(container: Container) -> Iterator[tuple[str, str, int]]:
    """Variable, host and port of each URL that the container asks."""
    for name, value in container.environment().items():
        for url in value.split(","):
            parts = urlsplit(url)
            if parts.scheme in WEB_PORTS and parts.hostname and name != "GROUNDWORK_PUBLIC_URL":
                yield name, parts.hostname, parts.port or WEB_PORTS[parts.scheme]


def _unknown(release: Release, host: str, port: int) -> str:
    """Why a name leads nowhere, or nothing. Names outside the namespace are believed."""
    name = host.removesuffix(".").removesuffix(".cluster.local").removesuffix(f".{release.case.namespace}.svc")
    if "." in name.removeprefix(f"{release.fullname}-") and not name.startswith(release.fullname):
        return ""
    pod_name, _, service_name = name.rpartition(".")
    service = release.find("Service", service_name)
    if service is None:
        return f"the release has no Service {service_name}"
    if port not in [each["port"] for each in service.spec["ports"]]:
        return f"{service} has {service.spec['ports']}"
    if not pod_name:
        return ""
    owner = release.find("StatefulSet", pod_name.rpartition("-")[0])
    is_there = owner is not None and owner.get("spec.serviceName") == service_name
    return (
        ""
        if owner and is_there and int(pod_name.rpartition("-")[2]) < owner.spec["replicas"]
        else f"there is no pod {pod_name}"
    )
