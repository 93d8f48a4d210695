"""Every service that uses the message store, as a process: started before it, kept through its absence, and told to stop while it
waits."""

import asyncio
import os
import shutil
import signal
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import grpc
import httpx
import pytest
from groundwork.memory.v1 import memory_pb2, memory_pb2_grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

from kit.errors import DeadlineExceeded, Unavailable
from kit.testing.harness import free_port, open_test_channel
from kit.testing.nats import NatsServer

pytestmark = [pytest.mark.integration]
COMMANDS = {
    "ingest": ("services.ingest", "api"),
    "ingest-worker": ("services.ingest", "worker"),
    "memory": ("services.memory",),
    "orchestrator": ("services.orchestrator",),
    "retriever": ("services.retriever",),
    "tools": ("services.tools",),
}
GIVE_UP_S = 300.0
ABSENCE_S = 12
"""Longer than any single request to the store is waited for: what fails for its absence has failed by then."""


@dataclass
class Process:
    name: str
    process: asyncio.subprocess.Process
    grpc_address: str
    ops_port: int
    output: Path

    def check_alive(self) -> None:
        assert self.process.returncode is None, f"{self.name} ended:\n{self.output.read_text()[-3000:]}"

    async def says(self, path: str, *parts: str, whole: str = "") -> tuple[int, str]:
        """Status and text of the operator's door once it has all of these parts, or is that text."""
        answer = None
        async with httpx.AsyncClient(trust_env=False) as http:
            try:
                async with asyncio.timeout(GIVE_UP_S):
                    while True:
                        self.check_alive()
                        with suppress(httpx.TransportError):
                            answer = await http.get(f"http://127.0.0.1:{self.ops_port}{path}")
                            if all(part in answer.text for part in parts) and whole in ("", answer.text):
                                return answer.status_code, answer.text
                        await asyncio.sleep(0.1)
            except TimeoutError:
                said = answer.text if answer else "nothing"
                pytest.fail(f"{self.name} says {said}\n{self.output.read_text()[-3000:]}")

    async def is_serving(self) -> bool:
        async with grpc.aio.insecure_channel(self.grpc_address) as channel:
            stub = health_pb2_grpc.HealthStub(channel)  # type: ignore[no-untyped-call]
            answer = await stub.Check(health_pb2.HealthCheckRequest(), timeout=GIVE_UP_S, wait_for_ready=True)
            return bool(answer.status == health_pb2.HealthCheckResponse.SERVING)

    async def has_been_without_store(self, seconds: int) -> None:
        """Returns once it says that the store has been away for so long."""
        texts = [f"since {second} s" for second in range(seconds, seconds + 30)]
        while True:
            _, text = await self.says("/readyz", "message store: does not answer since")
            if any(each in text for each in texts):
                return
            await asyncio.sleep(0.2)


async def started(name: str, folder: Path, nats_url: str) -> Process:
    place = folder / name
    place.mkdir()
    address, ops_port = f"127.0.0.1:{free_port()}", free_port()
    nobody = {f"GROUNDWORK_{who}_ADDRESS": f"127.0.0.1:{free_port()}" for who in ("RERANKER", "RETRIEVER", "MEMORY")}
    environment = {
        **os.environ,
        **nobody,
        "GROUNDWORK_NATS_URL": nats_url,
        "GROUNDWORK_GRPC_ADDRESS": address,
        "GROUNDWORK_OPS_PORT": str(ops_port),
        "GROUNDWORK_DATA_DIR": str(place),
        "GROUNDWORK_INDEX_DIR": str(place / "index"),
        "GROUNDWORK_DRAIN_DELAY_S": "600",  # must not be waited for by who never served
    }
    output = place / "output"
    with output.open("wb") as file:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", *COMMANDS[name], env=environment, stdout=file, stderr=file
        )
    return Process(name, process, address, ops_port, output)


@asynccontextmanager
async def all_services(folder: Path, nats_url: str) -> AsyncIterator[Sequence[Process]]:
    async with AsyncExitStack() as stack:
        processes = []
        for name in COMMANDS:
            processes.append(process := await started(name, folder, nats_url))
            stack.push_async_callback(_ended, process.process)
        yield processes


async def _ended(process: asyncio.subprocess.Process) -> None:
    with suppress(ProcessLookupError):
        process.kill()
    await process.wait()


@pytest.fixture
async def absent_nats(tmp_path: Path) -> AsyncIterator[NatsServer]:
    """A server that is not started, and whose port is known."""
    (store := tmp_path / "nats").mkdir()
    server = NatsServer(store, port=free_port())
    yield server
    await server.stop(kill=True)


async def test_services_wait_for_the_message_store_and_outlive_its_absence(
    tmp_path: Path, absent_nats: NatsServer
) -> None:
    async with all_services(tmp_path, absent_nats.url) as services, asyncio.TaskGroup() as group:
        for service in services:
            status, _ = await service.says("/readyz", "message store: waits for it since")
            assert (service.name, status) == (service.name, 503)
            assert (await service.says("/livez"))[0] == 200
            assert not await service.is_serving()
        await absent_nats.start()
        for service in services:
            assert (await service.says("/readyz", whole="ok\n"))[0] == 200
            assert await service.is_serving()

        asking = group.create_task(_ask(next(each for each in services if each.name == "memory")))
        await absent_nats.stop(kill=True)
        for service in services:
            await service.has_been_without_store(ABSENCE_S)
        await absent_nats.start()
        for service in services:
            await service.says("/readyz", whole="ok\n")
        asking.cancel()

        # Restarted empty, as after the loss of a disk: not ready or with errors, but no process ends for it.
        await absent_nats.stop()
        await asyncio.to_thread(shutil.rmtree, absent_nats.store / "jetstream")
        for service in services:
            await service.says("/readyz", "message store: does not answer since")
        await absent_nats.start()
        for service in services:
            while "message store" in (await service.says("/readyz"))[1]:
                await asyncio.sleep(0.1)
        for service in services:
            service.check_alive()


async def _ask(memory: Process) -> None:
    """Traffic through the absence: calls succeed, or are refused as they should be."""
    async with open_test_channel(memory.grpc_address) as channel:
        stub = memory_pb2_grpc.MemoryServiceStub(channel)
        while True:
            with suppress(Unavailable, DeadlineExceeded):
                await stub.CreateThread(memory_pb2.CreateThreadRequest(title="a thread"), timeout=60)
            await asyncio.sleep(0.1)


async def test_services_that_wait_end_at_once_when_told_to(tmp_path: Path, absent_nats: NatsServer) -> None:
    async with all_services(tmp_path, absent_nats.url) as services:
        for service in services:
            await service.says("/readyz", "message store: waits for it since")
            service.process.send_signal(signal.SIGTERM)
        for service in services:
            async with asyncio.timeout(GIVE_UP_S):  # the drain delay alone is longer
                code = await service.process.wait()
            output = service.output.read_text()
            assert (service.name, code) == (service.name, 0), output
            assert "Traceback" not in output
