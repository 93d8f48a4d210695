"""What a user may have us connect to: a test for each way round the guard."""

import ipaddress
from collections.abc import Sequence

import httpx
import pytest
from pydantic import SecretStr

from kit.llm import ModelRejected, Request, TextDelta
from kit.llm.endpoints import Address
from kit.llm.opening import endpoint_opener
from kit.network.egress import (
    AddressRefused,
    EgressGuard,
    GuardedBackend,
    NameNotFound,
    UrlRefused,
    parse_networks,
    place_of,
)
from kit.network.guarded_http import guarded_transport
from kit.testing.openai import Reply, scripted_model


def guard(*addresses: str, allowed: str = "") -> EgressGuard:
    """A guard to whom every name has these addresses."""

    async def look_up(host: str, port: int) -> Sequence[str]:
        return addresses

    return EgressGuard(parse_networks(allowed), look_up=look_up)


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1",
        "127.255.0.9",
        "0.0.0.0",
        "10.1.2.3",
        "172.16.0.1",
        "192.168.1.1",
        "100.64.0.1",
        "100.100.100.200",  # metadata at Alibaba
        "169.254.169.254",  # metadata nearly everywhere
        "168.63.129.16",  # Azure
        "192.0.0.192",  # metadata at Oracle
        "192.0.2.1",
        "198.18.0.1",
        "198.51.100.1",
        "203.0.113.1",
        "224.0.0.1",
        "240.0.0.1",
        "255.255.255.255",
        "::",
        "::1",
        "::ffff:127.0.0.1",
        "::ffff:169.254.169.254",
        "::ffff:a00:1",
        "::127.0.0.1",
        "64:ff9b::7f00:1",
        "64:ff9b::a9fe:a9fe",
        "64:ff9b:1::a00:1",
        "2002:7f00:1::",
        "2001:0:7f00:1::",
        "2001:db8::1",
        "fe80::1",
        "fe80::1%eth0",
        "fec0::1",
        "fc00::1",
        "fd00:ec2::254",  # metadata at Amazon
        "ff02::1",
        "100::1",
        "5f00::1",
        "3fff::1",
        "not an address",
        "0177.0.0.1",
    ],
)
async def test_what_is_not_public_is_refused(address: str) -> None:
    assert not guard().permits(address)
    with pytest.raises(AddressRefused, match="GROUNDWORK_EGRESS_ALLOWED_NETWORKS"):
        await guard(address).check("https://models.example/v1")


@pytest.mark.parametrize("address", ["8.8.8.8", "::ffff:8.8.8.8", "2606:4700::1", "192.0.1.1", "2a00:1450::1"])
async def test_what_is_public_is_permitted(address: str) -> None:
    assert (await guard(address).check("https://models.example/v1")).port == 443


@pytest.mark.parametrize(
    "url",
    [
        "ftp://models.example/",
        "file:///etc/passwd",
        "gopher://models.example/",
        "//models.example/v1",
        "https://",
        "https:///v1",
        "https://user:secret@models.example/v1",
        "https://user@127.0.0.1/",
        "https://models.example:0/",
        "https://models.example:99999/",
        "https://models.example:x/",
        "https://2130706433/",  # 127.0.0.1 as one number
        "https://0x7f000001/",
        "https://0177.0.0.1/",  # octal
        "https://0x7f.1/",
        "https://127.1/",
        "https://127.0.0.01/",
        "https://256.256.256.256/",
        "https://models.example\\@127.0.0.1/",
        "https://models example/",
        "https://models.example/\r\nHost: other",
        "https://[::1/",
    ],
)
def test_urls_in_odd_spellings_are_refused(url: str) -> None:
    with pytest.raises(UrlRefused):
        place_of(url)


def test_a_refusal_does_not_repeat_a_password() -> None:
    with pytest.raises(UrlRefused) as caught:
        place_of("https://user:secret@models.example/v1")
    assert "secret" not in caught.value.message


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::1]", "[::ffff:7f00:1]", "LOCALHOST.", "127.0.0.1."])
async def test_names_of_this_machine_are_refused_by_the_real_look_up(host: str) -> None:
    with pytest.raises(AddressRefused):
        await EgressGuard().check(f"http://{host}:8000/v1")


