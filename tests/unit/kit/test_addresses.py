"""What settings may say about where a service is."""

import pytest

from kit.addresses import addresses, target
from kit.errors import InvalidArgument


@pytest.mark.parametrize(
    ("text", "listed", "told_to_grpc"),
    [
        ("retriever:7002", ["retriever:7002"], "dns:///retriever:7002"),
        ("127.0.0.1:7002", ["127.0.0.1:7002"], "dns:///127.0.0.1:7002"),
        ("[::1]:7002", ["[::1]:7002"], "dns:///[::1]:7002"),
        ("127.0.0.1:1, 127.0.0.1:2", ["127.0.0.1:1", "127.0.0.1:2"], "ipv4:127.0.0.1:1,127.0.0.1:2"),
        ("[::1]:1,[::1]:2", ["[::1]:1", "[::1]:2"], "ipv6:[::1]:1,[::1]:2"),
        ("unix:/run/reranker.sock", ["unix:/run/reranker.sock"], "unix:/run/reranker.sock"),
        ("dns:///retriever:7002", ["dns:///retriever:7002"], "dns:///retriever:7002"),
    ],
)
def test_one_or_several_addresses(text: str, listed: list[str], told_to_grpc: str) -> None:
    assert addresses(text) == listed
    assert target(text) == told_to_grpc


@pytest.mark.parametrize("text", ["", "retriever", "retriever:", ":7002", "::1:7002", "127.0.0.1:1,", "a:1,,b:2"])
def test_what_is_no_address_is_refused_with_advice(text: str) -> None:
    with pytest.raises(InvalidArgument, match="write host:port"):
        addresses(text)


@pytest.mark.parametrize("text", ["a:1,b:2", "127.0.0.1:1,[::1]:2", "127.0.0.1:1,localhost:2"])
def test_several_addresses_are_of_one_family(text: str) -> None:
    with pytest.raises(InvalidArgument, match="all as IPv4 or all as IPv6"):
        target(text)
