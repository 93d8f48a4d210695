"""The life of a process: logging, telemetry, the operator's door, the gRPC server with health, background tasks, and an
orderly end.

    SIGTERM → NOT_SERVING → drain delay → stop(grace) → cancel tasks → close adapters in reverse → flush telemetry

A process whose adapters cannot be opened yet, since what they need is away, waits (kit.process.waiting): it is alive, not ready,
says what it waits for, and SIGTERM ends it at once.
"""

import asyncio
import gc
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator, Sequence
from contextlib import AsyncExitStack, suppress
from typing import Any, Self

import grpc
import structlog
from google.protobuf.descriptor import ServiceDescriptor
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_health.v1.health import aio as health_aio

from kit.access.key_metrics import show_keys
from kit.access.own_key import OwnKey
from kit.access.tokens import TokenSigner, TokenVerifier
from kit.errors import FailedPrecondition, GroundworkError, Unavailable
from kit.observability.logging import configure_logging
from kit.observability.ops import OpsServer, Trouble
from kit.observability.process_metrics import READY, show_build, watch_loop
from kit.observability.telemetry import configure_telemetry
from kit.process.configuration import SettingsT, read_settings
from kit.process.settings import ServiceSettings
from kit.process.waiting import Waiting
from kit.rpc.channel import Channel, open_channel
from kit.rpc.credentials import CertificateExpiry
from kit.rpc.server import HEALTH_DETAIL_KEY, HEALTH_KINDS_KEY, Server, make_server

_log = structlog.get_logger()
_CHECK_TIMEOUT_S = 2.0
_CHECK_INTERVAL_S = 0.1
_MAX_DETAIL_CHARS = 1000
"""Metadata of a call may have 8 KB together."""
_LISTEN_AFTER_S = 10.0
"""A process that waits for longer opens its port, to tell its health. Not before: who calls is patient for about as long with an
address where nobody listens, so that a start which an election of NATS holds up fails no call."""
_PORT_HELD_FOR_S = 5.0
"""Half of the patience of callers: one that learns nothing for longer says so itself."""
_SETTLED_AFTER_S = 15.0
"""By then a process has imported and opened what it needs."""


def run_process(run: Callable[[SettingsT], Coroutine[Any, Any, None]], settings_class: type[SettingsT]) -> None:
    """Reads the settings and runs a service's main coroutine to its end on uvloop: the body of every `__main__.py`.

    Settings that are not valid end the process with a line for each on stderr and exit code 78; our own errors, whose messages
    say what to do, with a line for each and exit code 1.
    """
    settings = read_settings(settings_class)
    import uvloop  # noqa: PLC0415 - only processes need it, not those who import kit.process.service

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
        self.kinds: tuple[str, ...] = ()

    async def Check(self, request: Any, context: Any) -> Any:  # noqa: N802 - the protocol's name
        if self.detail:
            kinds = ",".join(self.kinds)
            context.set_trailing_metadata(((HEALTH_DETAIL_KEY, self.detail.encode()), (HEALTH_KINDS_KEY, kinds)))
        return await super().Check(request, context)


class _Started:
    """A server that runs already, as generated code adds a servicer to it. Of the two ways that it uses, one is closed by then."""

    def __init__(self, server: grpc.aio.Server) -> None:
        self.add_generic_rpc_handlers = server.add_generic_rpc_handlers

    def add_registered_method_handlers(self, service_name: str, method_handlers: object) -> None:
        """Not possible any more, nor needed: only a faster way to the same handlers."""


class NotOpen(Unavailable):
    """A call came while this process waits for what it needs. It has done nothing, and another replica may be open."""

    reason = "NOT_OPEN"
    is_of_one_replica = True


class _NotOpen(grpc.GenericRpcHandler):
    """Refuses every call with Unavailable while the adapters are being opened: nothing was done, another replica may be asked."""

    def __init__(self, waiting: Waiting) -> None:
        self._waiting = waiting
        self.is_over = False

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> Any:
        if self.is_over or handler_call_details.method.startswith("/grpc.health.v1.Health/"):
            return None
        # This kind answers calls of every kind, since it refuses before it reads or writes.
        return grpc.stream_stream_rpc_method_handler(self._refuse)

    async def _refuse(self, request: Any, context: Any) -> AsyncIterator[Any]:  # noqa: ARG002
        parts = " and ".join(trouble.part for trouble in self._waiting.troubles()) or "its start"
        raise NotOpen(f"this service waits for {parts}; try again in a few seconds", retry_after_s=2.0)
        yield  # makes this a generator