async def test_networks_that_the_operator_allows_are_permitted_and_their_neighbours_not() -> None:
    private = guard("10.1.2.3", allowed="10.1.2.0/24, fd00::/64")
    assert await private.addresses("vllm", 8000) == ["10.1.2.3"]
    assert private.permits("::ffff:10.1.2.3")
    assert not private.permits("10.1.3.3")
    assert not private.permits("64:ff9b::a01:203")


async def test_of_a_name_with_several_addresses_only_the_permitted_are_connected_to() -> None:
    assert await guard("127.0.0.1", "8.8.8.8", "::1").addresses("models.example", 443) == ["8.8.8.8"]


async def test_a_name_that_is_not_found_is_told() -> None:
    async def look_up(host: str, port: int) -> Sequence[str]:
        raise OSError("no such host")

    with pytest.raises(NameNotFound, match=r"models\.example cannot be found"):
        await EgressGuard(look_up=look_up).check("https://models.example/v1")


class Network:
    """Notes what is connected to; `down` are addresses that refuse."""

    def __init__(self, *down: str) -> None:
        self.down = down
        self.connected: list[str] = []

    async def connect_tcp(self, host: str, port: int, **options: object) -> str:
        self.connected.append(host)
        if host in self.down:
            raise ConnectionRefusedError(host)
        return f"a connection to {host}"


async def test_a_name_that_is_answered_differently_at_the_connection_is_refused_there() -> None:
    answers = iter([["8.8.8.8"], ["169.254.169.254"]])

    async def look_up(host: str, port: int) -> Sequence[str]:
        return next(answers)

    rebinding, network = EgressGuard(look_up=look_up), Network()
    await rebinding.check("https://models.example/v1")
    with pytest.raises(AddressRefused):
        await GuardedBackend(network, rebinding).connect_tcp("models.example", 443)
    assert network.connected == []


async def test_the_connection_goes_to_the_address_that_was_judged() -> None:
    network = Network("2606:4700::1")
    backend = GuardedBackend(network, guard("2606:4700::1", "8.8.8.8"))
    assert await backend.connect_tcp("models.example", 443) == "a connection to 8.8.8.8"
    assert network.connected == ["2606:4700::1", "8.8.8.8"]


async def test_sockets_of_this_machine_are_refused() -> None:
    with pytest.raises(AddressRefused):
        await GuardedBackend(Network(), guard("8.8.8.8")).connect_unix_socket("/var/run/docker.sock")


def test_networks_are_read_from_a_list() -> None:
    assert parse_networks("10.0.0.0/8, ::1/128") == (
        ipaddress.ip_network("10.0.0.0/8"),
        ipaddress.ip_network("::1/128"),
    )
    with pytest.raises(ValueError, match="host bits"):
        parse_networks("10.0.0.1/8")


async def test_the_http_client_of_brought_endpoints_connects_to_judged_addresses_only() -> None:
    """The real client, to a real server of this machine: refused, unless the operator allows it."""
    private = EgressGuard(parse_networks("127.0.0.0/8"))
    async with scripted_model(Reply(status=401)) as server:
        url = f"{server.base_url}/chat/completions"
        async with httpx.AsyncClient(transport=guarded_transport(EgressGuard())) as client:
            for host in ("127.0.0.1", "localhost"):
                with pytest.raises(AddressRefused):
                    await client.post(url.replace("127.0.0.1", host), json={})
        async with httpx.AsyncClient(transport=guarded_transport(private)) as client:
            assert (await client.post(url, json={})).status_code == 401


async def test_a_brought_endpoint_is_refused_with_the_reason_and_an_allowed_one_answers() -> None:
    async with scripted_model(Reply(["hello"])) as server:
        address = Address("yours", "", server.base_url, SecretStr("k"), "m", is_brought=True)
        with pytest.raises(ModelRejected) as caught:
            async with endpoint_opener(EgressGuard(), stall_timeout_s=60.0, completion_timeout_s=60.0)(address):
                pass
        assert caught.value.reason == "ADDRESS_REFUSED"
        private = EgressGuard(parse_networks("127.0.0.0/8"))
        async with endpoint_opener(private, stall_timeout_s=60.0, completion_timeout_s=60.0)(address) as endpoint:
            deltas = [delta async for delta in endpoint.complete(Request((), 16))]
    assert deltas[0] == TextDelta("hello")
