"""Servers on this machine that pods reach at its address in the cluster's network."""

import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

from tests.in_a_thread import in_a_thread
from tests.service.orchestrator.proxy import Proxy


@contextmanager
def elasticsearch_node(program: Path, data: Path) -> Iterator[int]:
    """A real Elasticsearch node, on loopback; its port. The program prints its address once it serves."""
    with subprocess.Popen([program, "--port", "0", "--data", data], stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            address = process.stdout.readline().strip()
            assert address, "the Elasticsearch node ended before it served"
            yield int(address.rpartition(":")[2])
        finally:
            process.terminate()


@contextmanager
def forwarded(host: str, port: int) -> Iterator[int]:
    """The port of `host` whose connections lead to that port on loopback."""

    @asynccontextmanager
    async def opened() -> AsyncIterator[int]:
        proxy = Proxy(port, host)
        await proxy.start()
        try:
            yield proxy.port
        finally:
            await proxy.stop()

    with in_a_thread(opened()) as (open_port, _):
        yield open_port
