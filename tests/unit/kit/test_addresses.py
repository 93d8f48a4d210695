"""What settings may say about where a service is."""

import asyncio
import socket
from typing import Any

import pytest

from kit.errors import InvalidArgument
from kit.rpc.addresses import addresses, resolved, target


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


async def test_servers_are_the_addresses_behind_the_name(monkeypatch: pytest.MonkeyPatch) -> None:
    async def looked_up(host: str, port: int, **_: Any) -> list[Any]:
        assert (host, port) == ("reranker", 7001)
        v4 = [(socket.AF_INET, 1, 6, "", (where, port)) for where in ("10.0.0.1", "10.0.0.2", "10.0.0.1")]
        return [(socket.AF_INET6, 1, 6, "", ("fd00::1", port, 0, 0)), *v4]

    monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", looked_up)
    assert await resolved("reranker:7001") == ["10.0.0.1:7001", "10.0.0.2:7001"]
    assert await resolved("unix:/run/reranker.sock") == ["unix:/run/reranker.sock"]
    assert await resolved("10.0.0.1:1,reranker:7001") == ["10.0.0.1:1", "10.0.0.1:7001", "10.0.0.2:7001"]
