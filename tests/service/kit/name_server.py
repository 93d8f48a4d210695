"""A name server of one name, whose answer the test changes (RFC 1035)."""

import asyncio
import ipaddress
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

_TYPE_A = 1
_ANSWER, _NO_TTL_S = 0x8180, 0


class NameServer(asyncio.DatagramProtocol):
    """Answers each question about an A record with `addresses`, and any other with nothing."""

    def __init__(self) -> None:
        self.addresses: list[str] = []
        self.asked = 0
        self._transport: Any = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        end = data.index(b"\0", 12) + 5
        (kind,) = struct.unpack("!H", data[end - 4 : end - 2])
        records = self.addresses if kind == _TYPE_A else []
        self.asked += kind == _TYPE_A
        head = data[:2] + struct.pack("!HHHHH", _ANSWER, 1, len(records), 0, 0)
        answers = [
            b"\xc0\x0c" + struct.pack("!HHIH", _TYPE_A, 1, _NO_TTL_S, 4) + ipaddress.ip_address(each).packed
            for each in records
        ]
        self._transport.sendto(b"".join([head, data[12:end], *answers]), addr)


@asynccontextmanager
async def name_server() -> AsyncIterator[tuple[NameServer, str]]:
    """A running one, and its address."""
    loop = asyncio.get_running_loop()
    transport, protocol = await loop.create_datagram_endpoint(NameServer, local_addr=("127.0.0.1", 0))
    try:
        yield protocol, "{}:{}".format(*transport.get_extra_info("sockname"))
    finally:
        transport.close()
