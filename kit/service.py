"""The life of a process: logging, telemetry, the operator's door, the gRPC server with health, background tasks, and an
orderly end.

    SIGTERM → NOT_SERVING → drain delay → stop(grace) → cancel tasks → close adapters in reverse → flush telemetry
"""

import asyncio
import gc
import signal
import sys
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Sequence
from contextlib import AsyncExitStack
from typing import Any, Self

import grpc
import structlog
from google.protobuf.descriptor import ServiceDescriptor
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_health.v1.health import aio as health_aio

from kit.configuration import SettingsT, read_settings
from kit.errors import FailedPrecondition, GroundworkError
from kit.logging import configure_logging
from kit.ops import OpsServer, Trouble
from kit.server import HEALTH_DETAIL_KEY, make_server
from kit.settings import ServiceSettings
from kit.telemetry import configure_telemetry
from kit.tokens import TokenSigner, TokenVerifier

_log = structlog.get_logger()
_CHECK_TIMEOUT_S = 2.0
_CHECK_INTERVAL_S = 0.1
_MAX_DETAIL_CHARS = 1000
"""Metadata of a call may have 8 KB together."""
_SETTLED_AFTER_S = 15.0
"""By then a process has imported and opened what it needs."""


def run_process(run: Callable[[SettingsT], Coroutine[Any, Any, None]], settings_class: type[SettingsT]) -> None:
    """Reads the settings and runs a service's main coroutine to its end on uvloop: the body of every `__main__.py`.

    Settings that are not valid end the process with a line for each on stderr and exit code 78; our own errors, whose messages
    say what to do, with a line for each and exit code 1.
    """
    settings = read_settings(settings_class)
    import uvloop  # noqa: PLC0415 - only processes need it, not those who import kit.service

    async def main() -> None:
        asyncio.get_running_loop().call_later(_SETTLED_AFTER_S, gc.freeze)
        await run(settings)

    # Modules and adapters live as long as the process. A collector that looks through them again and again holds up the start, and
    # later everybody for 40 to 100 ms each time.
    gc.freeze()
    failures: list[GroundworkError] = []
    try:
        uvloop.run(main())
    except* GroundworkError as group:
        failures.extend(_leaves(group))
    if failures:
        sys.stderr.write("".join(f"{error.reason}: {error.message}\n" for error in failures))
        sys.exit(1)


def _leaves(group: BaseExceptionGroup[GroundworkError]) -> Iterator[GroundworkError]:
    for error in group.exceptions:
        if isinstance(error, BaseExceptionGroup):
            yield from _leaves(error)
        else:
            yield error


class DetailedHealth(health_aio.HealthServicer):
    """The standard health service, which also says what is wrong: in the trailing metadata, which probes that do not know of it
    ignore."""

    def __init__(self) -> None:
        super().__init__()
        self.detail = ""

    async def Check(self, request: Any, context: Any) -> Any:  # noqa: N802 - the protocol's name
        if self.detail:
            context.set_trailing_metadata(((HEALTH_DETAIL_KEY, self.detail.encode()),))
        return await super().Check(request, context)


