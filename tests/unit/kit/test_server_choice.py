"""Which server of a cluster a connection leaves, and when."""

import asyncio
from dataclasses import dataclass, field
from typing import Any, cast
from urllib.parse import urlparse

from nats.aio.client import Client

from kit.jetstream.cluster import ServerChoice


@dataclass
class PlayedClient:
    """A client of a cluster of two servers."""

    is_connected: bool = True
    servers: tuple[str, ...] = ("one", "two")
    connected_url: Any = field(default_factory=lambda: urlparse("nats://one:4222"))
    left: int = 0

    async def force_reconnect(self) -> None:
        self.left += 1


async def test_a_server_is_not_left_for_what_failed_before_it_was_connected() -> None:
    clock = asyncio.get_running_loop().time
    client, choice = PlayedClient(), ServerChoice()
    choice.connected(cast("Client", client))
    asked_at = clock() - 60.0
    client.is_connected = False
    await choice.failed(asked_at)
    client.is_connected = True
    connected_at = clock()
    choice.connected(cast("Client", client))
    assert choice._connected_at >= connected_at
    choice._connected_at = clock() + 60.0  # however slow this machine is
    await choice.failed(asked_at)
    assert client.left == 0
    choice._connected_at = asked_at
    choice._failing_since = asked_at
    await choice.failed(asked_at)
    assert client.left == 1
