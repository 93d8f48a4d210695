"""HTTP to a port of a pod, through the API server and the kubelet into the pod's own network namespace. It asks on the pod's
loopback interface: no network policy stands between, and no Service is needed.

Kubernetes' protocol for one port (kubelet, cri/streaming/portforward): channel 0 carries the bytes of the connection, channel 1
what went wrong; each begins with two bytes that name the port.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

import h11

from cli.cluster.connection.api import Api
from cli.cluster.errors import ClusterUnreachable
from cli.errors import CliError

_DATA, _ERROR = 0, 1
_LONGEST_ANSWER_BYTES = 32 * 1024 * 1024
TIMEOUT_S = 8.0


class PortUnreachable(CliError):
    """Nobody listens at the pod's port, or does not answer."""


async def fetch_page(api: Api, namespace: str, pod: str, port: int, path: str, *, timeout_s: float = TIMEOUT_S) -> str:
    """The text that a GET is answered with, whatever its status. Raises PortUnreachable, and what the API server refuses."""
    import aiohttp  # noqa: PLC0415 - comes with the client of Kubernetes

    connection = h11.Connection(h11.CLIENT)
    request = _request(connection, path)
    forward = f"/api/v1/namespaces/{namespace}/pods/{pod}/portforward"
    try:
        async with asyncio.timeout(timeout_s), api.websocket(forward, ports=port) as socket:
            await socket.send_bytes(bytes([_DATA]) + request)
            return await _read(connection, _received(socket, f"port {port} of pod {pod}"))
    except ClusterUnreachable as error:  # the API server lives, but does not get through to the kubelet
        raise PortUnreachable(f"the kubelet of pod {pod} does not forward port {port}") from error
    except aiohttp.ClientError as error:
        raise PortUnreachable(f"the way to port {port} of pod {pod} broke off ({error})") from error
    except TimeoutError as error:
        raise PortUnreachable(f"port {port} of pod {pod} did not answer within {timeout_s:g} s") from error
    except h11.ProtocolError as error:
        raise PortUnreachable(f"what answers at port {port} of pod {pod} speaks no HTTP: {error}") from error


def _request(connection: h11.Connection, path: str) -> bytes:
    headers = [("Host", "localhost"), ("Connection", "close"), ("Accept", "*/*")]
    head = connection.send(h11.Request(method="GET", target=path, headers=headers)) or b""
    return head + (connection.send(h11.EndOfMessage()) or b"")


async def _received(socket: object, place: str) -> AsyncGenerator[bytes, None]:
    """The bytes of the connection, empty ones at its end. Raises PortUnreachable."""
    named: set[int] = set()
    async for message in socket:  # type: ignore[attr-defined]
        if not isinstance(message.data, bytes) or not message.data:
            continue
        channel, content = message.data[0], message.data[1:]
        if channel not in named:
            named.add(channel)
            content = content[2:]  # the port's number, little-endian
        if channel == _ERROR and content:
            raise PortUnreachable(f"{place} cannot be reached: {_short(content)}")
        if channel == _DATA and content:
            yield content
    yield b""


def _short(content: bytes) -> str:
    text = content.decode(errors="replace").strip()
    return "nobody listens there" if "connection refused" in text else text[-200:]


async def _read(connection: h11.Connection, blocks: AsyncGenerator[bytes, None]) -> str:
    body = bytearray()
    async for block in blocks:
        connection.receive_data(block)
        while (event := connection.next_event()) not in (h11.NEED_DATA, h11.PAUSED):
            match event:
                case h11.Data(data=data):
                    body += data
                case h11.EndOfMessage() | h11.ConnectionClosed():
                    return body.decode(errors="replace")
        if len(body) > _LONGEST_ANSWER_BYTES:
            break
    raise PortUnreachable("the answer broke off")
