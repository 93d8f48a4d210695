"""A real cluster of three nats-servers on one machine, whose nodes can be killed, frozen and cut off from each other. The routes
between them go through proxies in this process; clients reach every node directly, also one that is cut off."""

import asyncio
import os
import signal
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from kit.testing.harness import free_ports
from kit.testing.nats import NatsServer

NODES = 3
_PIECE_BYTES = 65_536
_FORMED_TIMEOUT_S = 180.0
_ANSWER_TIMEOUT_S = 2.0
_RECHECK_S = 0.05
"""Between two looks at what a node says of itself: nothing tells of it."""


class Link:
    """A TCP proxy for one direction of dialling between two nodes. Cut, it passes nothing on and resets nothing, as a network that
    drops packets; mended, what waited goes on."""

    def __init__(self, target_port: int) -> None:
        self._target_port = target_port
        self._is_whole = asyncio.Event()
        self._is_whole.set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None

    async def open(self) -> int:
        """Returns its port."""
        self._server = await asyncio.start_server(self._accepted, "127.0.0.1", 0)
        port: int = self._server.sockets[0].getsockname()[1]
        return port

    def cut(self) -> None:
        self._is_whole.clear()

    def mend(self) -> None:
        self._is_whole.set()

    async def close(self) -> None:
        if self._server is not None:
            self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _accepted(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            await self._is_whole.wait()
            other_reader, other_writer = await asyncio.open_connection("127.0.0.1", self._target_port)
            await asyncio.gather(self._pass_on(reader, other_writer), self._pass_on(other_reader, writer))
        except (OSError, asyncio.CancelledError):
            pass  # the callback of a server has nobody to tell: the node dials again
        finally:
            self._tasks.discard(task)
            writer.close()

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            with suppress(OSError):  # one end is gone
                while data := await reader.read(_PIECE_BYTES):
                    await self._is_whole.wait()
                    writer.write(data)
                    await writer.drain()
        finally:
            writer.close()


@dataclass
class ClusterNode(NatsServer):
    """One server of the cluster. `stop()` and `start()` keep ports and store."""

    name: str = ""
    monitoring_port: int = 0

    def freeze(self) -> None:
        """Stops it without its noticing (SIGSTOP): its connections stay open and silent."""
        self._signal(signal.SIGSTOP)

    def thaw(self) -> None:
        self._signal(signal.SIGCONT)

    async def asked(self, path: str) -> dict[str, Any]:
        """What it says of itself on its monitoring port (`jsz`, `healthz`, …); empty when it does not answer."""
        with suppress(httpx.HTTPError, ValueError):
            async with httpx.AsyncClient(timeout=_ANSWER_TIMEOUT_S) as client:
                found: dict[str, Any] = (await client.get(f"http://127.0.0.1:{self.monitoring_port}/{path}")).json()
                return found
        return {}

    def _signal(self, number: int) -> None:
        assert self.process is not None
        os.kill(self.process.pid, number)


@dataclass
class NatsCluster:
    """The nodes, and the links that each dials the others through, by (who dials, who is dialled)."""

    nodes: Sequence[ClusterNode]
    links: dict[tuple[str, str], Link] = field(default_factory=dict)

    @property
    def url(self) -> str:
        """All nodes, as clients are given them."""
        return ",".join(node.url for node in self.nodes)

    def node(self, name: str) -> ClusterNode:
        return next(node for node in self.nodes if node.name == name)

    def cut_off(self, node: ClusterNode) -> None:
        """No other node hears it, nor it them. Clients reach it all the same."""
        for ends, link in self.links.items():
            if node.name in ends:
                link.cut()

    def mend(self) -> None:
        for link in self.links.values():
            link.mend()

    async def meta_leader(self, *, besides: ClusterNode | None = None) -> ClusterNode:
        """Who decides where streams are, as the nodes other than `besides` agree. Waits until there is one."""
        return await self._agreed(_meta_leader, besides)

    async def stream_leader(self, stream: str, *, besides: ClusterNode | None = None) -> ClusterNode:
        """Who takes the writes of a stream, likewise."""
        return await self._agreed(lambda node: _stream_leader(node, stream), besides)

    async def until_whole(self) -> None:
        """Every node is up, known to the others, and has all that is stored on it."""
        leader = await self.meta_leader()
        async with asyncio.timeout(_FORMED_TIMEOUT_S):
            while not _all_current(await leader.asked("jsz"), len(self.nodes)):  # noqa: ASYNC110 - another process tells no Event
                await asyncio.sleep(_RECHECK_S)
            for node in self.nodes:
                while (await node.asked("healthz")).get("status") != "ok":  # noqa: ASYNC110 - another process tells no Event
                    await asyncio.sleep(_RECHECK_S)

    async def _agreed(
        self, leader_of: Callable[[ClusterNode], Awaitable[str | None]], besides: ClusterNode | None
    ) -> ClusterNode:
        asked = [node for node in self.nodes if node is not besides and node.process is not None]
        gone = "" if besides is None else besides.name
        async with asyncio.timeout(_FORMED_TIMEOUT_S):
            while True:
                named = {await leader_of(node) for node in asked} - {None}
                if len(named) == 1 and (name := named.pop()) and name != gone:
                    return self.node(name)
                await asyncio.sleep(_RECHECK_S)


def _all_current(jsz: dict[str, Any], nodes: int) -> bool:
    """As a leader says of the others."""
    others = jsz.get("meta_cluster", {}).get("replicas", [])
    return len(others) == nodes - 1 and all(each.get("current") and not each.get("offline") for each in others)


async def _meta_leader(node: ClusterNode) -> str:
    return str((await node.asked("jsz")).get("meta_cluster", {}).get("leader", ""))


async def _stream_leader(node: ClusterNode, stream: str) -> str | None:
    """None where the stream is not on that node."""
    for account in (await node.asked("jsz?streams=true")).get("account_details", []):
        for each in account.get("stream_detail", []):
            if each["name"] == stream:
                return str(each.get("cluster", {}).get("leader", ""))
    return None


@asynccontextmanager
async def nats_cluster(configuration: str = "") -> AsyncIterator[NatsCluster]:
    """Three servers with JetStream on disk, formed. `configuration` is what each has besides: users, for instance."""
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="groundwork-nats-")))
        names = [f"n{number}" for number in range(1, NODES + 1)]
        ports = free_ports(3 * NODES)
        routes = dict(zip(names, ports[:NODES], strict=True))
        links, dialled = {}, {}
        for ends in [(one, other) for one in names for other in names if one != other]:
            links[ends] = link = Link(routes[ends[1]])
            stack.push_async_callback(link.close)
            dialled[ends] = await link.open()
        nodes = []
        for name, port, monitoring in zip(names, ports[NODES : 2 * NODES], ports[2 * NODES :], strict=True):
            store = folder / name
            store.mkdir()
            own_links = [dialled[name, other] for other in names if other != name]
            text = configuration + _cluster_configuration(name, routes[name], own_links, monitoring)
            nodes.append(ClusterNode(store, text, port, name=name, monitoring_port=monitoring))
        cluster = NatsCluster(nodes, links)
        for node in nodes:
            stack.push_async_callback(_ended, node)
        await asyncio.gather(*(node.start() for node in nodes))
        await cluster.meta_leader()
        await cluster.until_whole()
        yield cluster


async def _ended(node: ClusterNode) -> None:
    await node.stop(kill=True)


def _cluster_configuration(name: str, port: int, links: Sequence[int], monitoring: int) -> str:
    # Nodes tell each other where they listen, and would go round the links: nobody listens where they say.
    return f"""
server_name: {name}
http: "127.0.0.1:{monitoring}"
cluster {{
  name: tests
  listen: "127.0.0.1:{port}"
  advertise: "127.0.0.1:9"
  routes: [{", ".join(f'"nats://127.0.0.1:{link}"' for link in links)}]
}}
"""
