"""The operator's door answers under names that it knows."""

from collections.abc import Iterator
from http.client import HTTPConnection

import pytest

from kit.errors import FailedPrecondition
from kit.observability.ops import OpsServer


@pytest.fixture
def door() -> Iterator[OpsServer]:
    with OpsServer("127.0.0.1", 0, ready=lambda: True, allowed_hosts=("retriever.groundwork.svc",)) as door:
        yield door


def ask(door: OpsServer, host: str | None, path: str = "/metrics") -> tuple[int, str]:
    connection = HTTPConnection("127.0.0.1", door.port, timeout=60)
    connection.putrequest("GET", path, skip_host=True)
    if host is not None:
        connection.putheader("Host", host)
    connection.endheaders()
    answer = connection.getresponse()
    text = answer.read().decode()
    connection.close()
    return answer.status, text


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1",
        "127.0.0.1:{port}",
        "localhost:{port}",
        "LocalHost",
        "[::1]:{port}",
        "10.4.0.17:9090",
        "retriever.groundwork.svc",
    ],
)
@pytest.mark.parametrize("path", ["/metrics", "/livez", "/readyz"])
def test_it_answers_under_addresses_and_names_that_are_its_own(door: OpsServer, host: str, path: str) -> None:
    assert ask(door, host.format(port=door.port), path)[0] == 200


def test_a_port_that_is_taken_is_named(door: OpsServer) -> None:
    with pytest.raises(FailedPrecondition, match="set GROUNDWORK_OPS_HOST and GROUNDWORK_OPS_PORT"):
        OpsServer("127.0.0.1", door.port, ready=lambda: True)


@pytest.mark.parametrize(
    "host",
    [None, "", "evil.example", "evil.example:{port}", "localhost.evil.example", "127.0.0.1.evil.example", "[", "a b"],
)
@pytest.mark.parametrize("path", ["/metrics", "/livez", "/readyz", "/"])
def test_a_name_that_a_hostile_page_points_at_this_machine_is_refused(
    door: OpsServer, host: str | None, path: str
) -> None:
    status, text = ask(door, host.format(port=door.port) if host else host, path)
    assert status == 403
    assert "GROUNDWORK_OPS_ALLOWED_HOSTS" in text
