"""The way in: the names under which the gateway answers, the keys that it asks for, and routes that keep event streams open."""

from collections.abc import Iterator
from urllib.parse import urlsplit

from services.gateway.settings import GatewaySettings
from tests.chart.manifests import Container
from tests.chart.release import Release, holds
from tests.chart.settings import settings_of

LONGEST_STREAM_S = 3600
"""Of the gateway's own setting GROUNDWORK_STREAM_TIMEOUT_S, after which it begins a new one unseen."""
NGINX_KEEPS_S = 60
"""upstream-keepalive-timeout of ingress-nginx."""


@holds
def test_the_gateway_answers_under_every_name_that_leads_to_it(release: Release) -> Iterator[str]:
    names = {f"{release.fullname}-gateway", f"{release.fullname}-gateway.{release.case.namespace}"}
    names |= {f"{release.fullname}-gateway.{release.case.namespace}.svc"}
    for route in release.of_kind("Ingress", "HTTPRoute"):
        names |= {rule["host"] for rule in route.spec.get("rules") or () if rule.get("host")} | set(
            route.spec.get("hostnames") or ()
        )
    for container in _gateways(release):
        if container.pod.component == "gateway":
            with settings_of(container) as settings:
                assert isinstance(settings, GatewaySettings)
            for name in sorted(names - set(settings.allowed_hosts)):
                yield container.variable_problem("GROUNDWORK_ALLOWED_HOSTS", f"lacks {name}")


@holds
def test_links_lead_to_a_name_under_which_the_gateway_answers(release: Release) -> Iterator[str]:
    for container in _gateways(release):
        if container.pod.component == "gateway":
            with settings_of(container) as settings:
                assert isinstance(settings, GatewaySettings)
            name = urlsplit(settings.public_url).hostname
            if name and name not in settings.allowed_hosts:
                yield container.variable_problem("GROUNDWORK_PUBLIC_URL", f"the gateway refuses requests to {name}")


@holds
def test_the_gateway_asks_for_keys(release: Release) -> Iterator[str]:
    for container in _gateways(release):
        environment = container.environment()
        if container.pod.component == "gateway":
            if environment.get("GROUNDWORK_AUTH") != "api_keys":
                yield container.variable_problem(
                    "GROUNDWORK_AUTH", "should be api_keys: others than this machine reach it"
                )
            if not environment.get("GROUNDWORK_BOOTSTRAP_KEY_FILE"):
                yield container.problem(
                    "env", "GROUNDWORK_BOOTSTRAP_KEY_FILE is not set: nobody could make a first key"
                )


@holds
def test_an_ingress_passes_streams_on_as_they_come_and_uploads_of_any_size(release: Release) -> Iterator[str]:
    """Annotations of ingress-nginx, whose defaults are to collect answers, 60 s and 1 MB."""
    expected = {"proxy-buffering": "off", "proxy-request-buffering": "off", "proxy-body-size": "0"}
    for ingress in release.of_kind("Ingress"):
        found = {name.partition("/")[2]: value for name, value in ingress.annotations.items()}
        for name, value in expected.items():
            if found.get(name) != value:
                yield f"{ingress}: annotation {name} is {found.get(name)!r}; should be {value!r}"
        for name in ("proxy-read-timeout", "proxy-send-timeout"):
            if int(found.get(name, 60)) < LONGEST_STREAM_S:
                yield f"{ingress}: annotation {name} is {found.get(name)!r}; should be at least {LONGEST_STREAM_S}"


@holds
def test_a_route_cuts_no_stream_off(release: Release) -> Iterator[str]:
    for route in release.of_kind("HTTPRoute"):
        for index, rule in enumerate(route.spec["rules"]):
            for name in ("request", "backendRequest"):
                if (rule.get("timeouts") or {}).get(name) != "0s":
                    yield route.problem(f"spec.rules[{index}].timeouts.{name}", "should be 0s: no limit")


@holds
def test_the_gateway_keeps_idle_connections_longer_than_the_proxy_in_front(release: Release) -> Iterator[str]:
    """Else a request that the proxy sends on a connection which is being closed is lost."""
    for container in _gateways(release) if release.of_kind("Ingress", "HTTPRoute") else ():
        kept_s = float(container.environment().get("GROUNDWORK_CONNECTION_IDLE_TIMEOUT_S", 0))
        if kept_s <= NGINX_KEEPS_S:
            yield container.variable_problem("GROUNDWORK_CONNECTION_IDLE_TIMEOUT_S", f"should be above {NGINX_KEEPS_S}")


@holds
def test_the_gateways_service_is_of_the_given_type_and_keeps_addresses_as_it_is_told(release: Release) -> Iterator[str]:
    given = release.case.values.get("gateway", {}).get("service", {})
    service = release.find("Service", f"{release.fullname}-gateway")
    assert service is not None
    for field in ("type", "externalTrafficPolicy"):
        expected = given.get(field, "ClusterIP" if field == "type" else None)
        if service.get(f"spec.{field}") != expected:
            yield service.problem(f"spec.{field}", f"should be {expected}")


def _gateways(release: Release) -> list[Container]:
    return [pod.main() for pod in release.lasting_pods() if pod.component == "gateway"]
