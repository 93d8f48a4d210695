"""With `tls.enabled` all services speak TLS, and each shows a certificate that is good for the name that was called."""

from collections.abc import Iterator
from urllib.parse import urlsplit

from tests.chart.manifests import Container
from tests.chart.release import Release, holds
from tests.chart.services import SETTINGS

FILES = ("GROUNDWORK_TLS_CERT_FILE", "GROUNDWORK_TLS_KEY_FILE", "GROUNDWORK_TLS_CA_FILE")
PROVES_WHO_IT_IS = "client auth"


@holds
def test_all_services_speak_tls_or_none(release: Release) -> Iterator[str]:
    wanted = bool(release.case.values.get("tls", {}).get("enabled")) or bool(release.of_kind("Certificate"))
    for container in _services(release):
        environment = container.environment()
        for name in FILES:
            if (name in environment) is not wanted:
                yield container.variable_problem(name, f"should {'' if wanted else 'not '}be set")


@holds
def test_every_certificate_is_good_for_the_names_that_are_called(release: Release) -> Iterator[str]:
    certificates = {each.component: each for each in release.of_kind("Certificate")}
    if certificates:
        for container in _services(release):
            for name, component, host in _called(container):
                if component in certificates and host not in certificates[component].spec["dnsNames"]:
                    yield certificates[component].problem("spec.dnsNames", f"lacks {host}, {name} of {container}")


@holds
def test_every_certificate_is_for_servers_and_clients_alike(release: Release) -> Iterator[str]:
    """Each service answers and calls."""
    for each in release.of_kind("Certificate"):
        if set(each.spec.get("usages") or ()) != {"server auth", PROVES_WHO_IT_IS}:
            yield each.problem("spec.usages", f"should be server auth and {PROVES_WHO_IT_IS}")
        if each.get("spec.privateKey.rotationPolicy") != "Always":
            yield each.problem(
                "spec.privateKey.rotationPolicy", "should be Always: a new certificate for a stolen key is no cure"
            )


@holds
def test_every_service_has_the_secret_that_is_made_for_it(release: Release) -> Iterator[str]:
    made = {each.component: each.spec["secretName"] for each in release.of_kind("Certificate")}
    for container in _services(release) if made else ():
        mounted = {(volume.get("secret") or {}).get("secretName") for volume in container.pod.volumes().values()}
        if made.get(container.pod.component) not in mounted:
            yield container.pod.problem("spec.volumes", f"should have the Secret {made.get(container.pod.component)}")


def _services(release: Release) -> list[Container]:
    return [pod.main() for pod in release.lasting_pods() if pod.component in SETTINGS]


def _called(container: Container) -> Iterator[tuple[str, str, str]]:
    """Variable, component and host of each address."""
    for name, value in container.environment().items():
        if name.endswith("_ADDRESS") and name != "GROUNDWORK_GRPC_ADDRESS":
            component = name.removeprefix("GROUNDWORK_").removesuffix("_ADDRESS").lower().replace("_", "-")
            yield name, component, value.partition(":")[0]
        elif name == "GROUNDWORK_NATS_URL":
            yield from ((name, "nats", urlsplit(url).hostname or "") for url in value.split(","))