class Service:
    """One process. Enter it, put adapters on `stack`, add servicers, then `serve()` until told to stop.

    `require` names what must have answered once before the service reports SERVING. Readiness does not cascade after
    that: a service whose dependency is down still answers, degraded, and says so. What it says of itself to operators it takes
    from those who `report`.
    """

    def __init__(self, name: str, settings: ServiceSettings) -> None:
        self.name = name
        self.settings = settings
        self.signer = TokenSigner(settings.signing_key())
        self.verifier = TokenVerifier(settings.public_keys())
        self.stack = AsyncExitStack()
        self.stopping = asyncio.Event()
        """Told to stop: not ready any more, and still serving whoever has not noticed."""
        self.closing = asyncio.Event()
        """The drain delay is over: nobody new is let in, and those in hand are given the grace."""
        self.address = ""
        self._opened = False
        self._serving = False
        self._troubles: tuple[Trouble, ...] = ()
        self._reporters: list[Callable[[], Sequence[Trouble]]] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._group = asyncio.TaskGroup()
        self._requirements: dict[str, Callable[[], Awaitable[object]]] = {}
        self._servicers: list[tuple[Callable[[Any, grpc.aio.Server], None], object, ServiceDescriptor]] = []
        self._health = DetailedHealth()

    async def __aenter__(self) -> Self:
        configure_logging(self.name, self.settings.log_level)
        provider = configure_telemetry(self.name, self.settings.otlp_endpoint)
        self.stack.callback(provider.shutdown)
        self._ops = OpsServer(
            self.settings.ops_host,
            self.settings.ops_port,
            ready=lambda: self._serving,
            troubles=lambda: self._troubles,
            allowed_hosts=self.settings.ops_allowed_hosts,
        )
        self.stack.enter_context(self._ops)
        await self._group.__aenter__()
        return self

    async def __aexit__(self, *exc: Any) -> None:
        for task in self._tasks:
            task.cancel()
        try:
            await self._group.__aexit__(*exc)
        finally:
            await self.stack.aclose()

    def require(self, name: str, check: Callable[[], Awaitable[object]]) -> None:
        """Holds SERVING back until `check` has returned once without raising."""
        self._requirements[name] = check

    def report(self, troubles: Callable[[], Sequence[Trouble]]) -> None:
        """Has this asked about once a second. What it returns is shown by /readyz and by the health check; a trouble that
        stops the service makes both say NOT_SERVING while it lasts."""
        self._reporters.append(troubles)

    def add_servicer(
        self, add: Callable[[Any, grpc.aio.Server], None], servicer: object, descriptor: ServiceDescriptor
    ) -> None:
        self._servicers.append((add, servicer, descriptor))

    def spawn(self, coroutine: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Runs a background loop for the life of the service. One that raises ends the process: its supervisor restarts it."""
        task = self._group.create_task(coroutine)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def serve(self) -> None:
        """Binds, turns SERVING once every requirement has answered, and returns after an orderly drain."""
        self._catch_signals()
        server = self._bind()
        await self._set_health(health_pb2.HealthCheckResponse.NOT_SERVING)  # the library begins with SERVING
        await server.start()
        self.stack.push_async_callback(
            server.stop, None
        )  # before the adapters, also when cancelled instead of told to stop
        _log.info("service_started", address=self.address, ops_port=self._ops.port)
        self.spawn(self._heartbeat())
        opening = self.spawn(self._open_when_ready())
        await self.stopping.wait()
        opening.cancel()
        self._opened = self._serving = False
        await self._health.enter_graceful_shutdown()
        _log.info("service_draining")
        await asyncio.sleep(self.settings.drain_delay_s)
        self.closing.set()
        await server.stop(self.settings.drain_grace_s)

    def _bind(self) -> grpc.aio.Server:
        server = make_server(self.verifier, max_connection_age_s=self.settings.max_connection_age_s)
        health_pb2_grpc.add_HealthServicer_to_server(self._health, server)
        for add, servicer, _ in self._servicers:
            add(servicer, server)
        host = self.settings.grpc_address.rpartition(":")[0]
        try:
            port = server.add_insecure_port(self.settings.grpc_address)
        except RuntimeError as error:
            raise FailedPrecondition(
                f"{self.settings.grpc_address} cannot be bound; is another process on it? Set GROUNDWORK_GRPC_ADDRESS",
                reason="ADDRESS_IN_USE",
            ) from error
        self.address = f"{host}:{port}"
        return server

    async def _open_when_ready(self) -> None:
        async with asyncio.TaskGroup() as group:
            for name, check in self._requirements.items():
                group.create_task(self._until_ready(name, check))
        self._opened = True
        await self._look_at_troubles()
        _log.info("service_ready")

    async def _until_ready(self, name: str, check: Callable[[], Awaitable[object]]) -> None:
        attempt = 0
        while True:
            try:
                async with asyncio.timeout(_CHECK_TIMEOUT_S):
                    await check()
            except Exception as error:
                attempt += 1
                if attempt % 50 == 0:
                    _log.warning("waiting_for_dependency", dependency=name, error=str(error))
                await asyncio.sleep(_CHECK_INTERVAL_S)
            else:
                return

    async def _look_at_troubles(self) -> None:
        self._troubles = tuple(trouble for report in self._reporters for trouble in report())
        self._health.detail = "; ".join(f"{each.part}: {each.message}" for each in self._troubles)[:_MAX_DETAIL_CHARS]
        serving = self._opened and not any(trouble.stops_service for trouble in self._troubles)
        if serving != self._serving:
            self._serving = serving
            health = health_pb2.HealthCheckResponse
            await self._set_health(health.SERVING if serving else health.NOT_SERVING)

    async def _set_health(self, status: Any) -> None:
        for name in ["", *(descriptor.full_name for _, _, descriptor in self._servicers)]:
            await self._health.set(name, status)

    async def _heartbeat(self) -> None:
        while True:
            self._ops.beat()
            await self._look_at_troubles()
            await asyncio.sleep(1.0)

    def _catch_signals(self) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self.stopping.set)