class Service:
    """One process. Enter it, put adapters on `stack`, add servicers, then `serve()` until a signal stops it.

    Adapters that need something from outside are opened by `waiting.until`. SIGTERM before `serve()` ends the block, which is no
    error.

    `require` names what must have answered once before the service reports SERVING. Readiness does not cascade after
    that: a service whose dependency is down still answers, degraded, and says so. What it says of itself to operators it takes
    from those who `report`.
    """

    def __init__(self, name: str, settings: ServiceSettings) -> None:
        self.name = name
        self.settings = settings
        signing_key, public_keys = settings.signing_key(), settings.public_keys()
        show_keys(public_keys, signing_key)
        self.signer = TokenSigner(signing_key)
        self.verifier = TokenVerifier(public_keys)
        self.certificates = settings.certificates()
        """For TLS with other services; None without."""
        self.stack = AsyncExitStack()
        self.stopping = asyncio.Event()
        """Stopping: not ready any more, and still serving clients that have not noticed."""
        self.closing = asyncio.Event()
        """The drain delay is over: nobody new is let in, and those in hand are given the grace."""
        self.address = ""
        self._opened = False
        self._serving = False
        self.waiting = Waiting()
        self._troubles: tuple[Trouble, ...] = ()
        own_key = OwnKey(signing_key, public_keys)
        self._reporters: list[Callable[[], Sequence[Trouble]]] = [self.waiting.troubles, own_key.troubles]
        self._tasks: set[asyncio.Task[None]] = set()
        self._group = asyncio.TaskGroup()
        self._requirements: dict[str, Callable[[], Awaitable[object]]] = {}
        self._holding_port: set[str] = set()
        self._servicers: list[tuple[Callable[[Any, Any], None], object, ServiceDescriptor]] = []
        self._health = DetailedHealth()
        self._not_open = _NotOpen(self.waiting)
        self._server: grpc.aio.Server | None = None
        self._binding = asyncio.Lock()
        self._opening: asyncio.Task[Any] | None = None
        """The task that opens the adapters, until it serves."""

    async def __aenter__(self) -> Self:
        configure_logging(self.name, self.settings.log_level)
        provider = configure_telemetry(self.name, self.settings.otlp_endpoint, self.settings.otlp_ca_file)
        self.stack.callback(provider.shutdown)
        show_build(self.name)
        self._ops = OpsServer(
            self.settings.ops_host,
            self.settings.ops_port,
            ready=lambda: self._serving,
            troubles=lambda: self._troubles,
            allowed_hosts=self.settings.ops_allowed_hosts,
        )
        self.stack.enter_context(self._ops)
        if self.certificates is not None:
            self.report(CertificateExpiry(self.certificates).troubles)
        await self._group.__aenter__()
        self._opening = asyncio.current_task()
        self._catch_signals()
        self.spawn(self._heartbeat())
        self.spawn(watch_loop())
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: Any) -> bool:
        ends_early = kind is asyncio.CancelledError and self._was_stopped_while_opening()
        for task in self._tasks:
            task.cancel()
        reason = (None, None, None) if ends_early else (kind, error, traceback)
        try:
            await self._group.__aexit__(*reason)
        finally:
            if self._server is not None:
                await self._server.stop(None)  # before the adapters, also when cancelled without a request to stop
            await self.stack.aclose()
        return ends_early

    def _was_stopped_while_opening(self) -> bool:
        """Whether the cancellation that ends the block is ours; it is then taken back."""
        if self._opening is None or not self.stopping.is_set():
            return False
        while self._opening.uncancel():
            pass
        return True

    async def channel(
        self,
        address: str,
        contracts: Sequence[ServiceDescriptor] = (),
        *,
        passed_on_to: Sequence[str] = (),
        patience_s: float | None = None,
    ) -> Channel:
        """A channel to another service, for the life of this one; see kit.rpc.channel. As patient as `patience_s`, or as
        the settings say."""
        return await self.stack.enter_async_context(
            open_channel(
                address,
                self.signer,
                contracts,
                passed_on_to=passed_on_to,
                patience_s=self.settings.connection_patience_s if patience_s is None else patience_s,
                certificates=self.certificates,
            )
        )

    def require(self, name: str, check: Callable[[], Awaitable[object]], *, holds_port: bool = False) -> None:
        """Holds SERVING back until `check` has returned once without raising. One that `holds_port` keeps the port closed for some
        seconds, too: callers wait for who is not there yet, and are sent away by who is there and knows nothing."""
        self._requirements[name] = check
        if holds_port:
            self._holding_port.add(name)

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
        await self._hold_port()
        self._opening = None
        if self.stopping.is_set():
            return
        server = await self._listen(with_servicers=True)
        self._not_open.is_over = True
        _log.info("service_started", address=self.address, ops_port=self._ops.port)
        opening = self.spawn(self._open_when_ready())
        await self.stopping.wait()
        opening.cancel()
        drain_delay_s = self.settings.drain_delay_s if self._opened else 0.0  # nobody was sent here yet
        self._opened = self._serving = False
        READY.set(0)
        await self._health.enter_graceful_shutdown()
        _log.info("service_draining")
        await asyncio.sleep(drain_delay_s)
        self.closing.set()
        await server.stop(self.settings.drain_grace_s)

    async def _hold_port(self) -> None:
        checks = (self._requirements[name]() for name in self._holding_port)
        with suppress(TimeoutError):
            async with asyncio.timeout(_PORT_HELD_FOR_S):
                await asyncio.gather(*checks, return_exceptions=True)  # readiness tells of what fails

    async def _listen(self, *, with_servicers: bool = False) -> grpc.aio.Server:
        """Opens the port, which answers health from now on; all that there is no servicer for yet is refused until `serve`."""
        async with self._binding:
            is_new = self._server is None
            server = self._server = self._server or self._bind()
            for add, servicer, _ in self._servicers if with_servicers else ():
                add(servicer, server if is_new else _Started(server))
            await self._set_health(health_pb2.HealthCheckResponse.NOT_SERVING)  # the library begins with SERVING
            if is_new:
                await server.start()
            return server

    def _bind(self) -> Server:
        server = make_server(self.verifier, max_connection_age_s=self.settings.max_connection_age_s)
        health_pb2_grpc.add_HealthServicer_to_server(self._health, server)
        server.add_generic_rpc_handlers((self._not_open,))
        host = self.settings.grpc_address.rpartition(":")[0]
        try:
            port = server.bind(self.settings.grpc_address, self.certificates)
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
        async def attempt() -> None:
            try:
                async with asyncio.timeout(_CHECK_TIMEOUT_S):
                    await check()
            except TimeoutError as error:
                raise Unavailable(f"not ready within {_CHECK_TIMEOUT_S:g} s") from error

        await self.waiting.until(name, attempt, again_after=(Exception,), longest_retry_s=_CHECK_INTERVAL_S)

    async def _look_at_troubles(self) -> None:
        self._troubles = tuple(trouble for report in self._reporters for trouble in report())
        self._health.detail = "; ".join(f"{each.part}: {each.message}" for each in self._troubles)[:_MAX_DETAIL_CHARS]
        self._health.kinds = tuple(sorted({each.kind for each in self._troubles}))
        serving = self._opened and not any(trouble.stops_service for trouble in self._troubles)
        if serving != self._serving:
            self._serving = serving
            READY.set(serving)
            health = health_pb2.HealthCheckResponse
            await self._set_health(health.SERVING if serving else health.NOT_SERVING)

    async def _set_health(self, status: Any) -> None:
        for name in ["", *(descriptor.full_name for _, _, descriptor in self._servicers)]:
            await self._health.set(name, status)

    async def _heartbeat(self) -> None:
        while True:
            self._ops.beat()
            await self._look_at_troubles()
            if self._opening is not None and self.waiting.is_waiting and self.waiting.longest_s >= _LISTEN_AFTER_S:
                await self._listen()
            await asyncio.sleep(1.0)

    def _catch_signals(self) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._stop)

    def _stop(self) -> None:
        self.stopping.set()
        if self._opening is not None:
            self._opening.cancel()
